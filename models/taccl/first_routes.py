"""Routes without a solver: each chunk in turn takes the shortest paths given the load of those before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from heapq import heappop, heappush
from math import inf

from .formulations.routing import RoutingProblem

#: A chunk and an edge.
Send = tuple[int, int]


def first_routes(problem: RoutingProblem) -> frozenset[Send] | None:
    """Return routes for every chunk; routes of chunks alike in the sketch are images of one another.

    None if a chunk misses a target, or the image of a route is no route.
    """
    images = defaultdict[Send, list[Send]](list)
    for one, other in problem.same:
        images[one].append(other)
        images[other].append(one)
    usable, load = set(problem.sends), [0.0] * len(problem.topology.links)
    routed: dict[int, list[int]] = {}
    for chunk in range(len(problem.chunks)):
        if chunk in routed:
            continue
        tree = _tree(problem, chunk, load)
        if tree is None:
            return None
        todo = [(chunk, edge) for edge in tree]
        routes = set(todo)
        while todo:
            fresh = [image for image in images.get(todo.pop(), ()) if image not in routes]
            routes.update(fresh)
            todo += fresh
        if not routes <= usable:
            return None
        for c, e in sorted(routes):
            routed.setdefault(c, []).append(e)
            for link in problem.edges[e].links:
                load[link] += problem.load(c, link)
    whole = frozenset((c, e) for c, own in routed.items() for e in own)
    return whole if all(_is_tree(problem, c, routed.get(c, [])) for c in range(len(problem.chunks))) else None


def _tree(problem: RoutingProblem, chunk: int, load: list[float]) -> list[int] | None:
    """Grow a tree from a chunk's source by the earliest reachable node, given link loads."""
    source, targets = problem.chunks[chunk].source, set(problem.chunks[chunk].targets)
    leaving: dict[int, list[int]] = {}
    for e in problem.usable[chunk] if problem.usable else range(len(problem.edges)):
        leaving.setdefault(problem.edges[e].source, []).append(e)
    came: dict[int, int] = {}
    heap: list[tuple[float, float, int, int]] = [(0.0, 0.0, -1, source)]
    reached, left = set[int](), targets - {source}
    while heap and left:
        _, at, edge, node = heappop(heap)
        if node in reached:
            continue
        reached.add(node)
        left.discard(node)
        if edge >= 0:
            came[node] = edge
        for e in leaving.get(node, ()):
            end = at + problem.passing(chunk, e)
            busy = max(load[link] + problem.load(chunk, link) for link in problem.edges[e].links)
            heappush(heap, (max(end, busy), end, e, problem.edges[e].target))
    return None if left else edges_to_targets(problem, chunk, came)


def edges_to_targets(problem: RoutingProblem, chunk: int, last: Mapping[int, int]) -> list[int]:
    """Return the edges of a tree on the paths to a chunk's targets, given the last edge to each node."""
    used: set[int] = set()
    for target in problem.chunks[chunk].targets:
        node = target
        while node != problem.chunks[chunk].source and last[node] not in used:
            used.add(last[node])
            node = problem.edges[last[node]].source
    return sorted(used)


def _is_tree(problem: RoutingProblem, chunk: int, edges: list[int]) -> bool:
    """Check that a chunk reaches each node at most once, and all its targets."""
    into = {problem.edges[e].target: problem.edges[e].source for e in edges}
    source = problem.chunks[chunk].source
    for reached in {*into, *problem.chunks[chunk].targets}:
        seen, node = set[int](), reached
        while node != source and node in into and node not in seen:
            seen.add(node)
            node = into[node]
        if node != source:
            return False
    return len(into) == len(edges)


def routing_time(problem: RoutingProblem, routes: frozenset[Send]) -> float:
    """Return T of routes: the longest route or the busiest link."""
    load: dict[int, float] = {}
    into: dict[Send, int] = {}
    for c, e in sorted(routes):
        into[c, problem.edges[e].target] = e
        for link in problem.edges[e].links:
            load[link] = load.get(link, 0.0) + problem.load(c, link)
    at: dict[Send, float] = {}

    def arrival(c: int, node: int) -> float:
        if node == problem.chunks[c].source:
            return 0.0
        if (c, node) not in at:
            e = into[c, node]
            at[c, node] = arrival(c, problem.edges[e].source) + problem.passing(c, e)
        return at[c, node]

    longest = max((arrival(c, node) for c, node in into), default=-inf)
    return max(longest, max(load.values(), default=0.0))
