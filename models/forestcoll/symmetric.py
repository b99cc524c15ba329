"""Forests of networks with translations: packed for one root per orbit, and moved to all others."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from ...algorithms.forests.orbit_packing import OrbitForest, OrbitNetwork, pack_orbits
from ...core.budget import Budget
from ...core.ragged import offsets
from ...core.schedule import Ints
from ...core.trees import TreeKind, TreeOrbits, TreePacking
from .bounds import Optimum
from .problem import ForestProblem

MOST_ROWS = 120  #: Orbits of links and of ranks that are too many for a small linear program.


def orbit_forest(
    problem: ForestProblem, best: Optimum, instance_sha256: str, budget: Budget
) -> tuple[TreeOrbits, OrbitForest] | None:
    """Return an optimal forest invariant under the network's translations; None without one."""
    if (symmetry := problem.symmetry) is None or len(symmetry.size) + len(symmetry.roots) > MOST_ROWS:
        return None
    with budget.clock.phase("pack"):
        # The room of an orbit of links is its bandwidth for the optimal time, per motion.
        first = np.unique(symmetry.orbit, return_index=True)[1].tolist()
        room = tuple(
            best.ratio * problem.bandwidths[link] * size / symmetry.motions
            for link, size in zip(first, symmetry.size.tolist(), strict=True)
        )
        network = OrbitNetwork(*problem.ends, problem.members, symmetry.roots, symmetry.orbit, room)
        forest = pack_orbits(network, budget.seed, lambda: budget.is_exhausted)
    if forest is None:
        return None
    trees = f"{len(forest.trees):,} trees of {len(symmetry.roots):,} roots"
    budget.progress(f"{trees}, each moved to {symmetry.motions:,}")
    with budget.clock.phase("expand"):
        packing = _packing(problem, network.roots, forest, instance_sha256)
    return TreeOrbits(packing, symmetry.translations), forest


def _packing(problem: ForestProblem, roots: Ints, forest: OrbitForest, instance_sha256: str) -> TreePacking:
    """Return the trees of the roots as a packing; their numbers are ranks."""
    rank = np.full(problem.nodes, -1, dtype=np.int64)
    rank[list(problem.topology.rank_nodes)] = np.arange(len(problem.topology.ranks))
    trees = forest.trees
    parts = parts_of(forest)
    edges = offsets([len(tree.child) for tree in trees])
    hops = np.concatenate([np.diff(tree.offset) for tree in trees])
    return TreePacking(
        instance_sha256,
        TreeKind.OUT,
        rank[roots[[tree.root for tree in trees]]],
        np.array([int(weight * parts) for weight in forest.weight], dtype=np.int64),
        problem.part_bytes / parts,
        edges,
        rank[np.concatenate([tree.parent for tree in trees])],
        rank[np.concatenate([tree.child for tree in trees])],
        offsets(hops),
        np.concatenate([tree.links for tree in trees]),
    )


def parts_of(forest: OrbitForest) -> int:
    """Return the number of equal parts per root with which every tree carries whole parts."""
    return lcm(*(weight.denominator for weight in forest.weight))


def busiest_of_orbits(problem: ForestProblem, answer: TreeOrbits) -> Fraction:
    """Return the time of the most loaded link."""
    symmetry = problem.symmetry
    assert symmetry is not None  # noqa: S101 (the answer comes from it)
    load = [0] * len(symmetry.size)
    for part in answer.trees.passes:
        units = part.units[part.path_tree]
        orbit = symmetry.orbit[part.path_links]
        for index in range(len(load)):
            load[index] += sum(units[orbit == index].tolist())
    first = np.unique(symmetry.orbit, return_index=True)[1].tolist()
    rates = (problem.topology.links[link].bandwidth_Bps for link in first)
    seconds: list[Fraction] = [
        units * symmetry.motions / (rate * size)
        for units, rate, size in zip(load, rates, symmetry.size.tolist(), strict=True)
    ]
    return answer.trees.unit_bytes * max(seconds)
