"""``c-cube``: the method, as the registry knows it."""

from __future__ import annotations

from pydantic import Field

from ...algorithms.schedules.pipelined_trees import supports_all_reduce, tree_all_reduce
from ...algorithms.schedules.problem import parallel_uses
from ...core.budget import Budget
from ...core.errors import Refusal, Unsupported
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Kind, Method
from ...core.option_descriptions import Metric
from ...core.outcome import Outcome
from ...core.schedule import Schedule
from ...core.solver import Solver
from ...core.topology import Topology
from .trees import RANKS, two_trees


class CcubeOptions(Strict):
    """Options of ``c-cube``."""

    pieces: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Pieces that each tree's half is cut into; by default the collective's chunks, "
        "or if that is 1, the best number.",
    )


def supports(instance: Instance) -> Refusal | None:
    """Why an instance does not fit, if it does not (``Method.supports``)."""
    if (reason := supports_all_reduce(instance, "dgx1()")) is not None:
        return reason
    topology = instance.network
    if isinstance(topology, Topology) and (len(topology.ranks) != RANKS or topology.switches):
        shape = f"{len(topology.ranks)} ranks and {len(topology.switches)} switches"
        return Refusal(
            "network",
            f"its trees are for the {RANKS} ranks of a DGX-1 without switches, not for {shape}; expected dgx1()",
        )
    return None


def run(instance: Instance, solver: Solver, budget: Budget, options: CcubeOptions) -> Outcome:
    """Lay out the trees and send the pieces (``Method.run``)."""
    del solver
    topology = instance.network
    if not isinstance(topology, Topology):
        raise Unsupported("expected an explicit network")
    with budget.clock.phase("build"):
        layout = two_trees(topology)
        if layout is None:
            raise Unsupported("no two trees without a shared wire were found; expected a network such as dgx1()")
        trees, detours = layout
        uses = parallel_uses(topology)
        return tree_all_reduce(instance, topology, trees, uses, 1, options.pieces, {"detours": detours})


#: What the methods' metrics mean, beside those of the verifier.
METRICS = {
    "pieces": Metric("pieces of each tree's half of the data, K"),
    "piece_steps": Metric("steps that a piece takes through the trees, L"),
    "detours": Metric("edges of the trees that lead through a third rank"),
}


METHOD = Method(
    name="c-cube",
    kind=Kind.HEURISTIC,
    summary="two binary trees on a DGX-1, sums going up while earlier ones come down",
    paper="Cho et al., Logical/Physical Topology-Aware Collective Communication in Deep Learning Training, HPCA 2023",
    answer_type=Schedule,
    options=CcubeOptions,
    solve=run,
    supports=supports,
    needs_solver=False,
    metrics=METRICS,
)
