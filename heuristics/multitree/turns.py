"""Compiled inner loop of MultiTree: growing trees take turns to add an edge over free links.

Every rank of the group is the root of a tree, and an edge of a tree is a path from a rank to a new child that passes
only nodes outside of the group. Ranks are numbered by their position in the group, and sets of ranks are bit sets:
rows of 64-bit words. All parallel links between two nodes are one *hop*.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...algorithms.graphs.bits import drop, low_bit
from ...core.kernel import kernel
from ...core.schedule import Bools, Ints

Words = NDArray[np.uint64]


class Ports(NamedTuple):
    """The network as arrays of hops."""

    node: Ints  #: Node of every position of the group; shape (n,).
    #: ``first`` and ``onward``: ranges of the hops that leave each node: from ``first`` those to ranks of the group, in
    #: order, from ``onward`` those to other nodes; shape (nodes + 1,).
    first: Ints
    onward: Ints
    head: Ints  #: End of each hop: a position of the group, or another node; shape (hops,).
    #: ``link_first`` and ``link``: parallel links of every hop; shape (hops + 1,).
    link_first: Ints
    link: Ints
    #: Ranks that can be children of each rank: those with a path that passes no other rank of the group; shape (n,
    #: words).
    reach: Words


class Free(NamedTuple):
    """Free capacity of links in a step."""

    #: ``uses`` and ``hops``: number of edges that can still use each link, and each hop; shape (links,).
    uses: Ints
    hops: Ints
    open: Words  #: Ranks at the end of a free hop from each node; shape (nodes, words).
    #: Ranks that may still be reachable from each rank over free links; some may not be, and none is missing; shape (n,
    #: words).
    hope: Words
    able: Bools  #: True for ranks whose set in ``hope`` is not empty; shape (n,).


class Trees(NamedTuple):
    """State of the growing trees, by their roots."""

    #: ``outside`` and ``lacking``: ranks that are not in each tree yet, and their number; shape (n, words).
    outside: Words
    lacking: Ints
    #: Possible parents in the order in which they joined, then the ranks that joined in this step; shape (n, n).
    members: Ints
    #: ``fertile``, ``size`` and ``turn``: number of possible parents, number of all ``members``, and index of the
    #: parent to try next; shape (n,).
    fertile: Ints
    size: Ints
    turn: Ints


class Way(NamedTuple):
    """Work arrays of breadth-first searches for paths.

    ``nodes`` are the visited ones in the order of the search, ``before`` and ``hop`` the predecessor of each and the
    hop from there; ``search`` has the number of the last search that visited each node, ``number[0]`` that of the
    present one.
    """

    number: Ints
    nodes: Ints
    search: Ints
    before: Ints
    hop: Ints


class AddedEdges(NamedTuple):
    """Edges added in one turn of all trees: root, parent, child and number of links of each, and all links."""

    tree: Ints
    parent: Ints
    child: Ints
    hops: Ints
    links: Ints


@kernel
def begin(ports: Any, trees: Any) -> None:
    """Begin a step: ranks that joined in the last one become possible parents; those without a possible child leave."""
    for tree in range(len(trees.lacking)):
        size = 0
        for index in range(trees.size[tree]):
            member = trees.members[tree, index]
            if _meet(ports.reach[member], trees.outside[tree]):
                trees.members[tree, size] = member
                size += 1
        trees.fertile[tree] = trees.size[tree] = size
        trees.turn[tree] = 0


@kernel
def take_turns(ports: Any, free: Any, trees: Any, turns: Any, way: Any, edges: Any) -> tuple[int, int]:
    """Add an edge to every tree that can have one more; trees that grew come first in ``turns``.

    Return the number of edges and that of their links.
    """
    count = links = 0
    able = free.able.any()
    for index in range(len(turns)):
        tree = turns[index]
        # A parent without a possible child has none later in the step either, since free links only become fewer.
        while able and trees.lacking[tree] > 0 and trees.turn[tree] < trees.fertile[tree]:
            parent = trees.members[tree, trees.turn[tree]]
            child, hops = -1, 0
            if free.able[parent] and _meet(free.hope[parent], trees.outside[tree]):
                child, hops = _take_way(ports, free, parent, trees.outside[tree], way, edges.links[links:])
                able = free.able[parent] or free.able.any()
            if child < 0:
                trees.turn[tree] += 1
                continue
            drop(trees.outside[tree], child)
            trees.lacking[tree] -= 1
            trees.members[tree, trees.size[tree]] = child
            trees.size[tree] += 1
            edges.tree[count], edges.parent[count], edges.child[count], edges.hops[count] = tree, parent, child, hops
            turns[count] = tree
            count += 1
            links += hops
            break
    return count, links


@kernel
def _take_way(ports: Any, free: Any, parent: int, outside: Any, way: Any, links: Any) -> tuple[int, int]:
    """Reserve a shortest free path to a wanted rank; return the rank, or -1, and the number of links."""
    way.number[0] += 1
    way.nodes[0] = ports.node[parent]
    reached, at = 1, 0
    while at < reached:
        node = way.nodes[at]
        at += 1
        child = _next_after(parent, free.open[node], outside)
        if child >= 0:
            low, high = ports.first[node], ports.onward[node]
            hop = low + np.searchsorted(ports.head[low:high], child)
            return child, _use_links(ports, free, parent, node, hop, way, links)
        for hop in range(ports.onward[node], ports.first[node + 1]):
            other = ports.head[hop]
            if free.hops[hop] > 0 and way.search[other] != way.number[0]:
                way.search[other], way.before[other], way.hop[other] = way.number[0], node, hop
                way.nodes[reached] = other
                reached += 1
    for word in range(free.hope.shape[1]):
        free.hope[parent, word] = 0
        for at in range(reached):
            free.hope[parent, word] |= free.open[way.nodes[at], word]
    free.able[parent] = free.hope[parent].any()
    return -1, 0


@kernel
def _use_links(ports: Any, free: Any, parent: int, node: int, hop: int, way: Any, links: Any) -> int:
    """Reserve the first free link of every hop on the path that ends with ``hop``; return their number."""
    start, count = ports.node[parent], 0
    if free.hops[hop] == 1:
        drop(free.open[node], ports.head[hop])
    while True:
        free.hops[hop] -= 1
        place = ports.link_first[hop]
        while free.uses[ports.link[place]] == 0:
            place += 1
        free.uses[ports.link[place]] -= 1
        links[count] = ports.link[place]
        count += 1
        if node == start:
            break
        node, hop = way.before[node], way.hop[node]
    links[:count] = links[:count][::-1].copy()
    if not free.open[start].any() and not free.hops[ports.onward[start] : ports.first[start + 1]].any():
        free.hope[parent, :] = 0
        free.able[parent] = False
    return count


@kernel
def _meet(one: Any, other: Any) -> bool:
    for index in range(len(one)):  # noqa: SIM110 (compiled)
        if one[index] & other[index]:
            return True
    return False


@kernel
def _next_after(position: int, one: Any, other: Any) -> int:
    """Return the first common element after a position, cyclically; -1 if there is none."""
    size = len(one)
    first, cut = (position + 1) >> 6, np.uint64((position + 1) & 63)
    above = ~np.uint64(0) << cut
    for step in range(size + 1):
        index = (first + step) % size
        both = one[index] & other[index]
        if step == 0 and first < size:
            both &= above
        elif step == size and first < size:
            both &= ~above
        if both:
            return (index << 6) + low_bit(both)
    return -1
