"""``multitree``: the method, as the registry knows it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...core.budget import Budget
from ...core.collective import Demand
from ...core.errors import Unsupported
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome, Status
from ...core.schedule import StepSchedule
from ...core.solver import Solver
from ...core.topology import Topology
from ..common.compose import merge
from ..common.schedule_bounds import best_bound
from .assemble import COLLECTIVES, Built, build


class Options(Strict):
    """Options of ``multitree``."""

    links: Literal["parallel", "equal"] = Field(
        "parallel",
        description="parallel lets a link of k times the smallest bandwidth take k edges in a step, k rounded down; equal lets every link take one.",
    )


def supports(instance: Instance) -> str | None:
    """Say why an instance does not fit, if it does not (``Method.supports``)."""
    if not isinstance(instance.network, Topology):
        return f"{instance.network} has no links; expected an explicit network such as torus(4,4)"
    if not instance.demands:
        return "the instance has no collective to schedule"
    reasons = (fault(demand, instance.npus) for demand in instance.demands)
    return next((reason for reason in reasons if reason is not None), None)


def fault(demand: Demand, npus: int) -> str | None:
    """Say what is wrong with one collective."""
    if demand.collective not in COLLECTIVES:
        defined = ", ".join(kind.value for kind in COLLECTIVES)
        return f"it does not define {demand.collective.value}, but {defined}"
    if (npus if demand.ranks is None else len(demand.ranks)) < 2:
        return "a collective needs at least two ranks"
    if demand.size_bytes <= 0:
        return "the collective has no data to move"
    return None


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Grow the trees of every collective on its own (``Method.run``)."""
    del solver
    topology = instance.network
    if not isinstance(topology, Topology):
        raise Unsupported("expected an explicit network")
    bound, certificate = best_bound(instance)
    found: list[Built] = []
    with budget.clock.phase("build"):
        for demand in instance.demands:
            digest = instance.of_one(demand).sha256
            built = build(digest, topology, demand, budget, parallel=options.links == "parallel")
            if built is None:
                message = "the trees were not complete in time"
                return Outcome(Status.LIMIT, bound=float(bound), certificate=certificate, message=message)
            found.append(built)
    schedule = merge(instance.sha256, [one.schedule for one in found])
    metrics = {"tree_height": max(one.height for one in found)}
    return Outcome(Status.FEASIBLE, schedule, bound=float(bound), certificate=certificate, metrics=metrics)


METHOD = Method(
    name="multitree",
    kind=Kind.HEURISTIC,
    summary="a spanning tree from every rank, grown in turns over free links",
    paper="Huang et al., Communication Algorithm-Architecture Co-Design for Distributed Deep Learning, ISCA 2021",
    answer_type=StepSchedule,
    options=Options,
    run=run,
    supports=supports,
    needs_solver=False,
)
