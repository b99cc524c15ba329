"""Networks of arcs between ranks, in ticks; switches are ports, or unwound into rings (section 5.4.8)."""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import InputError
from ...core.schedule import Bools, Ints, offsets
from ...core.topology import NodeKind, Topology
from ..graphs.network import components, edges_by, links_out

MAX_ARCS = 4_000_000  #: arcs beyond which a network of switches is rejected


class IncomingArcs(NamedTuple):
    """Arcs into every rank: rank d has those from ``first[d]`` up to ``first[d + 1]``."""

    first: Any  #: (ranks + 1,) first position of each rank's arcs
    tail: Any  #: (arcs,) tail rank and number of each arc
    arc: Any


class ArcTables(NamedTuple):
    """Arrays of a :class:`RankNetwork` for the compiled engine of events."""

    into: IncomingArcs
    head: Any  #: (arcs,) ends of each arc, and duration of a transfer
    tail: Any
    ticks: Any
    port_first: Any  #: ports of arc a: ``port[port_first[a] : port_first[a + 1]]``
    port: Any
    woken_first: Any  #: ranks that the arcs of port p lead to: ``woken[woken_first[p] : woken_first[p + 1]]``
    woken: Any
    copied: Any  #: (arcs,) the port from which a multicast switch can feed several arcs, or -1
    island: Any  #: (arcs,) the island that a slow arc leads into, or -1
    of_first: Any  #: islands that rank d is in: ``of[of_first[d] : of_first[d + 1]]``
    of: Any
    islands: int
    has_own_ports: bool  #: True if every arc has a port of its own, so that the deadline rule is exact


@dataclass(frozen=True, eq=False)
class RankNetwork:
    """Network of arcs from rank to rank, each over one link or several."""

    ranks: int
    tail: Ints
    head: Ints
    ticks: Ints  #: (arcs,) duration of a transfer in ticks, rounded up; and rounded down, for lower bounds
    least: Ints
    paths: tuple[tuple[int, ...], ...]  #: links of every arc, in order
    ports: tuple[tuple[int, ...], ...]  #: ports of every arc: its links, or an own number for parts of links
    copied: Ints  #: (arcs,) port that feeds a multicast switch, or -1
    level: Ints  #: (arcs,) position of the bandwidth among all bandwidths, the slowest first

    @cached_property
    def incoming(self) -> IncomingArcs:
        """Arcs by the rank that they enter."""
        first, order = edges_by(self.head, self.ranks)
        return IncomingArcs(first, self.tail[order].copy(), order)

    @cached_property
    def is_rounded(self) -> bool:
        """True if some transfer takes no whole number of ticks."""
        return bool((self.least < self.ticks).any())

    @property
    def has_equal_arcs(self) -> bool:
        """True if all arcs take equally long and share no port."""
        return self.has_own_ports and len(np.unique(self.ticks)) == 1

    @cached_property
    def has_own_ports(self) -> bool:
        """True if no two arcs share a port."""
        every = [port for ports in self.ports for port in ports]
        return len(set(every)) == len(every)

    @cached_property
    def tables(self) -> ArcTables:
        """Arrays for the compiled engine of events."""
        numbers = {port: index for index, port in enumerate(dict.fromkeys(p for ports in self.ports for p in ports))}
        port_of = [[numbers[port] for port in ports] for ports in self.ports]
        woken: list[set[int]] = [set() for _ in range(len(numbers) + self.ranks)]
        for arc, (a, b) in enumerate(zip(self.tail.tolist(), self.head.tolist(), strict=True)):
            for port in port_of[arc]:
                woken[port].add(b)
            woken[len(numbers) + a].add(b)  # who may want what rank a receives
        port_first, ports = _rows(port_of)
        woken_first, flat = _rows([sorted(ranks) for ranks in woken])
        island, of = islands(self)
        of_first, of_flat = _rows(of)
        copied = np.array([numbers[port] if port >= 0 else -1 for port in self.copied.tolist()], dtype=np.int64)
        return ArcTables(
            self.incoming, self.head, self.tail, self.ticks, port_first, ports, woken_first, flat, copied, island,
            of_first, of_flat, 1 + max((i for row in of for i in row), default=-1), self.has_own_ports,
        )  # fmt: skip


