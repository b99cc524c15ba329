"""Lower bounds in epochs that cost little: distances, and what the links into a set of nodes can start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from ...core.bounds import EpochBound, EpochCut, EpochDistance
from .commodities import Commodity
from .epochs import FAR, EpochProblem


@dataclass(frozen=True)
class Need:
    """A chunk that must come from its source to the targets, or a sum to which each of the sources contributes.

    However contributions are added up on the way, into a set that lacks one of them the sum, or a part of it, comes at least once.
    """

    sources: frozenset[int]
    targets: frozenset[int]
    summed: bool


def lower_bound(problem: EpochProblem) -> tuple[int, EpochBound | None]:
    """Give the best of the simple bounds with what proves it.

    Cuts are tried around every destination, around everything but one source, and around the parts that only links of less bandwidth join.
    A sum enters a set at least once, however it is made. Where bandwidth varies, nothing is proved.
    """
    if problem.timing.changes:
        return 0, None
    pairs = [(int(problem.distance[c.source, t]), c.source, t) for c in problem.commodities for t in c.targets]
    far, source, target = max(pairs)
    best: tuple[int, EpochBound | None] = (far, EpochDistance(source, target))
    needs = _needs(problem.commodities)
    for nodes, sink in _cuts(problem, needs):
        found = _fewest(problem, needs, frozenset(nodes), sink)
        best = max(best, (found, EpochCut(nodes, sink)), key=lambda pair: pair[0])
    return best


def _needs(commodities: Sequence[Commodity]) -> list[Need]:
    """Put what belongs to one sum together: contributions of others to the owner, and the sum from it to all."""
    found = [
        Need(frozenset([c.source]), frozenset(c.targets), False) for c in commodities if not c.summed and not c.after
    ]
    sources: dict[int, set[int]] = defaultdict(set)
    targets: dict[int, set[int]] = defaultdict(set)
    for c in commodities:
        if c.summed or c.after:
            sources[c.chunk] |= {c.source, *(c.targets if c.summed else ())}
            targets[c.chunk] |= {*c.targets, *(() if c.summed else (c.source,))}
    return found + [Need(frozenset(sources[q]), frozenset(targets[q]), True) for q in sources]


def _cuts(problem: EpochProblem, needs: Sequence[Need]) -> list[tuple[tuple[int, ...], int | None]]:
    """Sets of nodes to try, with a sink or without."""
    targets, sources = {t for n in needs for t in n.targets}, {s for n in needs for s in n.sources}
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


def _fewest(problem: EpochProblem, needs: Sequence[Need], inside: frozenset[int], sink: int | None) -> int:
    """Fewest epochs in which the links into a set can start what must enter it, see :class:`~cwb.core.bounds.EpochCut`."""
    fluid, sources, sinks = problem.timing.fluid, list[frozenset[int]](), set[int]()
    for need in needs:
        needing = [t for t in need.targets if t in inside and sink in (None, t)]
        outside = need.sources - inside
        if needing and outside and (need.summed or outside == need.sources):
            sinks.update(needing)
            sources += [outside] * (len(needing) if fluid and not need.summed else 1)
    if not sources:
        return 0
    every = {t for need in needs for t in need.targets} & inside if sink is None else sinks
    nearest = {group: problem.distance[sorted(group)].min(axis=0) for group in set(sources)}
    entering = [e for e in problem.links if e.source not in inside and e.target in inside]
    spans = [
        (
            sorted(int(nearest[group][e.source]) for group in sources),
            e,
            int(problem.distance[e.target, sorted(every)].min()),
        )
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
