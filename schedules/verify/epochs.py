"""Checks of timed schedules on the grid of epochs of their instance, or of circuits.

A send that starts at index k over a link of delay d arrives at index k + d, and can be forwarded from there at once;
over a longer path it starts over every link at the index of its arrival there. Starts and ends in seconds must be
those of the grid, so that the schedule means the same in epochs and in seconds. Whole chunks are counted in windows,
parts of chunks by the epoch. Where chunks may be split, nothing is copied, see :mod:`.split_flows`, and data leaving a
switch at an index makes room for arrivals at it. Ranks with a limit are checked in :mod:`.buffers`. Circuits (TACOS,
dissertation, sections 5.4.7 and 5.4.8): docs/schedules/verifier.md.
"""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import lcm

import numpy as np

from ...core.instance import Instance
from ...core.schedule import Ints, Schedule
from ...core.timing import Semantics
from .answers import Findings, SendFindings, Violation, check_answer, count_epochs
from .buffers import check_rank_buffers
from .copies import is_copied_correctly
from .grid import INDEX_LIMIT, TOO_LONG, Grid, check_whole_chunks, grid_of
from .network import Network
from .replay import replay
from .sends import check_capacity, check_shape, verify_times
from .split_flows import check_uncopied

#: Difference between a time and its place on the grid that is taken for rounding: this part of it, or of an epoch.
OFF_GRID = 1e-9

SLOWEST = 64  #: Largest x, so that the parts of links have a common denominator.


def verify_circuits(instance: Instance, network: Network, schedule: Schedule, findings: Findings) -> None:
    """Check times, links and data of a schedule of circuits."""
    at = check_shape(instance, network, schedule, findings)
    if at is None or not _from_rank_to_rank(network, schedule, at):
        return
    grid = grid_of(instance)
    check_whole_chunks(grid, schedule.chunks, findings)
    start = _ticks(grid, schedule, at)
    if start is None:
        return
    begin, end, slowness = start
    _check_links(network, schedule, begin, end, slowness, at)
    read, write = 2 * begin + 1, 2 * end  # what arrives at an instant can be sent on at that instant
    at = at._replace(network=replace(network, buffer_bytes={}))
    if not is_copied_correctly(at, read, write):
        replay(at, read, write)


def _from_rank_to_rank(network: Network, schedule: Schedule, at: SendFindings) -> bool:
    sends = schedule.sends
    ends = np.flatnonzero((network.node_rank[sends.source] < 0) | (network.node_rank[sends.target] < 0))
    inner = np.ones(len(sends.path_links), dtype=np.bool_)
    inner[sends.path_offset[1:] - 1] = False
    passed = network.node_rank[network.link_target[sends.path_links]] >= 0
    wrong = np.union1d(ends, sends.hop_send[inner & passed])
    text = "a circuit leads from a rank to the next one, over switches alone"
    return not at.add_each("path", wrong.astype(np.int64), text)


def _ticks(grid: Grid, schedule: Schedule, at: SendFindings) -> tuple[Ints, Ints, Ints] | None:
    """Return starts, ends and slowness x of all sends; None if some contradict their paths."""
    sends, tick = schedule.sends, float(grid.timing.epoch_s)
    times = schedule.start_s / tick, schedule.end_s / tick
    begin, end = (np.rint(np.minimum(column, INDEX_LIMIT)).astype(np.int64) for column in times)
    off = np.zeros(len(sends), dtype=np.bool_)
    for column, whole in zip(times, (begin, end), strict=True):
        off |= ~(np.abs(column - whole) <= OFF_GRID * np.maximum(1, column)) | (column >= INDEX_LIMIT)
    bad = at.add_each("grid", off, f"starts or ends between two ticks of {tick:.9g} s")
    slowness = np.ones(len(sends), dtype=np.int64)
    single = sends.hops == 1
    wrong = single.copy()
    delay = grid.delay[sends.path_links[sends.path_offset[:-1][single]]]
    wrong[single] = ((end - begin)[single] != delay) | (delay >= TOO_LONG)
    slowness[~single] = _slownesses(grid, schedule, end - begin, np.flatnonzero(~single))
    wrong |= slowness == 0
    bad |= at.add_each("grid", wrong, lambda send: f"takes {end[send] - begin[send]} ticks, which its path does not")
    return None if bad else (begin, end, slowness)


def _slownesses(grid: Grid, schedule: Schedule, ticks: Ints, numbers: Ints) -> Ints:
    """Return :func:`_slowness` of some sends, computed once for equal links and durations."""
    sends, slowness = schedule.sends, np.zeros(len(schedule.sends), dtype=np.int64)
    kinds: dict[tuple[Fraction, Fraction], int] = {}
    pairs = ((link.latency_s, link.bandwidth_Bps) for link in grid.topology.links)
    kind = np.array([kinds.setdefault(pair, len(kinds)) for pair in pairs], dtype=np.int64)
    for hops in np.unique(sends.hops[numbers]).tolist():
        some = numbers[sends.hops[numbers] == hops]
        links = sends.path_links[sends.path_offset[some][:, None] + np.arange(hops)]
        alike = np.column_stack([np.sort(kind[links], axis=1), ticks[some]])
        _, first, inverse = np.unique(alike, axis=0, return_index=True, return_inverse=True)
        of_first = [_slowness(grid, sends.path(send), int(ticks[send])) for send in some[first].tolist()]
        slowness[some] = np.array(of_first, dtype=np.int64)[inverse]
    return slowness[numbers]


