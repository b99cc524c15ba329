"""Method ``themis-lp``, and what all multi-rail methods share: options, checks and preparation of instances."""

from dataclasses import replace
from fractions import Fraction
from typing import Literal

from pydantic import Field

from ...core.answers import ChunkOrders
from ...core.collective import Collective
from ...core.errors import NO_COLLECTIVE, InputError, Refusal
from ...core.fabric import Fabric, WiredFabric
from ...core.fields import Duration, Rate, Strict
from ...core.formulation import Formulation
from ...core.instance import Instance
from ...core.method import Kind, Method, Metric
from ...core.network_views import NetworkView, fabric_of, rings_of, to_wired_fabric
from ...core.topology import Topology

THEMIS_PAPER = "Rashidi et al., Themis: A Network Bandwidth-Aware Collective Scheduling Policy, ISCA 2022"

COLLECTIVES = (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.ALL_GATHER)

MAX_DIMENSIONS = 7  #: Dimensions of which all orders can be listed: 7! = 5,040.


class FabricOptions(Strict):
    """Fabric and chunks; each option replaces the instance's own value."""

    bandwidth: list[Rate] | None = None
    """Bandwidth per NPU of each dimension, the innermost first, such as ['250 GB/s', '50 GB/s']; 50 GB/s for each link
    where neither the fabric nor this says it."""
    latency: list[Duration] | None = Field(None, description="Latency of a link of each dimension; 0 unless given.")
    chunks: int | None = Field(None, ge=1, le=100_000, description="Number of equal chunks; the demand's unless given.")


_QUEUE = "Which chunk a dimension takes next: the first or the smallest."


class QueueOptions(FabricOptions):
    """Options of ``blueconnect``."""

    queue: Literal["fifo", "scf"] = Field("fifo", description=_QUEUE)


class ThemisOptions(FabricOptions):
    """Options of ``themis`` and ``themis-lp``."""

    queue: Literal["fifo", "scf"] = Field("scf", description=_QUEUE)


def supports(instance: Instance) -> Refusal | None:
    """Refuse all but fabrics with a collective among all NPUs; return the reason or None."""
    if not isinstance(instance.network, Fabric):
        return Refusal("network", "it schedules multi-dimensional networks such as RI(4)_SW(32), not explicit graphs")
    if instance.demand is None or instance.also:
        return Refusal("collective", "it schedules one collective at a time") if instance.also else NO_COLLECTIVE
    if instance.demand.collective not in COLLECTIVES:
        defined = ", ".join(kind.name for kind in COLLECTIVES)
        return Refusal("collective", f"it does not define {instance.demand.collective.name}, but {defined}")
    if not instance.demand.is_of_all(instance.npus):
        return Refusal("ranks", "it needs all NPUs in the process group")
    if instance.demand.size_bytes <= 0:
        return Refusal("data", "the collective has no data to move")
    return None


def supports_meshes(instance: Instance) -> Refusal | None:
    """Refuse all but fabrics, and meshes given by links, whose lines count as rings (``Method.supports``)."""
    network = instance.network
    if not isinstance(network, Topology) or fabric_of(network) is not None or rings_of(network) is None:
        return supports(instance)
    return supports(instance.with_changes(network=rings_of(network)))


def supports_all_orders(instance: Instance) -> Refusal | None:
    """Refuse fabrics with too many orders to list; return the reason or None."""
    reason = supports(instance)
    if reason is None and (count := len(instance.fabric.dimensions)) > MAX_DIMENSIONS:
        return Refusal("size", f"{count} dimensions have too many orders; expected at most {MAX_DIMENSIONS}")
    return reason


def pose(instance: Instance, options: FabricOptions) -> Instance:
    """Return the instance with the options' bandwidths, latencies and number of chunks.

    A fabric without bandwidths, and options without them, gets those of
    :func:`~cwb.core.network_views.to_wired_fabric`.
    """
    demand = instance.demands[0]
    instance = instance.with_changes(demand=replace(demand, chunks=options.chunks or demand.chunks))
    if isinstance(instance.network, Topology):
        if options.bandwidth is not None or options.latency is not None:
            raise InputError("links have bandwidths and latencies; expected no others", source="-O")
        return instance
    fabric = instance.fabric
    wires = to_wired_fabric(fabric)
    has_rates = options.bandwidth is not None and not isinstance(fabric, WiredFabric)
    zero = (Fraction(0),) * len(fabric.dimensions)
    latency = options.latency or (zero if has_rates else wires.latency_s)
    try:
        network = WiredFabric(fabric.dimensions, tuple(options.bandwidth or wires.bandwidth_Bps), tuple(latency))
    except InputError as error:
        raise error.at(source="-O") from None
    return instance.with_changes(network=network)


#: Metrics of orders of the dimensions, beside those of the verifier.
ORDER_METRICS = {
    "orders": Metric("orders of the dimensions that there are, D!"),
    "orders_used": Metric("orders that chunks take"),
}

THEMIS_LP = Method(
    name="themis-lp",
    kind=Kind.RELAXATION,
    summary="the best shares of all chunk orders: a bound, and rounded to chunks",
    paper=THEMIS_PAPER,
    answer_type=ChunkOrders,
    options=ThemisOptions,
    solve=f"{__package__}.solve:run",
    supports=supports_all_orders,
    networks=NetworkView.FABRIC,
    pose=pose,
    metrics=ORDER_METRICS,
)

SHARES = Formulation(
    "multirail/themis",
    summary="the shares of the data that take each order of the dimensions, such that the busiest one works least",
    paper=THEMIS_PAPER,
    equations="not in the paper: the linear program that its greedy choice of orders approximates",
    index=f"{__package__}.problem:pose_problem",
    build=f"{__package__}.solve:build",
    value=f"{__package__}.problem:seconds",
    options=FabricOptions,
    supports=supports_all_orders,
    networks=NetworkView.FABRIC,
    pose=pose,
    agrees_with="themis-lp",
)
