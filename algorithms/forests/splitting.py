"""Removal of switches by edge splitting, without loss for trees among the remaining nodes.

Whole switches are tried first, with the patterns of :mod:`.symmetry`, then pair by pair (ForestColl, section 4.3,
appendix C.2, theorem 8 and algorithm 4; docs/methods/forestcoll.md). Every step is logged for :mod:`.expansion`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ...core.schedule import Bools, Ints
from ..graphs.maxflow import RootedFlow, near_order
from ..graphs.network import Exact, Network, exact_array, mask_of
from .symmetry import MODES, Groups, Pairs, SwitchPorts, find_groups, propose_pairs


@dataclass(frozen=True, eq=False)
class SwitchSplits:
    """Splits of one switch in order: ``amount`` of capacity from source through the switch to target."""

    switch: int
    pairs: Pairs


@dataclass(frozen=True, eq=False)
class SwitchlessNetwork:
    """Network without switches, and its derivation."""

    graph: Network  #: the network; nodes are numbered as before
    log: tuple[SwitchSplits, ...]  #: splits of all switches, in their order
    groups: tuple[Groups, ...]  #: groups found before each batch of switches, and at the end
    #: numbers of switches removed by pattern and pair by pair, and of patterns rejected
    counts: dict[str, int] = field(default_factory=dict)


class Unsplittable(Exception):
    """Error: the capacity of a switch cannot all be assigned to pairs of its neighbours."""

    def __init__(self, switch: int) -> None:
        super().__init__(switch)
        self.switch = switch


def remove_switches(
    graph: Network, demand: Exact, members: Bools, *, patterns: bool = True, stop: Callable[[], bool] = lambda: False
) -> SwitchlessNetwork | None:
    """Remove all nodes but the members, so that every member can still receive all demand; None if stopped.

    Every member can receive all demand in ``graph``. ``patterns`` allows to try whole switches at once. Raise
    Unsplittable if a switch is left with capacity; impossible if all nodes have as much in as out (theorem 7).
    """
    removal = _Removal(demand, near_order(graph, members), stop, patterns=patterns)
    levels: list[Groups] = []
    rest = ~members
    while True:
        rest &= mask_of(graph.nodes, np.concatenate([graph.tail, graph.head]))
        groups = find_groups(graph, members)
        levels.append(groups)
        if not rest.any():
            return SwitchlessNetwork(graph, tuple(removal.log), tuple(levels), removal.counts)
        batch = _batch(graph, members, rest)
        if not len(batch):  # what is left reaches nobody
            graph = _without(graph, rest)
            continue
        ports = {int(w): _ports(graph, groups, members, int(w)) for w in batch}
        reduced = removal.remove(graph, ports)
        if reduced is None:
            return None
        graph = reduced
        rest[batch] = False


class _Removal:
    """Removal of switches, such that every sink can still receive all demand."""

    def __init__(self, demand: Exact, sinks: Ints, stop: Callable[[], bool], *, patterns: bool) -> None:
        self.demand, self.sinks, self.stop, self.patterns = demand, sinks, stop, patterns
        self.log: list[SwitchSplits] = []
        self.counts = {"pattern": 0, "pairwise": 0, "refused": 0}

    def remove(self, graph: Network, ports: dict[int, SwitchPorts | None]) -> Network | None:
        """Remove a batch of switches: all at once, else one by one, else pair by pair; None if stopped."""
        symmetric = {switch: p for switch, p in ports.items() if p is not None} if self.patterns else {}
        if len(symmetric) == len(ports) and (smaller := self.by_pattern(graph, symmetric)) is not None:
            return smaller
        for switch in ports:
            alone = {switch: symmetric[switch]} if switch in symmetric else {}
            smaller = self.by_pattern(graph, alone) if len(ports) > 1 else None
            if smaller is None:
                preferred = propose_pairs(alone[switch], 0) if alone else None
                result = split_pairwise(graph, self.demand, self.sinks, switch, preferred, self.stop)
                if self.stop():
                    return None
                if result is None:
                    raise Unsplittable(switch)
                self.counts["pairwise"] += 1
                smaller, pairs = result
                self.log.append(SwitchSplits(switch, pairs))
            graph = smaller
        return graph

    def by_pattern(self, graph: Network, ports: dict[int, SwitchPorts]) -> Network | None:
        """Remove switches by the first pattern that fits without a loss of demand; None if there is none."""
        rest = _without(graph, mask_of(graph.nodes, list(ports)))
        for mode in MODES:
            proposals = {switch: propose_pairs(p, mode) for switch, p in ports.items()}
            pairs = {switch: p for switch, p in proposals.items() if p is not None}
            if not pairs or len(pairs) < len(ports):
                continue
            joined = Pairs.join(list(pairs.values()))
            ends = np.concatenate([rest.tail, joined.source]), np.concatenate([rest.head, joined.target])
            capacity = np.concatenate([rest.capacity, joined.amount])
            after = Network.from_parallel_edges(graph.nodes, *ends, capacity)
            if RootedFlow(after, self.demand, self.sinks).violation() is None:
                self.counts["pattern"] += len(ports)
                self.log += [SwitchSplits(switch, p) for switch, p in pairs.items()]
                return after
            self.counts["refused"] += 1
        return None


def _batch(graph: Network, members: Bools, rest: Bools) -> Ints:
    """Choose the next switches: nearest to the members, then widest, no two of them neighbours."""
    touching = rest[graph.tail] & members[graph.head]
    span = np.bincount(graph.tail[touching], minlength=graph.nodes)
    candidates = np.flatnonzero(rest & (span > 0))
    if not len(candidates):
        return candidates
    candidates = candidates[span[candidates] <= 2 * span[candidates].min()]
    ports = np.bincount(graph.tail, minlength=graph.nodes)[candidates]
    mean = np.asarray(graph.leaving()[candidates] // np.maximum(ports, 1))
    candidates, both = candidates[mean * 4 >= mean.max()], (graph, graph.transpose())
    batch, blocked = list[int](), np.zeros(graph.nodes, dtype=np.bool_)
    for switch in candidates.tolist():
        if not blocked[switch]:
            batch.append(switch)
            for way in both:
                blocked[way.head[way.out_start[switch] : way.out_start[switch + 1]]] = True
    return np.array(batch, dtype=np.int64)


def _without(graph: Network, nodes: Bools) -> Network:
    keep = ~(nodes[graph.tail] | nodes[graph.head])
    return Network(graph.nodes, graph.tail[keep], graph.head[keep], graph.capacity[keep])


def _ports(graph: Network, groups: Groups, members: Bools, switch: int) -> SwitchPorts | None:
    """Return the ports of a switch; None unless every neighbour has equal capacity in both directions."""
    out = slice(int(graph.out_start[switch]), int(graph.out_start[switch + 1]))
    into = np.flatnonzero(graph.head == switch)
    node, capacity = graph.head[out], graph.capacity[out]
    if not np.array_equal(graph.tail[into], node) or not np.array_equal(graph.capacity[into], capacity):
        return None
    return SwitchPorts(node, capacity, groups.group[node], groups.position[node], ~members[node])


def split_pairwise(
    graph: Network, demand: Exact, sinks: Ints, switch: int, preferred: Pairs | None, stop: Callable[[], bool]
) -> tuple[Network, Pairs] | None:
    """Assign all capacity through a switch to pairs of its neighbours; None if some stays, or if stopped.

    The largest amount gamma of a pair is found by assigning all and taking back the shortfall: every set that this pair
    alone would starve lacks exactly the amount that must be taken back. ``preferred`` pairs are tried first, with their
    amounts. Return the network without the switch, and the splits in their order.
    """
    into, out = np.flatnonzero(graph.head == switch), np.flatnonzero(graph.tail == switch)
    sources, targets = graph.tail[into].tolist(), graph.head[out].tolist()
    wide = _add_all_pairs(graph, sources, targets)
    edge = {key: index for index, key in enumerate((wide.tail * wide.nodes + wide.head).tolist())}
    flow = RootedFlow(wide, demand, sinks)
    flow.change(np.arange(len(wide)), -1)  # the 1 that kept empty edges
    left_in = dict(zip(sources, graph.capacity[into].tolist(), strict=True))
    left_out = dict(zip(targets, graph.capacity[out].tolist(), strict=True))
    pairs: list[tuple[int, int, int]] = []

    def move(u: int, t: int, amount: int) -> None:
        """Move capacity from the two edges of the switch to the edge past it; drop a loop."""
        flow.change(edge[u * wide.nodes + switch], -amount)
        flow.change(edge[switch * wide.nodes + t], -amount)
        if u != t:
            flow.change(edge[u * wide.nodes + t], amount)

    def split(u: int, t: int, amount: int) -> None:
        copies = min(amount, left_in[u], left_out[t])
        if copies <= 0 or stop():
            return
        move(u, t, copies)
        flow.restart()
        while copies and (violation := flow.violation()) is not None:
            back = min(violation.lacking, copies)
            move(u, t, -back)
            copies -= back
        if copies:
            pairs.append((u, t, copies))
            left_in[u] -= copies
            left_out[t] -= copies

    if preferred is not None:
        columns = preferred.source, preferred.target, preferred.amount
        for row in zip(*(column.tolist() for column in columns), strict=True):
            split(*row)
    for t in targets:
        for u in [*(u for u in sources if u != t), *(u for u in sources if u == t)]:
            split(u, t, left_out[t])
    if any(left_in.values()) or any(left_out.values()):
        return None
    after = wide.with_capacity(flow.capacity[flow.arc_of_edge].tolist())
    u, t, amount = zip(*pairs, strict=True)
    return after, Pairs(np.array(u), np.array(t), exact_array(amount))


def _add_all_pairs(graph: Network, sources: list[int], targets: list[int]) -> Network:
    """Add 1 to every edge, and an edge of 1 for every pair of ports without one."""
    pairs = np.array([(u, t) for u in sources for t in targets if u != t], dtype=np.int64).reshape(-1, 2)
    keys = np.unique(np.concatenate([graph.tail * graph.nodes + graph.head, pairs[:, 0] * graph.nodes + pairs[:, 1]]))
    tail, head = keys // graph.nodes, keys % graph.nodes
    capacity = np.zeros(len(keys), dtype=graph.capacity.dtype)
    capacity[np.searchsorted(keys, graph.tail * graph.nodes + graph.head)] = graph.capacity
    return Network(graph.nodes, tail, head, exact_array([c + 1 for c in capacity.tolist()]))
