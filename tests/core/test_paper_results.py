"""Printed numbers: how they are read, and when ours agrees."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.errors import InputError
from cwb.core.fields import run_validation
from cwb.core.paper_results import Agreement, Finding, PublishedFile, PublishedRow, Quantity, compare_row, parse_printed


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
    found = parse_printed(text)
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
        ("2 to 3", 2.4, True),
        ("2 to 3", 3.4, True),
        ("2 to 3", 3.6, False),
        ("2.0 to 12.4", 1.9, False),
        ("~20", 21.9, True),
        ("~20", 22.1, False),
        ("optimal", "optimal", True),
        ("optimal", "feasible", False),
    ],
)
def test_ours_agrees_within_the_last_digit(text, ours, same):
    """Without a stated tolerance ours must round to the printed digits; claims go one way; words are words."""
    assert (compare_row(row(text), ours).agreement is Agreement.REPRODUCED) is same


def test_a_stated_tolerance_replaces_the_last_digit():
    """Two per cent of the printed number are two per cent."""
    assert compare_row(row("100", within="2 %"), 101.9).agreement is Agreement.REPRODUCED
    assert compare_row(row("100", within="2 %"), 102.1).agreement is Agreement.DIFFERS


def test_a_claim_to_be_more_is_no_claim_to_be_equal():
    """Without a tolerance, what is printed as more or less than a number is not reproduced by that number."""
    strict = {"within": "0 %"}
    assert compare_row(row("> 1", **strict), 1.0).agreement is Agreement.DIFFERS
    assert compare_row(row("< 1", **strict), 1.0).agreement is Agreement.DIFFERS
    assert compare_row(row(">= 1", **strict), 1.0).agreement is Agreement.REPRODUCED
    assert compare_row(row("> 1", **strict), 1.001).agreement is Agreement.REPRODUCED


def test_a_range_is_one_claim():
    """The difference to a range is that to its nearer end, and nothing inside."""
    assert compare_row(row("2 to 3"), 2.9).difference == 0
    assert compare_row(row("2 to 3"), 1).difference == -0.5
    assert compare_row(row("2 to 3"), 6).difference == 1
    found = parse_printed("70 to 85.5")
    assert (found.value, found.most, found.half_unit) == (70, Fraction(171, 2), Fraction(1, 2))


@pytest.mark.parametrize("ours", [0.01, 1, 100])
def test_seconds_of_computing_are_set_beside_and_not_compared(ours):
    """Whatever a run takes, alone or in a ratio, the verdict is the same, and nothing is left to explain."""
    seconds = {"run": "r", "value": "seconds.total"}
    for quantity in (seconds, {"ratio": [seconds, {"run": "r"}]}, {"total": [{"mean": [seconds]}]}):
        found = compare_row(row("<= 1", ours=quantity, why="a slow machine"), ours)
        assert (found.agreement, found.reason, found.is_explained) == (Agreement.WALL_TIME, "", True)
    failed = Finding(row("<= 1", ours=seconds), Agreement.FAILED, reason="no such run")
    assert failed.is_explained


@pytest.mark.parametrize("ours", [1, 2])
def test_a_prediction_names_its_model_and_does_not_count(ours):
    """Ours stands beside the measured number with the difference, and the model of time is told, with what is known of
    the difference."""
    found = compare_row(row("2", predicted="flow", why="small messages"), ours, "By a flow.")
    assert (found.agreement, found.difference, found.is_explained) == (Agreement.PREDICTED, ours / 2 - 1, True)
    assert found.reason == "By a flow. small messages"


def test_a_prediction_names_a_model_of_its_file():
    """A model that is not described, or a prediction of nothing, is refused."""
    data = {"title": "t", "source": "s", "runs": {"r": {}}, "row": [row("1", predicted="flow").model_dump()]}
    with pytest.raises(InputError, match="names no model of time: 'flow'"):
        run_validation(lambda: PublishedFile.model_validate(data))
    run_validation(lambda: PublishedFile.model_validate(data | {"models": {"flow": "By a flow."}}))
    with pytest.raises(InputError, match="expected ours"):
        run_validation(lambda: row("1", predicted="flow", ours=None, needs="GPUs"))


def test_a_difference_is_explained_by_its_reason_only():
    """The reason of the file is told where ours differs, and not where it agrees."""
    assert compare_row(row("2", why="a misprint"), 3).reason == "a misprint"
    assert compare_row(row("2", why="a misprint"), 3).is_explained
    assert compare_row(row("2", why="a misprint"), 2).reason == ""
    assert not compare_row(row("2"), 3).is_explained
    assert compare_row(row("2"), 3).difference == 0.5


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ({}, "exactly one"),
        ({"run": "a", "mean": [{"run": "b"}]}, "exactly one"),
        ({"run": "a", "times": "many"}, "expected a number"),
        ({"number": "2 to 3"}, "expected a number"),
        ({"number": "<= 2"}, "expected a number"),
        ({"network": "ring(4)"}, "expected one of ranks, nodes, links"),
    ],
)
def test_a_quantity_is_one_thing(quantity, expected):
    """A quantity that is nothing, or two things, is refused with a sentence."""
    with pytest.raises(InputError, match=expected):
        run_validation(lambda: Quantity.model_validate(quantity))


def test_a_row_needs_a_run_that_exists():
    """A row whose run is not in the file is refused with its name."""
    data = {"title": "t", "source": "s", "row": [row("1").model_dump()]}
    with pytest.raises(InputError, match="needs the run 'r'"):
        run_validation(lambda: PublishedFile.model_validate(data))


def test_a_row_is_computed_or_says_what_it_would_need():
    """Neither both nor none."""
    with pytest.raises(InputError, match="either"):
        run_validation(lambda: row("1", needs="GPUs"))
    with pytest.raises(InputError, match="either"):
        run_validation(lambda: row("1", ours=None))
