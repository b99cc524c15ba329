"""Times of the dimensions for data that takes an order, and coefficients of the linear program."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

from ...core.collective import Demand
from ...core.fabric import Block, WiredFabric
from ...core.instance import Instance
from ...core.network_views import rings_of
from ...core.topology import Topology


@dataclass(frozen=True)
class OrderProblem:
    """Coefficients of the linear program."""

    orders: tuple[tuple[int, ...], ...]
    transfer_s: tuple[tuple[Fraction, ...], ...]  #: For each order, the time of each dimension if all data takes it.
    latency_s: tuple[Fraction, ...]  #: Total latency of each dimension for all chunks, whatever their orders.
    unit_s: Fraction  #: Unit of time of the model.


def pose_problem(instance: Instance, options: object = None) -> OrderProblem:
    """Compute the coefficients of a posed instance (``Formulation.index``)."""
    fabric, demand = wired_fabric_of(instance), instance.demands[0]
    dimensions = range(len(fabric.dimensions))
    orders = tuple(permutations(dimensions))
    once = [demand.collective.passes * latency_s(fabric, d) for d in dimensions]
    transfer = tuple(
        tuple(load - fixed for load, fixed in zip(loads_s(fabric, demand, order, demand.size_bytes), once, strict=True))
        for order in orders
    )
    n = fabric.npus
    unit = demand.collective.passes * demand.size_bytes * (n - 1) / n / sum(fabric.bandwidth_Bps)
    return OrderProblem(orders, transfer, tuple(demand.chunks * fixed for fixed in once), unit)


def seconds(problem: OrderProblem, objective: float) -> float:
    """Return the time of the busiest dimension (``Formulation.value``)."""
    return objective * float(problem.unit_s)


def latency_s(fabric: WiredFabric, d: int) -> Fraction:
    """Return ``A_d``, the latency of consecutive links in ring, direct or halving algorithms (table 3.1)."""
    n = fabric.sizes[d]
    steps = {Block.RING: n - 1, Block.FULLY_CONNECTED: 1, Block.SWITCH: (n - 1).bit_length()}
    return steps[fabric.dimensions[d].block] * fabric.latency_s[d]


def stage_s(fabric: WiredFabric, d: int, size_bytes: Fraction) -> Fraction:
    """Return ``A_d + m (n_d - 1) / n_d / B_d``, one stage of m bytes in dimension d."""
    n = fabric.sizes[d]
    return latency_s(fabric, d) + size_bytes * (n - 1) / n / fabric.bandwidth_Bps[d]


def loads_s(fabric: WiredFabric, demand: Demand, order: Sequence[int], size_bytes: Fraction) -> list[Fraction]:
    """Return the seconds of work of each dimension on data of this size and order."""
    loads = [Fraction(0)] * len(order)
    for d in order:
        loads[d] = demand.collective.passes * stage_s(fabric, d, size_bytes)
        size_bytes /= fabric.sizes[d]
    return loads


def wired_fabric_of(instance: Instance) -> WiredFabric:
    """Return the fabric of an instance posed by :func:`.method.pose`; of a mesh, its rings."""
    if isinstance(instance.network, Topology) and (rings := rings_of(instance.network)) is not None:
        return rings
    assert isinstance(instance.network, WiredFabric)  # noqa: S101
    return instance.network
