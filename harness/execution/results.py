"""Measured times: an interval for their median that holds for any distribution."""

from __future__ import annotations

from math import comb

#: Probability with which an interval of enough repetitions has the median of all possible ones.
CONFIDENCE = 0.95


def interval_of(seconds: list[float]) -> tuple[float, float, float]:
    """Return an interval for the median, and the probability that it contains it.

    Repetitions are taken for independent: each is below the median with probability 1/2, so that the number of those
    below is binomial. The narrowest pair of order statistics with enough probability is taken, or the two extremes.
    """
    ordered, count = sorted(seconds), len(seconds)

    def coverage(left_out: int) -> float:
        return 1.0 - 2 * sum(comb(count, k) for k in range(left_out + 1)) / float(2**count)

    left_out = 0
    while left_out + 1 < count / 2 and coverage(left_out + 1) >= CONFIDENCE:
        left_out += 1
    return ordered[left_out], ordered[-1 - left_out], max(0.0, coverage(left_out))
