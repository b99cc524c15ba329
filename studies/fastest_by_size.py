"""Lower envelope of cost curves, with the exact sizes at which the lowest curve changes (docs/exchange/select.md).

A curve gives the seconds for a whole number of bytes. Between two sizes, a curve is left out only if it is slower at
the smaller one than the lowest is at the larger one, which is exact for non-decreasing curves.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

Curve = Callable[[int], float]  #: Seconds of a size.

#: Curves that differ by no more than this part are the same, and the first one counts: rounding is no crossover.
SAME = 1e-12

_PER_OCTAVE = 2  #: Sizes that are looked at in an octave.


class Span(NamedTuple):
    """A range of sizes, both ends included, with its lowest curve."""

    first: int
    last: int
    curve: int


def sizes_between(first: int, last: int) -> list[int]:
    """Return the ends of a range of sizes and half octaves between them."""
    sizes = {first, last}
    step = 0
    while (size := round(first * 2 ** (step / _PER_OCTAVE))) < last:
        sizes.add(size)
        step += 1
    return sorted(sizes)


def fastest(curves: Sequence[Curve], first: int, last: int) -> list[Span]:
    """Divide a range of sizes into spans of one lowest curve each; of equal curves the first is used."""
    every = range(len(curves))
    starts = [(first, _lowest(curves, every, first))]
    for low, high in pairwise(sizes_between(first, last)):
        starts += _changes(curves, every, low, high)
    ends = [start - 1 for start, _ in starts[1:]] + [last]
    return [Span(start, end, curve) for (start, curve), end in zip(starts, ends, strict=True)]


def _lowest(curves: Sequence[Curve], among: Sequence[int], size: int) -> int:
    least = min(curves[index](size) for index in among)
    return next(index for index in among if curves[index](size) <= least * (1 + SAME))


def _changes(curves: Sequence[Curve], among: Sequence[int], low: int, high: int) -> list[tuple[int, int]]:
    """Return the sizes between two others at which the lowest curve changes, each with the new one."""
    old, new = _lowest(curves, among, low), _lowest(curves, among, high)
    if old == new:
        return []
    if high == low + 1:
        return [(high, new)]
    most = min(curves[index](high) for index in among) * (1 + SAME)
    alive = [index for index in among if index in (old, new) or curves[index](low) <= most]
    size = (low + high) // 2
    return _changes(curves, alive, low, size) + _changes(curves, alive, size, high)


def limit_spans(curves: Sequence[Curve], first: int, last: int, most: int) -> list[Span]:
    """Reduce the spans to a number by dropping curves, each the one with the least largest slow-down without it."""
    rest, sizes = list(range(len(curves))), sizes_between(first, last)

    def worst_slowdown(one: int) -> float:
        others = [curves[i] for i in rest if i != one]
        return max(min(other(size) for other in others) / curves[one](size) for size in sizes)

    while True:
        spans = [span._replace(curve=rest[span.curve]) for span in fastest([curves[i] for i in rest], first, last)]
        winners = {span.curve for span in spans}
        if len(spans) <= most or len(winners) == 1:
            return spans
        rest.remove(min(sorted(winners), key=worst_slowdown))
