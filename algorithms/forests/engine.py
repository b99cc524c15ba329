"""Forest on the links of a network with a demand: split, pack, lower, expand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from ...core.budget import Budget
from ...core.schedule import Bools, Ints
from ..graphs.network import Exact, Network
from .exact_tree import exact_tree
from .expansion import ParallelLinks, expand, trace_splits
from .packing import CutPool, Packer, SpanningTrees, seeds
from .polish import exchange_edges, lower_trees
from .splitting import SwitchlessNetwork, remove_switches

#: Networks up to this size are packed in both ways of growing, and the lower forest is kept.
_BOTH_WAYS = 256

#: Networks up to this size let pairs of trees exchange edges, to bring the tallest down.
_EXCHANGED = 512


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
    rounds; ``patterns`` allows the removal of whole switches at once. Raise Unsplittable if a switch cannot be removed,
    see :func:`.splitting.remove_switches`.
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
            budget.progress(f"{count:,} trees; {_total(packer.left):,} copies to go")
        return budget.is_exhausted

    return stop


def _total(values: Any) -> int:
    return int(sum(values.tolist()))


@cache
def warm_up() -> None:
    """Compile the kernels, or load them from the cache, by packing a small forest once."""
    ends = np.array([(a, 3) for a in range(3)] + [(3, a) for a in range(3)], dtype=np.int64)
    wires = ParallelLinks(4, ends[:, 0].copy(), ends[:, 1].copy(), np.full(6, 2, dtype=np.int64))
    members = np.array([True, True, True, False])
    grown = grow_forest(wires, members.astype(np.int64), members, Budget(), repack=1)
    if grown is not None:
        lower_trees(grown.forest)
        exact_tree(grown.forest.graph, grown.forest.graph.capacity, np.ones(3, dtype=np.int64), 0)
        pieces = trace_splits(wires, grown.split.log, grown.forest.graph, grown.members)
        expand(pieces, grown.forest, np.arange(3), "", Fraction(1))
