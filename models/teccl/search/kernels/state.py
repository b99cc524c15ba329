"""The state of a schedule under search: reservations, arrivals, and what every chunk has sent.

An arc leads from a storing node to another, over one link or over a chain of links through nodes that do not store. A chunk's schedule is
an arc and its start for every node that it reaches. Chains of one chunk may share links that they start on at the same epoch: that is how a
node that copies is used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from .....core.errors import Unsupported
from ....common.reservations import NEVER, earliest, reserve

#: The chunk is not there.
ABSENT = np.int32(2**30)

#: Starts in a window that reservations can count; a link with more room is used as if it had no more, which costs time and never correctness.
MOST_STARTS = np.iinfo(np.int16).max

#: Cells of the largest table of reservations.
MAX_CELLS = 2**30

#: How many of a chunk's latest starts on a link are looked at for sharing.
RECENT = 4


class Roads(NamedTuple):
    """Links and the arcs made of them. Arcs are sorted by tail; arc a's hops are ``hop_first[a] .. hop_first[a + 1] - 1``."""

    row: Any  #: (links,) the row of reservations; links that a symmetry maps to each other have one together
    window: Any  #: (links,)
    room: Any  #: (links,)
    arc_first: Any  #: (nodes + 1,) where the arcs out of each node begin
    arc_head: Any  #: (arcs,)
    arc_delay: Any  #: (arcs,)
    hop_first: Any  #: (arcs + 1,)
    hop_link: Any  #: (hops,)
    hop_offset: Any  #: (hops,) epochs from the arc's start to this link's
    hop_copies: Any  #: (hops,) whether the hop's tail copies; True at storing nodes


class State(NamedTuple):
    """Everything that changes."""

    table: Any  #: (rows, epochs) reservations
    arrival: Any  #: (chunks, nodes) epoch, or ABSENT
    arc: Any  #: (chunks, nodes) the arc over which the chunk came, -1 for none
    start: Any  #: (chunks, nodes) when it started on that arc
    latest: Any  #: (chunks, links) the chunk's last send on the link, a position in the lists below; -1 for none
    send_link: Any  #: (chunks, sends)
    send_start: Any  #: (chunks, sends)
    send_before: Any  #: (chunks, sends) the chunk's send on that link before this one
    sends: Any  #: (chunks,) how many


def empty_state(held: Any, links: int, rows: int, epochs: int, longest: int) -> State:
    """Give the state in which only the holders have the chunks; ``longest`` is the largest number of hops of an arc.

    Raises
    ------
    Unsupported
        If the table of reservations would be too large.
    """
    if rows * epochs > MAX_CELLS:
        raise Unsupported(
            f"{rows:,} links for {epochs:,} epochs are too many to keep account of; expected longer epochs"
        )
    chunks, nodes = held.shape
    room = nodes * longest
    return State(
        np.zeros((rows, epochs), np.int16),
        np.where(held, np.int32(0), ABSENT).astype(np.int32),
        np.full((chunks, nodes), -1, np.int32),
        np.zeros((chunks, nodes), np.int32),
        np.full((chunks, links), -1, np.int32),
        np.empty((chunks, room), np.int32),
        np.empty((chunks, room), np.int32),
        np.empty((chunks, room), np.int32),
        np.zeros(chunks, np.int32),
    )


@numba.njit(cache=True)
def has_sent(state: State, chunk: int, link: int, start: int) -> bool:
    """Tell whether the chunk starts on the link at that epoch."""
    at = state.latest[chunk, link]
    while at >= 0:
        if state.send_start[chunk, at] == start:
            return True
        at = state.send_before[chunk, at]
    return False


@numba.njit(cache=True)
def send(roads: Roads, state: State, chunk: int, link: int, start: int) -> None:
    """Reserve one start of a chunk on a link."""
    at = state.sends[chunk]
    state.send_link[chunk, at] = link
    state.send_start[chunk, at] = start
    state.send_before[chunk, at] = state.latest[chunk, link]
    state.latest[chunk, link] = at
    state.sends[chunk] = at + 1
    reserve(state.table, roads.row[link], start, roads.window[link], 1)


@numba.njit(cache=True)
def take(roads: Roads, state: State, chunk: int, arc: int, start: int) -> None:
    """Let a chunk go over an arc; links that it already starts on at that very epoch are shared."""
    for h in range(roads.hop_first[arc], roads.hop_first[arc + 1]):
        link, at = roads.hop_link[h], start + roads.hop_offset[h]
        if not has_sent(state, chunk, link, at):
            send(roads, state, chunk, link, at)
    to = roads.arc_head[arc]
    state.arrival[chunk, to] = start + roads.arc_delay[arc]
    state.arc[chunk, to] = arc
    state.start[chunk, to] = start


