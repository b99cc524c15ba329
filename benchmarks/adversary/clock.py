"""The congestion-aware time of a schedule, exactly: link by link, first come, first served, stored before it goes on.

A send asks for its first link when everything of its chunk that comes to its source in earlier steps has arrived. Of
sends that ask for a link at the same time the one of the earlier step is first, then the one that is listed first.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from fractions import Fraction
from typing import Any

from cwb.benchmarks.adversary.replay import sends_in_steps


def completion(instance: Any, answer: Any) -> Fraction:
    """Time of a schedule in steps."""
    sends = sends_in_steps(answer)
    links = instance.network.links
    sizes = [answer.chunks.size_bytes(chunk) for chunk in range(len(answer.chunks))]
    into: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, send in enumerate(sends):
        into[send.chunk, send.target].append(index)
    waits = [[i for i in into[s.chunk, s.source] if sends[i].start < s.start] for s in sends]
    left = [len(w) for w in waits]
    followers: dict[int, list[int]] = defaultdict(list)
    for index, before in enumerate(waits):
        for i in before:
            followers[i].append(index)
    free = [Fraction(0)] * len(links)
    # Requests are served in order of time, then step, then place in the list; a link gives itself to whoever asked
    # first.
    requests: list[tuple[Fraction, int, int, int]] = [
        (Fraction(0), sends[i].start, i, 0) for i in range(len(sends)) if not left[i]
    ]
    heapq.heapify(requests)
    ready = [Fraction(0)] * len(sends)
    last = Fraction(0)
    while requests:
        time, step, index, hop = heapq.heappop(requests)
        send = sends[index]
        link = send.links[hop]
        sent = max(time, free[link]) + sizes[send.chunk] / links[link].bandwidth_Bps
        free[link] = sent
        here = sent + links[link].latency_s
        if hop + 1 < len(send.links):
            heapq.heappush(requests, (here, step, index, hop + 1))
            continue
        last = max(last, here)
        for follower in followers[index]:
            left[follower] -= 1
            ready[follower] = max(ready[follower], here)
            if not left[follower]:
                heapq.heappush(requests, (ready[follower], sends[follower].start, follower, 0))
    return last
