"""Cheap lower bounds in epochs: distances, and cuts by the starts on links into a set of nodes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, lcm
from typing import Any

import numpy as np

from ...algorithms.epochs.problem import FAR
from ...algorithms.graphs.colour_refinement import Ints
from ...algorithms.graphs.network import components
from ...algorithms.paths.grid import grid_sides
from ...algorithms.schedules.problem import Commodity
from ...core.bounds import EpochBound, EpochCut, EpochDistance
from ...core.kernel import kernel
from .all_to_all_problem import BlockGrid, Exchange, ReducedFlows
from .problem import EpochProblem

_LARGEST = 2**24  #: The largest price, as a whole number.
_NEVER = 2**55  #: The price of what cannot be.

#: Sources of a chunk, or of all contributions to a sum; targets; True for a sum. In whatever order contributions are
#: added, at least one transfer of the sum or a part of it enters any set that lacks one of them.
CutDemand = tuple[frozenset[int], frozenset[int], bool]


def lower_bound(problem: EpochProblem) -> tuple[int, EpochBound | None]:
    """Return the best of the simple bounds with its certificate.

    Cuts are tried around every destination, around all nodes but one source, and around the parts that only links of
    less bandwidth join. A sum enters a set at least once, however it is formed. With varying bandwidth nothing is
    proved.
    """
    if problem.timing.changes:
        return 0, None
    pairs = [(int(problem.distance[c.source, t]), c.source, t) for c in problem.commodities for t in c.targets]
    far, source, target = max(pairs)
    best: tuple[int, EpochBound | None] = (far, EpochDistance(source, target))
    needs = _needs(problem.commodities)
    for nodes, sink in _cuts(problem, needs):
        if (epochs := _fewest(problem, needs, frozenset(nodes), sink)) > best[0]:
            best = (epochs, EpochCut(nodes, sink))
    return best


def _needs(commodities: Sequence[Commodity]) -> list[CutDemand]:
    """Group the commodities of each sum: contributions to the owner, and the sum from it to all."""
    needs: list[CutDemand] = []
    sums = defaultdict[int, tuple[set[int], set[int]]](lambda: (set(), set()))
    for c in commodities:
        if not c.summed and not c.after:
            needs.append((frozenset([c.source]), frozenset(c.targets), False))
        else:
            sums[c.chunk][0].update((c.source, *(c.targets if c.summed else ())))
            sums[c.chunk][1].update((*c.targets, *(() if c.summed else (c.source,))))
    return needs + [(frozenset(sources), frozenset(targets), True) for sources, targets in sums.values()]


def _cuts(problem: EpochProblem, needs: Sequence[CutDemand]) -> list[tuple[tuple[int, ...], int | None]]:
    """Return candidate sets of nodes, each with a sink or None."""
    targets = {t for _, targets, _ in needs for t in targets}
    sources = {s for sources, _, _ in needs for s in sources}
    cuts: list[tuple[tuple[int, ...], int | None]] = [((t,), t) for t in sorted(targets)]
    cuts += [(tuple(n for n in range(problem.nodes) if n != s), None) for s in sorted(sources)]
    parts: set[frozenset[int]] = set()  # of the network without links up to each rate
    for slow in sorted({link.rate for link in problem.links})[:-1]:
        parts |= _components(problem.nodes, [(e.source, e.target) for e in problem.links if e.rate > slow])
    for part in sorted(tuple(sorted(part)) for part in parts if 1 < len(part) < problem.nodes):
        cuts += [(part, t) for t in part if t in targets] + [(part, None)]
    return cuts


def _fewest(problem: EpochProblem, needs: Sequence[CutDemand], inside: frozenset[int], sink: int | None) -> int:
    """Compute the fewest epochs for the demands into a set (:class:`~cwb.core.bounds.EpochCut`)."""
    fluid, sources, sinks = problem.timing.fluid, list[frozenset[int]](), set[int]()
    for holders, targets, summed in needs:
        needing = [t for t in targets if t in inside and sink in (None, t)]
        outside = holders - inside
        if needing and outside and (summed or outside == holders):
            sinks.update(needing)
            sources += [outside] * (len(needing) if fluid and not summed else 1)
    if not sources:
        return 0
    every = {t for _, targets, _ in needs for t in targets} & inside if sink is None else sinks
    nearest = {group: problem.distance[sorted(group)].min(axis=0) for group in set(sources)}
    entering = [e for e in problem.links if e.source not in inside and e.target in inside]
    first: list[tuple[int, Fraction]] = []
    arrivals: list[int] = []
    for link in entering:
        releases = sorted(int(nearest[group][link.source]) for group in sources)
        rest = int(problem.distance[link.target, sorted(every)].min())
        if releases[0] + rest < FAR:
            first.append((releases[0] + link.delay + rest, link.rate))
        starts: list[int] = []
        for n, release in enumerate(() if fluid else releases):
            starts.append(max(release, starts[n - link.capacity] + link.window) if n >= link.capacity else release)
        arrivals += [start + link.delay + rest for start in starts]
    return _first_full(first, len(sources)) if fluid else sorted(arrivals)[len(sources) - 1]


def _first_full(spans: Iterable[tuple[int, Fraction]], units: int) -> int:
    """Return the smallest K with ``sum rate * max(0, K - first + 1) >= units``; ``FAR`` without spans."""
    room, rate, now = Fraction(0), Fraction(0), 0
    for first, extra in sorted(spans):
        if rate and room + rate * (first - now) >= units:
            break
        room, rate, now = room + rate * (first - now), rate + extra, first
    return now - 1 + ceil((units - room) / rate) if rate else FAR


def cut_epochs(exchange: Exchange, inside: frozenset[int]) -> int:
    """Return the fewest epochs that the links out of a set of nodes allow.

    Return 0 if nothing has to leave the set, :data:`FAR` if nothing can.
    """
    within = [index for index, rank in enumerate(exchange.ranks) if rank in inside]
    outside = [index for index, rank in enumerate(exchange.ranks) if rank not in inside]
    if not within or not outside:
        return 0
    distance = exchange.network.distance[within].min(axis=0)
    rest = exchange.network.distance_to[outside].min(axis=0)
    spans = [
        (int(distance[i]) + delay + int(rest[j]), capacity)
        for i, j, delay, capacity in zip(exchange.tails, exchange.heads, exchange.delay, exchange.capacity, strict=True)
        if i in inside and j not in inside
    ]
    return _first_full((span for span in spans if span[0] < FAR), len(within) * len(outside))


def regions(exchange: Exchange) -> set[frozenset[int]]:
    """Return candidate sets: single nodes, sides of a grid, parts that only slow links join, and their complements."""
    everything = frozenset(range(len(exchange.stores)))
    parts = {frozenset([rank]) for rank in exchange.ranks}
    edges = list(zip(exchange.tails, exchange.heads, exchange.capacity, exchange.delay, strict=True))
    for slow in sorted(set(exchange.capacity)):
        parts |= _components(len(everything), [(i, j) for i, j, c, _ in edges if c > slow])
    for far in sorted(set(exchange.delay)):
        parts |= _components(len(everything), [(i, j) for i, j, _, d in edges if d < far])
    sides = (grid_sides(np.array(exchange.tails), np.array(exchange.heads), len(everything)) or ())[::-1]
    for side, place in zip(sides, np.unravel_index(np.arange(len(everything)), sides), strict=True) if sides else ():
        parts |= {frozenset(np.flatnonzero(place < k).tolist()) for k in range(1, side)}
    switches = frozenset(n for n in everything if not exchange.stores[n])
    for part in list(parts):
        parts |= {part - switches, part | {j for i, j, *_ in edges if i in part and j in switches}}
    parts |= {everything - part for part in parts}
    return {part for part in parts if part and part != everything}


def _components(count: int, edges: Sequence[tuple[int, int]]) -> set[frozenset[int]]:
    label = components(count, *np.array(edges, dtype=np.int64).reshape(-1, 2).T)
    return {frozenset(np.flatnonzero(label == part).tolist()) for part in range(label.max() + 1)}


def best_cut(exchange: Exchange) -> tuple[int, frozenset[int] | None]:
    """Return the best lower bound of all regions and the diameter; None as set for the diameter."""
    best: tuple[int, frozenset[int] | None] = (int(exchange.network.distance[:, list(exchange.ranks)].max()), None)
    for region in sorted(regions(exchange), key=sorted):
        if (epochs := cut_epochs(exchange, region)) > best[0]:
            best = (epochs, region)
    return best


def prices_of(grid: BlockGrid, reduced: ReducedFlows, duals: Mapping[tuple[int, int], float]) -> Ints:
    """Round the duals of capacities (class of links, block) to prices; shape (links, blocks)."""
    largest = max((0.0, *duals.values())) or 1.0
    table = np.zeros((reduced.classes.sizes[2], grid.blocks), dtype=np.int64)
    for (link, block), value in duals.items():
        table[link, block] = round(max(0.0, value) / largest * _LARGEST)
    return np.asarray(table[reduced.classes.link])


def by_epoch(grid: BlockGrid, prices: Ints) -> Ints:
    """Expand prices of blocks to epochs; shape (links, epochs)."""
    return np.asarray(np.repeat(prices, np.diff(np.array(grid.starts)), axis=1))


def longest_refuted(exchange: Exchange, grid: BlockGrid, prices: Ints) -> BlockGrid | None:
    """Return the longest grid, one block lengthened, that prices still refute; None if not even this one."""
    excess = surplus(exchange, by_epoch(grid, prices))
    if excess <= 0:
        return None
    best, costs = grid, _per_epoch(exchange, prices)
    for block in sorted((block for block, cost in enumerate(costs) if cost), key=costs.__getitem__):
        longer = (excess - 1) // costs[block]
        while grid.epochs + longer > best.epochs:
            trial = BlockGrid((*grid.starts[: block + 1], *(at + longer for at in grid.starts[block + 1 :])), grid.side)
            if (beyond := surplus(exchange, by_epoch(trial, prices))) > 0:
                best = trial
            # Ways in a shorter grid cost no less, so that the second try is not too long.
            longer += (beyond - 1) // costs[block]
    return best


def surplus(exchange: Exchange, prices: Ints) -> int:
    """Return all pairs' cheapest-path cost minus capacity cost, at prices of shape (links, epochs)."""
    ranks = list(exchange.ranks)
    network = tuple(np.array(each) for each in (exchange.stores, exchange.tails, exchange.heads, exchange.delay))
    cheapest = sum(sum(_cheapest_from(rank, network, prices)[ranks].tolist()) for rank in ranks)
    return _unit(exchange) * cheapest - sum(_per_epoch(exchange, prices))


def _unit(exchange: Exchange) -> int:
    return lcm(*(capacity.denominator for capacity in exchange.capacity))


def _per_epoch(exchange: Exchange, prices: Ints) -> list[int]:
    """Return the cost of the links' total capacity for every column of prices."""
    unit = _unit(exchange)
    capacity = np.array([int(each * unit) for each in exchange.capacity], dtype=object)
    return [int(cost) for cost in capacity @ prices.astype(object)]


@kernel
def _cheapest_from(source: int, network: Any, prices: Any) -> Any:
    """Compute the cheapest cost from a source to every node by the last epoch."""
    stores, tails, heads, delay = network
    epochs = prices.shape[1]
    cost = np.full((epochs + 1, len(stores)), _NEVER)
    cost[0, source] = 0
    for k in range(epochs + 1):
        if k > 0:
            for node in range(len(stores)):
                if stores[node]:
                    cost[k, node] = min(cost[k, node], cost[k - 1, node])
        for link in range(len(tails)):
            there = k + delay[link]
            if k < epochs and there <= epochs:
                cost[there, heads[link]] = min(cost[there, heads[link]], cost[k, tails[link]] + prices[link, k])
    return cost[epochs]
