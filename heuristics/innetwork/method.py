"""``switch-trees``: the method and its options."""

from __future__ import annotations

from fractions import Fraction
from operator import itemgetter

import numpy as np
from pydantic import Field

from ...algorithms.bounds.schedule_bounds import rank_bound
from ...core.budget import Budget
from ...core.collective import Collective
from ...core.errors import Refusal, Unsupported
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Kind, Method, Metric
from ...core.outcome import Outcome, Status
from ...core.solver import Solver
from ...core.topology import NodeKind, Topology
from ...core.trees import TreePacking


class SwitchTreesOptions(Strict):
    """Options of ``switch-trees``."""

    trees: int = Field(256, ge=1, le=4096, description="Most trees, of which those up to the best number are kept.")


def supports(instance: Instance) -> Refusal | None:
    """Only an all-reduce among all ranks, over switches that add and copy."""
    topology = instance.network
    if not isinstance(topology, Topology):
        return Refusal("network", f"{topology} has no links; expected an explicit network such as dgx_h100(nvls=true)")
    if instance.demand is None or instance.also or instance.demand.collective is not Collective.ALL_REDUCE:
        return Refusal("collective", "it supports one all_reduce")
    if instance.demand.ranks is not None:
        return Refusal("ranks", "it is for all ranks, not a process group")
    if instance.npus < 2 or instance.demand.size_bytes <= 0:
        return Refusal("data", "the collective has no data to move")
    if not any(node.kind is NodeKind.SWITCH and node.copies and node.adds for node in topology.nodes):
        return Refusal("network", "no switch of the network adds and copies")
    return None


def run(instance: Instance, solver: Solver, budget: Budget, options: SwitchTreesOptions) -> Outcome:
    """Choose trees one after the other, and bound the time of any all-reduce (``Method.run``).

    Raises
    ------
    Unsupported
        If a link has none back, or the ranks are not joined.
    """
    from ...models.forestcoll.bounds import best_all_reduce_bound
    from .edges import tree_edges
    from .trees import packing_of, share_out

    del solver
    with budget.clock.phase("bound"):
        bound, certificate = max(rank_bound(instance), best_all_reduce_bound(instance, []), key=itemgetter(0))
        budget.tell_bound(bound, certificate)
    with budget.clock.phase("build"):
        topology = instance.topology
        edges = tree_edges(topology)
        assert instance.demand is not None  # noqa: S101 (``supports`` has looked)
        trees = share_out(edges, options.trees, float(instance.demand.size_bytes / bound), budget)
        if trees is None:
            raise Unsupported("links and switches do not connect all ranks; expected a connected network")
        answer = packing_of(edges, trees, instance.sha256, instance.demand.size_bytes)
    taken = _busiest_s(topology, answer)
    return Outcome(
        Status.OPTIMAL if taken == bound else Status.FEASIBLE,
        answer,
        objective=float(taken),
        bound=float(bound),
        certificate=certificate,
        metrics={"switches": len({node for node in answer.child.tolist() if node >= edges.ranks})},
        iterations=sum(trees.values()),
    )


def _busiest_s(topology: Topology, packing: TreePacking) -> Fraction:
    """Return the exact seconds of the most loaded link; trees load both directions alike."""
    load = np.zeros(len(topology.links), dtype=np.int64)
    for part in packing.passes:
        np.add.at(load, part.path_links, part.units[part.path_tree])
    rates = (link.bandwidth_Bps for link in topology.links)
    return max(units / rate for units, rate in zip(load.tolist(), rates, strict=True)) * packing.unit_bytes


METHOD = Method(
    name="switch-trees",
    kind=Kind.HEURISTIC,
    summary="all-reduce on many trees over switches that add and copy, by prices of links; no solver",
    paper="Graham et al., Scalable Hierarchical Aggregation Protocol (SHARP), COM-HPC 2016; the choice of trees is "
    "cwb's own",
    answer_type=TreePacking,
    options=SwitchTreesOptions,
    solve=f"{__package__}.method:run",
    supports=supports,
    needs_solver=False,
    metrics={
        "switches": Metric("switches that are nodes of trees"),
    },
)
