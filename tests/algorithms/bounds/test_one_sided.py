"""One-sided derivatives of functions whose derivatives are known."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.algorithms.bounds.one_sided import one_sided

GBPS = 10**9


def test_of_a_cut_that_another_takes_over():
    """The slope, the law and the end are exact where a flow is limited by one of two cuts."""

    def seconds(b: Fraction) -> Fraction:
        return Fraction(GBPS) / min(b + 20 * GBPS, Fraction(40 * GBPS), Fraction(28 * GBPS) + b / 4)

    up, down = (one_sided(seconds, Fraction(10 * GBPS), up=way) for way in (True, False))
    assert up is not None
    assert down is not None
    assert up.slope_s_per_GBps == down.slope_s_per_GBps == -1 / 900
    assert (up.law, up.until_GBps, down.until_GBps) == ("flow", pytest.approx(32 / 3), None)
    assert (up.check_s, down.check_s) == (up.expected_s, down.expected_s)


def test_both_sides_of_a_kink():
    """At the point where two cuts are equally narrow, more gains nothing and less costs."""

    def seconds(b: Fraction) -> Fraction:
        return Fraction(GBPS) / min(b, Fraction(10 * GBPS))

    up, down = (one_sided(seconds, Fraction(10 * GBPS), up=way) for way in (True, False))
    assert up is not None
    assert down is not None
    assert (up.slope_s_per_GBps, up.law, up.until_GBps) == (0.0, "constant", None)
    assert (down.slope_s_per_GBps, down.law, down.until_GBps) == (-0.01, "flow", None)


def test_of_a_law_that_holds_nearby_only():
    """A cut that takes over within a thousandth of the bandwidth is told from the first."""

    def seconds(b: Fraction) -> Fraction:
        return Fraction(GBPS) / min(b, Fraction(10_001, 1000) * GBPS)

    up = one_sided(seconds, Fraction(10 * GBPS), up=True)
    assert up is not None
    assert (up.slope_s_per_GBps, up.until_GBps) == (-0.01, 10.001)


def test_of_loads_and_of_what_is_smooth():
    """Largest loads follow p + q / B in floating point, and what has no law gets a derivative and no range."""
    load = one_sided(lambda b: max(1.0 + 5e9 / float(b), 0.2), Fraction(10 * GBPS), up=True)
    assert load is not None
    assert (load.law, load.until_GBps) == ("load", None)
    assert load.slope_s_per_GBps == pytest.approx(-0.05)
    root = one_sided(lambda b: (float(b) / 1e9) ** -0.5 + (float(b) / 1e9) ** -2, Fraction(10 * GBPS), up=False)
    assert root is not None
    assert (root.law, root.until_GBps) == ("smooth", None)
    assert root.slope_s_per_GBps == pytest.approx(-0.5 * 10**-1.5 - 2 * 10**-3, rel=1e-5)
    assert root.check_s == pytest.approx(root.expected_s, rel=1e-8)


def test_of_steps_and_jumps():
    """On a grid the time is constant up to the next step, and where it steps at once it jumps."""

    def seconds(b: Fraction) -> Fraction:
        return Fraction(-(-100 * GBPS // b))

    up = one_sided(seconds, Fraction(10 * GBPS), up=True)
    assert up is not None
    assert (up.slope_s_per_GBps, up.law) == (0.0, "constant")
    assert up.until_GBps == pytest.approx(100 / 9, rel=1e-2)
    down = one_sided(lambda b: float(seconds(b)), Fraction(10 * GBPS), up=False)
    assert down is not None
    assert (down.slope_s_per_GBps, down.law, down.check_s) == (None, "jump", 11.0)


def test_of_what_cannot_be_solved():
    """Derivatives are unknown if no nearby problem can be solved; if one cannot, another is used."""
    assert one_sided(lambda _: None, Fraction(GBPS), up=True) is None
    assert one_sided(lambda b: Fraction(1) if b == GBPS else None, Fraction(GBPS), up=True) is None
    side = one_sided(lambda b: None if b > 1.2 * GBPS else Fraction(GBPS) / b, Fraction(GBPS), up=True)
    assert side is not None
    assert side.slope_s_per_GBps == -1.0
