"""Printed numbers: how they are read, and when ours agrees."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.errors import InputError
from cwb.core.fields import validated
from cwb.core.published import Agreement, PublishedFile, PublishedRow, Quantity, compared, printed


def row(text: str, **more: object) -> PublishedRow:
    """A row of which only the printed number matters."""
    return PublishedRow.model_validate(
        {"table": "Table 1", "row": "a", "section": "1", "printed": text, "ours": {"run": "r"}} | more
    )


@pytest.mark.parametrize(
    ("text", "sign", "value", "half_unit"),
    [
        ("354.1", "", Fraction(3541, 10), Fraction(1, 20)),
        ("5", "", Fraction(5), Fraction(1, 2)),
        ("71,788", "", Fraction(71788), Fraction(1, 2)),
        ("15/166", "", Fraction(15, 166), Fraction(0)),
        ("1.5e3", "", Fraction(1500), Fraction(50)),
        ("<= 0.02", "<=", Fraction(1, 50), Fraction(1, 200)),
        ("~5", "~", Fraction(5), Fraction(1, 2)),
        ("optimal", "", None, Fraction(0)),
    ],
)
def test_numbers_are_read_as_printed(text, sign, value, half_unit):
    """Value, claim and the unit of the last digit are taken from the text, exactly."""
    found = printed(text)
    assert (found.sign, found.value, found.half_unit) == (sign, value, half_unit)


@pytest.mark.parametrize(
    ("text", "ours", "same"),
    [
        ("354.1", 354.13, True),
        ("354.1", 354.2, False),
        ("5", 5.4, True),
        ("1/3", 1 / 3, False),
        ("0.5", Fraction(1, 2), True),
        ("<= 1", 0.2, True),
        ("<= 1", 1.6, False),
        ("> 0.8", 0.9, True),
        ("> 0.8", 0.7, False),
        ("~20", 21.9, True),
        ("~20", 22.1, False),
        ("optimal", "optimal", True),
        ("optimal", "feasible", False),
    ],
)
def test_ours_agrees_within_the_last_digit(text, ours, same):
    """Without a stated tolerance ours must round to the printed digits; claims go one way; words are words."""
    assert (compared(row(text), ours).agreement is Agreement.REPRODUCED) is same


def test_a_stated_tolerance_replaces_the_last_digit():
    """Two per cent of the printed number are two per cent."""
    assert compared(row("100", within="2 %"), 101.9).agreement is Agreement.REPRODUCED
    assert compared(row("100", within="2 %"), 102.1).agreement is Agreement.DIFFERS


def test_a_difference_is_explained_by_its_reason_only():
    """The reason of the file is told where ours differs, and not where it agrees."""
    assert compared(row("2", why="a misprint"), 3).reason == "a misprint"
    assert compared(row("2", why="a misprint"), 3).explained
    assert compared(row("2", why="a misprint"), 2).reason == ""
    assert not compared(row("2"), 3).explained
    assert compared(row("2"), 3).difference == 0.5


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ({}, "exactly one"),
        ({"run": "a", "mean": [{"run": "b"}]}, "exactly one"),
        ({"run": "a", "times": "many"}, "expected a number"),
    ],
)
def test_a_quantity_is_one_thing(quantity, expected):
    """A quantity that is nothing, or two things, is refused with a sentence."""
    with pytest.raises(InputError, match=expected):
        validated(lambda: Quantity.model_validate(quantity))


def test_a_row_needs_a_run_that_exists():
    """A row whose run is not in the file is refused with its name."""
    data = {"title": "t", "source": "s", "row": [row("1").model_dump()]}
    with pytest.raises(InputError, match="needs the run 'r'"):
        validated(lambda: PublishedFile.model_validate(data))


def test_a_row_is_computed_or_says_what_it_would_need():
    """Neither both nor none."""
    with pytest.raises(InputError, match="either"):
        validated(lambda: row("1", needs="GPUs"))
    with pytest.raises(InputError, match="either"):
        validated(lambda: row("1", ours=None))
