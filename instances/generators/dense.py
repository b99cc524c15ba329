"""Complete graphs, circulants, random regular graphs (the same ones on every machine), and double binary trees."""

from collections.abc import Sequence
from itertools import count
from math import gcd
from random import Random

from ...core.budget import check_time, iterate_in_time
from ...core.errors import InputError
from ...core.topology import Topology
from .building import BANDWIDTH, LATENCY, Rate, Time, both_ways, check_range, check_ranges, check_size, make_graph


def complete(n: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Complete graph: a link from every node to every other one."""
    check_range(n, "n", 2)
    pairs = ((one, other) for one in range(n) for other in range(n) if one != other)
    return make_graph(n, n * (n - 1), pairs, bandwidth, latency)


def complete_bipartite(left: int, right: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Complete bipartite graph: links in both directions between every left and every right node.

    ``left``, ``right``: number of nodes on each side, at least 1; the left ones have the lower ranks.
    """
    check_ranges(left=(left, 1), right=(right, 1))
    pairs = ((one, left + other) for one in range(left) for other in range(right))
    return make_graph(left + right, 2 * left * right, both_ways(pairs), bandwidth, latency)


def circulant(n: int, offsets: Sequence[int], *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Circulant graph: node i is connected with i + a and i - a (mod n) for every offset a.

    Definition 18 of the direct-connect paper. An offset of n / 2 leads to the same node both ways; it makes one link
    in each direction, so that such a graph has odd degree.

    ``offsets``: different numbers from 1 to n / 2 that have no common factor with n, so that the graph is connected.
    """
    _check_offsets(check_range(n, "n", 2), offsets, n // 2)
    pairs = ((i, (i + a) % n) for a in offsets for i in range(n if 2 * a < n else a))
    links = sum(2 * n if 2 * a < n else n for a in offsets)
    return make_graph(n, links, both_ways(pairs), bandwidth, latency)


def optimal_circulant(n: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Circulant graph of degree 4 and the smallest diameter: offsets m and m + 1, where m is the diameter.

    Theorem 22 of the direct-connect paper: m is (sqrt(2 n - 1) - 1) / 2, rounded up. It is the smallest diameter of
    all circulant graphs of two offsets, about sqrt(n / 2).
    """
    check_range(n, "n", 7)
    diameter = next(m for m in count(1) if 2 * m * (m + 1) + 1 >= n)
    return circulant(n, (diameter, diameter + 1), bandwidth=bandwidth, latency=latency)


def directed_circulant(
    n: int, offsets: Sequence[int], *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY
) -> Topology:
    """Directed circulant graph: a link from node i to i + a (mod n) for every offset a.

    ``offsets``: different numbers from 1 to n - 1 that have no common factor with n, so that the graph is strongly
    connected.
    """
    _check_offsets(check_range(n, "n", 2), offsets, n - 1)
    onward = ((i, (i + a) % n) for a in offsets for i in range(n))
    return make_graph(n, n * len(offsets), onward, bandwidth, latency)


def _check_offsets(n: int, offsets: Sequence[int], largest: int) -> None:
    if not offsets:
        raise InputError("no offsets; expected at least one", place="offsets")
    for index, offset in enumerate(offsets):
        check_range(offset, f"offsets[{index}]", 1, largest)
    if len(set(offsets)) < len(offsets):
        raise InputError("an offset is given twice; expected different ones", place="offsets")
    if (common := gcd(n, *offsets)) > 1:
        raise InputError(
            f"all offsets and n = {n:,} are divisible by {common:,}, so the graph has {common:,} components; "
            "expected no common factor",
            place="offsets",
        )


def double_binary_tree(n: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Double binary tree: two binary trees, the leaves of each being inner nodes of the other.

    P. Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009,
    with NCCL's numbering: in the first tree nodes with odd numbers are leaves; the second one is the first one
    mirrored, or shifted by one where n is odd. These are the trees of the method ``dbt``. An edge of both trees is two
    parallel links.
    """
    check_range(n, "n", 2)
    label = [n - 1 - i for i in range(n)] if n % 2 == 0 else [(i + 1) % n for i in range(n)]
    first = [(node, in_order_parent(node, n)) for node in range(1, n)]
    edges = [*first, *((label[node], label[up]) for node, up in first)]
    return make_graph(n, 4 * (n - 1), both_ways(edges), bandwidth, latency)


def in_order_parent(node: int, n: int) -> int:
    """Return the parent of a node other than 0 in NCCL's binary tree.

    It moves the node's lowest bit up, or clears it where that exceeds the last node.
    """
    bit = node & -node
    up = (node ^ bit) | (bit << 1)
    return up if up < n else node ^ bit


#: A random regular graph of degree 3 or more is nearly always connected, and a pairing seldom gets stuck.
ATTEMPTS = 1000
PATIENCE = 50  #: Rounds without a new edge after which a pairing counts as stuck.

_Edges = set[tuple[int, int]]


def random_regular(
    n: int, degree: int, seed: int = 0, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY
) -> Topology:
    """Random connected graph in which every node has the same number of neighbours, connected in both directions.

    Made by the pairing method (A. Steger and N. C. Wormald, "Generating random regular graphs quickly", 1999), which
    is uniform in the limit of large n; a graph that is not connected is thrown away. Where more than half of all
    possible edges are wanted, the missing ones are drawn. The same arguments give the same graph on every machine
    and with every version of Python.

    ``degree``: number of neighbours, at least 3; graphs of degree 2 are rings. n or degree must be even.
    """
    check_ranges(n=(n, 4), degree=(degree, 3, n - 1), seed=(seed, 0, 2**63 - 1))
    if n % 2 and degree % 2:
        raise InputError(f"no graph has {n} nodes of degree {degree}; expected an even degree", place="degree")
    check_size(nodes=n, links=n * degree)
    edges = sorted(_draw(n, degree, seed))
    return make_graph(n, n * degree, both_ways(edges), bandwidth, latency)


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
        rest: list[int] = []
        for one, other in iterate_in_time(zip(stubs[::2], stubs[1::2], strict=True), len(stubs) // 2, "edges drawn"):
            edge = (min(one, other), max(one, other))
            if one == other or edge in edges:
                rest += edge
            else:
                edges.add(edge)
        patience = PATIENCE if len(rest) < len(stubs) else patience - 1
        stubs = rest
    return None if stubs else edges


def is_connected(n: int, edges: _Edges) -> bool:
    """Return whether the edges connect all nodes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = tuple(zip(*edges, strict=True))
    return connected_components(coo_array(([1] * len(edges), ends), (n, n)))[0] == 1
