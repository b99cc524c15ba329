"""Traces: what every rank sends and receives, and what each of it waits for."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from ..msccl.flow import Flow
from ..msccl.operations import Operation, Shape, operations
from .schema import COMP, RECV, SEND

#: What becomes of what a rank receives.
KEPT, ADDED, PASSED = range(3)


class Node(NamedTuple):
    """An operation of a rank.

    Parameters
    ----------
    id : int
        Number, unique within the rank.
    type : int
        Node type of the schema.
    after : tuple of int
        Nodes of the rank that have to end before.
    peer, tag, size_bytes : int
        Other rank, tag and size of a send or receive; the tag distinguishes messages between two ranks.
    grains : int
        Size in the grains of a schedule; 0 if it is not known.
    name : str
        Name of the node in traces.
    data : int
        Chunk of the schedule; -1 if it is not known.
    turn : int
        Of a send, the one before on its first link in the simulation; -1 if there is none, or no simulation.
    use : int
        Use of a received chunk: :data:`KEPT`, :data:`ADDED` to the rank's data, or only :data:`PASSED` on.
    """

    id: int
    type: int
    after: tuple[int, ...] = ()
    peer: int = 0
    tag: int = 0
    size_bytes: int = 0
    grains: int = 0
    name: str = ""
    data: int = -1
    use: int = 0
    turn: int = -1


@dataclass(frozen=True)
class Trace:
    """Nodes of every rank.

    Parameters
    ----------
    grains : int
        Grains of the full buffer; 0 if they are not known.
    """

    ranks: tuple[tuple[Node, ...], ...]
    grains: int = 0

    @property
    def ngpus(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    @property
    def transfers(self) -> dict[tuple[int, int], int]:
        """Bytes that every pair (source, target) of ranks is sent, by the nodes that send."""
        found: Counter[tuple[int, int]] = Counter()
        for rank, nodes in enumerate(self.ranks):
            for node in nodes:
                if node.type == SEND:
                    found[rank, node.peer] += node.size_bytes
        return dict(found)


def trace_of(flow: Flow) -> Trace:
    """Convert a schedule to a trace.

    Every chunk that goes from rank to rank is a send, a receive, and a tag unique between the two. A node waits for the
    preceding operations of its rank on the same memory. Sizes are whole bytes, rounded up. Copies within a rank come
    last, take no time and are left out; a rank without operations has one node that does nothing.

    Nodes are in the order of the simulated starts of their messages, since what runs traces takes ready sends in the
    order of their numbers. Of messages that start together, a rank begins with that to the next rank, so that not all
    send to rank 0 first.
    """
    tags: Counter[tuple[int, int]] = Counter()
    sent: dict[tuple[int, int, int], deque[int]] = defaultdict(deque)
    made = operations(flow, Shape(largest=max(flow.grains, *(piece.grains for piece in flow.chunks), 1)))
    for rank, some in enumerate(made):
        for operation in some:
            if operation.given is not None:
                target, channel = operation.given
                sent[rank, target, channel].append(tags[rank, target])
                tags[rank, target] += 1
    return Trace(tuple(_nodes(flow, rank, some, sent) for rank, some in enumerate(made)), flow.grains)


def _nodes(
    flow: Flow, rank: int, some: list[Operation], sent: dict[tuple[int, int, int], deque[int]]
) -> tuple[Node, ...]:
    """Return the nodes of a rank; connections are in order, so that receives have the tags of their sends."""
    numbers: dict[Operation, int] = {}
    nodes: list[Node] = []
    tags: Counter[int] = Counter()
    places: list[tuple[int, bool, int]] = []  # start, receives before sends, distance of the other rank
    links: list[int] = []
    for operation in some:
        if operation.given is not None:
            peer, kind = operation.given[0], SEND
            tag, tags[peer] = tags[peer], tags[peer] + 1
            name = "send"
        elif operation.taken is not None:
            peer, kind = operation.taken[0], RECV
            tag = sent[peer, rank, operation.taken[1]].popleft()
            name = "receive"
        else:
            continue
        after = tuple(sorted({numbers[before] for before in operation.after}))
        size = max(1, ceil(operation.count * flow.grain_bytes))
        distance = (peer - rank if kind == SEND else rank - peer) % flow.ranks
        places.append(max([(operation.hop.start, kind == SEND, distance), *(places[before] for before in after)]))
        links.append(operation.hop.link if kind == SEND else -1)
        numbers[operation] = number = len(nodes)
        use = PASSED if operation.passed else ADDED if operation.kind == "rrc" else KEPT
        nodes.append(Node(number, kind, after, peer, tag, size, operation.count, name, operation.chunk, use))
    order = sorted(range(len(nodes)), key=places.__getitem__)  # a node is never before one that it waits for
    place = {number: at for at, number in enumerate(order)}
    last: dict[int, int] = {-1: -1}  # the last send of every link
    found: list[Node] = []
    for at, number in enumerate(order):
        node, link = nodes[number], links[number]
        after = tuple(sorted(place[before] for before in node.after))
        found.append(node._replace(id=at, after=after, turn=last.get(link, -1)))
        if link >= 0:
            last[link] = at
    return tuple(found) or (Node(0, COMP, name="nothing"),)
