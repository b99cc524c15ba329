"""Check of circuits in a timed schedule: a chunk holds all links between two ranks for its whole duration.

That is TACOS's time model (dissertation, section 5.4.7): a link is busy for its latency and the chunk's
transmission time, and the next chunk waits for both. Starts and ends are whole ticks of the instance's grid.
Between ranks that are not neighbours there are switches alone; through these a chunk may be x times slower, and
then uses 1/x of every link of its path, like a switch that is unwound into x links to each rank (section 5.4.8).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import lcm

import numpy as np

from ...core.instance import Instance
from ...core.schedule import Ints, Schedule
from .copies import is_copied_correctly
from .grid import LATEST, NEVER, Grid, check_whole_chunks, grid_of
from .network import Network
from .replay import replay
from .report import AtSend, Findings, Violation
from .sends import check_shape

#: Difference between a time and its place on the grid that is taken for rounding: this part of it, or of a tick.
OFF_GRID = 1e-9

#: Largest x, so that the parts of links have a common denominator.
SLOWEST = 64


def verify_circuits(instance: Instance, network: Network, schedule: Schedule, findings: Findings) -> None:
    """Check times, links and data of a schedule of circuits."""
    at_send = check_shape(instance, network, schedule, findings)
    if at_send is None or not _from_rank_to_rank(network, schedule, at_send, findings):
        return
    grid = grid_of(instance)
    check_whole_chunks(grid, schedule.chunks, findings)
    start = _ticks(grid, schedule, at_send, findings)
    if start is None:
        return
    begin, end, slowness = start
    _check_links(network, schedule, begin, end, slowness, at_send, findings)
    read, write = 2 * begin + 1, 2 * end  # what arrives at an instant can be sent on at that instant
    network = replace(network, buffer_bytes={})
    if not is_copied_correctly(network, schedule.chunks, schedule.sends, read, write):
        replay(network, schedule.chunks, schedule.sends, read, write, at_send, findings)


def _from_rank_to_rank(network: Network, schedule: Schedule, at_send: AtSend, findings: Findings) -> bool:
    sends = schedule.sends
    ends = np.flatnonzero((network.node_rank[sends.source] < 0) | (network.node_rank[sends.target] < 0))
    inner = np.ones(len(sends.path_links), dtype=np.bool_)
    inner[sends.path_offset[1:] - 1] = False
    passed = network.node_rank[network.link_target[sends.path_links]] >= 0
    wrong = np.union1d(ends, sends.hop_send[inner & passed])
    text = "a circuit leads from a rank to the next one, over switches alone"
    return not findings.add_each("path", wrong.astype(np.int64), lambda send: at_send("path", text, send))


def _ticks(grid: Grid, schedule: Schedule, at_send: AtSend, findings: Findings) -> tuple[Ints, Ints, Ints] | None:
    """Return starts, ends and slowness x of all sends; None if some contradict their paths."""
    sends, tick = schedule.sends, float(grid.timing.epoch_s)
    times = schedule.start_s / tick, schedule.end_s / tick
    begin, end = (np.rint(np.minimum(column, LATEST)).astype(np.int64) for column in times)
    off = np.zeros(len(sends), dtype=np.bool_)
    for column, whole in zip(times, (begin, end), strict=True):
        off |= ~(np.abs(column - whole) <= OFF_GRID * np.maximum(1, column)) | (column >= LATEST)
    text = f"starts or ends between two ticks of {tick:.9g} s"
    bad = findings.add_each("grid", off, lambda send: at_send("grid", text, send))
    slowness = np.ones(len(sends), dtype=np.int64)
    single = sends.hops == 1
    wrong = single.copy()
    needed = grid.delay[sends.path_links[sends.path_offset[:-1][single]]]
    wrong[single] = ((end - begin)[single] != needed) | (needed >= NEVER)
    slowness[~single] = _slownesses(grid, schedule, end - begin, np.flatnonzero(~single))
    wrong |= slowness == 0

    def not_in_time(send: int) -> Violation:
        return at_send("grid", f"takes {end[send] - begin[send]} ticks, which its path does not", send)

    bad |= findings.add_each("grid", wrong, not_in_time)
    return None if bad else (begin, end, slowness)


def _slownesses(grid: Grid, schedule: Schedule, ticks: Ints, chosen: Ints) -> Ints:
    """Return :func:`_slowness` of some sends, computed once for equal links and durations."""
    sends, found = schedule.sends, np.zeros(len(schedule.sends), dtype=np.int64)
    kinds: dict[tuple[Fraction, Fraction], int] = {}
    kind = np.array(
        [kinds.setdefault((link.latency_s, link.bandwidth_Bps), len(kinds)) for link in grid.topology.links],
        dtype=np.int64,
    )
    for hops in np.unique(sends.hops[chosen]).tolist():
        some = chosen[sends.hops[chosen] == hops]
        links = sends.path_links[sends.path_offset[some][:, None] + np.arange(hops)]
        alike = np.column_stack([np.sort(kind[links], axis=1), ticks[some]])
        _, first, inverse = np.unique(alike, axis=0, return_index=True, return_inverse=True)
        of_first = [_slowness(grid, sends.path(send), int(ticks[send])) for send in some[first].tolist()]
        found[some] = np.array(of_first, dtype=np.int64)[inverse]
    return found[chosen]


def _slowness(grid: Grid, path: tuple[int, ...], ticks: int) -> int:
    """Return the largest x, up to :data:`SLOWEST`, with the given ticks at 1/x of the rate; 0 if there is none."""
    links = [grid.topology.links[link] for link in path]
    late = sum((link.latency_s for link in links), Fraction(0))
    wire = grid.chunk_bytes / min(link.bandwidth_Bps for link in links)
    x = min(SLOWEST, int((ticks * grid.timing.epoch_s - late) // wire))
    return x if x >= 1 and -(-(late + x * wire) // grid.timing.epoch_s) == ticks else 0


def _check_links(
    network: Network, schedule: Schedule, begin: Ints, end: Ints, slowness: Ints, at_send: AtSend, findings: Findings
) -> None:
    sends = schedule.sends
    hops = _distinct_hops(network, schedule, begin, end)
    hops = hops[np.lexsort((begin[sends.hop_send[hops]], sends.path_links[hops]))]
    link, send = sends.path_links[hops], sends.hop_send[hops]
    begin, end, slowness = begin[send], end[send], slowness[send]
    if int(slowness.max(initial=1)) == 1:
        over = np.flatnonzero((np.diff(link) == 0) & (begin[1:] < end[:-1])) + 1
    else:  # each use is a part of the link's least common multiple of parts
        whole = lcm(*np.unique(slowness).tolist())
        change = np.concatenate([whole // slowness, -(whole // slowness)])
        order = np.lexsort((change, np.concatenate([begin, end]), np.tile(link, 2)))
        over = order[np.cumsum(change[order]) > whole]
        over = over[over < len(link)]

    def overlap(index: int) -> Violation:
        ends = network.topology.links[int(link[index])]
        text = f"{ends.source} -> {ends.target} is still taken when it starts"
        return replace(at_send("capacity", text, int(send[index])), link=int(link[index]))

    findings.add_each("capacity", over, overlap)


def _distinct_hops(network: Network, schedule: Schedule, begin: Ints, end: Ints) -> Ints:
    """Return the hops without duplicates towards a switch with multicast.

    A chunk from one source is sent to it once for all sends that start and end at the same times.
    """
    sends, copies = schedule.sends, np.zeros(network.nodes, dtype=np.bool_)
    copies[[i for i, node in enumerate(network.topology.nodes) if node.multicast]] = True
    shared = np.flatnonzero(copies[network.link_target[sends.path_links]])
    if not len(shared):
        return np.arange(len(sends.path_links))
    send = sends.hop_send[shared]
    keys = np.stack([sends.path_links[shared], sends.chunk[send], sends.source[send], begin[send], end[send]])
    _, first = np.unique(keys, axis=1, return_index=True)
    keep = np.ones(len(sends.path_links), dtype=np.bool_)
    keep[shared] = False
    keep[shared[first]] = True
    return np.flatnonzero(keep)
