"""A first schedule: chunk after chunk, each to one target after the other by the way that arrives first on links that are still free."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from ..common.intervals import Busy
from .problem import Expanded

#: A start: tick, chunk, edge.
Start = tuple[int, int, int]


def first_schedule(problem: Expanded) -> list[Start]:
    """Give the starts of a schedule, chunks with the farthest targets first."""
    far = {source: problem.distances(source) for source in {chunk.source for chunk in problem.chunks}}
    order = sorted(
        (c for c, chunk in enumerate(problem.chunks) if chunk.targets),
        key=lambda c: -max(far[problem.chunks[c].source][n] for n in problem.chunks[c].targets),
    )
    busy = Busy()
    found: list[Start] = []
    for c in order:
        reached = {problem.chunks[c].source: 0}
        missing = set(problem.chunks[c].targets)
        while missing:
            for tick, e in _way(problem, busy, reached, missing):
                busy.take(problem.edges[e].links, tick, tick + problem.ticks[e])
                reached[problem.edges[e].target] = tick + problem.ticks[e]
                found.append((tick, c, e))
            missing -= reached.keys()
    return found


def finish(problem: Expanded, starts: list[Start]) -> int:
    """Ticks until the last arrival."""
    return max((tick + problem.ticks[e] for tick, _, e in starts), default=0)


def _way(problem: Expanded, busy: Busy, reached: Mapping[int, int], missing: set[int]) -> list[tuple[int, int]]:
    """Give the starts that bring a chunk from where it is to the target that it can reach first; all targets can be reached."""
    leaving: dict[int, list[int]] = {}
    for e, edge in enumerate(problem.edges):
        leaving.setdefault(edge.source, []).append(e)
    came: dict[int, tuple[int, int]] = {}
    done: set[int] = set()
    heap = [(tick, node, -1, -1) for node, tick in reached.items()]
    heapq.heapify(heap)
    node = -1
    while heap:
        tick, node, start, e = heapq.heappop(heap)
        if node in done:
            continue
        done.add(node)
        if e >= 0:
            came[node] = start, e
        if node in missing:
            break
        for after in leaving.get(node, []):
            if problem.edges[after].target not in done:
                begin = busy.earliest(problem.edges[after].links, tick, problem.ticks[after])
                heapq.heappush(heap, (begin + problem.ticks[after], problem.edges[after].target, begin, after))
    way: list[tuple[int, int]] = []
    while node in came:
        way.append(came[node])
        node = problem.edges[came[node][1]].source
    return way[::-1]
