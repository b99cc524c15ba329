"""``mtree-repair``: the network has changed, and most of the trees shall stay: the method, as the registry knows it.

Links fail or degrade, or others take a part of them. What do the trees of an older plan still carry, and what do they carry together with at most
m new ones? The heavy parts are imported when the method runs.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from ...core.budget import Budget
from ...core.fields import Rate
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome
from ...core.solver import Solver
from ...core.topology import Topology
from ...core.trees import TreePacking
from ..common.wan.network import supports
from .changes import changed
from .options import ChunkOptions, Height, restricted_to
from .previous import PreviousTree


def _listed(value: object) -> object:
    """Take a text as a list with commas."""
    return [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value


class RepairOptions(ChunkOptions):
    """Options of ``mtree-repair``."""

    previous: tuple[PreviousTree, ...] = Field(
        (), description="The trees of the older plan, at least one; 'cwb repair' reads them from its file."
    )
    changes: Annotated[tuple[str, ...], BeforeValidator(_listed)] = Field(
        (),
        description="What has happened to links since: a-b=0 (failed), a-b=0.5, a-b=80 Mb/s, a-b=-20 Mb/s (taken by others); a list, or with commas.",
    )
    new_trees: int = Field(1, ge=0, le=10_000, description="m, the most trees that are not of the older plan.")
    trees: int | None = Field(None, ge=1, le=10_000, description="K, the most trees in all; by default any number.")
    height: Height | None = Field(
        None, description="H of new trees, in hops, or a latency if it has a unit; by default any."
    )
    min_rate: Rate | None = Field(None, description="Smallest rate of a tree; by default any.")
    starts: int = Field(20, ge=1, le=10_000, description="Random starts of algorithm 1 for the pool of new trees.")
    nodes: int = Field(50, ge=1, le=10**7, description="Nodes of the search of the MILP, which need not end.")
    exact: bool = Field(
        True, description="Whether a small network is solved exactly, by link patterns of the new trees."
    )
    resolve: bool = Field(True, description="Whether mtree also plans anew, to compare with and to take trees from.")


def pose(instance: Instance, options: RepairOptions) -> Instance:
    """Give the network as it is now to the method and to the judge."""
    return changed(instance, options.changes) if isinstance(instance.network, Topology) else instance


def restriction(options: RepairOptions) -> str:
    """Say which trees the best ones are sought among (``Method.restricted_to``)."""
    trees = f"the older plan's trees and at most {options.new_trees} new"
    limits = restricted_to(options.trees, options.height, options.min_rate)
    return f"{trees}, {limits}" if limits else trees


def run(instance: Instance, solver: Solver, budget: Budget, options: RepairOptions) -> Outcome:
    """Run :mod:`.repair_search`."""
    from . import repair_search

    return repair_search.run(instance, solver, budget, options)


METHOD = Method(
    name="mtree-repair",
    kind=Kind.EXACT,
    summary="links have changed: what the old trees of an all-reduce still carry, and what they do with a few new ones",
    paper="Luo et al., Efficient Inter-Datacenter AllReduce With Multiple Trees, for the trees; the question is ours",
    answer_type=TreePacking,
    options=RepairOptions,
    run=run,
    supports=supports,
    pose=pose,
    restricted_to=restriction,
)
