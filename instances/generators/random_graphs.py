"""Random regular graphs, the same ones on every machine."""

from __future__ import annotations

from random import Random

from ...core.errors import InputError
from ...core.limits import check_time, iterate_in_time
from ...core.topology import Topology
from .building import BANDWIDTH, LATENCY, Rate, Time, both_ways, check_range, check_size, graph, wire

#: A random regular graph of degree 3 or more is nearly always connected, and a pairing seldom gets stuck.
ATTEMPTS = 1000
#: Rounds without a new edge after which a pairing counts as stuck.
PATIENCE = 50

_Edges = set[tuple[int, int]]


def random_regular(
    n: int, degree: int, seed: int = 0, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY
) -> Topology:
    """Random connected graph in which every node has the same number of neighbours, connected in both directions.

    Made by the pairing method (A. Steger and N. C. Wormald, "Generating random regular graphs quickly", 1999), which
    is uniform in the limit of large n; a graph that is not connected is thrown away. Where more than half of all
    possible edges are wanted, the missing ones are drawn. The same arguments give the same graph on every machine
    and with every version of Python.

    Parameters
    ----------
    degree : int
        Number of neighbours, at least 3; graphs of degree 2 are rings. n or degree must be even.
    """
    check_range(n, "n", 4)
    check_range(degree, "degree", 3, n - 1)
    check_range(seed, "seed", 0, 2**63 - 1)
    if n % 2 and degree % 2:
        raise InputError(f"no graph has {n} nodes of degree {degree}; expected an even degree", place="degree")
    check_size(nodes=n, links=n * degree)
    edges = sorted(_draw(n, degree, seed))
    return graph(nodes=n, links=n * degree, edges=both_ways(edges), of=wire(bandwidth, latency))


def _draw(n: int, degree: int, seed: int) -> _Edges:
    """Draw the edges of a connected regular graph, each as (smaller, larger)."""
    # Only random() is promised to give the same numbers in every version of Python.
    source = Random(seed)  # noqa: S311 (nothing is secret here)
    missing = n - 1 - degree
    for _ in range(ATTEMPTS):
        edges = _pair(n, min(degree, missing), source)
        if edges is not None and missing < degree:
            edges = {(i, j) for i in range(n) for j in range(i + 1, n)} - edges
        if edges is not None and is_connected(n, edges):
            return edges
    raise InputError(f"no connected graph in {ATTEMPTS} attempts; expected another seed", place="seed")


def _pair(n: int, degree: int, source: Random) -> _Edges | None:
    """Pair ``degree`` stubs of every node at random, without loops and double edges; None if it gets stuck."""
    edges: _Edges = set()
    stubs = [node for node in range(n) for _ in range(degree)]
    patience = PATIENCE
    while stubs and patience:
        check_time("edges are drawn")
        stubs.sort(key=lambda _: source.random())
        left: list[int] = []
        for one, other in iterate_in_time(zip(stubs[::2], stubs[1::2], strict=True), len(stubs) // 2, "edges drawn"):
            edge = (min(one, other), max(one, other))
            if one == other or edge in edges:
                left += edge
            else:
                edges.add(edge)
        patience = PATIENCE if len(left) < len(stubs) else patience - 1
        stubs = left
    return None if stubs else edges


def is_connected(n: int, edges: _Edges) -> bool:
    """Return whether the edges connect all nodes."""
    neighbours: list[list[int]] = [[] for _ in range(n)]
    for one, other in edges:
        neighbours[one].append(other)
        neighbours[other].append(one)
    seen = {0}
    waiting = [0]
    while waiting:
        fresh = [node for node in neighbours[waiting.pop()] if node not in seen]
        seen.update(fresh)
        waiting += fresh
    return len(seen) == n
