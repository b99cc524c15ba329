"""Check of circuits in a timed schedule: a chunk holds all links between two ranks for its whole duration.

That is TACOS's time model (dissertation, section 5.4.7): a link is busy for its latency and the chunk's
transmission time, and the next chunk waits for both. Starts and ends are whole ticks of the instance's grid.
Between ranks that are not neighbours there are switches alone; through these a chunk may be x times slower, and
then uses 1/x of every link of its path, like a switch that is unwound into x links to each rank (section 5.4.8).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import numpy as np

from ...core.instance import Instance
from ...core.schedule import Ints, Schedule
from .copies import is_copied_correctly
from .grid import LATEST, NEVER, Grid, grid_of
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
    units = grid.chunk_bytes / schedule.chunks.unit_bytes
    whole = units.numerator if units.denominator == 1 else 0
    for chunk in np.flatnonzero(schedule.chunks.units != whole)[:1].tolist():
        text = f"chunk {chunk} has {schedule.chunks.size_bytes(chunk)} bytes; expected {grid.chunk_bytes}"
        findings.add(Violation("size", text, chunk=chunk))
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
    """Return whether every path leads from a rank over switches to a rank."""
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
    """Return the largest whole x, up to :data:`SLOWEST`, with the given ticks at 1/x of the rate.

    0 if there is none.
    """
    links = [grid.topology.links[link] for link in path]
    late = sum((link.latency_s for link in links), Fraction(0))
    wire = grid.chunk_bytes / min(link.bandwidth_Bps for link in links)
    x = min(SLOWEST, int((ticks * grid.timing.epoch_s - late) // wire))
    return x if x >= 1 and -(-(late + x * wire) // grid.timing.epoch_s) == ticks else 0


@dataclass(frozen=True, eq=False)
class _Uses:
    """Uses of links, hop by hop: start and end in ticks, and the fraction of the link."""

    link: Ints
    send: Ints
    begin: Ints
    end: Ints
    slowness: Ints

    def take(self, index: Ints) -> _Uses:
        """Select uses in the order of the index."""
        return _Uses(*(getattr(self, name)[index] for name in ("link", "send", "begin", "end", "slowness")))


def _check_links(
    network: Network, schedule: Schedule, begin: Ints, end: Ints, slowness: Ints, at_send: AtSend, findings: Findings
) -> None:
    """Check that uses never add up to more than the whole of a link."""
    owner = schedule.sends.hop_send
    uses = _Uses(schedule.sends.path_links, owner, begin[owner], end[owner], slowness[owner])
    uses = _once(network, schedule, uses)
    uses = uses.take(np.lexsort((uses.begin, uses.link)))
    if int(uses.slowness.max(initial=1)) == 1:
        over = np.flatnonzero((np.diff(uses.link) == 0) & (uses.begin[1:] < uses.end[:-1])) + 1
    else:
        over = _find_overloaded(uses)

    def overlap(index: int) -> Violation:
        ends = network.topology.links[int(uses.link[index])]
        text = f"{ends.source} -> {ends.target} is still taken when it starts"
        return replace(at_send("capacity", text, int(uses.send[index])), link=int(uses.link[index]))

    findings.add_each("capacity", over, overlap)


def _once(network: Network, schedule: Schedule, uses: _Uses) -> _Uses:
    """Remove duplicate uses towards a switch with multicast.

    A chunk from one source is sent to it once for all sends that start and end at the same times.
    """
    copies = np.zeros(network.nodes, dtype=np.bool_)
    copies[[i for i, node in enumerate(network.topology.nodes) if node.multicast]] = True
    shared = np.flatnonzero(copies[network.link_target[uses.link]])
    if not len(shared):
        return uses
    sends, some = schedule.sends, uses.take(shared)
    keys = np.stack([some.link, sends.chunk[some.send], sends.source[some.send], some.begin, some.end])
    _, first = np.unique(keys, axis=1, return_index=True)
    keep = np.ones(len(uses.link), dtype=np.bool_)
    keep[shared] = False
    keep[shared[first]] = True
    return uses.take(np.flatnonzero(keep))


def _find_overloaded(uses: _Uses) -> Ints:
    """Find uses at whose start the link is used beyond its capacity."""
    whole = lcm(*np.unique(uses.slowness).tolist())
    part = whole // uses.slowness
    count = len(part)
    link, when = np.tile(uses.link, 2), np.concatenate([uses.begin, uses.end])
    change = np.concatenate([part, -part])
    order = np.lexsort((change, when, link))
    full = order[np.cumsum(change[order]) > whole]
    return full[full < count]
