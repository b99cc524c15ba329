"""Kernels of rip-up and re-route: withdraw a few chunks and insert them again until all arrive by the target."""

import math
from typing import Any

import numpy as np

from ...core.kernel import kernel
from .insertion import KeyWeights, Search, hash_to_fraction, insert, prune
from .problem import ArcTable
from .state import SearchState, retrace, withdraw

MOST = 6  #: most chunks that are withdrawn at once
TARGETED = 0.5  #: how often the others are chunks that stand in the way of the late one
IN_PART = 0.8  #: how often only a part of every chosen chunk's tree is withdrawn
HEAT = 1.5  #: epochs by which moves may make things worse, on average
UNKNOWN, KEPT, STRUCK = 0, 1, 2  #: marks of nodes
DRAWS = 32  #: numbers drawn for a move
WEIGHTS = (0.0, 0.3, 1.0, 3.0, 10.0)  #: weights of the prices, before they are scattered


@kernel
def lateness(state: SearchState, lacking: Any, chunk: int, target: int) -> int:
    """Sum the epochs beyond the target over all nodes that lack the chunk."""
    late = 0
    for node in range(lacking.shape[1]):
        if lacking[chunk, node]:
            late += max(0, state.arrival[chunk, node] - target)
    return late


@kernel
def drawn_late(late: Any, total: int, draw: float) -> int:
    """Draw a late chunk with probability proportional to its lateness."""
    at = draw * total
    critical = 0
    for chunk in range(len(late)):
        at -= late[chunk]
        if late[chunk] > 0:
            critical = chunk
        if at < 0:
            break
    return critical


@kernel
def add(members: Any, count: int, chunk: int) -> int:
    """Add a chunk to the withdrawn ones unless it is among them; return their number."""
    for j in range(count):
        if members[j] == chunk:
            return count
    members[count] = chunk
    return count + 1


@kernel
def late_node(arcs: ArcTable, state: SearchState, lacking: Any, chunk: int, target: int, draw: Any) -> int:
    """Draw a node on a late chunk's path to a receiver that it reaches late."""
    nodes = lacking.shape[1]
    node = int(draw[0] * nodes)
    for _ in range(nodes):
        if lacking[chunk, node] and state.arrival[chunk, node] > target:
            break
        node = node + 1 if node + 1 < nodes else 0
    # Half of the time the last one, else one nearer to the source.
    up = draw[1]
    while up > 0.5 and state.arc[chunk, node] >= 0 and state.arc[chunk, arcs.arc_tail[state.arc[chunk, node]]] >= 0:
        node = arcs.arc_tail[state.arc[chunk, node]]
        up = 2 * up - 1
    return node


@kernel
def contested_link(arcs: ArcTable, into: Any, into_first: Any, node: int, draw: Any) -> int:
    """Draw a link of an arc into a node; return -1 if there is none."""
    count = into_first[node + 1] - into_first[node]
    if count == 0:
        return -1
    arc = into[into_first[node] + int(draw[0] * count)]
    hops = arcs.hop_first[arc + 1] - arcs.hop_first[arc]
    return int(arcs.hop_link[arcs.hop_first[arc] + int(draw[1] * hops)])


@kernel
def choose_chunks(state: SearchState, critical: int, link: int, draw: Any, members: Any) -> int:
    """Choose the late chunk and up to five others, users of a link if one is given; return their number."""
    members[0] = critical
    count, chunks = 1, state.arrival.shape[0]
    for i in range(int(draw[1] * MOST)):
        other = int(draw[2 + i] * chunks)
        if link >= 0:
            for _ in range(chunks):
                if state.latest[other, link] >= 0:
                    break
                other = other + 1 if other + 1 < chunks else 0
        count = add(members, count, other)
    return count


@kernel
def leads_over(arcs: ArcTable, arc: int, link: int) -> bool:
    """Check if an arc uses a link."""
    for h in range(arcs.hop_first[arc], arcs.hop_first[arc + 1]):  # noqa: SIM110 (compiled)
        if arcs.hop_link[h] == link:
            return True
    return False


@kernel
def strike_arcs(arcs: ArcTable, arc: Any, mark: Any, at: int, link: int) -> None:
    """Remove a chunk's arcs to a node or over a link, and all arcs below them; ``mark`` is scratch space."""
    nodes = len(arc)
    for node in range(nodes):
        struck = node == at or (link >= 0 and arc[node] >= 0 and leads_over(arcs, arc[node], link))
        mark[node] = STRUCK if struck else UNKNOWN if arc[node] >= 0 else KEPT
    for node in range(nodes):
        above = node
        while mark[above] == UNKNOWN:
            above = arcs.arc_tail[arc[above]]
        fate, above = mark[above], node
        while mark[above] == UNKNOWN:
            mark[above] = fate
            above = arcs.arc_tail[arc[above]]
    for node in range(nodes):
        if mark[node] == STRUCK:
            arc[node] = -1


