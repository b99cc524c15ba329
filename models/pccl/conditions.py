"""From collectives to conditions (section 6.4.1): for every chunk who has it and who needs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

import numpy as np

from ...core.collective import CollectiveKind, Demand
from ...core.conditions import conditions
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Chunks, Ints
from ...core.topology import Topology
from .tables import Jobs

#: A schedule with more sends than this is refused before memory is taken for it; each takes some 60 bytes, three times that while it is made.
MAX_SENDS = 40_000_000


@dataclass(frozen=True, eq=False)
class Part:
    """Chunks of one demand with equal sizes and as many holders and receivers each, in columns of groups of ranks.

    Parameters
    ----------
    size : Fraction
        Bytes of a chunk.
    held, needed : array of int, shape (chunks, holders) and (chunks, receivers)
        Ranks, sorted in every row.
    reduced : bool
        Whether contributions are summed.
    root : array of int, shape (chunks,)
        The rank at which a sum comes together, or that has the data.
    """

    size: Fraction
    held: Ints
    needed: Ints
    reduced: bool
    root: Ints

    @property
    def targets(self) -> int:
        """Deliveries of all chunks: contributions to sums, then copies."""
        copies = self.held.shape[1] - 1 if self.reduced else 0
        return len(self.root) * int(copies + self.needed.shape[1])


@dataclass(frozen=True, eq=False)
class Conditions:
    """What is to be scheduled.

    Parameters
    ----------
    chunks : Chunks
        All chunks.
    sizes : tuple of Fraction
        Bytes of the different sizes of chunks.
    sums : Jobs
        From every root to the contributors of its sum: to be scheduled backwards (section 6.4.5).
    copies : Jobs
        From every holder or root to the receivers.
    """

    chunks: Chunks
    sizes: tuple[Fraction, ...]
    sums: Jobs
    copies: Jobs

    @property
    def units(self) -> tuple[int, ...]:
        """The different sizes in units."""
        return tuple(int(size / self.chunks.unit_bytes) for size in self.sizes)


def unfit(instance: Instance) -> str | None:
    """Say why an instance has no such conditions, if it has none."""
    if not isinstance(instance.network, Topology):
        return f"{instance.network} has no links; expected an explicit network such as mesh(4,4)"
    if not instance.network.links:
        return "the network has no links"
    if any(demand.size_bytes <= 0 for demand in instance.demands):
        return "a collective has no data to move"
    if any(len(_ranks(demand, instance.npus)) < 2 for demand in instance.demands):
        return "a collective needs at least two ranks"
    return None


def conditions_of(instance: Instance, topology: Topology) -> Conditions:
    """List the conditions of all collectives of an instance.

    Raises
    ------
    InputError
        If a rank does not exist, or the chunks would not fit into memory.
    """
    for index, demand in enumerate(instance.demands):
        _check(demand, instance.npus, "collective" if not index else f"also[{index - 1}]")
    least = sum(_deliveries(demand, instance.npus) for demand in instance.demands)
    if least > MAX_SENDS:
        raise InputError(f"{least:,} sends at least; expected at most {MAX_SENDS:,}", place="collective.chunks")
    parts = [part for demand in instance.demands for part in _parts(demand, instance.npus)]
    sizes = tuple(sorted({part.size for part in parts}))
    nodes = np.array(topology.rank_nodes, dtype=np.int64)
    sums = _jobs(parts, sizes, nodes, reduced=True)
    return Conditions(_chunks(parts), sizes, sums, _jobs(parts, sizes, nodes, reduced=False))


def step_of(instance: Instance) -> Fraction | None:
    """Give the time that every chunk takes over every link; None if these times differ, or there is latency or a switch."""
    topology = instance.network
    if not isinstance(topology, Topology) or topology.switches or any(link.latency_s for link in topology.links):
        return None
    rates = {link.bandwidth_Bps for link in topology.links}
    sizes = {size for demand in instance.demands for size in _sizes(demand, instance.npus)}
    return sizes.pop() / rates.pop() if len(rates) == len(sizes) == 1 else None


def _sizes(demand: Demand, npus: int) -> set[Fraction]:
    """Give the sizes of the chunks of a demand."""
    if demand.collective in (CollectiveKind.ALL_TO_ALL, CollectiveKind.ALL_REDUCE):
        return {demand.size_bytes / len(_ranks(demand, npus)) / demand.chunks}
    return {size / demand.chunks for size in conditions(demand, npus).bytes_of.values()}


def _ranks(demand: Demand, npus: int) -> tuple[int, ...]:
    return tuple(range(npus)) if demand.ranks is None else demand.ranks


def _check(demand: Demand, npus: int, place: str) -> None:
    """Refuse a group of what are no compute nodes."""
    for rank in demand.ranks or ():
        if not 0 <= rank < npus:
            raise InputError(f"rank {rank}; expected compute nodes, 0 to {npus - 1}", place=f"{place}.ranks")


def _deliveries(demand: Demand, npus: int) -> int:
    """Count the sends that a demand takes at least: one for every chunk and rank that gives or takes."""
    n, kind = len(_ranks(demand, npus)), demand.collective
    everyone = (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_TO_ALL)
    if kind is CollectiveKind.POINT_TO_POINT:
        return demand.chunks
    parts = 2 * n if kind is CollectiveKind.ALL_REDUCE else n if kind in everyone else 1
    return parts * (n - 1) * demand.chunks


def _parts(demand: Demand, npus: int) -> Iterator[Part]:
    """Cut a demand into chunks."""
    ranks = np.array(sorted(_ranks(demand, npus)), dtype=np.int64)
    n, c = len(ranks), demand.chunks
    if demand.collective is CollectiveKind.ALL_TO_ALL:
        source, target = (ranks[index].ravel() for index in np.indices((n, n)))
        chosen = np.repeat(np.flatnonzero(source != target), c)
        source, target = source[chosen, None], target[chosen, None]
        yield Part(demand.size_bytes / n / c, source, target, False, source[:, 0])
    elif demand.collective is CollectiveKind.ALL_REDUCE:
        everyone = np.tile(ranks, (n * c, 1))
        yield Part(demand.size_bytes / n / c, everyone, everyone, True, np.repeat(ranks, c))
    else:
        for (held, needed, reduced), size in conditions(demand, npus).bytes_of.items():
            held_by, needed_by = (np.tile(np.array(group, dtype=np.int64), (c, 1)) for group in (held, needed))
            yield Part(size / c, held_by, needed_by, reduced, (needed_by if reduced else held_by)[:, 0])


def _chunks(parts: list[Part]) -> Chunks:
    groups: dict[tuple[int, ...], int] = {}

    def numbers(rows: Ints) -> Ints:
        found, where = np.unique(rows, axis=0, return_inverse=True)
        index = [groups.setdefault(tuple(row), len(groups)) for row in found.tolist()]
        return np.array(index, dtype=np.int64)[where.ravel()]

    held = np.concatenate([numbers(part.held) for part in parts])
    needed = np.concatenate([numbers(part.needed) for part in parts])
    scale = lcm(*(part.size.denominator for part in parts))
    unit = Fraction(gcd(*(int(part.size * scale) for part in parts)), scale)
    units = [np.full(len(part.root), int(part.size / unit)) for part in parts]
    reduced = np.concatenate([np.full(len(part.root), part.reduced) for part in parts])
    return Chunks(np.concatenate(units), unit, tuple(groups), held, needed, reduced)


def _jobs(parts: list[Part], sizes: tuple[Fraction, ...], nodes: Ints, *, reduced: bool) -> Jobs:
    """List the jobs that give copies, or those that bring sums together."""
    columns: list[tuple[Ints, ...]] = []
    begin = 0
    for part in parts:
        count = len(part.root)
        others = part.held if reduced else part.needed
        lacks = others != part.root[:, None]
        if (part.reduced or not reduced) and lacks.any():
            number = np.arange(begin, begin + count)
            size = np.full(count, sizes.index(part.size))
            columns.append((number, nodes[part.root], size, lacks.sum(axis=1), nodes[others[lacks]]))
        begin += count
    if not columns:
        columns.append((np.zeros(0, dtype=np.int64),) * 5)
    chunk, source, size, lacking, target = (np.concatenate(column) for column in zip(*columns, strict=True))
    keep = lacking > 0
    first = np.concatenate([[0], np.cumsum(lacking[keep])]).astype(np.int64)
    return Jobs(chunk[keep], source[keep], size[keep], np.zeros(int(keep.sum()), dtype=np.int64), first, target)