@numba.njit(cache=True)
def withdraw(roads: Roads, state: State, chunk: int) -> None:
    """Take back all sends of a chunk: only its holders have it."""
    for at in range(state.sends[chunk]):
        link = state.send_link[chunk, at]
        reserve(state.table, roads.row[link], state.send_start[chunk, at], roads.window[link], -1)
        state.latest[chunk, link] = -1
    state.sends[chunk] = 0
    for node in range(state.arrival.shape[1]):
        if state.arc[chunk, node] >= 0:
            state.arc[chunk, node] = -1
            state.arrival[chunk, node] = ABSENT


@numba.njit(cache=True)
def retrace(roads: Roads, state: State, chunk: int, arc: Any, start: Any) -> None:
    """Let a withdrawn chunk go as a row of arcs and starts says, which must be free."""
    for node in range(len(arc)):
        if arc[node] >= 0:
            take(roads, state, chunk, arc[node], start[node])


@numba.njit(cache=True)
def free_start(roads: Roads, table: Any, arc: int, start: int) -> int:
    """Give the first epoch from ``start`` on at which every link of the arc is free; ``NEVER`` if there is none within the table."""
    first, end = roads.hop_first[arc], roads.hop_first[arc + 1]
    h = first
    agreed = 0
    while agreed < end - first:
        link, offset = roads.hop_link[h], roads.hop_offset[h]
        at = earliest(table, roads.row[link], start + offset, roads.window[link], roads.room[link])
        if at == NEVER:
            return NEVER
        if at > start + offset:
            start, agreed = at - offset, 0
        agreed += 1
        h = h + 1 if h + 1 < end else first
    return start


@numba.njit(cache=True)
def arc_price(roads: Roads, price: Any, arc: int) -> float:
    """Sum the prices of an arc's links."""
    total = 0.0
    for h in range(roads.hop_first[arc], roads.hop_first[arc + 1]):
        total += price[roads.hop_link[h]]
    return total


@numba.njit(cache=True)
def shared_price(roads: Roads, state: State, price: Any, chunk: int, arc: int, start: int) -> float:
    """Price of the links that an arc adds to what the chunk sends, if it starts with a send that is there; -1 if that is not possible."""
    total = 0.0
    new_before = False
    for h in range(roads.hop_first[arc], roads.hop_first[arc + 1]):
        link, at = roads.hop_link[h], start + roads.hop_offset[h]
        new = not has_sent(state, chunk, link, at)
        if h > roads.hop_first[arc] and new != new_before and not roads.hop_copies[h]:
            return -1.0
        if new:
            window = roads.window[link]
            if is_taken(state.table, roads.row[link], at, window, roads.room[link]):
                return -1.0
            total += price[link]
        new_before = new
    return total


@numba.njit(cache=True)
def is_taken(table: Any, row: int, start: int, window: int, room: int) -> bool:
    """Tell whether a link is not free at an epoch."""
    if start + window > table.shape[1]:
        return True
    for t in range(start, start + window):  # noqa: SIM110 (compiled)
        if table[row, t] >= room:
            return True
    return False


@numba.njit(cache=True)
def passes_by_itself(roads: Roads, state: State, chunk: int, arc: int, start: int) -> bool:
    """Tell whether a chunk that takes an arc does not have to be copied where that is impossible, since it starts on one of its links already."""
    for h in range(roads.hop_first[arc] + 1, roads.hop_first[arc + 1]):
        if not roads.hop_copies[h]:
            came = has_sent(state, chunk, roads.hop_link[h - 1], start + roads.hop_offset[h - 1])
            if came != has_sent(state, chunk, roads.hop_link[h], start + roads.hop_offset[h]):
                return False
    return True


@numba.njit(cache=True)
def best_start(
    roads: Roads, state: State, price: Any, weight: float, chunk: int, arc: int, ready: int, hint: int
) -> tuple[int, float, int]:
    """Give the start on an arc for which start plus weighted price of new links is least, ``NEVER`` if there is none; its weighted price; a hint.

    ``ready`` is when the chunk is at the arc's tail, and ``hint`` an epoch before which the arc is known not to be free.
    """
    start = free_start(roads, state.table, arc, max(ready, hint))
    free = start
    # Where a link takes several starts at once, the chunk may meet itself at a switch that does not copy.
    while start != NEVER and not passes_by_itself(roads, state, chunk, arc, start):
        start = free_start(roads, state.table, arc, start + 1)
    cost = weight * arc_price(roads, price, arc)
    if roads.hop_first[arc + 1] - roads.hop_first[arc] > 1:
        at = state.latest[chunk, roads.hop_link[roads.hop_first[arc]]]
        looked = 0
        while at >= 0 and looked < RECENT:
            begun = state.send_start[chunk, at]
            if begun >= ready:
                extra = shared_price(roads, state, price, chunk, arc, begun)
                if extra >= 0 and (start == NEVER or begun + weight * extra < start + cost):
                    start, cost = begun, weight * extra
            at = state.send_before[chunk, at]
            looked += 1
    return start, cost, max(free, hint)
