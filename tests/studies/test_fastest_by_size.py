"""The lowest of several curves: exact sizes at which it changes."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import floor

import pytest
from cwb.studies.fastest_by_size import fastest, limit_spans, sizes_between
from hypothesis import given
from hypothesis import strategies as st

FIRST, LAST = 2**10, 2**30

Line = tuple[int, int]


def curve(line: Line):
    """Seconds of a latency in ns and a rate in MB/s."""
    latency, rate = line
    return lambda size: float(Fraction(latency, 10**9) + Fraction(size, rate * 10**6))


def crossing(one: Line, other: Line) -> int:
    """First size at which the other one, of a higher latency and rate, is the lower."""
    per_byte = Fraction(1, one[1] * 10**6) - Fraction(1, other[1] * 10**6)
    return floor(Fraction(other[0] - one[0], 10**9) / per_byte) + 1


def test_a_change_is_at_the_first_byte_that_is_faster() -> None:
    """Of three lines the sizes of the changes are those of their exact crossings."""
    lines = [(1000, 1000), (5000, 20_000), (90_000, 70_000)]
    found = fastest([curve(line) for line in lines], FIRST, LAST)
    starts = [FIRST, crossing(lines[0], lines[1]), crossing(lines[1], lines[2])]
    assert found == [(starts[0], starts[1] - 1, 0), (starts[1], starts[2] - 1, 1), (starts[2], LAST, 2)]


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**5)), min_size=1, max_size=6))
def test_spans_cover_all_sizes_and_are_lowest_at_their_ends(lines: list[Line]) -> None:
    """Whatever lines there are, spans follow each other without holes, and none is beaten at its ends or where it
    begins."""
    curves = [curve(line) for line in lines]
    found = fastest(curves, FIRST, LAST)
    assert (found[0].first, found[-1].last) == (FIRST, LAST)
    for one, other in pairwise(found):
        assert other.first == one.last + 1
        assert one.curve != other.curve
    for span in found:
        for size in (span.first, span.last):
            assert curves[span.curve](size) <= min(one(size) for one in curves) * (1 + 1e-9)


def test_of_equal_curves_the_first_counts() -> None:
    """Two curves that are equal but for rounding make no change."""
    curves = [curve((1000, 100)), lambda size: curve((1000, 100))(size) * (1 + 2e-16)]
    assert fastest(curves, FIRST, LAST) == fastest(curves[::-1], FIRST, LAST) == [(FIRST, LAST, 0)]


def test_few_spans_leave_out_what_is_missed_least() -> None:
    """With room for two spans, the curve goes whose place the others take at the least cost."""
    lines = [(1000, 1000), (1100, 1010), (90_000, 70_000)]
    curves = [curve(line) for line in lines]
    assert [span.curve for span in limit_spans(curves, FIRST, LAST, 3)] == [0, 1, 2]
    few = limit_spans(curves, FIRST, LAST, 2)
    assert len(few) == 2
    assert few[-1].curve == 2
    (only,) = limit_spans(curves, FIRST, LAST, 1)
    assert only[:2] == (FIRST, LAST)


@pytest.mark.parametrize(("first", "last"), [(7, 7), (1, 2), (1000, 1001), (1, 2**40)])
def test_sizes_have_both_ends(first: int, last: int) -> None:
    """The sizes that are looked at begin and end with the range, without gaps of more than half an octave."""
    sizes = sizes_between(first, last)
    assert (sizes[0], sizes[-1]) == (first, last)
    assert all(b <= max(a + 1, a * 1.42 + 1) for a, b in pairwise(sizes))
