"""Check of link bandwidths for a timed schedule.

A send states when its first byte leaves and when its last byte arrives, not when each link of its path is used. In
any case its bytes enter link ``l`` no earlier than ``start + latency of the links before`` and no later than ``end
- latency of l and the links after``; within this window the link must carry all of them. Many windows fit on a link
exactly if, for every interval of time, the bytes of the windows inside it are at most bandwidth times its length,
however the link divides its time; sending by earliest deadline then meets every window. For sends over single links
the check is exact; for longer paths it is necessary on any network, store and forward or cut through. A link that
carries one chunk at a time is the special case of windows that are as short as the chunk allows.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from ...core.kernel import kernel, worth_compiling
from ...core.schedule import Chunks, Floats, Ints, Schedule
from .network import Network
from .replay import TOLERANCE
from .report import Findings, Violation


def check_capacity(network: Network, schedule: Schedule, findings: Findings) -> None:
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
    needed = schedule.chunks.sizes_bytes[sends.chunk][owner] / network.bandwidth_Bps[links]
    allowed = deadline + TOLERANCE * schedule.end_s[owner]
    order = np.lexsort((deadline, release, links))
    used, first = np.unique(links[order], return_index=True)
    for link, hops in zip(used.tolist(), np.split(order, first[1:]), strict=True):
        late = _first_late(release[hops], needed[hops], allowed[hops])
        if late is not None:
            _report(network, schedule, link, int(owner[hops[late]]), findings)


def _windows(network: Network, schedule: Schedule) -> tuple[Floats, Floats]:
    """Return the earliest and latest times at which each hop's bytes can enter its link."""
    sends = schedule.sends
    latency = network.latency_s[sends.path_links]
    if len(latency) == len(sends):
        return schedule.start_s, schedule.end_s - latency
    before = _latency_before(latency, sends.path_offset, sends.hops)
    whole = np.repeat(np.add.reduceat(latency, sends.path_offset[:-1]), sends.hops)
    owner = sends.hop_send
    return schedule.start_s[owner] + before, schedule.end_s[owner] - (whole - before)


def _latency_before(latency: Floats, offset: Ints, hops: Ints) -> Floats:
    """Sum the latencies of the previous links of the same send, in path order."""
    before = np.zeros(len(latency))
    for hop in range(1, int(hops.max())):
        at = offset[:-1][hops > hop] + hop
        before[at] = before[at - 1] + latency[at - 1]
    return before


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


def _first_late(release: Floats, needed: Floats, allowed: Floats) -> int | None:
    """Return the first hop, of hops sorted by release, that cannot meet its window; None if all can."""
    done = np.cumsum(needed)
    finish = done + np.maximum.accumulate(release - (done - needed))
    if (finish <= allowed).all():
        return None  # first come, first served meets every deadline
    waiting: list[tuple[float, int]] = []
    remaining = needed.tolist()
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


def _report(network: Network, schedule: Schedule, link: int, send: int, findings: Findings) -> None:
    sends = schedule.sends
    begin, end = schedule.start_s[send], schedule.end_s[send]
    ends = network.topology.links[link]
    least = float(_fastest(network, schedule.chunks, sends.path(send), int(sends.chunk[send])))
    if end - begin < least * (1 - TOLERANCE):
        text = f"takes {end - begin:.9g} s, but its path cannot do it in less than {least:.9g} s"
    else:
        text = f"{ends.source} -> {ends.target} is over its capacity until {end:.9g} s"
    findings.add(
        Violation(
            "capacity",
            text,
            rank=network.rank(int(sends.source[send])),
            chunk=int(sends.chunk[send]),
            link=link,
            time_s=float(begin),
        )
    )


def _fastest(network: Network, chunks: Chunks, path: tuple[int, ...], chunk: int) -> float:
    slowest = min(float(network.bandwidth_Bps[link]) for link in path)
    return sum(float(network.latency_s[link]) for link in path) + float(chunks.sizes_bytes[chunk]) / slowest
