"""Which of several cost curves is the lowest, and the exact sizes at which that changes.

A curve gives the seconds of a whole number of bytes. Curves are looked at where sizes are half an octave apart; where
another one is the lowest at the next of these sizes, the change is found by bisection: the first byte at which the other
one is faster. In between, a curve is left out only if it is slower at the smaller size than the lowest is at the larger
one, which is exact for curves that never fall.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

#: Seconds of a size.
Curve = Callable[[int], float]

#: Curves that differ by no more than this part are the same, and the first one counts: rounding is no crossover.
SAME = 1e-12

#: Sizes that are looked at in an octave.
_PER_OCTAVE = 2


class Span(NamedTuple):
    """Sizes, both ends included, and which curve is the lowest there."""

    first: int
    last: int
    curve: int


def sizes_between(first: int, last: int) -> list[int]:
    """Sizes at which curves are looked at: the ends, and half octaves between them."""
    found = {first, last}
    step = 0
    while (size := round(first * 2 ** (step / _PER_OCTAVE))) < last:
        found.add(size)
        step += 1
    return sorted(found)


def fastest(curves: Sequence[Curve], first: int, last: int) -> list[Span]:
    """Cut a range of sizes into spans of one lowest curve each.

    Parameters
    ----------
    curves : sequence of callable
        At least one; of those that are equal the first is taken.
    first, last : int
        Smallest and largest size in bytes.
    """
    starts = [(first, _lowest(curves, range(len(curves)), first))]
    for low, high in pairwise(sizes_between(first, last)):
        most = min(curve(high) for curve in curves)
        alive = [index for index, curve in enumerate(curves) if curve(low) <= most * (1 + SAME)]
        starts += _changes(curves, alive, (low, _lowest(curves, alive, low)), (high, _lowest(curves, alive, high)))
    ends = [start - 1 for start, _ in starts[1:]] + [last]
    return [Span(start, end, curve) for (start, curve), end in zip(starts, ends, strict=True)]


def _lowest(curves: Sequence[Curve], among: Sequence[int], size: int) -> int:
    """The first of the curves that are the lowest at a size."""
    least = min(curves[index](size) for index in among)
    return next(index for index in among if curves[index](size) <= least * (1 + SAME))


def _changes(
    curves: Sequence[Curve], alive: Sequence[int], low: tuple[int, int], high: tuple[int, int]
) -> list[tuple[int, int]]:
    """The first sizes of the spans that begin after one size and up to another, each with its lowest curve."""
    if low[1] == high[1]:
        return []
    if high[0] == low[0] + 1:
        return [high]
    size = (low[0] + high[0]) // 2
    middle = size, _lowest(curves, alive, size)
    return _changes(curves, alive, low, middle) + _changes(curves, alive, middle, high)


def at_most(curves: Sequence[Curve], first: int, last: int, most: int) -> list[Span]:
    """Cut a range of sizes into no more than so many spans, by giving up those curves that are missed least.

    A curve is missed by as much as the lowest of the others is slower, at the size where that is the most.
    """
    left = list(range(len(curves)))
    while True:
        spans = [span._replace(curve=left[span.curve]) for span in fastest([curves[i] for i in left], first, last)]
        winners = {span.curve for span in spans}
        if len(spans) <= most or len(winners) == 1:
            return spans
        sizes = sizes_between(first, last)
        left.remove(
            min(sorted(winners), key=lambda one: _missed([curves[i] for i in left if i != one], curves[one], sizes))
        )


def _missed(others: Sequence[Curve], curve: Curve, sizes: Sequence[int]) -> float:
    """How much slower the others are than a curve, at most."""
    return max(min(other(size) for other in others) / curve(size) for size in sizes)
