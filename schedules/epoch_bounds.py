"""Verification of bounds on the number of epochs, recomputed from the instance and the certificate."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..core.bounds import (
    EpochBound,
    EpochChain,
    EpochCut,
    EpochDistance,
    EpochFlow,
    EpochPartition,
    EpochPrices,
    EpochWindowPrices,
)
from ..core.collective import Collective
from ..core.conditions import conditions
from ..core.errors import InputError
from ..core.instance import Instance
from ..core.timing import Semantics
from .epoch_flow import fewest_epochs_of_flow
from .epoch_prices import fewest_epochs_by_prices, fewest_epochs_by_window_prices
from .verify.grid import Grid, grid_of

#: An epoch after all others: ticks of the timing ``circuit`` go up to 2^44.
FAR = 2**50


@dataclass(frozen=True)
class Need:
    """Chunks that some nodes must receive from others.

    Each of the ``count`` chunks must reach all targets except its holder, which may be one of them. Copied data comes
    from its single holder. Contributions to a sum may be added up on the way, so that at least one chunk arrives,
    from any contributor.
    """

    sources: frozenset[int]
    targets: frozenset[int]
    count: int
    summed: bool


def recomputed_epochs(instance: Instance, certificate: EpochBound) -> int:  # noqa: PLR0911 (one for each kind)
    """Return the number of epochs that a certificate proves necessary.

    Raises
    ------
    InputError
        If the certificate refers to nodes that the instance lacks, or does not apply to it.
    """
    grid = grid_of(instance, at_least=True)
    count = len(grid.topology.nodes)
    named = [n for n in (getattr(certificate, "sink", None), getattr(certificate, "source", None)) if n is not None]
    sets = (*getattr(certificate, "nodes", ()), *getattr(certificate, "sinks", ()))
    for node in (*sets, getattr(certificate, "target", 0), *named):
        if not 0 <= node < count:
            raise InputError(f"node {node} of {count}", place="certificate")
    if grid.timing.changes:
        raise InputError("a bound for constant bandwidths proves nothing here", place="certificate")
    if grid.timing.semantics is Semantics.CIRCUIT and "switch" in {node.kind.value for node in grid.topology.nodes}:
        raise InputError("through switches chunks may share links, so epochs prove nothing here", place="certificate")
    if isinstance(certificate, EpochPartition):
        return _partition(instance, grid, certificate)
    needs = needs_of(instance)
    match certificate:
        case EpochDistance(source, target):
            asked = any(source in need.sources and target in need.targets for need in needs)
            return distances(grid, source)[target] if asked and source != target else 0
        case EpochCut():
            return _cut(grid, needs, certificate)
        case EpochChain():
            return _chain(grid, needs, certificate)
        case EpochFlow(sink, epochs):
            sources = [(min(n.sources), n.count) for n in needs if sink in n.targets - n.sources and not n.summed]
            return fewest_epochs_of_flow(grid, sources, sink, epochs)
        case EpochPrices(starts, prices):
            ways = [(min(n.sources), t, n.count) for n in needs if not n.summed for t in n.targets - n.sources]
            return fewest_epochs_by_prices(grid, ways, starts, prices)
        case EpochWindowPrices():
            copied = [(min(n.sources), n.targets - n.sources, n.count) for n in needs if not n.summed]
            return fewest_epochs_by_window_prices(grid, copied, certificate)


def needs_of(instance: Instance) -> list[Need]:
    """List the chunks to be transferred, with their sources and targets."""
    node = getattr(instance.network, "rank_nodes", ())
    found: list[Need] = []
    sets: dict[tuple[int, ...], frozenset[int]] = {}  # one for all ranks of a group, which may be large
    for demand in instance.demands:
        for held, needed, summed in conditions(demand, instance.npus).bytes_of:
            for ranks in (held, needed):
                if ranks not in sets:
                    sets[ranks] = frozenset(node[r] for r in ranks)
            count = demand.chunks * (len(held) if demand.collective is Collective.ALL_REDUCE else 1)
            if summed or needed != held:
                found.append(Need(sets[held], sets[needed], count, summed))
    return found


def _partition(instance: Instance, grid: Grid, certificate: EpochPartition) -> int:
    """Recompute the bound of an :class:`EpochPartition`."""
    nodes = [node for part in certificate.parts for node in part]
    if sorted(nodes) != list(range(len(grid.topology.nodes))) or grid.timing.fluid or grid.timing.changes:
        raise InputError("expected every node in one set, and whole chunks", place="certificate.parts")
    if len(grid.topology.ranks) < len(nodes):
        raise InputError("expected a network without switches, since they might add", place="certificate.parts")
    part_of = {node: index for index, part in enumerate(certificate.parts) for node in part}
    entries = 0
    for need in needs_of(instance):
        count = len({part_of[node] for node in need.sources})
        if need.summed and need.sources == need.targets:
            entries += 2 * (count - 1) * need.count
    if not entries:
        return 0
    ends = zip(grid.source.tolist(), grid.target.tolist(), strict=True)
    into = [e for e, (a, b) in enumerate(ends) if part_of[a] != part_of[b]]
    columns = [column[into].tolist() for column in (grid.delay, grid.window, grid.capacity)]
    if 0 in columns[1]:
        return 0  # a link that takes less than a tick

    def enough(epochs: int) -> bool:
        room = sum(c * max(0, (epochs - d) // w + 1) for d, w, c in zip(*columns, strict=True))
        return bool(room >= entries)

    return _least(enough)


def distances(grid: Grid, *sources: int, backwards: bool = False) -> list[int]:
    """Return epochs of the fastest paths from the nearest of some nodes, or to it."""
    tail, head = (grid.target, grid.source) if backwards else (grid.source, grid.target)
    out: list[list[tuple[int, int]]] = [[] for _ in grid.topology.nodes]
    for a, b, delay in zip(tail.tolist(), head.tolist(), grid.delay.tolist(), strict=True):
        out[a].append((b, delay))
    far = [FAR] * len(out)
    heap = [(0, source) for source in sources]
    while heap:
        length, node = heapq.heappop(heap)
        if length >= far[node]:
            continue
        far[node] = length
        for neighbour, delay in out[node]:
            if length + delay < far[neighbour]:
                heapq.heappush(heap, (length + delay, neighbour))
    return far


def starts(releases: Sequence[int], window: int, capacity: int, begin: int = 0) -> list[int]:
    """Return a link's earliest starts, the n-th not before release n, at most ``capacity`` per window."""
    found: list[int] = []
    for n, release in enumerate(sorted(releases)):
        earliest = max(release, begin)
        found.append(max(earliest, found[n - capacity] + window) if n >= capacity else earliest)
    return found