@kernel
def drawn_weights(draw: Any, longest: int, seed: int) -> KeyWeights:
    """Draw weights of the insertion; ``draw`` is a row of numbers from 0 to 1."""
    weight = WEIGHTS[int(draw[8] * len(WEIGHTS))] * 2 * draw[9]
    slowness = 1.0 if draw[10] < 0.5 else 0.0
    tail = 0.5 if draw[11] < 0.3 else 0.0
    noise = 2.0 * draw[12] if draw[13] < 0.7 else 0.0
    wait = longest * draw[23] if draw[15] < 0.25 or draw[15] > 0.75 else 0.0
    return KeyWeights(weight, slowness, tail, noise, wait, seed)


@kernel
def reinsert(
    search: Search, price: Any, members: Any, keys: KeyWeights, target: int, allowed: int, together: bool
) -> tuple[int, int]:
    """Insert withdrawn chunks; return their lateness, -1 if it exceeds ``allowed``, and the number of arcs examined."""
    step = len(members) if together else 1
    total, work = 0, 0
    for first in range(0, len(members), step):
        late, looks = insert(search, price, members[first : first + step], keys, target, allowed - total)
        work += looks
        if late < 0:
            return -1, work
        total += late
        for chunk in members[first : first + step]:
            if search.partial[chunk]:
                prune(search.arcs, search.state, search.lacking, chunk)
    return total, work


@kernel
def walk(search: Search, prices: Any, target: int, counter: int, seed: int, effort: int) -> tuple[bool, int, int]:
    """Make moves until every arrival is by the target, or the effort is spent.

    Return if the target is met, the moves, counted on from ``counter``, and the arcs examined or chunks withdrawn.
    """
    arcs, state, lacking, _, _ = search
    chunks, nodes = lacking.shape
    late = np.zeros(chunks, np.int64)
    for chunk in range(chunks):
        late[chunk] = lateness(state, lacking, chunk, target)
    total = late.sum()
    draw = np.empty(DRAWS)
    into = np.argsort(arcs.arc_head, kind="mergesort")
    into_first = np.searchsorted(arcs.arc_head[into], np.arange(nodes + 1))
    members = np.empty(MOST + 1, np.int64)
    old_arc, old_start = np.empty((MOST + 1, nodes), np.int32), np.empty((MOST + 1, nodes), np.int32)
    longest = arcs.window.max()
    rest, mark = np.empty(nodes, np.int32), np.empty(nodes, np.int8)
    work = 0
    while total > 0 and work < effort:
        counter += 1
        for i in range(len(draw)):
            draw[i] = hash_to_fraction(counter * DRAWS + i, seed)
        critical, link = drawn_late(late, total, draw[0]), -1
        node = late_node(arcs, state, lacking, critical, target, draw[17:])
        if draw[16] < TARGETED:
            link = contested_link(arcs, into, into_first, node, draw[19:])
        count = choose_chunks(state, critical, link, draw, members)
        before = 0
        for i in range(count):
            chunk = members[i]
            old_arc[i], old_start[i] = state.arc[chunk], state.start[chunk]
            before += int(late[chunk])
            withdraw(arcs, state, chunk)
            if draw[21] < IN_PART:
                rest[:] = old_arc[i]
                other = int(draw[24 + i] * nodes) if link < 0 else -1
                strike_arcs(arcs, rest, mark, node if i == 0 else other, -1 if i == 0 else link)
                retrace(arcs, state, chunk, rest, old_start[i])
        keys = drawn_weights(draw, longest, counter)
        slack = int(-HEAT * math.log(1.0 - draw[22]))
        price = prices[int(draw[14] * len(prices))]
        together = draw[15] < 0.5
        now, looks = reinsert(search, price, members[:count], keys, target, before + slack, together)
        work += looks + count
        if now < 0:
            for i in range(count):
                withdraw(arcs, state, members[i])
            for i in range(count):
                retrace(arcs, state, members[i], old_arc[i], old_start[i])
        else:
            total += now - before
            for i in range(count):
                late[members[i]] = lateness(state, lacking, members[i], target)
    return total == 0, counter, work
