"""Texts of valid XML on which the runtimes' readers fail."""

from __future__ import annotations

import pytest
from cwb.core.errors import InputError
from cwb.exchange.msccl.files import number, parse_algorithm, quirks, shorten, xml_text
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


def outcome(raw, runs=()):
    """The program of a text, or the error, and what readers fail on."""
    try:
        return parse_algorithm(raw, runs), quirks(raw).first
    except InputError as error:
        return str(error), quirks(raw).first


def test_a_shortened_text_is_read_as_the_whole_one():
    """Runs of plain steps in columns give the same program, findings and errors, wherever a text is damaged."""
    text = "".join(xml_text(ring_all_gather(6)))
    shorter, runs = shorten(text.encode())
    assert len(shorter) < len(text)
    assert sum(map(len, runs)) > 6
    assert shorter.count(b"\n") == text.count("\n")
    lines = text.splitlines(keepends=True)
    begins, ends = ("<!--", "<x>", "<![CDATA[", "<?p", "<!-- -", "</tb>"), ("-->", "</x>", "]]>", "?>", "-", "<tb>")
    alone = [(piece, "") for piece in (*begins, *ends, "\t", "&a;", '"', "<", '<steps number="0"/>')]
    for begin, end in (*zip(begins, ends, strict=True), *alone):
        for place in range(11):
            changed = [*lines[:place], begin, *lines[place : place + 3], end, *lines[place + 3 :]]
            raw = "".join(changed).encode()
            assert outcome(*shorten(raw)) == outcome(raw)
    for raw in (
        text.encode("utf-16"),
        text.encode("utf-16-le"),
        f'<?xml version="1.0" encoding="cp037"?>{text}'.encode(),
    ):
        assert shorten(raw) == (raw, [])


def test_numbers_and_names_of_runs_keep_their_values():
    """Numbers of up to 18 digits are exact in columns; larger ones, other notations and unknown types are not plain."""
    lines = TEXT.splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if "<step" in line)
    for change in ('s="999999999999999999"', 's="-999999999999999999"', 's="-0"', 's="9223372036854775808"', 's="010"'):
        line = lines[first].replace('s="0"', change, 1)
        raw = "".join([*lines[:first], *[line] * 4, *lines[first:]]).encode()
        assert parse_algorithm(*shorten(raw)) == parse_algorithm(raw)
    raw = TEXT.replace('type="rcs"', 'type="long_name"').encode()
    program = parse_algorithm(*shorten(raw))
    assert program == parse_algorithm(raw)
    assert "long_name" in {step.type for gpu in program.gpus for block in gpu.blocks for step in block.steps}


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
