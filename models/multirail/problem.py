"""How long the dimensions work on data that takes an order, and the numbers of the linear program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any

from ...core.collective import CollectiveKind, Demand
from ...core.fabric import Block, WiredFabric
from ...core.instance import Instance
from ...core.network_views import rings_of
from ...core.topology import Topology


@dataclass(frozen=True)
class OrderProblem:
    """The numbers of the linear program.

    Parameters
    ----------
    orders : tuple of tuple of int
        All orders of the dimensions.
    transfer_s : tuple of tuple of Fraction
        For each order, the seconds that each dimension transfers if all data takes it.
    latency_s : tuple of Fraction
        Latencies that each dimension pays for all chunks, whatever their orders.
    unit_s : Fraction
        What the model calls 1.
    """

    orders: tuple[tuple[int, ...], ...]
    transfer_s: tuple[tuple[Fraction, ...], ...]
    latency_s: tuple[Fraction, ...]
    unit_s: Fraction


def pose_problem(instance: Instance) -> OrderProblem:
    """Read the numbers off an instance."""
    fabric, demand = wired(instance), demand_of(instance)
    dimensions = range(len(fabric.dimensions))
    orders = tuple(permutations(dimensions))
    once = [passes(demand) * latency_s(fabric, d) for d in dimensions]
    transfer = tuple(
        tuple(load - fixed for load, fixed in zip(loads_s(fabric, demand, order, demand.size_bytes), once, strict=True))
        for order in orders
    )
    n = fabric.npus
    unit = passes(demand) * demand.size_bytes * (n - 1) / n / sum(fabric.bandwidth_Bps)
    return OrderProblem(orders, transfer, tuple(demand.chunks * fixed for fixed in once), unit)


def index(instance: Instance, options: Any) -> OrderProblem:
    """The numbers of a posed instance (``Formulation.index``)."""
    del options
    return pose_problem(instance)


def seconds(problem: OrderProblem, objective: float) -> float:
    """Time of the busiest dimension (``Formulation.value``)."""
    return objective * float(problem.unit_s)


def latency_s(fabric: WiredFabric, d: int) -> Fraction:
    """``A_d``: links that a ring, a direct exchange or recursive halving crosses in a row (dissertation, table 3.1)."""
    n = fabric.sizes[d]
    steps = {Block.RING: n - 1, Block.FULLY_CONNECTED: 1, Block.SWITCH: (n - 1).bit_length()}
    return steps[fabric.dimensions[d].block] * fabric.latency_s[d]


def stage_s(fabric: WiredFabric, d: int, size_bytes: Fraction) -> Fraction:
    """``A_d + m (n_d - 1) / n_d / B_d``: one reduce-scatter or all-gather of a chunk of m bytes in dimension d."""
    n = fabric.sizes[d]
    return latency_s(fabric, d) + size_bytes * (n - 1) / n / fabric.bandwidth_Bps[d]


def passes(demand: Demand) -> int:
    """How often a chunk visits every dimension."""
    return 2 if demand.collective is CollectiveKind.ALL_REDUCE else 1


def loads_s(fabric: WiredFabric, demand: Demand, order: Sequence[int], size_bytes: Fraction) -> list[Fraction]:
    """Seconds that each dimension works on data of this size that takes this order."""
    loads = [Fraction(0)] * len(order)
    for d in order:
        loads[d] = passes(demand) * stage_s(fabric, d, size_bytes)
        size_bytes /= fabric.sizes[d]
    return loads


def demand_of(instance: Instance) -> Demand:
    """The demand of an instance that :func:`.method.supports` has nothing against."""
    assert instance.demand is not None  # noqa: S101
    return instance.demand


def wired(instance: Instance) -> WiredFabric:
    """The fabric of an instance that :func:`.method.pose` has made; of a mesh, the rings that it is taken for."""
    if isinstance(instance.network, Topology) and (rings := rings_of(instance.network)) is not None:
        return rings
    assert isinstance(instance.network, WiredFabric)  # noqa: S101
    return instance.network
