"""Traces: what every rank sends and receives, and what each of it waits for; made of schedules, and run."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np

from ...core.grouping import group_by_key
from ..msccl.flow import Flow
from ..msccl.operations import Operation, Shape, operations

#: Types of nodes by their number (``NodeType``).
COMP, SEND, RECV, COLL = 4, 5, 6, 7
LAST_TYPE = COLL
KEPT, ADDED, PASSED = range(3)  #: What becomes of what a rank receives.


class Node(NamedTuple):
    """An operation of a rank."""

    id: int
    type: int
    after: tuple[int, ...] = ()
    #: ``peer``, ``tag`` and ``size_bytes``: other rank, tag and size of a send or receive; the tag distinguishes
    #: messages between two ranks.
    peer: int = 0
    tag: int = 0
    size_bytes: int = 0
    grains: int = 0  #: Size in the grains of a schedule; 0 if it is not known.
    name: str = ""
    data: int = -1  #: Chunk of the schedule; -1 if it is not known.
    use: int = 0  #: Use of a received chunk: :data:`KEPT`, :data:`ADDED` to the rank's data, or only :data:`PASSED` on.
    #: Of a send, the one before on its first link in the simulation; -1 if there is none, or no simulation.
    turn: int = -1
    is_held: bool = False  #: True if it could be ready before that one begins.


@dataclass(frozen=True)
class Trace:
    """Nodes of every rank."""

    ranks: tuple[tuple[Node, ...], ...]
    grains: int = 0

    @property
    def ngpus(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    @property
    def transfers(self) -> dict[tuple[int, int], int]:
        """Bytes that every pair (source, target) of ranks is sent, by the nodes that send."""
        sizes: Counter[tuple[int, int]] = Counter()
        for rank, nodes in enumerate(self.ranks):
            for node in nodes:
                if node.type == SEND:
                    sizes[rank, node.peer] += node.size_bytes
        return dict(sizes)


def trace_of(flow: Flow) -> Trace:
    """Convert a schedule to a trace (docs/exchange/chakra.md, "Out").

    Every chunk that goes from rank to rank is a send, a receive, and a tag unique between the two. Copies within a rank
    come last, take no time and are left out. Nodes are in the order of the simulated starts of their messages, since
    what runs traces takes ready sends in the order of their numbers.
    """
    tags: Counter[tuple[int, int]] = Counter()
    send_tags: dict[tuple[int, int, int], deque[int]] = defaultdict(deque)
    shape = Shape(largest=max(flow.grains, *(piece.grains for piece in flow.chunks), 1))
    programs = [some.objects() for some in operations(flow, shape)]
    for rank, some in enumerate(programs):
        for operation in some:
            if operation.out is not None:
                target, channel = operation.out
                send_tags[rank, target, channel].append(tags[rank, target])
                tags[rank, target] += 1
    return Trace(tuple(_nodes(flow, rank, some, send_tags) for rank, some in enumerate(programs)), flow.grains)


def _nodes(
    flow: Flow, rank: int, some: list[Operation], send_tags: dict[tuple[int, int, int], deque[int]]
) -> tuple[Node, ...]:
    """Return the nodes of a rank; connections are in order, so that receives have the tags of their sends."""
    numbers: dict[Operation, int] = {}
    nodes: list[Node] = []
    tags: Counter[int] = Counter()
    places: list[tuple[int, bool, int]] = []  # start, receives before sends, distance of the other rank
    links: list[int] = []
    starts: list[int] = []
    for operation in some:
        if operation.out is not None:
            peer, kind = operation.out[0], SEND
            tag, tags[peer] = tags[peer], tags[peer] + 1
            name = "send"
        elif operation.into is not None:
            peer, kind = operation.into[0], RECV
            tag = send_tags[peer, rank, operation.into[1]].popleft()
            name = "receive"
        else:
            continue
        after = tuple(sorted({numbers[before] for before in operation.after}))
        size = max(1, ceil(operation.count * flow.grain_bytes))
        distance = (peer - rank if kind == SEND else rank - peer) % flow.ranks
        places.append(max([(operation.start, kind == SEND, distance), *(places[before] for before in after)]))
        links.append(operation.link if kind == SEND else -1)
        starts.append(operation.start)
        numbers[operation] = number = len(nodes)
        use = PASSED if operation.passed else ADDED if operation.kind == "rrc" else KEPT
        nodes.append(Node(number, kind, after, peer, tag, size, operation.count, name, operation.chunk, use))
    order = sorted(range(len(nodes)), key=places.__getitem__)  # a node is never before one that it waits for
    place = {number: at for at, number in enumerate(order)}
    last: dict[int, int] = {-1: -1}  # the last send of every link
    ordered_nodes: list[Node] = []
    for at, number in enumerate(order):
        node, link = nodes[number], links[number]
        after = tuple(sorted(place[before] for before in node.after))
        turn = last.get(link, -1)
        is_held = turn >= 0 and all(starts[before] < starts[order[turn]] for before in node.after)
        ordered_nodes.append(node._replace(id=at, after=after, turn=turn, is_held=is_held))
        if link >= 0:
            last[link] = at
    return tuple(ordered_nodes) or (Node(0, COMP, name="nothing"),)


TOLD = 5  #: Problems of a kind that are told one by one.


def problems_of(trace: Trace) -> list[str]:
    """Return the faults of a trace; empty if it can be run to its end.

    A send needs no receive to begin or to end, as in ASTRA-sim. A receive ends when the message has arrived: the k-th
    send and the k-th receive of a pair of ranks and a tag, in the order of the files, are one message.
    """
    return run_of(trace).problems


@dataclass(frozen=True)
class Replay:
    """A trace that was run."""

    problems: list[str]
    starts: list[int]  #: Where each rank's nodes begin, when all are counted one rank after the other.
    messages: list[tuple[int, int]]
    order: list[int]  #: The nodes in an order in which they can be run, in which nodes come early.


def run_of(trace: Trace) -> Replay:
    """Run a trace; see :func:`problems_of`."""
    starts = np.cumsum([0, *map(len, trace.ranks)])
    idle = (f"rank {rank} has no node, and never ends" for rank, nodes in enumerate(trace.ranks) if not nodes)
    pairs = array("q")  # nodes, each before the one that waits for it
    problems = _few(idle)
    problems += _few(_match_sends(trace, starts.tolist(), pairs))
    matches = list(zip(pairs[::2], pairs[1::2], strict=True))
    problems += _few(_check_order(trace, starts.tolist(), pairs))
    if problems:
        return Replay(problems, starts.tolist(), matches, [])
    order, waits = _order(int(starts[-1]), np.frombuffer(pairs, dtype=np.int64).reshape(-1, 2))
    problems = _few(_find_stuck(trace, starts, waits)) if len(order) < int(starts[-1]) else []
    return Replay(problems, starts.tolist(), matches, [] if problems else order)


def _few(problems: Iterator[str]) -> list[str]:
    """Return the first problems of a kind, and the number of the others."""
    first = [text for _, text in zip(range(TOLD), problems, strict=False)]
    more = sum(1 for _ in problems)
    return first + ([f"{more:,} more of the kind"] if more else [])


def _match_sends(trace: Trace, starts: list[int], pairs: array[int]) -> Iterator[str]:
    every = [(rank, node, starts[rank] + i) for rank, nodes in enumerate(trace.ranks) for i, node in enumerate(nodes)]
    sends_of = group_by_key(((rank, node.peer, node.tag), (node, at)) for rank, node, at in every if node.type == SEND)
    receives_of = group_by_key(
        ((node.peer, rank, node.tag), (node, at)) for rank, node, at in every if node.type == RECV
    )
    for message in sorted(sends_of.keys() | receives_of.keys()):
        sends, receives = sends_of[message], receives_of[message]
        source, target, tag = message
        what = f"rank {source} to rank {target}, tag {tag}"
        for (send, first), (receive, second) in zip(sends, receives, strict=False):
            pairs.extend((first, second))
            if send.size_bytes != receive.size_bytes:
                sizes = f"{send.size_bytes:,} B are sent, {receive.size_bytes:,} B received"
                yield f"{what}: {sizes} (nodes {send.id} and {receive.id})"
        if len(sends) != len(receives):
            yield f"{what}: {len(sends):,} sends, {len(receives):,} receives"


def _check_order(trace: Trace, starts: list[int], pairs: array[int]) -> Iterator[str]:
    for rank, nodes in enumerate(trace.ranks):
        index = {node.id: starts[rank] + i for i, node in enumerate(nodes)}
        for node in nodes:
            for before in node.after:
                if before not in index:
                    yield f"rank {rank}, node {node.id} waits for node {before}, which is not there"
                    continue
                pairs.extend((index[before], index[node.id]))


def _order(count: int, pairs: np.ndarray) -> tuple[list[int], memoryview[int]]:
    order = np.argsort(pairs[:, 0], kind="stable")
    first = np.searchsorted(pairs[order, 0], np.arange(count + 1)).data
    following = pairs[order, 1].data
    waits = np.bincount(pairs[:, 1], minlength=count).data
    ready = [index for index, number in enumerate(waits) if not number]
    for node in ready:  # grows while it is gone through
        for after in following[first[node] : first[node + 1]]:
            waits[after] -= 1
            if not waits[after]:
                ready.append(after)
    return ready, waits


def _find_stuck(trace: Trace, starts: np.ndarray, waits: memoryview[int]) -> Iterator[str]:
    for index in (index for index, number in enumerate(waits) if number):
        rank = int(np.searchsorted(starts, index, side="right")) - 1
        node_id = trace.ranks[rank][index - int(starts[rank])].id
        yield f"rank {rank}, node {node_id} waits for ever, in a circle or behind one"