def _slowness(grid: Grid, path: tuple[int, ...], ticks: int) -> int:
    """Return the largest x up to :data:`SLOWEST` with the given ticks at 1/x of the rate, or 0."""
    links = [grid.topology.links[link] for link in path]
    late = sum((link.latency_s for link in links), Fraction(0))
    wire = grid.chunk_bytes / min(link.bandwidth_Bps for link in links)
    x = min(SLOWEST, int((ticks * grid.timing.epoch_s - late) // wire))
    return x if x >= 1 and -(-(late + x * wire) // grid.timing.epoch_s) == ticks else 0


def _check_links(
    network: Network, schedule: Schedule, begin: Ints, end: Ints, slowness: Ints, at: SendFindings
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
        return at.at("capacity", text, int(send[index]), int(link[index]))

    at.findings.add_each("capacity", over, overlap)


def _distinct_hops(network: Network, schedule: Schedule, begin: Ints, end: Ints) -> Ints:
    """Return the hops; sends of a chunk to a multicast switch at the same times are one."""
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


OVERLOAD = 1e-7  #: Overload of a link that is taken for rounding where chunks are split: what linear solvers leave.


def verify_epochs(instance: Instance, network: Network, schedule: Schedule, findings: Findings) -> None:
    """Check a schedule in epochs and in seconds."""
    at = check_shape(instance, network, schedule, findings)
    if at is None:
        return
    grid, sends = grid_of(instance), schedule.sends
    start = _check_grid(grid, schedule, at)
    delay = grid.delay[sends.path_links]
    before = np.cumsum(delay) - delay
    first = before[sends.path_offset[:-1]] if len(sends) else before
    hop_start = start[sends.hop_send] + before - np.repeat(first, sends.hops)
    if grid.timing.fluid:
        _check_rates(grid, schedule, hop_start, findings)
        check_uncopied(grid, network, schedule, start, hop_start, OVERLOAD, findings)
    else:
        check_whole_chunks(grid, schedule.chunks, findings)
        _check_windows(grid, network, schedule, hop_start, findings)
    if grid.timing.semantics is Semantics.STORE_AND_FORWARD:
        check_capacity(_at_its_fastest(grid, network), schedule, at)
    end = start + np.add.reduceat(delay, sends.path_offset[:-1]) if len(sends) else start
    _check_passing(network, schedule, start, end, at)
    check_rank_buffers(grid, network, schedule, start, end, at)
    # At one index, what takes time has arrived first; then switches pass on what takes none; then everybody else
    # starts.
    at_once = start == end
    stores = {node: limit for node, limit in network.buffer_bytes.items() if limit}
    read, write = 4 * start + np.where(at_once, 1, 3), 4 * end + np.where(at_once, 2, 0)
    leave = 4 * start if grid.timing.fluid else None  # what leaves makes room for what arrives at the same index
    at = at._replace(network=replace(network, buffer_bytes=stores))
    if not is_copied_correctly(at, read, write):
        replay(at, read, write, leave)


def _check_grid(grid: Grid, schedule: Schedule, at: SendFindings) -> Ints:
    """Check that starts and ends are whole epochs, as far apart as the path's delays; return the starts."""
    sends, epoch = schedule.sends, float(grid.timing.epoch_s)
    begin, end = schedule.start_s / epoch, schedule.end_s / epoch
    start = np.rint(np.minimum(begin, INDEX_LIMIT)).astype(np.int64)
    wrong = ~(np.abs(begin - start) <= OFF_GRID * np.maximum(1, begin)) | (begin >= INDEX_LIMIT)
    at.add_each("grid", wrong, f"starts between two epochs of {epoch:.9g} s")
    if not len(sends):
        return start
    delay = np.add.reduceat(grid.delay[sends.path_links], sends.path_offset[:-1])
    late = ~(np.abs(end - (start + delay)) <= OFF_GRID * np.maximum(1, end)) | (end >= INDEX_LIMIT)
    text = "is said to take {:.9g} epochs, but takes {}".format
    at.add_each("grid", late & ~wrong, lambda send: text(end[send] - begin[send], delay[send]))
    return start


def _check_windows(grid: Grid, network: Network, schedule: Schedule, hop_start: Ints, findings: Findings) -> None:
    """Check that at most ``capacity`` chunks start over a link in any ``window`` consecutive epochs."""
    sends, changes = schedule.sends, {change.link for change in grid.timing.changes}
    if not len(sends):
        return
    links = sends.path_links
    order = np.lexsort((hop_start, links))
    busy, first = np.unique(links[order], return_index=True)
    for link, at in zip(busy.tolist(), np.split(order, first[1:]), strict=True):
        starts = hop_start[at]
        if link in changes:
            full = _over_changed(grid, link, starts)
        else:
            room = int(grid.capacity[link])
            full = np.flatnonzero(starts[room:] - starts[:-room] < grid.window[link]) + room if room else np.arange(1)
        for index in full[:1].tolist():
            send, ends = int(sends.hop_send[at[index]]), network.topology.links[link]
            text = f"{ends.source} -> {ends.target} has more chunks than it can carry in epoch {starts[index]}"
            rank, chunk = network.rank(int(sends.source[send])), int(sends.chunk[send])
            findings.add(Violation("capacity", text, rank=rank, chunk=chunk, link=link))


def _at_its_fastest(grid: Grid, network: Network) -> Network:
    """Return the network with every link at its largest bandwidth; epochs with less are checked in windows."""
    timing, bandwidth = grid.timing, network.bandwidth_Bps.copy()
    for link in {change.link for change in timing.changes}:
        ends = {epoch for c in timing.changes if c.link == link for epoch in (c.first, c.last)}
        bandwidth[link] *= float(max([Fraction(1), *(timing.factor(link, epoch) for epoch in ends)]))
    return replace(network, bandwidth_Bps=bandwidth)


def _over_changed(grid: Grid, link: int, starts: Ints) -> Ints:
    window = int(grid.window[link])
    wrong: list[int] = []
    for index, start in enumerate(starts.tolist()):
        for begin in range(max(0, start - window + 1), start + 1):
            count = int(((starts >= begin) & (starts < begin + window)).sum())
            room = sum(grid.rate[link] * grid.timing.factor(link, k) for k in range(begin, begin + window))
            if count > room:
                wrong.append(index)
                break
    return np.array(wrong, dtype=np.int64)


def _check_rates(grid: Grid, schedule: Schedule, hop_start: Ints, findings: Findings) -> None:
    sends, nodes = schedule.sends, grid.topology.nodes
    size = schedule.chunks.sizes_bytes[sends.chunk][sends.hop_send] / float(grid.chunk_bytes)
    slots, where = np.unique(np.stack([sends.path_links, hop_start]), axis=1, return_inverse=True)
    load = np.bincount(where.ravel(), weights=size, minlength=slots.shape[1])
    room = np.array([float(grid.rate[e] * grid.timing.factor(e, k)) for e, k in slots.T.tolist()])
    for slot in np.flatnonzero(load > room * (1 + OVERLOAD))[:1].tolist():
        link, epoch = slots[:, slot].tolist()
        a, b = int(grid.source[link]), int(grid.target[link])
        text = f"{nodes[a].name} -> {nodes[b].name} carries {load[slot]:.9g} chunks, but can carry {room[slot]:.9g}"
        findings.add(Violation("capacity", f"{text} in epoch {epoch}", link=link))


def _check_passing(network: Network, schedule: Schedule, start: Ints, end: Ints, at: SendFindings) -> None:
    """Check that a switch without storage sends only what arrives at that index, as often unless it can copy."""
    sends = schedule.sends
    empty = np.zeros(network.nodes, dtype=np.bool_)
    empty[[node for node, limit in network.buffer_bytes.items() if limit == 0]] = True
    out = np.flatnonzero(empty[sends.source])
    if not len(out):
        return
    into = np.flatnonzero(empty[sends.target])
    came = Counter(zip(sends.target[into].tolist(), sends.chunk[into].tolist(), end[into].tolist(), strict=True))
    went: Counter[tuple[int, int, int]] = Counter()
    orphans, again = [], []
    for send in out.tolist():
        key = int(sends.source[send]), int(sends.chunk[send]), int(start[send])
        went[key] += 1
        if key not in came:
            orphans.append(send)
        elif network.unicast[key[0]] and went[key] > came[key]:
            again.append(send)

    def report(kind: str, bad: Ints, does: str) -> None:
        at.add_each(kind, bad, lambda send: f"switch {network.name(int(sends.source[send]))} {does}")

    report("buffer", out[sends.reduce[out]], "cannot store, and so cannot add; a sum passes it on a path")
    report("buffer", np.array(orphans, dtype=np.int64), "cannot store, and nothing reaches it at that index")
    report("multicast", np.array(again, dtype=np.int64), "sends a chunk on twice, but has no multicast")


@check_answer.register
def _(schedule: Schedule, instance: Instance, network: Network, findings: Findings) -> None:
    if instance.timing is None:
        verify_times(instance, network, schedule, findings)
    elif instance.timing.semantics is Semantics.CIRCUIT:
        verify_circuits(instance, network, schedule, findings)
    else:
        verify_epochs(instance, network, schedule, findings)


@count_epochs.register
def _(schedule: Schedule, instance: Instance) -> int | None:
    if instance.timing is None:
        return None
    return round(float(schedule.end_s.max(initial=0.0)) / float(instance.timing.epoch_s))
