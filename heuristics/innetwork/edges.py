"""Edges of trees: pairs of ranks and switches that add and copy, joined by paths over other nodes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from ...algorithms.schedules.compose import reverse_links
from ...core.errors import Unsupported
from ...core.ragged import offsets
from ...core.schedule import Floats, Ints
from ...core.topology import NodeKind, Topology

#: Most pairs of nodes that are joined through switches.
MOST_EDGES = 2_000_000


@dataclass(frozen=True, eq=False)
class TreeEdges:
    """Edges that trees may have, in both directions.

    Parameters
    ----------
    ranks, nodes : int
        Number of ranks, and of all nodes of trees: the ranks, then the switches as
        :attr:`~cwb.core.topology.Topology.tree_nodes` counts them.
    tail, head : array of int, shape (edges,)
        The nodes that an edge joins, the smaller number first; edges of a pair are next to each other.
    offset : array of int, shape (edges + 1,)
        Where the links of each edge begin.
    forth, back : array of int
        Links from tail to head, and of the same edge from head to tail.
    bandwidth_Bps : array of float, shape (links,)
        Of all links of the network.
    like : array of int, shape (nodes,)
        A number for every switch, the same for those that are joined to the same nodes; -1 for ranks.
    """

    ranks: int
    nodes: int
    tail: Ints
    head: Ints
    offset: Ints
    forth: Ints
    back: Ints
    bandwidth_Bps: Floats
    like: Ints


def tree_edges(topology: Topology) -> TreeEdges:
    """Join ranks and switches that add and copy, directly and through other switches.

    Through those, from every link into them the nodes that it leads to, over the fewest links.

    Raises
    ------
    Unsupported
        If a link has none back, or there are too many pairs.
    """
    back = reverse_links(topology)
    number = {node: place for place, node in enumerate(topology.tree_nodes)}
    ends = {i for i, node in enumerate(topology.nodes) if node.copies and node.adds}
    out: dict[int, list[int]] = defaultdict(list)
    for link, (a, _) in enumerate(topology.link_ends):
        out[a].append(link)
    found: list[tuple[int, int, tuple[int, ...]]] = []
    for start in sorted(ends, key=number.__getitem__):
        for first in out[start]:
            for end, path in _reachable_ends(topology, out, ends, start, first):
                if number[start] < number[end]:
                    found.append((number[start], number[end], path))
        if len(found) > MOST_EDGES:
            raise Unsupported(f"more than {MOST_EDGES:,} pairs of nodes are joined through switches; expected fewer")
    found.sort(key=lambda edge: edge[:2])
    tail, head = (np.array([edge[i] for edge in found], dtype=np.int64) for i in (0, 1))
    hops = np.array([len(path) for _, _, path in found], dtype=np.int64)
    forth = np.array([link for _, _, path in found for link in path], dtype=np.int64)
    turned = np.array([int(back[link]) for _, _, path in found for link in path[::-1]], dtype=np.int64)
    rates = np.array([float(link.bandwidth_Bps) for link in topology.links])
    offset = offsets(hops)
    like = _alike(len(number), len(topology.ranks), tail, head)
    return TreeEdges(len(topology.ranks), len(number), tail, head, offset, forth, turned, rates, like)


def _reachable_ends(
    topology: Topology, out: dict[int, list[int]], ends: set[int], start: int, first: int
) -> list[tuple[int, tuple[int, ...]]]:
    """Return the tree nodes behind a link, through forwarding switches, each with its path."""
    found: dict[int, tuple[int, ...]] = {}
    waiting: list[tuple[int, tuple[int, ...]]] = [(topology.link_ends[first][1], (first,))]
    seen = {start}
    for node, path in waiting:  # grows
        if node in seen:
            continue
        seen.add(node)
        if node in ends:
            found[node] = path
        elif topology.nodes[node].kind is NodeKind.SWITCH:
            waiting += [(topology.link_ends[link][1], (*path, link)) for link in out[node]]
    return list(found.items())


def _alike(nodes: int, ranks: int, tail: Ints, head: Ints) -> Ints:
    """Assign a number to each switch, the same for equal neighbours."""
    joined: list[set[int]] = [set() for _ in range(nodes)]
    for a, b in zip(tail.tolist(), head.tolist(), strict=True):
        joined[a].add(b)
        joined[b].add(a)
    known: dict[frozenset[int], int] = {}
    like = [-1] * ranks + [known.setdefault(frozenset(joined[node]), node) for node in range(ranks, nodes)]
    return np.array(like, dtype=np.int64)
