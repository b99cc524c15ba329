"""How long the dimensions work on a chunk that takes a given order."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ...core.collective import CollectiveKind, Demand
from ...core.fabric import Block, WiredFabric


def latency_s(fabric: WiredFabric, d: int) -> Fraction:
    """``A_d``: the links that a ring, a direct exchange or recursive halving crosses one after the other (dissertation, table 3.1)."""
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
    found = [Fraction(0)] * len(order)
    for d in order:
        found[d] = passes(demand) * stage_s(fabric, d, size_bytes)
        size_bytes /= fabric.sizes[d]
    return found
