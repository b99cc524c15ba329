"""The ordering of TACCL: the sends of a route, in turns on their links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.errors import InputError, Unsupported
from ...core.topology import Topology
from ..common.hyper_edges import Edge
from ..common.whole_chunks import WholeChunk
from .contiguity import Orders
from .routing import Routing


@dataclass(frozen=True)
class Plan:
    """Sends in turns.

    Parameters
    ----------
    sends : sequence of (int, int)
        Chunk and edge.
    edges : sequence of Edge
        What the numbers mean.
    begin : list of float
        When each send begins if none go together, in units of the routing.
    by_time : sequence of int
        The sends, each after the one that brings its chunk.
    orders : Orders
        What contiguity is decided on.
    """

    sends: Sequence[tuple[int, int]]
    edges: Sequence[Edge]
    begin: list[float]
    by_time: Sequence[int]
    orders: Orders


def plan_of(routing: Routing, taken: Sequence[tuple[int, int]]) -> Plan:
    """Order the sends of a routing: the earliest first; of two at once, the one with the longer way left.

    Sends take turns on their first link, and on the last one of an edge through switches.
    """
    sends = _on_trees(routing, taken)
    index = {send: k for k, send in enumerate(sends)}
    bringer = {(c, routing.edges[e].target): index[c, e] for c, e in sends}
    after = [bringer.get((c, routing.edges[e].source)) for c, e in sends]
    left = [routing.passing(c, e) for c, e in sends]
    order = _parents_first(after)
    for k in reversed(order):
        if (before := after[k]) is not None:
            left[before] = max(left[before], routing.passing(*sends[before]) + left[k])
    ready = {k: 0.0 for k in order if after[k] is None}
    free: dict[int, float] = {}
    begin, by_time = [0.0] * len(sends), list[int]()
    queues: dict[int, list[int]] = {}
    while ready:
        begins = {k: max(at, *(free.get(link, 0.0) for link in _ends(routing, sends[k]))) for k, at in ready.items()}
        k = min(ready, key=lambda k: (begins[k], -left[k], sends[k]))
        begin[k] = begins[k]
        end = begin[k] + routing.passing(*sends[k])
        for link in _ends(routing, sends[k]):
            free[link] = end
        queues.setdefault(routing.edges[sends[k][1]].links[0], []).append(k)
        by_time.append(k)
        del ready[k]
        ready |= {child: end for child, before in enumerate(after) if before == k}
    alpha = [routing.delay(e) for _, e in sends]
    beta = [routing.passing(c, e) - a for (c, e), a in zip(sends, alpha, strict=True)]
    return Plan(
        sends, routing.edges, begin, by_time, Orders(list(queues.values()), alpha, beta, after, [e for _, e in sends])
    )


def _ends(routing: Routing, send: tuple[int, int]) -> set[int]:
    links = routing.edges[send[1]].links
    return {links[0], links[-1]}


def _on_trees(routing: Routing, taken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave out sends that bring a chunk where it is already, or that serve no target."""
    kept: list[tuple[int, int]] = []
    for c, chunk in enumerate(routing.chunks):
        edges = [e for d, e in taken if d == c]
        reached, last = {chunk.source}, dict[int, int]()
        while fresh := [
            e for e in edges if routing.edges[e].source in reached and routing.edges[e].target not in reached
        ]:
            last[routing.edges[fresh[0]].target] = fresh[0]
            reached.add(routing.edges[fresh[0]].target)
        used: set[int] = set()
        if missing := set(chunk.targets) - reached:
            name = routing.topology.nodes[min(missing)].name
            raise Unsupported(
                f"the solver's routes do not bring chunk {c} to {name}: links differ beyond its tolerances"
            )
        for target in chunk.targets:
            node = target
            while node != chunk.source:
                used.add(last[node])
                node = routing.edges[last[node]].source
        kept += [(c, e) for e in sorted(used)]
    return kept


def _parents_first(after: Sequence[int | None]) -> list[int]:
    depth: dict[int, int] = {}

    def depth_of(k: int) -> int:
        if k not in depth:
            before = after[k]
            depth[k] = 0 if before is None else depth_of(before) + 1
        return depth[k]

    return sorted(range(len(after)), key=lambda k: (depth_of(k), k))


def symmetric(
    topology: Topology, chunks: Sequence[WholeChunk], edges: Sequence[Edge], shift: int
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Pair every send with the one that the shift makes of it.

    Raises
    ------
    InputError
        If the shift does not map edges to edges and chunks to chunks.
    """
    nodes = topology.rank_nodes
    moved = {node: nodes[(rank + shift) % len(nodes)] for rank, node in enumerate(nodes)}
    places: dict[tuple[int, int], list[int]] = {}
    for e, edge in enumerate(edges):
        places.setdefault((edge.source, edge.target), []).append(e)
    kinds: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for c, chunk in enumerate(chunks):
        kinds.setdefault((chunk.source, tuple(sorted(chunk.targets))), []).append(c)
    to_edge, to_chunk = dict[int, int](), dict[int, int]()
    for (i, j), own in places.items():
        image = places.get((moved[i], moved[j]), [])
        if len(image) != len(own):
            raise InputError(f"shift {shift} does not map edges to edges", place="sketch")
        to_edge |= dict(zip(own, image, strict=True))
    for (source, targets), same in kinds.items():
        image = kinds.get((moved[source], tuple(sorted(moved[t] for t in targets))), [])
        if len(image) != len(same):
            raise InputError(f"shift {shift} does not map chunks to chunks", place="sketch")
        to_chunk |= dict(zip(same, image, strict=True))
    return [((c, e), (to_chunk[c], to_edge[e])) for c in to_chunk for e in to_edge]
