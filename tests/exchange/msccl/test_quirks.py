"""Texts of valid XML on which the runtimes' readers fail."""

from __future__ import annotations

import pytest
from cwb.core.errors import InputError
from cwb.exchange.msccl.files import number, parse_algorithm, quirks, xml_text
from programs import exchange_all_reduce, ring_all_gather

TEXT = "".join(xml_text(ring_all_gather()))

CASES = {
    "declaration": '<?xml version="1.0"?>\n' + TEXT,
    "tab": TEXT.replace("    <tb", "\t<tb", 1),
    "split": TEXT.replace(' proto="', '\nproto="', 1),
    "quote": TEXT.replace('"Simple"', "'Simple'"),
    "equals": TEXT.replace('proto="', 'proto ="', 1),
    "entity": TEXT.replace('name="test"', 'name="a&amp;b"'),
    "text": TEXT.replace("  <gpu", "x  <gpu", 1),
    "encoding": "\ufeff" + TEXT,
    "first": "<all>" + TEXT + "</all>",
    "attributes": TEXT.replace(">", "".join(f' x{n}="0"' for n in range(9)) + ">", 1),
    "characters": TEXT.replace('name="test"', f'name="{"n" * 256}"'),
    "number": TEXT.replace('chan="0"', 'chan="00"', 1),
}


def test_what_is_written_has_no_quirk():
    """Files written by cwb are read back unchanged, and no reader fails on them."""
    for program in (ring_all_gather(), exchange_all_reduce()):
        text = "".join(xml_text(program)).encode()
        assert quirks(text).first == []
        assert parse_algorithm(text) == program


def test_comments_are_no_quirk():
    """Comments before and inside of the algorithm are skipped, whatever is in them."""
    text = "<!-- it's\n\ta comment -->\n" + TEXT.replace("</gpu>", "<!-- & '\t -->\n</gpu>", 1)
    assert quirks(text.encode()).first == []


def test_what_is_between_plain_steps_is_found():
    """Steps that are skipped as plain keep their lines, and each text between them and each odd number is found."""
    lines = TEXT.splitlines()
    first = next(number for number, line in enumerate(lines) if "<step" in line)
    lines[first + 1 : first + 1] = ["x", lines[first].replace('s="0"', 's="00"'), "y", lines[first]]
    found = quirks("\n".join(lines).encode()).first
    assert [(one.rule, one.place) for one in found] == [
        ("text", f"line {first + 1}"),
        ("text", f"line {first + 3}"),
        ("number", f"line {first + 3}"),
    ]


@pytest.mark.parametrize("rule", CASES)
def test_each_is_found(rule):
    """A text with one of them has just this one."""
    assert {finding.rule for finding in quirks(CASES[rule].encode()).wrong} == {rule}


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("-1", -1), ("010", 8), ("0x10", 16), ("abc", 0), ("", 0), ("7x", 7), ("9" * 30, 2**63 - 1)],
)
def test_numbers_are_read_as_c_does(text, value):
    """strtol with base 0: octal, hexadecimal, and 0 for what is no number."""
    assert number(text) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not XML"),
        ("<algo", "not XML"),
        ("<gpu/>", "no element algo"),
        ('<!DOCTYPE algo [<!ENTITY a "b">]>' + TEXT, "declares entities"),
        (TEXT.replace(' cnt="1"', "", 1), "line 4: step has no attribute cnt"),
        (TEXT.replace(' ngpus="3"', ""), "algo has no attribute ngpus"),
        (TEXT.replace('ngpus="3"', 'ngpus="99999999"'), "algo.ngpus"),
        (TEXT[:-20], "not XML"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(text, problem):
    """No entities, no missing attributes, no cut off files: an error that names the place."""
    with pytest.raises(InputError) as caught:
        parse_algorithm(text.encode())
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
