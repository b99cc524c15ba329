"""The fast path: optimum, number of trees, forest, for one way of the data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core.budget import Budget
from ...core.errors import Unsupported
from ...core.pipelining import ENOUGH, PIECES
from ...core.schedule import Bools
from ...core.trees import TreePacking
from ..common.forests.engine import grow_forest
from ..common.forests.expansion import expand, replayed
from ..common.forests.splitting import Unsplittable
from .optimum import Optimum, fixed_k, unbalanced
from .options import ForestOptions
from .problem import Problem

#: More trees than this from all roots together are refused before memory is taken: a tree takes some 60 bytes for every rank.
MAX_EDGES = 200_000_000

#: A tree may be used at most so often.
MOST_COPIES = 2**63


@dataclass(frozen=True, eq=False)
class Solved:
    """A forest and how good it is.

    Parameters
    ----------
    packing : TreePacking
        Out-trees on the links of the problem's network.
    k : int
        Trees from every root.
    copies : Fraction
        U: copies of trees on a link for each unit of its bandwidth.
    seconds : Fraction
        Time of the most loaded link.
    side : array of bool
        Nodes that the cut leads into that forbids a smaller U for this k.
    counts : dict
        What it took.
    """

    packing: TreePacking
    k: int
    copies: Fraction
    seconds: Fraction
    side: Bools
    counts: dict[str, int]


def solve_forest(
    problem: Problem, best: Optimum, k: int, instance_sha256: str, budget: Budget, options: ForestOptions
) -> Solved | None:
    """Pack the fastest forest with k trees from every root; None if the budget ended first.

    Raises
    ------
    Unsupported
        If a switch cannot be removed: with whole copies of trees it has more coming in than going out, as one-way links may have it.
    """
    if k * int(problem.roots.sum()) * len(problem.ranks) > MAX_EDGES and k != best.k:
        raise Unsupported(f"k = {k:,} trees from {int(problem.roots.sum()):,} roots are too many; expected fewer")
    if k >= MOST_COPIES:
        raise Unsupported(f"bandwidths so uneven need k = {k:,} trees; expected a small number, such as k = 8")
    with budget.clock.phase("optimum"):
        copies, side = (best.copies, best.side) if k == best.k else fixed_k(problem, best, k)
    wires = problem.wires(copies)
    if (found := unbalanced(problem, wires.graph())) is not None:
        node, come, go = found
        raise Unsupported(
            f"with k = {k:,} whole trees a link, {come:,} come into {problem.topology.nodes[node].name!r} and {go:,} leave it: "
            "links there are one-way; expected k = optimal"
        )
    try:
        grown = grow_forest(
            wires, problem.roots * k, problem.members, budget, repack=options.repack, patterns=options.patterns
        )
    except Unsplittable as error:
        name = problem.topology.nodes[error.switch].name
        raise Unsupported(f"{name!r} cannot be removed without loss: links there are one-way") from None
    if grown is None:
        return None
    with budget.clock.phase("expand"):
        pieces = replayed(wires, grown.split.log, grown.forest.graph, grown.members)
        packing = expand(pieces, grown.forest, problem.ranks, instance_sha256, problem.part_bytes / k)
    counts = {**grown.split.counts, **grown.forest.counts, "logical_edges": len(grown.split.graph)}
    seconds = problem.part_bytes * copies / k / problem.unit_Bps
    return Solved(packing, k, copies, seconds, side, counts)


def latency_of(problem: Problem, solved: Solved) -> float:
    """Estimate when the last piece arrives, to choose between forests.

    A leaf that k links of latency l lead to has the last of C pieces after ``l + (k - 1 + C) F / C``, where F is the time of the most loaded link.
    The number of pieces is the smallest that takes no more than a hundredth beyond the least.
    """
    packing, trees = solved.packing, len(solved.packing)
    link_s = np.array([float(link.latency_s) for link in problem.topology.links])
    edge_s = np.add.reduceat(link_s[packing.path_links], packing.path_offset[:-1]).reshape(trees, -1)
    hops = np.diff(packing.path_offset).reshape(trees, -1)
    parent, child = packing.parent.reshape(trees, -1), packing.child.reshape(trees, -1)
    ranks = len(problem.topology.ranks)
    row = np.arange(trees)
    far_s, links = np.zeros((trees, ranks)), np.zeros((trees, ranks))
    for i in range(parent.shape[1]):
        far_s[row, child[:, i]] = far_s[row, parent[:, i]] + edge_s[:, i]
        links[row, child[:, i]] = links[row, parent[:, i]] + hops[:, i]
    flow_s = float(solved.seconds)
    last_s = [float((far_s + (links - 1 + pieces) * flow_s / pieces).max()) for pieces in PIECES]
    return next(seconds for seconds in last_s if seconds <= min(last_s) * (1 + ENOUGH))
