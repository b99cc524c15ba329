"""Means and intervals over runs; each describes itself for the note below a table."""

from collections.abc import Sequence
from math import exp, expm1, fsum, log, log1p, sqrt
from statistics import fmean, linear_regression, stdev, variance

SHIFT_S = 1.0  #: Shift of geometric means of times: Mittelmann's 10 s drowns what takes milliseconds.

#: Bootstrap: resamples, the seed of all of them, and the level of every interval.
RESAMPLES, SEED, LEVEL = 2000, 0, 0.95

T_INTERVAL = "± is half of the 95 % confidence interval of the mean over the runs of a row (Student's t)"
BOOTSTRAP = f"the interval is the 95 % percentile bootstrap over the problems ({RESAMPLES:,} resamples, seed {SEED})"


def mean(values: Sequence[float]) -> float | None:
    """Return the arithmetic mean; None without values."""
    return fmean(values) if values else None


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return the geometric mean; None without values or if one is not positive."""
    if not values or min(values) <= 0:
        return None
    return exp(fsum(map(log, values)) / len(values))


def total(values: Sequence[float]) -> float | None:
    """Return the sum; None without values."""
    return fsum(values) if values else None


def count(values: Sequence[float]) -> float | None:
    """Return the number of values."""
    return float(len(values))


def t_half_width(values: Sequence[float]) -> float | None:
    """Return half of the 95 % interval of the mean by Student's t; None for fewer than two values."""
    from scipy.special import stdtrit

    n = len(values)
    return None if n < 2 else float(stdtrit(n - 1, (1 + LEVEL) / 2)) * stdev(values) / sqrt(n)


def shifted_geometric_mean(values: Sequence[float], shift: float = SHIFT_S) -> float | None:
    """Return the geometric mean of the values plus a positive shift, minus the shift; None without or below 0."""
    if not values or min(values) < 0:
        return None
    # Of times much smaller than the shift nothing is lost to rounding.
    return shift * expm1(fsum(log1p(value / shift) for value in values) / len(values))


def sgm_interval(values: Sequence[float], shift: float = SHIFT_S) -> tuple[float, float] | None:
    """Return both ends of the percentile bootstrap of the shifted geometric mean, the same for the same values.

    None for fewer than two values or if one is negative.
    """
    import numpy as np

    if len(values) < 2 or min(values) < 0:
        return None
    logs = np.log1p(np.asarray(values, dtype=float) / shift)
    random = np.random.default_rng(SEED)
    means = [logs[random.integers(0, len(logs), len(logs))].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return shift * expm1(low), shift * expm1(high)


def sgm_end(end: int, values: Sequence[float]) -> float | None:
    """Return the lower (0) or upper (1) end of the bootstrap interval of the shifted geometric mean."""
    ends = sgm_interval(values)
    return None if ends is None else ends[end]


def fit_power(points: Sequence[tuple[float, float]]) -> tuple[float, float, float | None] | None:
    """Fit ``y = factor * x ** exponent`` by least squares of the logarithms.

    Return factor, exponent, and half of the 95 % interval of the exponent (None of fewer than three points); None where
    all points have the same x.
    """
    from scipy.special import stdtrit

    logs = [(log(x), log(y)) for x, y in points if x > 0 and y > 0]
    n = len(logs)
    if n < 2:
        return None
    x, y = zip(*logs, strict=True)
    if (spread := (n - 1) * variance(x)) <= 1e-12:
        return None
    exponent, constant = linear_regression(x, y)
    rest = fsum((b - constant - exponent * a) ** 2 for a, b in logs)
    half = float(stdtrit(n - 2, (1 + LEVEL) / 2)) * sqrt(rest / (n - 2) / spread) if n > 2 else None
    return exp(constant), exponent, half
