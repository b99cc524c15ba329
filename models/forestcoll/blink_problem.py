"""What Blink is asked: one root, and what can be chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from ...core.collective import CollectiveKind
from ...core.errors import InputError
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.topology import Topology
from . import problem as forestcoll
from .problem import Problem

#: What trees from one root make.
SUPPORTED = (CollectiveKind.ALL_REDUCE, CollectiveKind.BROADCAST, CollectiveKind.REDUCE)


class BlinkOptions(Strict):
    """Options of ``blink`` and ``blink-switch``."""

    root: Literal["best"] | Annotated[int, Field(ge=0)] = Field(
        default="best",
        description="Rank that an all-reduce adds up at and broadcasts from: best, the one with the highest rate; or a number.",
    )
    k: Literal["optimal", "smallest"] | Annotated[int, Field(ge=1, le=10**6)] = Field(
        default="optimal",
        description="Trees: optimal, as many as make every link's share whole (proposition 3); "
        "smallest, as few as are still optimal; or a number.",
    )
    repack: int = Field(
        default=100,
        ge=0,
        le=100_000,
        description="Rounds in which some trees of a small network are packed anew, to bring the tallest down.",
    )


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
    """Give the ranks of which the best is to be the root.

    Where every node has the same bandwidth in and out, as much enters every set of nodes as leaves it. Then the cut that limits one
    root limits, from one of its sides or the other, every root: all are equally good, and the first is taken.

    Raises
    ------
    InputError
        If the root asked for is not in the group, or not that of the collective.
    """
    ranks = group(instance)
    spread = instance.demand is not None and instance.demand.collective is not CollectiveKind.ALL_REDUCE
    if options.root != "best":
        allowed = ranks[:1] if spread else ranks
        if options.root not in allowed:
            what = f"root {ranks[0]} of the collective" if spread else "a rank of the group"
            raise InputError(f"{options.root}; expected {what}", source="-O", place="root")
        return (options.root,)
    balanced = np.array_equal(problem.graph.entering(), problem.graph.leaving())
    return ranks[:1] if spread or balanced else tuple(sorted(ranks))


def rooted(problem: Problem, rank: int) -> Problem:
    """Let all data start at one rank."""
    roots = np.zeros(problem.nodes, dtype=np.int64)
    roots[problem.topology.rank_nodes[rank]] = 1
    return replace(problem, roots=roots, part_bytes=problem.part_bytes * int(problem.roots.sum()))
