"""Verification of schedules of sends, in steps or in time, and of link bandwidths in time.

Every send gives each link of its path a window in which all its bytes must enter. Windows fit on a link exactly if, for
every interval of time, the bytes of the windows inside it are at most bandwidth times its length; earliest deadline
first then meets all. The check is exact for sends over single links, and necessary for longer paths
(docs/schedules/verifier.md, "Capacity in time").
"""

import heapq
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.instance import Instance
from ...core.kernel import kernel, worth_compiling
from ...core.schedule import Floats, Ints, Schedule, StepSchedule
from .answers import Findings, SendFindings, Violation, check_answer
from .copies import is_copied_correctly
from .network import Network, broken_paths
from .replay import TOLERANCE, replay, seen_s, step_order, time_order
from .sizes import check_sizes


@check_answer.register
def verify_steps(schedule: StepSchedule, instance: Instance, network: Network, findings: Findings) -> None:
    """Check a schedule in steps; skip checks that depend on numbers out of range."""
    if (at := check_shape(instance, network, schedule, findings)) is not None:
        check_sends(at, schedule.step)


def check_sends(at: SendFindings, step: Ints) -> None:
    """Check that sends in steps read what is held, and bring to all ranks what they need."""
    if not is_copied_correctly(at, step, step):
        replay(at, *step_order(step))


def verify_times(instance: Instance, network: Network, schedule: Schedule, findings: Findings) -> None:
    """Check a timed schedule without a grid; skip checks that depend on numbers out of range."""
    start_s, end_s = schedule.start_s, schedule.end_s
    at = check_shape(instance, network, schedule, findings)
    if at is None or at.add_each("capacity", end_s <= start_s, "takes no time"):
        return
    check_capacity(network, schedule, at)
    if not is_copied_correctly(at, seen_s(start_s, end_s), end_s):
        replay(at, *time_order(start_s, end_s))


def check_shape(
    instance: Instance, network: Network, schedule: StepSchedule | Schedule, findings: Findings, *, sized: bool = True
) -> SendFindings | None:
    """Check numbers, sizes if ``sized``, and paths; return where to put findings, None if a number is out of range."""
    sends = schedule.sends
    if not _in_range(network, schedule, findings):
        return None
    if sized:
        check_sizes(instance, schedule.chunks, findings)
    at = SendFindings(network, schedule, findings)
    is_wrong, link = broken_paths(network, sends.source, sends.target, sends.path_offset, sends.path_links)

    def off_path(send: int) -> Violation:
        ends = f"{network.name(int(sends.source[send]))} to {network.name(int(sends.target[send]))}"
        return at.at("path", f"its path does not lead from {ends}", send, int(link[send]))

    findings.add_each("path", is_wrong, off_path)
    return at


def _in_range(network: Network, schedule: StepSchedule | Schedule, findings: Findings) -> bool:
    chunks, sends = schedule.chunks, schedule.sends

    def outside(column: Ints, limit: int) -> Ints:
        if not len(column) or (column.min() >= 0 and column.max() < limit):
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero((column < 0) | (column >= limit))

    columns = {
        "chunk": (sends.chunk, len(chunks)),
        "node": (sends.source, network.nodes),
        "target node": (sends.target, network.nodes),
        "link": (sends.path_links, network.links),
    }
    ok = True
    for name, (column, limit) in columns.items():
        for index in outside(column, limit)[:1].tolist():
            ok = False
            send = int(sends.hop_send[index]) if name == "link" else index
            text = f"send {send} names {name} {column[index]}, but there are {limit}"
            findings.add(Violation("range", text, chunk=int(sends.chunk[send])))
    for number, group in enumerate(chunks.groups):
        in_range = group and group[0] >= 0 and group[-1] < len(network.rank_node)
        if not in_range or any(a >= b for a, b in pairwise(group)):
            ok = False
            text = f"group {number} is not a sorted list of ranks below {len(network.rank_node)}, at least one"
            findings.add(Violation("range", text))
    return ok