def _least(enough: Callable[[int], bool]) -> int:
    """Return the smallest number that satisfies a monotone condition; :data:`FAR` if none does."""
    high = 1
    while not enough(high):
        if (high := 2 * high) > FAR:
            raise InputError(
                "no number of epochs is enough: data must enter these nodes, but no link does", place="certificate"
            )
    low = 0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def _cut(grid: Grid, needs: list[Need], cut: EpochCut) -> int:
    """Recompute the bound of an :class:`EpochCut`."""
    inside = frozenset(cut.nodes)
    if cut.sink is not None and cut.sink not in inside:
        raise InputError("the sink is not in the set", place="certificate.sink")
    sinks = [cut.sink] if cut.sink is not None else sorted(frozenset[int]().union(*{n.targets for n in needs}) & inside)
    rest = distances(grid, *sinks, backwards=True)
    threshold = cut.threshold if cut.sink is not None else 0
    entering = _from_outside(needs, inside, frozenset(sinks))
    entering = [n for n in entering if min(rest[s] for s in n.sources) >= threshold]
    fluid = grid.timing.fluid
    wanted = sum(n.count * (len(n.targets & set(sinks)) if fluid and not n.summed else 1) for n in entering)
    if not wanted:
        return 0
    links = _entering(grid, inside)
    release = {e: _releases(grid, entering, e) for e in links}
    if fluid:
        spans = [(release[e][0] + int(grid.delay[e]) + rest[int(grid.target[e])], grid.rate[e]) for e in links]
        return _least(lambda k: sum((r * max(0, k - s + 1) for s, r in spans), Fraction(0)) >= wanted)
    last = [
        [t + int(grid.delay[e]) + rest[int(grid.target[e])] for t in _link_starts(grid, e, release[e])] for e in links
    ]
    return _least(lambda k: sum(t <= k for column in last for t in column) >= wanted)


def _chain(grid: Grid, needs: list[Need], chain: EpochChain) -> int:
    """Recompute the bound of an :class:`EpochChain`."""
    inside, sink = frozenset(chain.nodes), chain.sink
    if sink not in inside or grid.timing.fluid:
        raise InputError("expected a sink in the set, and whole chunks", place="certificate.sink")
    entering = _from_outside(needs, inside, frozenset([sink]))
    count = sum(n.count for n in entering)
    arrivals = sorted(
        t + int(grid.delay[e])
        for e in _entering(grid, inside)
        for t in _link_starts(grid, e, _releases(grid, entering, e))
    )
    if count > len(arrivals):
        raise InputError("data must enter these nodes, but no link does", place="certificate.nodes")
    doors = {int(grid.target[e]) for e in _entering(grid, inside)}
    inwards = distances(grid, *doors)
    own = [e for e in range(len(grid.source)) if int(grid.target[e]) == sink]
    bound = 0
    for m, begin in enumerate(arrivals[:count]):
        left, times = count - m, list[int]()
        for e in own:
            tail = int(grid.source[e])
            first = begin + inwards[tail] if tail in inside else max(0, begin - int(grid.delay[e]))
            times += [t + int(grid.delay[e]) for t in _link_starts(grid, e, [first] * left)]
        bound = max(bound, sorted(times)[left - 1])
    return bound


def _from_outside(needs: Sequence[Need], inside: frozenset[int], sinks: frozenset[int]) -> list[Need]:
    """Select the chunks that must enter a set from outside for some of its nodes."""
    found: list[Need] = []
    without: dict[frozenset[int], frozenset[int]] = {}
    for need in needs:
        if need.sources not in without:
            without[need.sources] = need.sources - inside
        outside = without[need.sources]
        if outside and (need.summed or outside == need.sources) and need.targets & sinks:
            found.append(Need(outside, need.targets, need.count, need.summed))
    return found


def _entering(grid: Grid, inside: frozenset[int]) -> list[int]:
    """Return the links from outside of a set of nodes into it."""
    ends = zip(grid.source.tolist(), grid.target.tolist(), strict=True)
    return [e for e, (a, b) in enumerate(ends) if a not in inside and b in inside]


def _releases(grid: Grid, needs: Sequence[Need], link: int) -> list[int]:
    """Return, sorted, the first epoch at which each chunk can be at the start of a link."""
    far = distances(grid, int(grid.source[link]), backwards=True)
    return sorted(min(far[s] for s in need.sources) for need in needs for _ in range(need.count))


def _link_starts(grid: Grid, link: int, releases: Sequence[int]) -> list[int]:
    """Return the earliest starts of a link for chunks with these releases; unreachable ones are left out."""
    found = starts(releases, int(grid.window[link]), int(grid.capacity[link]))
    return [t for t in found if t < FAR]
