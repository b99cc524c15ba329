"""Complete and complete bipartite graphs, and circulants."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import gcd

from ...core.errors import InputError
from ...core.topology import Topology
from .building import BANDWIDTH, LATENCY, Rate, Time, both_ways, check_range, graph, wire


def complete(n: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Complete graph: a link from every node to every other one."""
    check_range(n, "n", 2)
    pairs = ((one, other) for one in range(n) for other in range(n) if one != other)
    return graph(nodes=n, links=n * (n - 1), edges=pairs, of=wire(bandwidth, latency))


def complete_bipartite(left: int, right: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Complete bipartite graph: links in both directions between every left and every right node.

    Parameters
    ----------
    left, right : int
        Number of nodes on each side, at least 1; the left ones have the lower ranks.
    """
    check_range(left, "left", 1)
    check_range(right, "right", 1)
    pairs = ((one, left + other) for one in range(left) for other in range(right))
    return graph(nodes=left + right, links=2 * left * right, edges=both_ways(pairs), of=wire(bandwidth, latency))


def circulant(n: int, offsets: Sequence[int], *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Circulant graph: node i is connected with i + a and i - a (mod n) for every offset a.

    Definition 18 of the direct-connect paper. An offset of n / 2 leads to the same node both ways; it makes one link
    in each direction, so that such a graph has odd degree.

    Parameters
    ----------
    offsets : sequence of int
        Different numbers from 1 to n / 2 that have no common factor with n, so that the graph is connected.
    """
    _check_offsets(check_range(n, "n", 2), offsets, n // 2)
    pairs = ((i, (i + a) % n) for a in offsets for i in range(n if 2 * a < n else a))
    links = sum(2 * n if 2 * a < n else n for a in offsets)
    return graph(nodes=n, links=links, edges=both_ways(pairs), of=wire(bandwidth, latency))


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

    Parameters
    ----------
    offsets : sequence of int
        Different numbers from 1 to n - 1 that have no common factor with n, so that the graph is strongly connected.
    """
    _check_offsets(check_range(n, "n", 2), offsets, n - 1)
    onward = ((i, (i + a) % n) for a in offsets for i in range(n))
    return graph(nodes=n, links=n * len(offsets), edges=onward, of=wire(bandwidth, latency))


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
