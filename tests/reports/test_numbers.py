"""Numbers of reports."""

from __future__ import annotations

import math

import pytest
from cwb.reports.numbers import NumberFormat, natural, number
from cwb.reports.statistics import geometric_mean
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (NumberFormat("fixed", 3), 1.0374, "1.037"),
        (NumberFormat("fixed", 2, 1e6), 9_527_164.84, "9.53"),
        (NumberFormat("fixed", 3), 0.0, "0.000"),
        (NumberFormat("fixed", 3), -0.0, "0.000"),
        (NumberFormat("fixed", 3), 0.0001, "1.000e-4"),
        (NumberFormat("fixed", 3), 1e300, "1.000e300"),
        (NumberFormat("scientific", 1), 1.25e-8, "1.2e-8"),
        (NumberFormat("scientific", 1), 0.0, "0"),
        (NumberFormat("general", 6), 1000.0, "1000"),
        (NumberFormat("general", 6), 12.5, "12.5"),
        (NumberFormat("general", 6), 1e9, "1e9"),
    ],
)
def test_show(form: NumberFormat, value: float, text: str) -> None:
    """A number has its digits, is never written as zero unless it is, and never with dozens of digits."""
    assert form.show(value) == text


@pytest.mark.parametrize("value", [None, "1", True, math.nan, math.inf, 10**400, [1.0], {}])
def test_what_is_no_number(value: object) -> None:
    """Only finite numbers are taken from records."""
    assert number(value) is None


def test_geometric_mean() -> None:
    """Ratios average geometrically; without positive numbers there is no mean."""
    assert math.isclose(geometric_mean([0.5, 2.0, 8.0]) or 0.0, 2.0)
    assert geometric_mean([]) is None
    assert geometric_mean([1.0, 0.0]) is None


@given(st.lists(st.one_of(st.none(), st.text(), st.floats(allow_nan=False), st.from_regex(r"[a-z]+-[0-9]+"))))
def test_labels_have_an_order(labels: list[str | float | None]) -> None:
    """Labels of every kind can be sorted together."""
    in_order = sorted(labels, key=natural)
    in_order.reverse()
    assert sorted(labels, key=natural) == sorted(in_order, key=natural)


def test_numbers_in_labels_count() -> None:
    """Names are sorted by the numbers in them."""
    assert sorted(["gpt-20", "gpt-3", "gpt-03", "b", None, 2.0], key=natural) == [
        2.0,
        "b",
        "gpt-03",
        "gpt-3",
        "gpt-20",
        None,
    ]
