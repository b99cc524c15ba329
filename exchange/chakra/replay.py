"""A trace, run: every message is sent and received with one size, and no node waits for ever."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .schema import RECV, SEND
from .trace import Node, Trace

#: Problems of a kind that are told one by one.
TOLD = 5


def problems_of(trace: Trace) -> list[str]:
    """Return the faults of a trace; empty if it can be run to its end.

    A send needs no receive to begin or to end, as in ASTRA-sim. A receive ends when the message has arrived: the k-th
    send and the k-th receive of a pair of ranks and a tag, in the order of the files, are one message.
    """
    return run_of(trace).problems


@dataclass(frozen=True)
class Replay:
    """A trace that was run.

    Parameters
    ----------
    problems : list of str
        What is wrong; then there is no order.
    starts : list of int
        Where each rank's nodes begin, when all are counted one rank after the other.
    messages : list of (int, int)
        The send and the receive of every message, so counted.
    order : list of int
        The nodes in an order in which they can be run, in which nodes come early.
    """

    problems: list[str]
    starts: list[int]
    messages: list[tuple[int, int]]
    order: list[int]


def run_of(trace: Trace) -> Replay:
    """Run a trace; see :func:`problems_of`."""
    starts = np.cumsum([0, *map(len, trace.ranks)])
    idle = (f"rank {rank} has no node, and never ends" for rank, nodes in enumerate(trace.ranks) if not nodes)
    pairs = array("q")  # nodes, each before the one that waits for it
    found = _few(idle)
    found += _few(_match_sends(trace, starts.tolist(), pairs))
    matched = list(zip(pairs[::2], pairs[1::2], strict=True))
    found += _few(_check_order(trace, starts.tolist(), pairs))
    if found:
        return Replay(found, starts.tolist(), matched, [])
    order, waits = _order(int(starts[-1]), np.frombuffer(pairs, dtype=np.int64).reshape(-1, 2))
    found = _few(_find_stuck(trace, starts, waits)) if len(order) < int(starts[-1]) else []
    return Replay(found, starts.tolist(), matched, [] if found else order)


def _few(problems: Iterator[str]) -> list[str]:
    """Return the first problems of a kind, and the number of the others."""
    found = [text for _, text in zip(range(TOLD), problems, strict=False)]
    more = sum(1 for _ in problems)
    return found + ([f"{more:,} more of the kind"] if more else [])


def _match_sends(trace: Trace, starts: list[int], pairs: array[int]) -> Iterator[str]:
    """Pair sends with receives."""
    ends: dict[int, dict[tuple[int, int, int], list[tuple[Node, int]]]] = {
        SEND: defaultdict(list),
        RECV: defaultdict(list),
    }
    for rank, nodes in enumerate(trace.ranks):
        for index, node in enumerate(nodes):
            if node.type in ends:
                pair = (rank, node.peer) if node.type == SEND else (node.peer, rank)
                ends[node.type][*pair, node.tag].append((node, starts[rank] + index))
    for message in sorted(ends[SEND].keys() | ends[RECV].keys()):
        sends, receives = ends[SEND].get(message, []), ends[RECV].get(message, [])
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
    """Find the nodes that others wait for."""
    for rank, nodes in enumerate(trace.ranks):
        index = {node.id: starts[rank] + i for i, node in enumerate(nodes)}
        for node in nodes:
            for before in node.after:
                if before not in index:
                    yield f"rank {rank}, node {node.id} waits for node {before}, which is not there"
                    continue
                pairs.extend((index[before], index[node.id]))


def _order(count: int, pairs: np.ndarray) -> tuple[list[int], memoryview[int]]:
    """Return the executable nodes in order, and the number of unfinished dependences of the others."""
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
    """Yield nodes in a cycle of dependences, and those behind them."""
    for index in (index for index, number in enumerate(waits) if number):
        rank = int(np.searchsorted(starts, index, side="right")) - 1
        node_id = trace.ranks[rank][index - int(starts[rank])].id
        yield f"rank {rank}, node {node_id} waits for ever, in a circle or behind one"
