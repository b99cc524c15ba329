"""``tto``: the method, as the registry knows it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...algorithms.schedules.pipelined_trees import supports_all_reduce, tree_all_reduce
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
from .trees import SMALLEST, mesh_sides, three_trees

#: Steps after which the next piece follows.
PERIOD = 2


class TtoOptions(Strict):
    """Options of ``tto``."""

    pieces: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Pieces that each tree's third is cut into; by default the collective's chunks, "
        "or if that is 1, the best number.",
    )
    roots: Literal["edge", "any"] = Field(
        "edge", description="Whether the trees' roots are at the edge of the mesh, as published, or anywhere."
    )


def supports(instance: Instance) -> Refusal | None:
    """Why an instance does not fit, if it does not (``Method.supports``)."""
    if (reason := supports_all_reduce(instance, "mesh(4,4)")) is not None:
        return reason
    sides = mesh_sides(instance.network) if isinstance(instance.network, Topology) else None
    if sides is None:
        return Refusal(
            "network", "the network is not a 2D mesh with its ranks numbered row by row; expected one such as mesh(4,4)"
        )
    if min(sides) < SMALLEST:
        return Refusal(
            "network",
            f"a mesh of {sides[0]} x {sides[1]} has no room for three trees; expected at least {SMALLEST} x {SMALLEST}",
        )
    return None


def run(instance: Instance, solver: Solver, budget: Budget, options: TtoOptions) -> Outcome:
    """Build the trees and send the pieces (``Method.run``)."""
    del solver
    topology = instance.network
    sides = mesh_sides(topology) if isinstance(topology, Topology) else None
    if not isinstance(topology, Topology) or sides is None:
        raise Unsupported("expected a mesh")
    with budget.clock.phase("build"):
        trees = three_trees(topology, *sides, edge_roots=options.roots == "edge")
        return tree_all_reduce(instance, topology, trees, [1] * len(topology.links), PERIOD, options.pieces)


#: What the methods' metrics mean, beside those of the verifier.
METRICS = {
    "pieces": Metric("pieces of each tree's third of the data, K"),
    "piece_steps": Metric("steps that a piece takes through the trees, L"),
}


METHOD = Method(
    name="tto",
    kind=Kind.HEURISTIC,
    summary="three trees on a 2D mesh, sums going up while earlier ones come down",
    paper="Laskar et al., Enhancing Collective Communication in MCM Accelerators for Deep Learning Training, HPCA 2024",
    answer_type=Schedule,
    options=TtoOptions,
    solve=run,
    supports=supports,
    needs_solver=False,
    metrics=METRICS,
)
