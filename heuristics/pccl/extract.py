"""From paths in ticks to a schedule in time."""

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np

from ...algorithms.paths.reservations import PathNetwork
from ...algorithms.paths.search import SOURCE, Jobs, SendPool
from ...core.kernel import kernel
from ...core.schedule import Bools, Chunks, Floats, Ints, Schedule, Sends, offsets, ranges

_ROUNDS = 50  #: Times that starts are computed again at most.


@dataclass(frozen=True, eq=False)
class SendTable:
    """Columns of all sends.

    Starts are in ticks; ``next`` is for a copy the send that brings it to the tail, for a contribution the one that
    forwards the sum from the head, or :data:`SOURCE`; ``reduce`` marks contributions to a sum.
    """

    chunk: Ints
    edge: Ints
    start: Ints
    next: Ints
    reduce: Bools


def mirror_trees(net: PathNetwork, jobs: Jobs, pool: SendPool, ticks: int) -> tuple[SendPool, Ints]:
    """Reverse the trees of sums in time; return them with the completion of every sum at its root."""
    index, owner, _ = _sends_in_use(pool)
    delay = net.delay[jobs.size[owner], pool.edge[index]]
    start = pool.start.copy()
    start[index] = ticks - pool.start[index] - delay
    complete = np.zeros(jobs.number, dtype=np.int64)
    np.maximum.at(complete, owner, start[index] + delay)
    return pool._replace(start=start), complete


def rows_of(jobs: Jobs, pool: SendPool, first: int, *, reduce: bool) -> SendTable:
    """List the sends of a stage; the first one gets the number ``first``."""
    index, owner, begin = _sends_in_use(pool)
    parent = pool.parent[index]
    return SendTable(
        jobs.chunk[owner],
        pool.edge[index],
        pool.start[index],
        np.where(parent == SOURCE, SOURCE, first + begin + parent),
        np.full(len(owner), reduce),
    )


def ways_of(jobs: Jobs, pool: SendPool) -> SendTable:
    """List the sends of jobs with one path each, contiguous by job, without successors."""
    none = np.zeros(0, dtype=np.int64)
    return SendTable(
        np.repeat(jobs.chunk, pool.length), pool.edge, pool.start, none, np.zeros(len(pool.edge), dtype=np.bool_)
    )


def _sends_in_use(pool: SendPool) -> tuple[Ints, Ints, Ints]:
    """Return the used sends sorted by job, their jobs, and the offset of each job."""
    owner = np.repeat(np.arange(len(pool.length)), pool.length)
    begin = np.repeat(np.cumsum(pool.length) - pool.length, pool.length)
    return ranges(pool.first, pool.length), owner, begin


def concatenate_sends(parts: list[SendTable]) -> SendTable:
    """Put the sends of all stages together."""
    columns: Any = zip(*([getattr(part, field.name) for field in fields(SendTable)] for part in parts), strict=True)
    return SendTable(*map(np.concatenate, columns))


def justify_starts(net: PathNetwork, rows: SendTable, sizes: Ints, chunks: int) -> Ints:
    """Start every send as early as possible, each link serving in the order of given starts.

    Where paths through switches share links, starts may change places; then this is repeated, until a link serves in
    the order of starts. ``sizes`` are the size classes of the chunks.
    """
    columns = rows.chunk, rows.edge, rows.next, rows.reduce, sizes
    start = before = rows.start
    for _ in range(1 if len(net.link) == len(net.tail) else _ROUNDS):
        start = np.zeros(len(rows.edge), dtype=np.int64)
        free, ready = (np.zeros(count, dtype=np.int64) for count in (int(net.link.max()) + 1, chunks))
        _justify(net, np.argsort(before, kind="stable"), *columns, free, ready, start)
        if np.array_equal(start, before):
            break
        before = start
    return start


@kernel
def _justify(
    net: Any,
    order: Any,
    chunk: Any,
    edge: Any,
    follows: Any,
    reduce: Any,
    sizes: Any,
    free: Any,
    ready: Any,
    start: Any,
) -> None:
    """Fill in the starts; ``start`` of a contribution holds until then when what it sums up has come."""
    for index in order:
        e, other, size = edge[index], follows[index], sizes[chunk[index]]
        if reduce[index]:
            at = start[index]
        elif other >= 0:
            at = start[other] + net.delay[size, edge[other]]
        else:
            at = ready[chunk[index]]
        for part in range(net.part_first[e], net.part_first[e + 1]):
            at = max(at, free[net.link[part]] - net.offset[size, part])
        for part in range(net.part_first[e], net.part_first[e + 1]):
            free[net.link[part]] = at + net.offset[size, part] + net.window[size, part]
        start[index] = at
        end = at + net.delay[size, e]
        if reduce[index]:
            if other >= 0:
                start[other] = max(start[other], end)
            else:
                ready[chunk[index]] = max(ready[chunk[index]], end)


def schedule_of(
    sha256: str, chunks: Chunks, net: PathNetwork, rows: SendTable, start: Ints, delay: Ints, tick_s: Fraction
) -> Schedule:
    """Make the schedule of sends with their starts and delays in ticks; one delay may be that of all sends."""
    edge = rows.edge
    if len(net.link) == len(net.tail):
        offset = np.arange(len(edge) + 1)
        links = edge if np.array_equal(net.link, np.arange(len(net.link))) else net.link[edge]
    else:
        hops = np.diff(net.part_first)[edge]
        offset = offsets(hops)
        links = net.link[ranges(net.part_first[edge], hops)]
    sends = Sends(rows.chunk, net.tail[edge], net.head[edge], rows.reduce, offset, links)
    return Schedule(sha256, chunks, sends, _seconds(start, tick_s), _seconds(start + delay, tick_s))


def _seconds(ticks: Ints, tick_s: Fraction) -> Floats:
    """Convert ticks to seconds, rounded twice, with at most one extra column in memory."""
    seconds = ticks.astype(np.float64)
    seconds *= float(tick_s.numerator)
    seconds /= float(tick_s.denominator)
    return seconds