def check_capacity(network: Network, schedule: Schedule, at: SendFindings) -> None:
    """Report every link that would have to exceed its bandwidth."""
    sends = schedule.sends
    if not len(sends):
        return
    links, single = sends.path_links, len(sends.path_links) == len(sends)
    release, deadline = _windows(network, schedule)
    owner = np.zeros(0, dtype=np.int64) if single else sends.hop_send
    columns = release, deadline, schedule.end_s, sends.chunk, schedule.chunks.sizes_bytes, network.bandwidth_Bps
    if worth_compiling(len(links)) and _in_turn(links, owner, *columns):
        return
    owner = sends.hop_send
    duration = schedule.chunks.sizes_bytes[sends.chunk][owner] / network.bandwidth_Bps[links]
    allowed = deadline + TOLERANCE * schedule.end_s[owner]
    order = np.lexsort((deadline, release, links))
    busy, first = np.unique(links[order], return_index=True)
    for link, hops in zip(busy.tolist(), np.split(order, first[1:]), strict=True):
        late = _first_late(release[hops], duration[hops], allowed[hops])
        if late is not None:
            _report(network, schedule, link, int(owner[hops[late]]), at)


def _windows(network: Network, schedule: Schedule) -> tuple[Floats, Floats]:
    """Return the earliest and latest times at which each hop's bytes can enter its link."""
    sends = schedule.sends
    latency = network.latency_s[sends.path_links]
    if len(latency) == len(sends):
        return schedule.start_s, schedule.end_s - latency
    before, hops = np.zeros(len(latency)), sends.hops
    for hop in range(1, int(hops.max())):  # of the previous links of the same send, in path order
        at = sends.path_offset[:-1][hops > hop] + hop
        before[at] = before[at - 1] + latency[at - 1]
    whole = np.repeat(np.add.reduceat(latency, sends.path_offset[:-1]), hops)
    owner = sends.hop_send
    return schedule.start_s[owner] + before, schedule.end_s[owner] - (whole - before)


@kernel
def _in_turn(
    links: Any, owner: Any, release: Any, deadline: Any, end: Any, chunk: Any, sizes: Any, bandwidth: Any
) -> bool:
    """Return whether serving hops as they come meets all deadlines; without owners a send is a hop."""
    first = np.zeros(len(bandwidth) + 1, dtype=np.int64)
    for link in links:
        first[link + 1] += 1
    first = np.cumsum(first)
    place, comes, takes, allowed = first[:-1].copy(), np.empty(len(links)), np.empty(len(links)), np.empty(len(links))
    for hop in range(len(links)):
        send, link = owner[hop] if len(owner) else hop, links[hop]
        at = place[link]
        comes[at], takes[at] = release[hop], sizes[chunk[send]] / bandwidth[link]
        allowed[at] = deadline[hop] + TOLERANCE * end[send]
        place[link] += 1
    for link in range(len(bandwidth)):
        a, b = first[link], first[link + 1]
        free = -np.inf
        for at in a + np.argsort(comes[a:b]):
            free = max(free, comes[at]) + takes[at]
            if free > allowed[at]:
                return False
    return True


def _first_late(release: Floats, duration: Floats, allowed: Floats) -> int | None:
    """Return the first hop, of hops sorted by release, that cannot meet its window; None if all can."""
    busy = np.cumsum(duration)
    finish = busy + np.maximum.accumulate(release - (busy - duration))
    if (finish <= allowed).all():
        return None  # first come, first served meets every deadline
    waiting: list[tuple[float, int]] = []
    remaining = duration.tolist()
    times, limits = release.tolist(), allowed.tolist()
    now, arrived = times[0], 0
    while waiting or arrived < len(times):
        if not waiting:
            now = max(now, times[arrived])
        while arrived < len(times) and times[arrived] <= now:
            heapq.heappush(waiting, (limits[arrived], arrived))
            arrived += 1
        limit, hop = waiting[0]
        pause = times[arrived] if arrived < len(times) else float("inf")
        if now + remaining[hop] > pause:
            remaining[hop] -= pause - now
            now = pause
            continue
        now += remaining[hop]
        heapq.heappop(waiting)
        if now > limit:
            return hop
    return None


def _report(network: Network, schedule: Schedule, link: int, send: int, at: SendFindings) -> None:
    sends = schedule.sends
    begin, end = schedule.start_s[send], schedule.end_s[send]
    ends = network.topology.links[link]
    path = list(sends.path(send))
    wire_s = schedule.chunks.sizes_bytes[sends.chunk[send]] / network.bandwidth_Bps[path].min()
    least = float(sum(network.latency_s[path].tolist()) + wire_s)
    if end - begin < least * (1 - TOLERANCE):
        text = f"takes {end - begin:.9g} s, but its path cannot do it in less than {least:.9g} s"
    else:
        text = f"{ends.source} -> {ends.target} is over its capacity until {end:.9g} s"
    at.add("capacity", text, send, link)
