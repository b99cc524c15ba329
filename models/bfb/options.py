"""Options of the family, and which instances it is for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...core.collective import CollectiveKind, Demand
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.topology import Topology

COLLECTIVES = (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_REDUCE)


class Options(Strict):
    """Options of ``bfb``, ``bfb-lp`` and ``bfb-heterogeneous``."""

    schedule: bool | None = Field(
        None,
        description="Whether the schedule is made, or the metrics alone; by default, where it has at most 16,777,216 sends.",
    )


class ChunkedOptions(Options):
    """Options of ``bfb-chunked``."""

    solution: Literal["program", "rounding"] = Field(
        "program", description="Solve the integer program, or round the solution of its relaxation."
    )


def supports(instance: Instance) -> str | None:
    """Links of one bandwidth between compute nodes, and a collective of all of them."""
    reason = supports_any_bandwidth(instance)
    if reason is None and isinstance(instance.network, Topology):
        rates = sorted({link.bandwidth_Bps for link in instance.network.links})
        if len(rates) > 1:
            low, high = (float(rate) / 1e9 for rate in (rates[0], rates[-1]))
            return f"links have different bandwidths, {low:g} to {high:g} GB/s; bfb-heterogeneous is for these"
    return reason


def supports_any_bandwidth(instance: Instance) -> str | None:
    """Links between compute nodes, and a collective of all of them."""
    if not isinstance(instance.network, Topology):
        return f"{instance.network} has no links; expected an explicit network such as torus(4,4)"
    if instance.demand is None:
        return "the instance has no collective to schedule"
    return _against_network(instance.network) or _against_demand(instance, instance.demand)


def _against_network(network: Topology) -> str | None:
    if network.switches:
        return f"{network.switches[0]!r} is a switch; expected links between compute nodes alone"
    return "a collective needs at least two ranks" if len(network.ranks) < 2 else None


def _against_demand(instance: Instance, demand: Demand) -> str | None:
    if instance.also:
        return "several collectives at once; expected one"
    if demand.collective not in COLLECTIVES:
        return f"it does not define {demand.collective.value}, but {', '.join(kind.value for kind in COLLECTIVES)}"
    if demand.ranks is not None and set(demand.ranks) != set(range(instance.npus)):
        return "it broadcasts from every node of the network; expected a group of all ranks"
    return "the collective has no data to move" if demand.size_bytes <= 0 else None
