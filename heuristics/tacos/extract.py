"""From transfers over arcs to schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...algorithms.matching.network import RankNetwork
from ...algorithms.matching.step_matching import TransferRows
from ...core.instance import Instance
from ...core.ragged import offsets, ranges
from ...core.schedule import Bools, Chunks, Ints, Schedule, Sends
from .method import chunk_bytes


@dataclass(frozen=True, eq=False)
class ArcTransfers:
    """Transfers over arcs of the network.

    Parameters
    ----------
    arcs : RankNetwork
        Network whose arcs ``arc`` numbers.
    arc, chunk, start : array of int
        Columns of the transfers; starts in ticks.
    adds : array of bool
        Whether the receiver adds the data.
    """

    arcs: RankNetwork
    arc: Ints
    chunk: Ints
    start: Ints
    adds: Bools


def all_gathered(arcs: RankNetwork, rows: TransferRows, members: Bools, begin: int = 0) -> ArcTransfers:
    """Return an all-gather from a tick on, without transfers to ranks that neither need nor forward them."""
    keep = _needed_transfers(arcs, rows, members)
    arc, chunk, start = _wide(rows.arc[keep]), _wide(rows.chunk[keep]), rows.start[keep] + begin
    return ArcTransfers(arcs, arc, chunk, start, np.zeros(len(arc), dtype=np.bool_))


def reduce_scattered(
    arcs: RankNetwork, turned: RankNetwork, rows: TransferRows, members: Bools, ticks: int
) -> ArcTransfers:
    """Return the reduce-scatter that reverses an all-gather over reversed arcs, in as many ticks."""
    keep = _needed_transfers(turned, rows, members)
    arc, chunk = _wide(rows.arc[keep]), _wide(rows.chunk[keep])
    start = ticks - rows.start[keep] - turned.ticks[arc]
    return ArcTransfers(arcs, arc, chunk, start, np.ones(len(arc), dtype=np.bool_))


def _wide(column: NDArray[Any]) -> Ints:
    return np.asarray(column, dtype=np.int64)


def _needed_transfers(arcs: RankNetwork, rows: TransferRows, members: Bools) -> Ints:
    """Positions of the transfers that bring a chunk to a member, or to where it is sent on to one."""
    if members.all():
        return np.arange(len(rows.arc))
    sends_on: set[tuple[int, int]] = set()
    kept: list[int] = []
    columns = (rows.head, rows.chunk, arcs.tail[rows.arc])
    head, chunk, tail = (column.tolist() for column in columns)
    for row in np.argsort(-rows.start, kind="stable").tolist():
        if members[head[row]] or (head[row], chunk[row]) in sends_on:
            sends_on.add((tail[row], chunk[row]))
            kept.append(row)
    return np.array(sorted(kept), dtype=np.int64)


def schedule(instance: Instance, ranks: Sequence[int], parts: Sequence[ArcTransfers]) -> Schedule:
    """Return a schedule of transfers for an instance with a timing.

    Chunk ``i c + j`` is chunk j of the i-th rank.
    """
    demand, timing, topology = instance.demand, instance.timing, instance.network
    assert demand is not None and timing is not None  # noqa: S101 (posed)
    node = np.array(getattr(topology, "rank_nodes", ()), dtype=np.int64)
    columns: list[tuple[Ints, Ints, Ints, Bools, Ints, Ints, Ints, Ints]] = []
    for part in parts:
        hops, links = _paths(part.arcs, part.arc)
        tail, head = part.arcs.tail[part.arc], part.arcs.head[part.arc]
        columns.append(
            (
                part.chunk,
                node[tail],
                node[head],
                part.adds,
                hops,
                links,
                part.start,
                part.start + part.arcs.ticks[part.arc],
            )
        )
    chunk, source, target, adds, hops, links, start, end = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    offset = offsets(hops)
    epoch = float(timing.epoch_s)
    return Schedule(
        instance.sha256,
        _chunks(instance, ranks),
        Sends(chunk, source, target, adds, offset, links),
        np.asarray(start * epoch, dtype=np.float64),
        np.asarray(end * epoch, dtype=np.float64),
    )


def _paths(arcs: RankNetwork, arc: Ints) -> tuple[Ints, Ints]:
    """Return the number of links of every transfer, and all links concatenated."""
    hops = np.array([len(path) for path in arcs.paths], dtype=np.int64)
    first = np.cumsum(hops) - hops
    flat = np.array([link for path in arcs.paths for link in path], dtype=np.int64)
    mine = hops[arc]
    return mine, flat[ranges(first[arc], mine)]


def _chunks(instance: Instance, ranks: Sequence[int]) -> Chunks:
    demand = instance.demand
    assert demand is not None  # noqa: S101 (posed)
    n, c, kind = len(ranks), demand.chunks, demand.collective
    everyone, own = np.full(n * c, n, dtype=np.int64), np.repeat(np.arange(n), c)
    return Chunks(
        np.ones(n * c, dtype=np.int64),
        chunk_bytes(demand, instance.npus),
        (*((rank,) for rank in ranks), tuple(sorted(ranks))),
        everyone if kind.sums else own,
        everyone if kind.copies else own,
        np.full(n * c, kind.sums),
    )
