"""Removal of switches by edge splitting, so that trees among the remaining nodes are as good as before (ForestColl, section 4.3, appendix C.2).

Splitting off (u, w) and (w, t) replaces capacity through a switch w by capacity from u to t. What is left must still let every sink
receive all demand. Whole switches are tried first, several at a time, with the patterns of :mod:`.patterns`; each trial costs one test. A switch for
which no pattern does is split pair by pair, exactly as theorem 8 says (:mod:`.pairwise`). Every step is written into a log, from
which paths on the real links are made again (:mod:`.expansion`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ....core.schedule import Bools, Ints
from ..digraph import Digraph, Exact
from ..maxflow import RootedFlow, near_order
from .groups import Groups, find_groups
from .pairwise import split_pairwise
from .patterns import MODES, Pairs, Ports, propose


@dataclass(frozen=True, eq=False)
class Splits:
    """Splits of one switch, in their order: ``amount`` of capacity from source through the switch to target."""

    switch: int
    pairs: Pairs


@dataclass(frozen=True, eq=False)
class Split:
    """A network without switches, and how it came about.

    Parameters
    ----------
    graph : Digraph
        The network; nodes are numbered as before.
    log : tuple of Splits
        What was split, in this order.
    groups : tuple of Groups
        The groups that were found on the way, before each batch of switches, and at the end.
    counts : dict
        How many switches went by pattern, how many pair by pair, and how many patterns were refused.
    """

    graph: Digraph
    log: tuple[Splits, ...]
    groups: tuple[Groups, ...]
    counts: dict[str, int] = field(default_factory=dict)


class Unsplittable(Exception):
    """A switch whose capacity cannot all be given to pairs of its neighbours.

    Parameters
    ----------
    switch : int
        The switch.
    """

    def __init__(self, switch: int) -> None:
        super().__init__(switch)
        self.switch = switch


def remove_switches(
    graph: Digraph,
    demand: Exact,
    members: Bools,
    *,
    patterns: bool = True,
    stop: Callable[[], bool] = lambda: False,
) -> Split | None:
    """Remove all nodes but the members, so that every member can still receive all demand; None if told to stop.

    Parameters
    ----------
    graph : Digraph
        A network in which every member can receive all demand, and every other node has as much capacity in as out.
    demand : array of int, shape (nodes,)
        How many trees every member is the root of.
    members : array of bool, shape (nodes,)
        The nodes that trees must span.
    patterns : bool
        Whether whole switches may be tried at once.
    stop : callable
        Whether to end early.

    Raises
    ------
    Unsplittable
        If a switch is left with capacity; impossible where all nodes have as much in as out (theorem 7).
    """
    sinks = near_order(graph, members)
    log: list[Splits] = []
    seen: list[Groups] = []
    counts = {"pattern": 0, "pairwise": 0, "refused": 0}
    left = ~members
    while True:
        used = np.zeros(graph.nodes, dtype=np.bool_)
        used[graph.tail] = used[graph.head] = True
        left &= used
        groups = find_groups(graph, members)
        seen.append(groups)
        if not left.any():
            return Split(graph, tuple(log), tuple(seen), counts)
        batch = _batch(graph, members, left)
        if not len(batch):  # what is left reaches nobody
            graph = _without(graph, left)
            continue
        ports = {int(w): _ports(graph, groups, members, int(w)) for w in batch}
        reduced = _remove(graph, demand, sinks, ports, log, counts, stop, patterns=patterns)
        if reduced is None:
            return None
        graph = reduced
        left[batch] = False


def _remove(
    graph: Digraph,
    demand: Exact,
    sinks: Ints,
    ports: dict[int, Ports | None],
    log: list[Splits],
    counts: dict[str, int],
    stop: Callable[[], bool],
    *,
    patterns: bool,
) -> Digraph | None:
    """Remove a batch of switches: all at once, else one by one, else pair by pair; None if told to stop."""
    symmetric = {switch: p for switch, p in ports.items() if p is not None} if patterns else {}
    if len(symmetric) == len(ports):
        for mode in MODES:
            done = _by_pattern(graph, demand, sinks, symmetric, mode, counts)
            if done is not None:
                counts["pattern"] += len(ports)
                log += done[1]
                return done[0]
    for switch in ports:
        alone = {switch: symmetric[switch]} if switch in symmetric else {}
        for mode in MODES if alone and len(ports) > 1 else ():
            done = _by_pattern(graph, demand, sinks, alone, mode, counts)
            if done is not None:
                counts["pattern"] += 1
                break
        else:
            preferred = propose(alone[switch], 0) if alone else None
            result = split_pairwise(graph, demand, sinks, switch, preferred, stop)
            if stop():
                return None
            if result is None:
                raise Unsplittable(switch)
            counts["pairwise"] += 1
            done = result[0], [Splits(switch, result[1])]
        graph = done[0]
        log += done[1]
    return graph


def _by_pattern(
    graph: Digraph, demand: Exact, sinks: Ints, ports: dict[int, Ports], mode: int, counts: dict[str, int]
) -> tuple[Digraph, list[Splits]] | None:
    """Remove switches by a pattern; None if it does not fit, or somebody could not receive all demand any more."""
    proposals = {switch: propose(p, mode) for switch, p in ports.items()}
    pairs = {switch: p for switch, p in proposals.items() if p is not None}
    if not pairs or len(pairs) < len(ports):
        return None
    gone = np.zeros(graph.nodes, dtype=np.bool_)
    gone[list(ports)] = True
    rest, joined = _without(graph, gone), Pairs.join(list(pairs.values()))
    after = Digraph.merged(
        graph.nodes,
        np.concatenate([rest.tail, joined.source]),
        np.concatenate([rest.head, joined.target]),
        np.concatenate([rest.capacity, joined.amount]),
    )
    if RootedFlow(after, demand, sinks).violation() is not None:
        counts["refused"] += 1
        return None
    return after, [Splits(switch, p) for switch, p in pairs.items()]


def _batch(graph: Digraph, members: Bools, left: Bools) -> Ints:
    """Choose switches to remove next: those nearest to the members, and of them the widest ones; no two of them neighbours."""
    touching = left[graph.tail] & members[graph.head]
    span = np.bincount(graph.tail[touching], minlength=graph.nodes)
    candidates = np.flatnonzero(left & (span > 0))
    if not len(candidates):
        return candidates
    candidates = candidates[span[candidates] <= 2 * span[candidates].min()]
    ports = np.bincount(graph.tail, minlength=graph.nodes)[candidates]
    mean = np.asarray(graph.leaving()[candidates] // np.maximum(ports, 1))
    candidates = candidates[mean * 4 >= mean.max()]
    chosen = np.zeros(graph.nodes, dtype=np.bool_)
    blocked = np.zeros(graph.nodes, dtype=np.bool_)
    start = graph.out_start
    back = graph.transposed()
    for switch in candidates.tolist():
        if blocked[switch]:
            continue
        chosen[switch] = True
        blocked[graph.head[start[switch] : start[switch + 1]]] = True
        blocked[back.head[back.out_start[switch] : back.out_start[switch + 1]]] = True
    return np.flatnonzero(chosen)


def _without(graph: Digraph, nodes: Bools) -> Digraph:
    """Leave out all edges at some nodes."""
    keep = ~(nodes[graph.tail] | nodes[graph.head])
    return Digraph(graph.nodes, graph.tail[keep], graph.head[keep], graph.capacity[keep])


def _ports(graph: Digraph, groups: Groups, members: Bools, switch: int) -> Ports | None:
    """Give the ports of a switch; None if it has not the same capacity to and from every neighbour."""
    out = slice(int(graph.out_start[switch]), int(graph.out_start[switch + 1]))
    into = np.flatnonzero(graph.head == switch)
    node, capacity = graph.head[out], graph.capacity[out]
    same = len(into) == len(node) and (graph.tail[into] == node).all() and (graph.capacity[into] == capacity).all()
    if not same:
        return None
    return Ports(node, capacity, groups.group[node], groups.position[node], ~members[node])
