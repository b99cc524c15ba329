"""``all-to-all-mcf``: the method, as the registry knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.answers import BoundOnly
from ...core.bounds import LengthCertificate
from ...core.budget import Budget
from ...core.collective import CollectiveKind
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome, Status
from ...core.solver import Solver
from ...core.topology import Topology

if TYPE_CHECKING:
    from ..common.flow_bound import FlowBound


class Options(Strict):
    """Options of ``all-to-all-mcf``: none."""


def supports(instance: Instance) -> str | None:
    """Only explicit networks with one all-to-all (``Method.supports``)."""
    if not isinstance(instance.network, Topology):
        return f"{instance.network} has no links; expected an explicit network such as torus(4,4)"
    if instance.demand is None or instance.also:
        return "several collectives at once; expected one" if instance.also else "the instance has no collective"
    if instance.demand.collective is not CollectiveKind.ALL_TO_ALL:
        return f"it bounds all_to_all alone, not {instance.demand.collective.value}"
    if (instance.npus if instance.demand.ranks is None else len(instance.demand.ranks)) < 2:
        return "a collective needs at least two ranks"
    if instance.demand.size_bytes <= 0:
        return "the collective has no data to move"
    return None if instance.network.links else "the network has no links"


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Solve LP (3), and prove the bound by lengths of links (``Method.run``)."""
    from ..common.flow_bound import bound

    del options
    found = bound(instance, solver, budget)
    report = found.report
    if found.seconds is None:
        return Outcome(
            Status.LIMIT, message=report.message or report.termination.value, reports=(report,), size=report.size
        )
    proved = isinstance(found.certificate, LengthCertificate)
    seconds = float(found.seconds)
    return Outcome(
        Status.OPTIMAL if proved else Status.FEASIBLE,
        BoundOnly() if proved else None,
        objective=seconds if proved else None,
        bound=seconds,
        certificate=found.certificate,
        message=""
        if proved
        else f"{report.solver} gives no multipliers: the bound is its own word, and cannot be recomputed",
        reports=(report,),
        size=report.size,
        iterations=report.iterations or 0,
        metrics=measures(instance, found),
    )


def measures(instance: Instance, found: FlowBound) -> dict[str, Any]:
    """Give f, the rate from every rank to every other one: in units of the largest bandwidth of a link, and in 10^9 bytes/s."""
    from ..common.flow_model import bandwidth_unit
    from ..common.schedule_bounds import group_of, network_of

    if found.seconds is None:
        return {}
    rate_Bps = group_of(instance).part_bytes / found.seconds
    return {"rate": float(rate_Bps / bandwidth_unit(network_of(instance))), "rate_GBps": float(rate_Bps / 10**9)}


METHOD = Method(
    name="all-to-all-mcf",
    kind=Kind.RELAXATION,
    summary="how fast an all-to-all can be, by the maximum concurrent flow: a bound, and no schedule",
    paper="Zhao et al., Efficient Direct-Connect Topologies for Collective Communications, appendix A.5",
    answer_type=BoundOnly,
    options=Options,
    run=run,
    supports=supports,
)
