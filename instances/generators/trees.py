"""Networks made of trees."""

from __future__ import annotations

from ...core.topology import Topology
from .building import BANDWIDTH, LATENCY, Rate, Time, both_ways, check_range, graph, wire


def double_binary_tree(n: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Double binary tree: two binary trees, the leaves of each being inner nodes of the other.

    P. Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009,
    with NCCL's numbering: in the first tree nodes with odd numbers are leaves; the second one is the first one
    mirrored, or shifted by one where n is odd. These are the trees of the method ``dbt``. An edge of both trees is two
    parallel links.
    """
    check_range(n, "n", 2)
    label = [n - 1 - i for i in range(n)] if n % 2 == 0 else [(i + 1) % n for i in range(n)]
    first = [(node, _parent(node, n)) for node in range(1, n)]
    edges = [*first, *((label[node], label[up]) for node, up in first)]
    return graph(nodes=n, links=4 * (n - 1), edges=both_ways(edges), of=wire(bandwidth, latency))


def _parent(node: int, n: int) -> int:
    """Return the parent of a node other than 0 in NCCL's binary tree.

    It moves the node's lowest bit up, or clears it where that exceeds the last node.
    """
    bit = node & -node
    up = (node ^ bit) | (bit << 1)
    return up if up < n else node ^ bit
