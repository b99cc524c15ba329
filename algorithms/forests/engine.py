"""Forest on the links of a network with a demand: split, pack, lower, expand.

Trees become lower, without more load, from the capacity that a forest leaves unused.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from ...core.budget import Budget
from ...core.schedule import Bools, Ints
from ..graphs.network import Exact, Network, kernel_for
from .expansion import ParallelLinks, expand, trace_splits
from .kernels import Capacities, exchange, lower, lower_each
from .packing import CutPool, Packer, SpanningTrees, exact_tree, seeds
from .splitting import SwitchlessNetwork, remove_switches

_PASSES = 3  #: passes in which every tree may become lower
_SCARCE = (0.3, 0.2, 0.1, 0.05, 0.02)  #: parts of an edge's capacity that trees with height to spare leave

#: Edges that a round of exchanges looks at over the pairs that it tries; and where capacities need Python's integers.
_WORK, _WIDE_WORK = 1_000_000, 10_000

_ROOM = 256  #: trees that a round may have more at its end than at its begin, before equal ones are made one
_IDLE = 10  #: rounds without gain after which exchanging ends


def lower_trees(forest: SpanningTrees) -> SpanningTrees:
    """Replace trees by lower ones; no test is needed, since all trees exist already (docs/methods/forestcoll.md)."""
    trees, height, net = forest.into.copy(), forest.height(), _remaining_capacities(forest)
    kernel = kernel_for(lower_each, net.residual.dtype)

    def relower(order: Ints, scarce: float, limit: Ints) -> None:
        kernel(order, scarce, limit, forest.root, forest.copies, trees, height, net)

    def tall_first(above: int = 1) -> Ints:
        order = np.argsort(-height, kind="stable")
        return order[height[order] > above]

    for _ in range(_PASSES):
        before = height.sum()
        relower(tall_first(), 0.0, height.copy())
        if height.sum() == before:
            break
    best = replace(forest, into=trees.copy())
    for target in range(int(height.max()) - 1, int(eccentricities(forest).max()) - 1, -1):
        for scarce in _SCARCE:
            relower(np.flatnonzero(height <= target), scarce, np.full(len(height), target))
            relower(tall_first(above=target), 0.0, height.copy())
            if height.max() <= target:
                break
        if height.max() > target:
            break
        best = min(best, replace(forest, into=trees.copy()), key=SpanningTrees.tallness)
    return min(best, replace(forest, into=trees), key=SpanningTrees.tallness)


def exchange_edges(
    forest: SpanningTrees, rounds: int, seed: int, stop: Callable[[], bool] = lambda: False
) -> SpanningTrees:
    """Let pairs of trees exchange edges if both together become lower; return the lowest forest of a round's end.

    Where nearly all capacity is used, one tree alone can rarely become lower, but two often can. Trees with many copies
    are divided for it. ``rounds`` are of about equal work; they end early once several in a row gain nothing.
    """
    random = np.random.default_rng(seed)
    lowest = np.zeros(forest.graph.nodes, dtype=np.int64)
    lowest[forest.root] = eccentricities(forest)
    best, idle = forest, 0
    for _ in range(rounds):
        if stop() or idle == _IDLE or len(forest) < 2:
            break
        before = _cubes(forest)
        forest = _round(forest, random)
        idle = idle + 1 if _cubes(forest) == before else 0
        best = min(best, forest, key=SpanningTrees.tallness)
        if (forest.height() == lowest[forest.root]).all():
            break
    return best


def eccentricities(forest: SpanningTrees) -> Ints:
    """Return the fewest edges from every root to its farthest node: no tree is lower."""
    graph, into = forest.graph, np.empty(forest.graph.nodes, dtype=np.int64)
    plenty, alike = np.ones(len(graph), dtype=np.int64), np.ones(len(graph))
    net = Capacities(graph.out_start, graph.tail, graph.head, plenty, alike)
    heights_of = {root: lower(root, np.int64(1), 0.0, net, into) for root in np.unique(forest.root).tolist()}
    return np.array([heights_of[root] for root in forest.root.tolist()], dtype=np.int64)


def _round(forest: SpanningTrees, random: np.random.Generator) -> SpanningTrees:
    graph, count = forest.graph, len(forest)
    work = _WIDE_WORK if forest.copies.dtype == object else _WORK
    trials = max(min(work // len(graph), count * (count - 1) // 2), 1)
    kernel = kernel_for(exchange, forest.copies.dtype)
    root, copies, height = (_with_room(column) for column in (forest.root, forest.copies, forest.height()))
    trees = _with_room(forest.into)
    count = kernel(trials, random, count, root, copies, trees, height, _remaining_capacities(forest))
    root, copies, trees = root[:count], copies[:count], trees[:count]
    if count > len(forest):  # equal trees become one
        _, first, which = np.unique(trees, axis=0, return_index=True, return_inverse=True)
        sums: Any = np.zeros(len(first), dtype=copies.dtype)
        np.add.at(sums, which.reshape(-1), copies)
        root, copies, trees = root[first], sums, trees[first]
    return replace(forest, root=root, copies=copies, into=trees)


def _remaining_capacities(forest: SpanningTrees) -> Capacities:
    graph = forest.graph
    residual: Exact = graph.capacity.astype(forest.copies.dtype) - forest.load()
    return Capacities(graph.out_start, graph.tail, graph.head, residual, 1.0 / graph.capacity.astype(np.float64))


def _with_room(column: Any) -> Any:
    wide = np.zeros((len(column) + _ROOM, *column.shape[1:]), dtype=column.dtype)
    wide[: len(column)] = column
    return wide


def _cubes(forest: SpanningTrees) -> int:
    return int((forest.height() ** 3 * forest.copies).sum())


_BOTH_WAYS = 256  #: networks up to this size are packed in both ways of growing, and the lower forest is kept
_EXCHANGED = 512  #: networks up to this size let pairs of trees exchange edges, to bring the tallest down


@dataclass(frozen=True, eq=False)
class GrownForest:
    """Forest, and the network without switches in which it is packed."""

    split: SwitchlessNetwork  #: network without switches, and the log of their removal
    forest: SpanningTrees  #: trees; their nodes are the positions in ``members``
    members: Ints  #: node in the network of every node of the forest


def grow_forest(
    wires: ParallelLinks, demand: Exact, members: Bools, budget: Budget, *, repack: int = 0, patterns: bool = True
) -> GrownForest | None:
    """Pack the demanded number of trees from every root, which exist in ``wires``; None if the budget ends first.

    Trees span ``members``; all other nodes only forward. On small networks pairs of trees exchange edges in ``repack``
    rounds. ``patterns`` and errors are those of :func:`.splitting.remove_switches`.
    """
    with budget.clock.phase("split"):
        split = remove_switches(wires.graph(), demand, members, patterns=patterns, stop=lambda: budget.is_exhausted)
    if split is None:
        return None
    budget.progress(f"switches removed: {len(split.graph):,} edges between {int(members.sum()):,} ranks")
    nodes = np.flatnonzero(members)
    with budget.clock.phase("pack"):
        forest = _pack_trees(split, demand[nodes], nodes, budget, repack)
    return None if forest is None else GrownForest(split, forest, nodes)


def _pack_trees(
    split: SwitchlessNetwork, demand: Exact, nodes: Ints, budget: Budget, repack: int
) -> SpanningTrees | None:
    place = np.full(split.graph.nodes, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    graph = Network.from_parallel_edges(
        len(nodes), place[split.graph.tail], place[split.graph.head], split.graph.capacity
    )
    levels = seeds(split.groups, nodes)
    best: SpanningTrees | None = None
    pool = CutPool(graph, levels)
    for thrifty in (False, True) if len(nodes) <= _BOTH_WAYS else (False,):
        packer = Packer(graph, demand, pool, thrifty=thrifty)
        forest = packer.pack(stop=_stop(budget, packer))
        if forest is None:
            break
        forest = lower_trees(forest)
        best = forest if best is None else min(best, forest, key=SpanningTrees.tallness)
    if best is not None and repack and len(nodes) <= _EXCHANGED:
        best = exchange_edges(best, repack, budget.seed, lambda: budget.is_exhausted)
    return best


def _stop(budget: Budget, packer: Packer) -> Callable[[], bool]:
    """Return a stop test that also reports the progress of packing."""
    reported = 0

    def stop() -> bool:
        nonlocal reported
        count = len(packer.trees)
        if count >= reported + 256:
            reported = count
            budget.progress(f"{count:,} trees; {sum(packer.rest.tolist()):,} copies to go")
        return budget.is_exhausted

    return stop


@cache
def warm_up() -> None:
    """Compile the kernels, or load them from the cache, by packing a small forest once."""
    ends = np.array([(a, 3) for a in range(3)] + [(3, a) for a in range(3)], dtype=np.int64)
    wires = ParallelLinks(4, ends[:, 0].copy(), ends[:, 1].copy(), np.full(6, 2, dtype=np.int64))
    members = np.array([True, True, True, False])
    growth = grow_forest(wires, members.astype(np.int64), members, Budget(), repack=1)
    if growth is not None:
        lower_trees(growth.forest)
        exact_tree(growth.forest.graph, growth.forest.graph.capacity, np.ones(3, dtype=np.int64), 0)
        pieces = trace_splits(wires, growth.split.log, growth.forest.graph, growth.members)
        expand(pieces, growth.forest, np.arange(3), "", Fraction(1))
