"""Boxes of ranks, their NICs, and the rates at which NCCL counts links.

A box is the text before the last dot of names such as ``box0.gpu3``; a NIC is a link that leaves a box. A rank reaches
a NIC of another rank by passing through it, as NCCL does (PXN), so that a channel stays on its rail. Links within a box
count with NCCL's part of their nominal rate (``src/graph/topo.h``), NICs in full (docs/methods/nccl.md; all rates:
docs/exchange/machines.md).
"""

import re
from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from ...algorithms.graphs.distances import Paths, route
from ...core.budget import check_time
from ...core.grouping import group_by_key
from ...core.schedule import offsets
from ...core.topology import NodeKind, Topology

#: Part of the nominal rate by generation, and of PCIe.
NVLINK_PART = {"volta": 0.8, "ampere": 0.8, "hopper": 20.6 / 25, "blackwell": 40.1 / 50}
NVLINK_PART |= {"mi200": 36 / 50, "mi300x": 48 / 64, "mi350": 48 / 76.8}  # of xGMI, as RCCL counts
PCIE_PART = 0.75

#: GB/s of an NVLink as NCCL counts it, most links of a GPU, and the generation; and those of PCIe.
_NVLINK_COUNTS = (
    (Fraction("40.1"), 18, "blackwell"),
    (Fraction("20.6"), 18, "hopper"),
    (Fraction(20), 6, "volta"),
    (Fraction(20), 12, "ampere"),
)
_PCIE_COUNTS = frozenset(map(Fraction, (3, 6, 12, 24, 48, 96)))

#: GB/s of all links of a GPU within its box, from which on it is of a generation.
_LEAST_OF = (("blackwell", 800.0), ("hopper", 400.0), ("ampere", 200.0))

_PCIE = re.compile(r"(?:^|\.)(?:pci|cpu|numa)", re.IGNORECASE)

Rates = Literal["auto", "nominal", "effective"]

Ways = tuple[tuple[int, ...], ...]  #: Ways of the same length between two nodes.
MAX_WAYS = 64  #: More ways of the same length are not looked for.


@dataclass(frozen=True)
class Nic:
    """A link that leaves a box, and the one that comes back.

    ``near`` are the positions of the box's ranks, the nearest first.
    """

    out: int
    back: int
    near: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Box:
    """A box. Ranks are positions in the group; NICs are in the order of their links.

    ``kind`` is the number of the first box with the same ranks, switches, links and rates in the same order.
    """

    ranks: tuple[int, ...]
    nics: tuple[Nic, ...]
    kind: int


