"""One-sided bandwidth derivatives of an optimum that is known only by re-solving.

Flows, trees and cuts give ``T = M / R``, where the rate R is concave and piecewise linear in a bandwidth B, as the
value of a linear program in its right-hand side. By concavity, three collinear points prove that the segment
between them is linear. A line holds up to its intersection with the next one, which is confirmed by an optimum
there that is on both. With exact fractions all of this is exact. Times that are largest loads, ``T = p + q / B``,
are treated alike, but for them only the evaluated points are certain.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from ...core.sensitivity import CONSTANT, FLOW, JUMP, LOAD, SMOOTH, Side, per_GBps

Number = Fraction | float

#: The optimum in seconds at a bandwidth in B/s; None where it could not be found.
Value = Callable[[Fraction], Number | None]

TOLERANCE = 1e-7  #: relative difference at which optima in floating point are the same

#: A law in floating point may miss a point between two others by this part of what they differ, and of the optimum.
_OF_CHANGE, _OF_OPTIMUM = 1e-5, 2e-9

#: How near a law is sought: steps of a quarter, a sixteenth and so on of the bandwidth; fewer in floating point.
_STEPS, _FLOAT_STEPS = 12, 3

_DOUBLINGS = 4  #: how far a law is followed: so many times twice, or half, the bandwidth
_LINES, _BISECTIONS = 8, 12  #: lines that are tried for the one that takes over, and halvings where there is none
_SMALL = Fraction(1, 64)  #: step of a derivative without a law, over the bandwidth


@dataclass(frozen=True)
class Law:
    """Straight line in 1 / T over B for flows, in T over 1 / B for loads."""

    kind: str
    x0: Number
    y0: Number
    slope: Number

    @classmethod
    def through(cls, kind: str, at: Fraction, seconds: Number, other: Fraction, other_seconds: Number) -> "Law":
        """Return the law of a kind through two points."""
        (x0, y0), (x1, y1) = _point(kind, at, seconds), _point(kind, other, other_seconds)
        return cls(kind, x0, y0, (y1 - y0) / (x1 - x0))

    def expects(self, at: Fraction) -> Number | None:
        """Return the predicted optimum in seconds; None if the line gives no positive rate."""
        y = self.y0 + self.slope * ((at if self.kind == FLOW else 1 / at) - self.x0)
        if self.kind == LOAD:
            return y
        return 1 / y if y > 0 else None

    def derivative(self, at: Fraction, seconds: Number) -> Number:
        """Return ``dT/dB`` at a point of the law."""
        return -(seconds**2) * self.slope if self.kind == FLOW else -self.slope / at**2

    def meets(self, other: "Law") -> Fraction | None:
        """Return the bandwidth at which two laws of a kind intersect, None if there is none."""
        if self.slope == other.slope:
            return None
        x = (other.y0 - self.y0 + self.slope * self.x0 - other.slope * other.x0) / (self.slope - other.slope)
        if x <= 0:
            return None
        return Fraction(x) if self.kind == FLOW else 1 / Fraction(x)


def one_sided(value: Value, at: Fraction, *, up: bool) -> Side | None:
    """Return the derivative towards larger (``up``) or smaller bandwidths, and its law's range; None if unknown."""
    base = value(at)
    if base is None:
        return None
    way = 1 if up else -1
    for power in range(1, 1 + (_STEPS if isinstance(base, Fraction) else _FLOAT_STEPS)):
        step = way * at / 4**power
        half, far = value(at + step / 2), value(at + step)
        if half is None or far is None:
            continue
        for kind in (FLOW, LOAD):
            law = Law.through(kind, at, base, at + step, base if same(far, base) else far)
            if _fits(law.expects(at + step / 2), half, base, far):
                return _follow_law(value, law, at, base, at + step)
    return _extrapolated_side(value, at, base, way)


