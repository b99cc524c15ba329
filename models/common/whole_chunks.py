"""Chunks that are copied and never summed: what step and routing models of other papers schedule."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core.collective import Demand
from ...core.conditions import conditions
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Chunks
from ...core.topology import Topology

#: Most chunks that are listed.
MAX_CHUNKS = 1_000_000


@dataclass(frozen=True)
class WholeChunk:
    """One chunk.

    Parameters
    ----------
    source : int
        Node that has it.
    targets : tuple of int
        Nodes that need it; the source is none of them.
    bytes : Fraction
        Its size.
    """

    source: int
    targets: tuple[int, ...]
    bytes: Fraction


def unfit(instance: Instance) -> str | None:
    """Say why an instance cannot be cut into such chunks, if it cannot."""
    if not isinstance(instance.network, Topology):
        return f"{instance.network} has no links; expected an explicit network such as dgx1()"
    if not instance.network.links:
        return "the network has no links"
    if not instance.demands:
        return "the instance has no collective to schedule"
    return next((reason for demand in instance.demands if (reason := _unfit(demand, instance.npus)) is not None), None)


def _unfit(demand: Demand, npus: int) -> str | None:
    if demand.size_bytes <= 0:
        return "the collective has no data to move"
    if (npus if demand.ranks is None else len(demand.ranks)) < 2:
        return "a collective needs at least two ranks"
    if any(summed or len(held) > 1 for held, _, summed in conditions(demand, npus).bytes_of):
        return f"it copies chunks and does not sum them, as {demand.collective.value} would need"
    return None


def whole_chunks(instance: Instance) -> tuple[tuple[WholeChunk, ...], Chunks]:
    """List the chunks of an instance, and give them as columns in the same order.

    Raises
    ------
    InputError
        If there are more than :data:`MAX_CHUNKS`.
    """
    node = instance.network.rank_nodes if isinstance(instance.network, Topology) else ()
    found: list[WholeChunk] = []
    sets: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for demand in instance.demands:
        for (held, needed, _), size in conditions(demand, instance.npus).bytes_of.items():
            targets = tuple(node[rank] for rank in needed if rank not in held)
            if len(found) + demand.chunks > MAX_CHUNKS:
                raise InputError(f"more than {MAX_CHUNKS:,} chunks", place="collective.chunks")
            found += [WholeChunk(node[held[0]], targets, size / demand.chunks)] * demand.chunks
            sets += [(held, needed)] * demand.chunks
    groups = tuple(dict.fromkeys(group for pair in sets for group in pair))
    index = {group: position for position, group in enumerate(groups)}
    unit = Fraction(np.gcd.reduce([c.bytes.numerator for c in found], dtype=object)) / Fraction(
        np.lcm.reduce([c.bytes.denominator for c in found], dtype=object)
    )
    chunks = Chunks(
        np.array([int(c.bytes / unit) for c in found], dtype=np.int64),
        unit,
        groups,
        np.array([index[held] for held, _ in sets], dtype=np.int64),
        np.array([index[needed] for _, needed in sets], dtype=np.int64),
        np.zeros(len(found), dtype=np.bool_),
    )
    return tuple(found), chunks