class Boxes:
    """The boxes of a group of ranks, and paths within and between them.

    ``nodes`` are those of the ranks of the group; ``per_box`` is the ranks of a box, if names have no boxes.
    """

    def __init__(self, topology: Topology, nodes: Sequence[int], per_box: int | None = None) -> None:
        self.topology, self.nodes = topology, tuple(map(int, nodes))
        self.position = {node: index for index, node in enumerate(self.nodes)}
        self.of_node = self._box_of_nodes(per_box)
        self.leaving = group_by_key((a, link) for link, (a, _) in enumerate(topology.link_ends))
        self.first_link = {ends: link for link, ends in reversed([*enumerate(topology.link_ends)])}
        self._ways: dict[int, dict[int, Ways]] = {}
        self._onward: dict[int, list[int]] = {}
        nodes_of = group_by_key((name, node) for node, name in enumerate(self.of_node))
        names = dict.fromkeys(self.of_node[node] for node in self.nodes)
        self.boxes = self._find_boxes(nodes_of, list(names))
        self.kinds = tuple(box for number, box in enumerate(self.boxes) if box.kind == number)
        self._box_of = {rank: index for index, box in enumerate(self.boxes) for rank in box.ranks}
        self._inside = [name in names for name in self.of_node]
        self._fabric: dict[tuple[int, int], tuple[int, ...] | None] = {}

    def _box_of_nodes(self, per_box: int | None) -> list[str]:
        names = [node.name for node in self.topology.nodes]
        if per_box is not None:
            return self._boxes_by_count(per_box)
        own = self.topology.box_names(self.nodes) or [names[node] for node in self.nodes]
        if "" in own:
            return [""] * len(names)
        of_ranks, boxes = dict(zip(self.nodes, own, strict=True)), set(own)
        return [of_ranks[i] if i in of_ranks else _box_around(name, boxes) for i, name in enumerate(names)]

    def _boxes_by_count(self, per_box: int) -> list[str]:
        """Boxes of so many ranks each; what is joined to one box alone is in it."""
        box_of = {node: f"box{index // per_box}" for node, index in self.position.items()}
        while True:
            outward = ((a, b) for a, b in self.topology.link_ends if a in box_of and b not in box_of)
            near = group_by_key((b, box_of[a]) for a, b in outward)
            new = {node: boxes[0] for node, boxes in near.items() if len(set(boxes)) == 1}
            if not new:
                return [box_of.get(node, "\0") for node in range(len(self.topology.nodes))]
            box_of |= new

    def _find_boxes(self, nodes_of: Mapping[str, Sequence[int]], names: Sequence[str]) -> tuple[Box, ...]:
        """Find the boxes; only the first one of each kind is searched."""
        boxes, first = list[Box](), dict[object, tuple[int, list[int]]]()
        ends, of = self.topology.link_ends, self.of_node
        links_of = group_by_key((name, link) for link, (a, b) in enumerate(ends) for name in {of[a], of[b]})
        for number, name in enumerate(names):
            ranks = tuple(sorted(self.position[node] for node in nodes_of[name] if node in self.position))
            kind, links = first.setdefault(self._shape(nodes_of[name], links_of[name], ranks), (number, links_of[name]))
            if kind == number:
                boxes.append(Box(ranks, self._nics(name, nodes_of[name], ranks), number))
                continue
            link_of = dict(zip(links, links_of[name], strict=True))
            rank_of = dict(zip(boxes[kind].ranks, ranks, strict=True))
            nics = [
                Nic(link_of[nic.out], link_of[nic.back], tuple(rank_of[rank] for rank in nic.near))
                for nic in boxes[kind].nics
            ]
            boxes.append(Box(ranks, tuple(nics), kind))
        return tuple(boxes)

    def _shape(self, nodes: Sequence[int], links: Sequence[int], ranks: Sequence[int]) -> object:
        """Return all that a search in a box depends on, with its nodes, ranks and links by their order."""
        topology, place = self.topology, {node: index for index, node in enumerate(nodes)}
        order, ends = {rank: index for index, rank in enumerate(ranks)}, [topology.link_ends[link] for link in links]
        for pair in ends:
            for node in pair:
                place.setdefault(node, len(place))
        kinds = [
            (n.kind, n.reduces, n.multicast, bool(_PCIE.search(n.name)), order.get(self.position.get(node, -1)))
            for node in nodes
            for n in [topology.nodes[node]]
        ]
        rates = [topology.link_kinds[link] for link in links]
        return tuple(kinds), tuple((place[a], place[b], kind) for (a, b), kind in zip(ends, rates, strict=True))

    def _nics(self, name: str, nodes: Sequence[int], ranks: Sequence[int]) -> tuple[Nic, ...]:
        check_time("boxes are found")
        ends = self.topology.link_ends
        nics: list[Nic] = []
        # Data may pass a switch, or a rank of the group.
        passing = [n for n in nodes if n in self.position or self.topology.nodes[n].kind is NodeKind.SWITCH]
        for out in sorted(link for node in passing for link in self.leaving[node]):
            a, b = ends[out]
            if self.of_node[b] != name:
                back = self.first_link.get((b, a))
                if back is not None:
                    ways_of = ((self.ways(self.nodes[rank]).get(a), rank) for rank in ranks)
                    near = sorted((len(ways[0]), rank) for ways, rank in ways_of if ways is not None)
                    if near:
                        nics.append(Nic(out, back, tuple(rank for _, rank in near)))
        return tuple(nics)

    def ways(self, start: int) -> dict[int, Ways]:
        """Return all shortest paths from a node to others of its box, over switches alone, as links.

        As in NCCL, a path over PCIe switches, CPUs or NICs is taken only where there is no other.
        """
        if start not in self._ways:
            self._ways[start] = self._search_ways(start, pcie=True) | self._search_ways(start, pcie=False)
        return self._ways[start]

    def _search_ways(self, start: int, *, pcie: bool) -> dict[int, Ways]:
        ways_to: dict[int, Ways] = {start: ((),)}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            if here != start and self.topology.nodes[here].kind is NodeKind.COMPUTE:
                continue
            for link in self.leaving[here]:
                there = self.topology.link_ends[link][1]
                if self.of_node[there] != self.of_node[start]:
                    continue
                if not pcie and (_PCIE.search(self.topology.nodes[there].name) or self._is_nic(there)):
                    continue
                longer = tuple((*way, link) for way in ways_to[here])
                if there not in ways_to:
                    ways_to[there] = longer
                    waiting.append(there)
                elif len(ways_to[there][0]) == len(longer[0]) and len(ways_to[there]) < MAX_WAYS:
                    ways_to[there] += longer
        return ways_to

    def within(self, a: int, b: int, turn: int = 0) -> tuple[int, ...] | None:
        """Return the links from a rank to another one of its box, over switches alone; None without a path.

        Of several paths each is used in turn.
        """
        return self._way(self.nodes[a], self.nodes[b], turn)

    def to_nic(self, rank: int, nic: Nic) -> tuple[int, ...]:
        """Return the links from a rank over a NIC and back, within its box and the NIC's own."""
        node, port = self.nodes[rank], self.topology.link_ends[nic.out][0]
        return (*(self._way(node, port, 0) or ()), nic.out, nic.back, *(self._way(port, node, 0) or ()))

    def _way(self, start: int, end: int, turn: int) -> tuple[int, ...] | None:
        """Return one of the shortest paths between nodes of a box, each in turn."""
        ways = self.ways(start).get(end)
        return None if ways is None else ways[turn % len(ways)]

    def onward(self, box: Box, rank: int) -> list[int]:
        """Return the ranks of its box that a ring may continue to, the best last.

        Few links are best, then the rank before in the box.
        """
        if rank not in self._onward:
            place, count = {other: index for index, other in enumerate(box.ranks)}, len(box.ranks)

            def key(other: int) -> tuple[int, int]:
                return len(self.within(rank, other) or ()), (place[rank] - place[other]) % count

            near = [other for other in box.ranks if other != rank and self.within(rank, other) is not None]
            self._onward[rank] = sorted(near, key=key, reverse=True)
        return list(self._onward[rank])

    @cached_property
    def pcie(self) -> bool:
        """True if ranks of a box reach each other over PCIe."""
        names = self.topology.nodes
        pairs = ((a, b) for box in self.kinds for a in box.ranks for b in box.ranks)
        ends = {self.topology.link_ends[link][1] for a, b in pairs for link in self.within(a, b) or ()}
        return any(_PCIE.search(names[node].name) for node in ends)

    @cached_property
    def inside_GBps(self) -> Fraction:
        """Rate of all links of a rank within its box, of the best rank."""
        links = self.topology.links
        own = (self.own(self.nodes[rank]) for box in self.kinds for rank in box.ranks)
        return max(sum((links[i].bandwidth_Bps for i in some), Fraction(0)) / 10**9 for some in own)

    def own(self, node: int) -> list[int]:
        """Return a rank's links within its box, without those to NICs; PCIe counts if there is nothing else."""
        ends, of = self.topology.link_ends, self.of_node
        inside = [i for i in self.leaving[node] if of[ends[i][1]] == of[node] and not self._is_nic(ends[i][1])]
        return [i for i in inside if not _PCIE.search(self.topology.nodes[ends[i][1]].name)] or inside

    def _is_nic(self, node: int) -> bool:
        ends, of = self.topology.link_ends, self.of_node
        return node not in self.position and any(of[ends[i][1]] != of[node] for i in self.leaving[node])

    @cached_property
    def effective_generation(self) -> str:
        """Generation whose NVLinks have the rate that NCCL counts with; empty if rates are nominal ones."""
        rate = self.inside_GBps
        if not rate or rate % 25 == 0:
            return ""
        return next((gpu for one, most, gpu in _NVLINK_COUNTS if rate % one == 0 and rate / one <= most), "")

    def generation(self) -> str:
        """Return the GPU generation with links of this rate."""
        if self.pcie:
            return "ampere"
        return self.effective_generation or next(
            (name for name, least in _LEAST_OF if self.inside_GBps >= least), "volta" if self.nvlink else "hopper"
        )

    @property
    def nvlink(self) -> bool:
        """True if ranks of a box are joined by links of their own."""
        return not self.pcie and any(len(box.ranks) > 1 for box in self.boxes)

    def rates_GBps(self, gpu: str, rates: Rates) -> list[float]:
        """Rate of every link as NCCL counts it."""
        ends, effective = self.topology.link_ends, rates == "effective"
        if rates == "auto":
            effective = self.inside_GBps in _PCIE_COUNTS if self.pcie else bool(self.effective_generation)
        part = 1.0 if effective else PCIE_PART if self.pcie else NVLINK_PART[gpu]
        values = [
            float(link.bandwidth_Bps) / 1e9 * (part if self.of_node[a] == self.of_node[b] else 1.0)
            for link, (a, b) in zip(self.topology.links, ends, strict=True)
        ]
        if gpu == "volta" and not self.pcie:  # what a NIC writes to it takes an eighth of the way back
            for link in (link for node in self.nodes for link in self.leaving[node]):
                values[link] *= 8 / 9 if _PCIE.search(self.topology.nodes[ends[link][1]].name) else 1
        return values

    def links(self, a: int, b: int, channel: int, nic: int) -> tuple[int, ...]:
        """Return the links from a rank to another one, of a channel that uses a NIC of every box.

        ``a`` and ``b`` are positions, ``nic`` is the number of the NIC in its box; of equally short paths channels use
        one in turn.
        """
        check_time("ways are searched")
        here, there = (self.boxes[self._box_of[rank]] for rank in (a, b))
        same = here is there
        way = self.within(a, b, channel) if same else self._between(a, b, channel, here.nics, there.nics, nic)
        if way is None:  # a shortest path over any nodes
            path = route(self.topology, np.array([self.nodes[a]]), np.array([self.nodes[b]]))
            way = tuple(path.links.tolist())
        return way

    def _between(
        self, a: int, b: int, channel: int, out: Sequence[Nic], into: Sequence[Nic], nic: int
    ) -> tuple[int, ...] | None:
        """Through the NIC of the channel on both sides; else through the first pair of NICs that are joined."""
        if not out or not into:
            return None
        count = max(len(out), len(into))
        pairs = [(nic, nic), *((nic, nic + k) for k in range(1, count)), *((nic + k, nic) for k in range(1, count))]
        for i, j in pairs:
            leave, enter = out[i % len(out)], into[j % len(into)]
            ends = self.topology.link_ends
            first = self._way(self.nodes[a], ends[leave.out][0], channel)
            last = self._way(ends[enter.back][1], self.nodes[b], channel)
            if (key := (leave.out, enter.back)) not in self._fabric:
                self._fabric[key] = self._over_fabric(*key)
            middle = self._fabric[key]
            if first is not None and last is not None and middle is not None:
                return (*first, *middle, *last)
        return None

    def _over_fabric(self, out: int, back: int) -> tuple[int, ...] | None:
        """Return the links between two boxes, from one that leaves to one that enters, over nodes of no box."""
        ends, links_of = self.topology.link_ends, self.leaving
        if ends[out] == ends[back]:  # a cable from box to box
            return (out,)
        start, goal = ends[out][1], ends[back][0]
        before: dict[int, int] = {start: out}
        waiting = deque([start] if not self._inside[start] else [])
        while waiting:
            here = waiting.popleft()
            if here == goal:
                break
            for link in links_of[here]:
                there = ends[link][1]
                if there not in before and not self._inside[there]:
                    before[there] = link
                    waiting.append(there)
        if goal not in before or self._inside[goal]:
            return None
        way = [back]
        while way[-1] != out:
            way.append(before[ends[way[-1]][0]])
        return tuple(reversed(way))


def _box_around(name: str, boxes: Container[str]) -> str:
    """Return the box of a switch or NIC; its own name may have dots, as ``box0.pci-0000:01:00.0`` has."""
    while name and name not in boxes:
        name = name.rpartition(".")[0]
    return name or "\0"


def as_paths(ways: Sequence[tuple[int, ...]]) -> Paths:
    """Ways as columns."""
    offset = offsets([len(way) for way in ways])
    return Paths(offset, np.array([link for way in ways for link in way], dtype=np.int64))
