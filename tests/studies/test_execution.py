"""Intervals of measured times."""

from __future__ import annotations

import pytest
from cwb.studies.execution import CONFIDENCE, interval_of


@pytest.mark.parametrize(
    ("count", "first", "confidence"),
    [(1, 0, 0.0), (5, 0, 0.9375), (6, 0, 0.96875), (9, 1, 0.9609375), (20, 5, 0.95861)],
)
def test_intervals_are_those_of_tables(count, first, confidence):
    """The order statistics and their probabilities are those of the tables of the sign test; few repetitions give the
    extremes, with less."""
    low, high, found = interval_of([float(number) for number in reversed(range(count))])
    assert (low, high) == (first, count - 1 - first)
    assert found == pytest.approx(confidence, abs=1e-5)
    assert found >= CONFIDENCE or first == 0
