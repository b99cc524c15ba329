"""What Blink is asked: trees from one root."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...core.collective import CollectiveKind
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.topology import Topology
from . import problem as forestcoll
from .options import BlinkOptions
from .problem import Problem

#: What trees from one root make.
SUPPORTED = (CollectiveKind.ALL_REDUCE, CollectiveKind.BROADCAST, CollectiveKind.REDUCE)


def supports_switches(instance: Instance) -> str | None:
    """Say why an instance cannot be served by trees from one root."""
    if (reason := forestcoll.supports(instance)) is not None:
        return reason
    if instance.demand is not None and instance.demand.collective not in SUPPORTED:
        defined = ", ".join(kind.value for kind in SUPPORTED)
        return f"trees from one root do not make {instance.demand.collective.value}, but {defined}"
    return None


def supports(instance: Instance) -> str | None:
    """Say why an instance cannot be served by trees from one root that go through ranks of the group alone."""
    if (reason := supports_switches(instance)) is not None:
        return reason
    topology = instance.network
    if isinstance(topology, Topology):
        members = {topology.rank_nodes[rank] for rank in group(instance)}
        for index, node in enumerate(topology.nodes):
            if index not in members:
                return f"{node.name!r} only passes data on, and Blink has no switches; blink-switch removes them first"
    return None


def group(instance: Instance) -> tuple[int, ...]:
    """Give the ranks of the group, the root of a broadcast or reduce first."""
    if instance.demand is not None and instance.demand.ranks is not None:
        return instance.demand.ranks
    return tuple(range(instance.npus))


def candidates(instance: Instance, problem: Problem, options: BlinkOptions) -> tuple[int, ...]:
    """Give the ranks of which the best are to be found.

    Where every node has the same bandwidth in and out, as much enters every set of nodes as leaves it. Then the cut that limits one
    root limits, from one of its sides or the other, every root: all have the same rate, and the first will do.

    Raises
    ------
    InputError
        If the root asked for is not in the group, or not that of the collective.
    """
    ranks = group(instance)
    spread = instance.demand is not None and instance.demand.collective is not CollectiveKind.ALL_REDUCE
    if isinstance(options.root, int):
        allowed = ranks[:1] if spread else ranks
        if options.root not in allowed:
            what = f"root {ranks[0]} of the collective" if spread else "a rank of the group"
            raise InputError(f"{options.root}; expected {what}", source="-O", place="root")
        return (options.root,)
    balanced = np.array_equal(problem.graph.entering(), problem.graph.leaving())
    first_will_do = spread or (balanced and options.root == "best")
    return ranks[:1] if first_will_do else tuple(sorted(ranks))


def rooted(problem: Problem, rank: int) -> Problem:
    """Let all data start at one rank."""
    roots = np.zeros(problem.nodes, dtype=np.int64)
    roots[problem.topology.rank_nodes[rank]] = 1
    return replace(problem, roots=roots, part_bytes=problem.part_bytes * int(problem.roots.sum()))