def _fits(expected: Number | None, half: Number, base: Number, far: Number) -> bool:
    if expected is None or isinstance(half, Fraction):
        return expected == half
    return abs(float(expected - half)) <= _OF_CHANGE * abs(float(far - base)) + _OF_OPTIMUM * abs(float(base))


def same(one: Number | None, other: Number | None) -> bool:
    """Return True for equal optima: fractions exactly, floats within :data:`TOLERANCE`."""
    if one is None or other is None:
        return False
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return one == other
    return abs(float(one - other)) <= TOLERANCE * abs(float(other))


def _follow_law(value: Value, law: Law, at: Fraction, base: Number, good: Fraction) -> Side:
    """Follow a law until it fails, and check it at a point halfway."""
    near, (until, good) = good, _end(value, law, at, good)
    check = (at + (good if until is None else until)) / 2
    if not same(law.expects(check), value(check)):  # no concave function: what is known is the first segment
        until, good, check = near, near, (at + near) / 2
    actual, expected = value(check), law.expects(check)
    slope = law.derivative(at, base)
    return Side(
        per_GBps(float(slope)),
        CONSTANT if slope == 0 else law.kind,
        None if until is None else float(until) / 1e9,
        float(good) / 1e9,
        float(check) / 1e9,
        None if actual is None else float(actual),
        None if expected is None else float(expected),
    )


def _end(value: Value, law: Law, at: Fraction, good: Fraction) -> tuple[Fraction | None, Fraction]:
    """Return the end of a law, None if none is seen, and the farthest point that confirms it."""
    bad, factor = good, Fraction(2) if good > at else Fraction(1, 2)
    for doubling in range(1, _DOUBLINGS + 1):
        bad = at * factor**doubling
        if not same(law.expects(bad), value(bad)):
            break
        good = bad
    else:
        return None, good
    for _ in range(_LINES):
        near = bad - (bad - good) / 64
        there, beside = value(bad), value(near)
        meeting = None
        if there is not None and beside is not None:
            meeting = law.meets(Law.through(law.kind, bad, there, near, beside))
        if meeting is None or not min(good, bad) < meeting < max(good, bad):
            break
        if same(law.expects(meeting), value(meeting)):
            return meeting, meeting
        bad = meeting
    for _ in range(_BISECTIONS):
        middle = (good + bad) / 2
        if same(law.expects(middle), value(middle)):
            good = middle
        else:
            bad = middle
    return good, good


def _extrapolated_side(value: Value, at: Fraction, base: Number, way: int) -> Side | None:
    """Compute the derivative by Richardson extrapolation of three differences, with a check between."""
    steps = [way * at * _SMALL / 2**halving for halving in range(3)]
    times = [value(at + step) for step in steps]
    first, second, third = times
    if first is None or second is None or third is None:
        return None
    first_GBps = float(at + steps[0]) / 1e9
    if abs(float(third - base)) > 0.75 * abs(float(first - base)):
        return Side(None, JUMP, None, first_GBps, float(at + steps[2]) / 1e9, float(third), float(third))
    rates = [(time - base) / step for time, step in zip((first, second, third), steps, strict=True)]
    slope = (8 * rates[2] - 6 * rates[1] + rates[0]) / 3
    check = 3 * steps[0] / 4
    # The cubic through the point and the three others, by Lagrange's formula for the difference quotients.
    weights = [prod((check - other) / (step - other) for other in steps if other != step) for step in steps]
    expected = base + check * sum(weight * rate for weight, rate in zip(weights, rates, strict=True))
    there = value(at + check)
    actual = None if there is None else float(there)
    return Side(per_GBps(float(slope)), SMOOTH, None, first_GBps, float(at + check) / 1e9, actual, float(expected))


def _point(kind: str, at: Fraction, seconds: Number) -> tuple[Number, Number]:
    """Return the coordinates in which laws of a kind are straight lines."""
    return (at, 1 / seconds) if kind == FLOW else (1 / at, seconds)
