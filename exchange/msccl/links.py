"""Loads of a program on the links of a network."""

from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from ...core.topology import NodeKind, Topology

Hop = tuple[int, int]  #: Nodes at both ends of parallel links.


class Program(Protocol):
    """A program of GPUs in any format."""

    @property
    def ngpus(self) -> int:
        """Number of GPUs."""
        ...

    @property
    def transfers(self) -> Mapping[tuple[int, int], int | Fraction]:
        """Chunks, or bytes, that every pair (source, target) of GPUs is sent."""
        ...


@dataclass(frozen=True)
class Loads:
    """Chunks that a program puts on links."""

    #: Chunks over every link that has some: of equally good ways between two GPUs, and of parallel links, each has the
    #: part that its bandwidth is of all.
    chunks: Mapping[int, Fraction]
    #: Pairs of GPUs that are sent to one another without a link, or switches, between them.
    missing: tuple[tuple[int, int], ...]

    def busiest(self, topology: Topology) -> tuple[int, Fraction] | None:
        """Return the slowest link, and its load per chunk relative to its rate."""
        if not any(self.chunks.values()):
            return None
        link = max(self.chunks, key=lambda one: self.chunks[one] / topology.links[one].bandwidth_Bps)
        return link, topology.links[link].bandwidth_Bps / self.chunks[link]


def routes(topology: Topology, pairs: Collection[tuple[int, int]]) -> dict[tuple[int, int], list[tuple[int, ...]]]:
    """Shortest ways over links and switches between pairs of ranks, and of these the widest, link by link."""
    targets_of: dict[int, set[int]] = defaultdict(set)
    for source, target in pairs:
        targets_of[source].add(target)
    out: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for link, (a, b) in enumerate(topology.link_ends):
        out[a].append((link, b))
    rank = {node: number for number, node in enumerate(topology.rank_nodes)}
    shortest: dict[tuple[int, int], list[tuple[int, ...]]] = defaultdict(list)
    for source, targets in targets_of.items():
        node = topology.rank_nodes[source]
        distance = {node: 0}
        ways: dict[int, list[tuple[int, ...]]] = {node: [()]}
        queue = deque([node])
        while queue:
            here = queue.popleft()
            if here != node and topology.nodes[here].kind is NodeKind.COMPUTE:
                if rank[here] in targets:
                    widths = [min(topology.links[link].bandwidth_Bps for link in way) for way in ways[here]]
                    widest = [way for way, width in zip(ways[here], widths, strict=True) if width == max(widths)]
                    shortest[source, rank[here]] = widest  # NVLinks of a box rather than a switch of NICs
                continue
            for link, there in out[here]:
                if there not in distance:
                    distance[there], ways[there] = distance[here] + 1, []
                    queue.append(there)
                if distance[there] == distance[here] + 1:
                    ways[there] += [(*way, link) for way in ways[here]]
    return shortest


def loads_of(program: Program, topology: Topology) -> Loads:
    """Put the chunks (or bytes, where the program counts in them) of all transfers on links."""
    transfers = program.transfers
    ways = routes(topology, transfers)
    links: dict[Hop, list[int]] = defaultdict(list)
    for link, ends in enumerate(topology.link_ends):
        links[ends].append(link)
    rate_Bps = {hop: sum(topology.links[link].bandwidth_Bps for link in some) for hop, some in links.items()}
    chunks: dict[int, Fraction] = defaultdict(Fraction)
    missing: list[tuple[int, int]] = []
    for pair, count in transfers.items():
        paths = dict.fromkeys(tuple(topology.link_ends[link] for link in way) for way in ways.get(pair, ()))
        if not paths:
            missing.append(pair)
        widths = {path: min(rate_Bps[hop] for hop in path) for path in paths}
        for path, width in widths.items():
            part = Fraction(count) * width / sum(widths.values())
            for hop in path:
                for link in links[hop]:
                    chunks[link] += part * topology.links[link].bandwidth_Bps / rate_Bps[hop]
    return Loads(chunks, tuple(missing))