def _rows(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Concatenate rows; return the start of each and all entries."""
    first = offsets([len(row) for row in rows])
    return first, np.array([item for row in rows for item in row], dtype=np.int64)


def islands(arcs: RankNetwork) -> tuple[Ints, list[list[int]]]:
    """Find, for every bandwidth, the parts that faster arcs connect.

    Return the island of several ranks that each slower arc enters from outside, or -1, and the islands of every rank.
    """
    island = np.full(len(arcs.tail), -1, dtype=np.int64)
    of: list[list[int]] = [[] for _ in range(arcs.ranks)]
    count = 0
    for level in np.unique(arcs.level)[:-1].tolist():
        label = components(arcs.ranks, arcs.tail[arcs.level > level], arcs.head[arcs.level > level])
        sizes = np.bincount(label, minlength=arcs.ranks)
        number = {int(root): count + index for index, root in enumerate(np.flatnonzero(sizes > 1))}
        count += len(number)
        for rank in range(arcs.ranks):
            if int(label[rank]) in number:
                of[rank].append(number[int(label[rank])])
        for arc in np.flatnonzero(arcs.level == level).tolist():
            inside = int(label[arcs.head[arc]])
            if inside in number and inside != label[arcs.tail[arc]]:
                island[arc] = number[inside]
    return island, of


def arcs_of(topology: Topology, chunk_bytes: Fraction, tick_s: Fraction, most: int, degree: int = 0) -> RankNetwork:
    """Build the arcs of a network, without links that take more than ``most`` ticks.

    Degree 0 keeps switches, with an arc from rank to rank by the fewest links. Otherwise every switch is unwound: rank
    i sends only to the next ``degree`` ranks of the switch, to each at that part of its bandwidth. Raise InputError if
    there are too many arcs, or a switch to be unwound has a link to another one.
    """
    rank_of = {node: rank for rank, node in enumerate(topology.rank_nodes)}
    routes: list[tuple[int, int, tuple[int, ...], int]] = [
        (rank_of[a], rank_of[b], (link,), 1)
        for link, (a, b) in enumerate(topology.link_ends)
        if a in rank_of and b in rank_of
    ]
    if topology.switches:
        routes += _unwound(topology, rank_of, degree) if degree else _through(topology, rank_of)
    if len(routes) > MAX_ARCS:
        raise InputError(f"{len(routes):,} paths between ranks; expected at most {MAX_ARCS:,}", place="network.links")
    links, ends = topology.links, topology.link_ends
    kind_of: dict[tuple[int, ...], int] = {}
    facts: list[tuple[Fraction, int, int]] = []  # rate, and ticks rounded up and down; of what is too slow, -1
    kinds: list[int] = []
    arcs: list[tuple[int, int, tuple[int, ...], tuple[int, ...], int]] = []
    for index, (a, b, path, slow) in enumerate(routes):
        key = (slow, *[topology.link_kinds[link] for link in path])
        if key not in kind_of:
            kind_of[key] = len(facts)
            rate = min(links[link].bandwidth_Bps for link in path)
            alone = [links[link].latency_s + chunk_bytes / links[link].bandwidth_Bps for link in path]
            time = (sum((links[link].latency_s for link in path), slow * chunk_bytes / rate)) / tick_s
            fits = max(alone) <= most * tick_s  # otherwise the number need not fit
            facts.append((rate / slow, ceil(time) if fits else -1, floor(time) if fits else -1))
        if facts[kind_of[key]][1] >= 0:
            kinds.append(kind_of[key])
            copied = slow == 1 and len(path) == 2 and topology.nodes[ends[path[0]][1]].multicast
            arcs.append((a, b, path, path if slow == 1 else (len(links) + index,), path[0] if copied else -1))
    place = {rate: index for index, rate in enumerate(sorted({rate for rate, _, _ in facts}))}
    kind = np.array(kinds, dtype=np.int64)
    tail, head, copied_port = (np.array([row[column] for row in arcs], dtype=np.int64) for column in (0, 1, 4))
    ticks, least = (np.array([fact[column] for fact in facts], dtype=np.int64)[kind] for column in (1, 2))
    level = np.array([place[rate] for rate, _, _ in facts], dtype=np.int64)[kind]
    paths, ports = tuple(row[2] for row in arcs), tuple(row[3] for row in arcs)
    return RankNetwork(len(rank_of), tail, head, ticks, least, paths, ports, copied_port, level)


def largest_unwound_degree(topology: Topology) -> int:
    """Return the largest degree that switches can be unwound to, 0 if linked switches or none."""
    is_switch = [node.kind is NodeKind.SWITCH for node in topology.nodes]
    if any(is_switch[a] and is_switch[b] for a, b in topology.link_ends) or not topology.switches:
        return 0
    members: dict[int, set[int]] = defaultdict(set)
    for a, b in topology.link_ends:
        if is_switch[a]:
            members[a].add(b)
    return max((len(ranks) - 1 for ranks in members.values()), default=0)


def _unwound(topology: Topology, rank_of: dict[int, int], degree: int) -> list[tuple[int, int, tuple[int, ...], int]]:
    """Connect every rank of a switch with the next ones."""
    if not largest_unwound_degree(topology):
        raise InputError("two switches are linked; expected unwind=0", place="unwind")
    up: dict[int, dict[int, int]] = defaultdict(dict)
    down: dict[int, dict[int, int]] = defaultdict(dict)
    for link, (a, b) in enumerate(topology.link_ends):
        if b not in rank_of:
            up[b].setdefault(rank_of[a], link)
        elif a not in rank_of:
            down[a].setdefault(rank_of[b], link)
    arcs: list[tuple[int, int, tuple[int, ...], int]] = []
    for switch, upwards in up.items():
        downwards = down[switch]
        members = sorted(set(upwards) & set(downwards))
        d = min(degree, len(members) - 1)
        for index, rank in enumerate(members):
            others = [members[(index + step) % len(members)] for step in range(1, d + 1)]
            arcs += [(rank, other, (upwards[rank], downwards[other]), d) for other in others]
    return arcs


def _through(topology: Topology, rank_of: dict[int, int]) -> list[tuple[int, int, tuple[int, ...], int]]:
    """List fewest-link paths over switches from every rank to all others, one per first switch."""
    out, arcs = links_out(topology), list[tuple[int, int, tuple[int, ...], int]]()
    for node, rank in rank_of.items():
        for first, switch in out[node]:
            if switch in rank_of:
                continue
            paths: dict[int, tuple[int, ...]] = {switch: (first,)}
            queue = deque([switch])
            while queue:
                here = queue.popleft()
                # Ranks take turns among equally short ways, so that not all of them meet on one link.
                turn = rank % max(1, len(out[here]))
                for link, there in out[here][turn:] + out[here][:turn]:
                    if there in paths or there == node:
                        continue
                    paths[there] = (*paths[here], link)
                    if there not in rank_of:
                        queue.append(there)
                    else:
                        arcs.append((rank, rank_of[there], paths[there], 1))
            if len(arcs) > MAX_ARCS:
                return arcs
    return arcs


def reversed_arcs(arcs: RankNetwork) -> RankNetwork:
    """Reverse all arcs, keeping their numbers and their links."""
    return replace(arcs, tail=arcs.head, head=arcs.tail, copied=np.full_like(arcs.copied, -1))


def reaches_all(arcs: RankNetwork, members: Bools, *, through_members: bool) -> bool:
    """Check that every member can reach every other one, over members only or over all ranks."""
    allowed = members if through_members else np.ones_like(members)
    use = allowed[arcs.tail] & allowed[arcs.head]
    return connects(arcs.ranks, arcs.tail[use], arcs.head[use], np.flatnonzero(members))


def restrict_to_members(arcs: RankNetwork, members: Bools) -> RankNetwork:
    """Keep the arcs between members."""
    keep = np.flatnonzero(members[arcs.tail] & members[arcs.head])
    paths, ports = (tuple(column[k] for k in keep.tolist()) for column in (arcs.paths, arcs.ports))
    columns: Any = {name: getattr(arcs, name)[keep] for name in ("tail", "head", "ticks", "least", "copied", "level")}
    return replace(arcs, **columns, paths=paths, ports=ports)


def connects(nodes: int, tail: Ints, head: Ints, members: Ints) -> bool:
    """Check that edges lead from every member to every other one, also over other nodes."""
    return len(np.unique(components(nodes, tail, head, strong=True)[members])) == 1
