"""Means and intervals: against numbers from textbooks and against other ways to compute them."""

from __future__ import annotations

import math
import random
import statistics as standard

import pytest
from cwb.reports.statistics import fit_power, mean, sgm_interval, shifted_geometric_mean, t_half_width
from draws import draws
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

times = st.lists(st.floats(0, 1e6), min_size=1, max_size=12)
calm = settings(suppress_health_check=[HealthCheck.too_slow])


@calm
@given(values=times, shift=st.floats(0.01, 100))
def test_shifted_geometric_mean(values: list[float], shift: float) -> None:
    """It is the geometric mean of the shifted values, less the shift, and lies between the least and the largest."""
    found = shifted_geometric_mean(values, shift)
    assert found is not None
    assert math.isclose(found + shift, standard.geometric_mean([v + shift for v in values]), rel_tol=1e-9)
    assert min(values) * (1 - 1e-9) - 1e-9 <= found <= max(values) * (1 + 1e-9) + 1e-9


def test_shifted_geometric_mean_of_small_times() -> None:
    """Times far below the shift are not lost to rounding."""
    assert shifted_geometric_mean([1e-12, 1e-12]) == pytest.approx(1e-12, rel=1e-9)
    assert shifted_geometric_mean([]) is None
    assert shifted_geometric_mean([-1.0, 2.0]) is None


def test_t_interval() -> None:
    """Half of the interval is that of the table of Student's t: 4.303 for three values, none for one."""
    assert t_half_width([1.0, 2.0, 3.0]) == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert t_half_width([5.0, 5.0, 5.0]) == 0.0
    assert t_half_width([1.0]) is None
    assert mean([]) is None


@pytest.mark.slow
def test_bootstrap_is_reproducible_and_covers() -> None:
    """The same values give the same interval, around the mean; of samples of a known mean most intervals have it."""
    draw = random.Random(1)  # noqa: S311 (a sample, no secret)
    covered = 0
    samples = draws(40)
    for _ in range(samples):
        values = [math.expm1(draw.gauss(1.0, 0.5)) for _ in range(40)]
        values = [max(0.0, value) for value in values]
        low, high = sgm_interval(values) or (0.0, 0.0)
        assert (low, high) == sgm_interval(values)
        middle = shifted_geometric_mean(values)
        assert middle is not None
        assert low <= middle <= high
        covered += low <= math.expm1(1.0) <= high
    assert covered >= samples * 4 // 5
    assert sgm_interval([1.0]) is None
    assert sgm_interval([2.0, 2.0]) == pytest.approx((2.0, 2.0))


@calm
@given(factor=st.floats(1e-3, 1e3), exponent=st.floats(-3, 3))
def test_a_power_is_found(factor: float, exponent: float) -> None:
    """Points on a power law give its factor and exponent, with no interval to speak of."""
    found = fit_power([(x, factor * x**exponent) for x in (1.0, 2.0, 4.0, 8.0)])
    assert found is not None
    assert found[0] == pytest.approx(factor, rel=1e-6)
    assert found[1] == pytest.approx(exponent, abs=1e-6)
    assert found[2] == pytest.approx(0.0, abs=1e-5)


def test_a_power_needs_two_sizes() -> None:
    """Points of one size fit nothing; two have no interval."""
    assert fit_power([(2.0, 1.0), (2.0, 3.0)]) is None
    assert fit_power([(1.0, 1.0)]) is None
    found = fit_power([(1.0, 1.0), (2.0, 4.0)])
    assert found is not None
    assert found[1:] == (pytest.approx(2.0), None)
