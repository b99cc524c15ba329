"""What a collective moves: chunks with a source and destinations."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core.collective import CollectiveKind, Demand
from ...core.conditions import conditions
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Chunks
from ...core.topology import Topology

#: Most commodities that are listed.
MAX_COMMODITIES = 5_000_000


@dataclass(frozen=True)
class Commodity:
    """One chunk's way from one node to those that need it.

    Parameters
    ----------
    source : int
        Node that has it at the start.
    targets : tuple of int
        Nodes that need it, sorted; the source is none of them.
    chunk : int
        The chunk of the schedule that it is, see :func:`chunks_of`. A sum is one chunk and several commodities: a contribution
        from each rank to the owner, and the sum from the owner to all.
    bytes : Fraction
        Size.
    tenant : int
        Which of the instance's collectives it belongs to.
    after : tuple of int
        Earlier commodities that must have reached the source first: the contributions of a sum.
    summed : bool
        Whether it is a contribution, which whoever passes it on may add to its own.
    """

    source: int
    targets: tuple[int, ...]
    chunk: int
    bytes: Fraction
    tenant: int = 0
    after: tuple[int, ...] = ()
    summed: bool = False


@dataclass(frozen=True)
class _Part:
    """A chunk of a collective: its holders and receivers, and whether it is a sum; ``owner`` is where a sum is made."""

    held: tuple[int, ...]
    needed: tuple[int, ...]
    summed: bool
    bytes: Fraction
    tenant: int
    owner: int


def commodities_of(instance: Instance) -> tuple[Commodity, ...]:
    """List what an instance moves, collective by collective.

    Raises
    ------
    InputError
        If a group has fewer than two ranks, there is nothing to move, or too much to list.
    """
    topology = instance.network
    assert isinstance(topology, Topology)  # noqa: S101 (callers have looked)
    node = topology.rank_nodes
    found: list[Commodity] = []
    for chunk, part in enumerate(_parts(instance)):
        before: list[int] = []
        if part.summed:
            for rank in part.held:
                if rank != part.owner:
                    before.append(len(found))
                    owner = (node[part.owner],)
                    found.append(Commodity(node[rank], owner, chunk, part.bytes, part.tenant, summed=True))
        targets = tuple(node[rank] for rank in part.needed if rank != part.owner)
        if targets:
            found.append(Commodity(node[part.owner], targets, chunk, part.bytes, part.tenant, tuple(before)))
    return tuple(found)


def chunks_of(instance: Instance) -> Chunks:
    """Give the chunks of a schedule; :attr:`Commodity.chunk` is the position."""
    parts = _parts(instance)
    groups = tuple(dict.fromkeys(group for part in parts for group in (part.held, part.needed)))
    index = {group: position for position, group in enumerate(groups)}
    return Chunks(
        np.ones(len(parts), dtype=np.int64),
        parts[0].bytes,
        groups,
        np.array([index[part.held] for part in parts], dtype=np.int64),
        np.array([index[part.needed] for part in parts], dtype=np.int64),
        np.array([part.summed for part in parts], dtype=np.bool_),
    )


def _parts(instance: Instance) -> list[_Part]:
    found: list[_Part] = []
    for tenant, demand in enumerate(instance.demands):
        kinds = _owned(demand, instance.npus)
        if len(found) + len(kinds) * demand.chunks > MAX_COMMODITIES:
            raise InputError(f"more than {MAX_COMMODITIES:,} chunks to schedule", place="collective.chunks")
        for held, needed, summed, size, owner in kinds:
            part = _Part(held, needed, summed, size / demand.chunks, tenant, owner)
            found += [part] * demand.chunks
    if not found or found[0].bytes <= 0:
        raise InputError("the collective has no data to move", place="collective")
    return found


def _owned(demand: Demand, npus: int) -> list[tuple[tuple[int, ...], tuple[int, ...], bool, Fraction, int]]:
    """Give the conditions of a collective with the rank that has the data, or in which the sum is made."""
    kinds = conditions(demand, npus).bytes_of
    if demand.collective is CollectiveKind.ALL_REDUCE:  # section 8: every rank sums its share and gives it to all
        ((held, needed, summed), size) = next(iter(kinds.items()))
        return [(held, needed, summed, size / len(held), owner) for owner in held]
    return [(*kind, size, (kind[1] if kind[2] else kind[0])[0]) for kind, size in kinds.items()]
