"""Simultaneous growth of all trees: in a step they take turns over free links until none can grow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.budget import Budget
from ...core.errors import InputError
from ...core.ragged import offsets
from ...core.schedule import Ints
from ...core.topology import Topology
from .turns import AddedEdges, Free, Ports, Trees, Way, Words, begin, take_turns


@dataclass(frozen=True, eq=False)
class StepEdges:
    """Edges of trees in the order in which they were added, so that steps do not decrease.

    Parameters
    ----------
    step, tree, parent, child : array of int, shape (edges,)
        When each is used in an all-gather, from 0; positions in the group. A tree is named after its root.
    offset, links : array of int, shape (edges + 1,) and (links in all,)
        Links from parent to child.
    """

    step: Ints
    tree: Ints
    parent: Ints
    child: Ints
    offset: Ints
    links: Ints


def grow(topology: Topology, nodes: Sequence[int], uses: Sequence[int], budget: Budget) -> StepEdges | None:
    """Grow a spanning tree from every rank of a group.

    In a step, trees that reach the fewest ranks have the first turn.

    Parameters
    ----------
    nodes : sequence of int, length n
        Node of every position of the group.
    uses : sequence of int
        Edges that each link may have in a step.
    budget : Budget
        Limits of the run, checked before every step.

    Returns
    -------
    StepEdges or None
        The n (n - 1) edges. None if the budget ended first.
    """
    n = len(nodes)
    ports, open_ = ports_of(topology, nodes)
    trees = _roots(n)
    count = len(topology.nodes)
    way = Way(np.zeros(1, dtype=np.int64), *(np.zeros(count, dtype=np.int64) for _ in range(4)))
    longest = 1 + count - n  # a way passes every node that is not of the group at most once
    added = AddedEdges._make(np.empty(room, dtype=np.int64) for room in (n, n, n, n, n * longest))
    limits = np.array([min(use, n * n) for use in uses], dtype=np.int64)  # a step has no more edges
    left = np.add.reduceat(limits[ports.link], ports.link_first[:-1]) if len(limits) else limits
    able = np.asarray(ports.reach.any(axis=1), dtype=np.bool_)
    turns_made: list[tuple[Ints, ...]] = []
    step = 0
    while trees.lacking.any():
        if budget.is_exhausted:
            return None
        free = Free(limits.copy(), left.copy(), open_.copy(), ports.reach.copy(), able.copy())
        begin(ports, trees)
        turns = np.lexsort((np.arange(n), -trees.lacking))[: np.count_nonzero(trees.lacking)]
        before = len(turns_made)
        while len(turns):
            edges, hops = take_turns(ports, free, trees, turns, way, added)
            turns = turns[:edges]
            if edges:
                ends = (column[:edges].copy() for column in added[:4])
                turns_made.append((np.full(edges, step), *ends, added.links[:hops].copy()))
        if len(turns_made) == before:
            name = topology.nodes[nodes[int(trees.lacking.argmax())]].name
            raise InputError(f"not every rank can be reached from {name!r}", place="links")
        step += 1
    steps, tree, parent, child, length, links = (np.concatenate(column) for column in zip(*turns_made, strict=True))
    return StepEdges(steps, tree, parent, child, offsets(length), links)


def _roots(n: int) -> Trees:
    """Return trees of a root alone."""
    wanted = _words([(1 << n) - 1 & ~(1 << root) for root in range(n)], n)
    members = np.zeros((n, n), dtype=np.int64)
    members[:, 0] = np.arange(n)
    ones = np.ones(n, dtype=np.int64)
    return Trees(wanted, (n - 1) * ones, members, 0 * ones, ones, 0 * ones)


def ports_of(topology: Topology, nodes: Sequence[int]) -> tuple[Ports, Words]:
    """Return the hops of a network, and the ranks behind a link from each node.

    Parameters
    ----------
    nodes : sequence of int, length n
        Node of every position of the group. All other nodes only forward.
    """
    position = {node: index for index, node in enumerate(nodes)}
    between: dict[tuple[int, int], list[int]] = defaultdict(list)
    for link, ends in enumerate(topology.link_ends):
        between[ends].append(link)
    count = len(topology.nodes)
    to_rank: list[dict[int, list[int]]] = [{} for _ in range(count)]
    onward: list[dict[int, list[int]]] = [{} for _ in range(count)]
    for (source, target), links in between.items():
        if target in position:
            to_rank[source][position[target]] = links
        else:
            onward[source][target] = links
    hops = [hop for a, b in zip(to_rank, onward, strict=True) for hop in (*sorted(a.items()), *b.items())]
    ranks_of = [len(each) for each in to_rank]
    first = offsets([a + len(b) for a, b in zip(ranks_of, onward, strict=True)])
    open_ = [sum(1 << rank for rank in each) for each in to_rank]
    ports = Ports(
        np.array(nodes, dtype=np.int64),
        first,
        first[:-1] + np.array(ranks_of, dtype=np.int64),
        np.array([head for head, _ in hops], dtype=np.int64),
        offsets([len(links) for _, links in hops]),
        np.array([link for _, links in hops for link in links], dtype=np.int64),
        _words([_reach(node, open_, onward) for node in nodes], len(nodes)),
    )
    return ports, _words(open_, len(nodes))


def _reach(start: int, open_: Sequence[int], onward: Sequence[dict[int, list[int]]]) -> int:
    """Return the ranks reachable from a node without passing a rank of the group, as bits."""
    seen, frontier, ranks = {start}, [start], 0
    for node in frontier:  # grows while it is gone through
        ranks |= open_[node]
        for other in onward[node]:
            if other not in seen:
                seen.add(other)
                frontier.append(other)
    return ranks


def _words(sets: Sequence[int], n: int) -> Words:
    """Convert sets of ranks, a bit for each, to rows of words."""
    size = (n + 63) // 64
    return (
        np.frombuffer(b"".join(bits.to_bytes(8 * size, "little") for bits in sets), dtype="<u8")
        .reshape(-1, size)
        .copy()
    )
