"""Lower bounds in epochs that cost little: distances, and what the links into a set of nodes can start."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from ...core.bounds import EpochBound, EpochCut, EpochDistance
from .commodities import Commodity
from .epochs import FAR, EpochProblem


def lower_bound(problem: EpochProblem) -> tuple[int, EpochBound | None]:
    """Give the best of the simple bounds with what proves it.

    Cuts are tried around every destination, around everything but one source, and around the parts that only links of less bandwidth join.
    Contributions to sums, which may be added up, count for their distance alone. Where bandwidth varies, nothing is proved.
    """
    if problem.timing.changes:
        return 0, None
    pairs = [(int(problem.distance[c.source, t]), c.source, t) for c in problem.commodities for t in c.targets]
    far, source, target = max(pairs)
    best: tuple[int, EpochBound | None] = (far, EpochDistance(source, target))
    whole = [c for c in problem.commodities if not c.summed and not c.after]
    for nodes, sink in _cuts(problem, whole):
        found = _fewest(problem, whole, frozenset(nodes), sink)
        best = max(best, (found, EpochCut(nodes, sink)), key=lambda pair: pair[0])
    return best


def _cuts(problem: EpochProblem, whole: Sequence[Commodity]) -> list[tuple[tuple[int, ...], int | None]]:
    """Sets of nodes to try, with a sink or without."""
    targets, sources = {t for c in whole for t in c.targets}, {c.source for c in whole}
    cuts: list[tuple[tuple[int, ...], int | None]] = [((t,), t) for t in sorted(targets)]
    cuts += [(tuple(n for n in range(problem.nodes) if n != s), None) for s in sorted(sources)]
    for part in _parts(problem):
        cuts += [(part, t) for t in part if t in targets] + [(part, None)]
    return cuts


def _parts(problem: EpochProblem) -> list[tuple[int, ...]]:
    """Parts of the network that remain if all links up to some rate are cut."""
    found: set[tuple[int, ...]] = set()
    for slow in sorted({link.rate for link in problem.links})[:-1]:
        part = list(range(problem.nodes))
        for link in problem.links:
            if link.rate > slow and part[link.source] != part[link.target]:
                old, new = part[link.source], part[link.target]
                part = [new if p == old else p for p in part]
        for p in set(part):
            found.add(tuple(n for n in range(problem.nodes) if part[n] == p))
    return sorted(nodes for nodes in found if 1 < len(nodes) < problem.nodes)


def _fewest(problem: EpochProblem, whole: Sequence[Commodity], inside: frozenset[int], sink: int | None) -> int:
    """Fewest epochs in which the links into a set can start what must enter it, see :class:`~cwb.core.bounds.EpochCut`."""
    fluid, sources, sinks = problem.timing.fluid, list[int](), set[int]()
    for c in whole:
        needing = [t for t in c.targets if t in inside and sink in (None, t)]
        if needing and c.source not in inside:
            sinks.update(needing)
            sources += [c.source] * (len(needing) if fluid else 1)
    if not sources:
        return 0
    every = {t for c in whole for t in c.targets} & inside if sink is None else sinks
    entering = [e for e in problem.links if e.source not in inside and e.target in inside]
    spans = [
        (sorted(problem.distance[sources, e.source].tolist()), e, int(problem.distance[e.target, sorted(every)].min()))
        for e in entering
    ]
    if fluid:
        first = [(release[0] + e.delay + rest, e.rate) for release, e, rest in spans if release[0] + rest < FAR]
        return _first_full(first, len(sources))
    arrivals: list[int] = []
    for releases, link, rest in spans:
        starts: list[int] = []
        for n, release in enumerate(releases):
            starts.append(max(release, starts[n - link.capacity] + link.window) if n >= link.capacity else release)
        arrivals += [start + link.delay + rest for start in starts]
    return sorted(arrivals)[len(sources) - 1]


def _first_full(spans: Sequence[tuple[int, Fraction]], chunks: int) -> int:
    """Smallest K with ``sum rate * max(0, K - first + 1) >= chunks``."""
    room, rate, now = Fraction(0), Fraction(0), 0
    for first, extra in sorted(spans):
        if rate and room + rate * (first - now) >= chunks:
            break
        room, rate, now = room + rate * (first - now), rate + extra, first
    return now - 1 + ceil((chunks - room) / rate)
