"""State of a schedule under search: reservations, arrivals, and the sends of every chunk.

An arc leads from a storing node to another, over one link or over a chain of links through nodes that do not store.
A chunk's schedule is an arc and its start for every node that it reaches. Chains of one chunk may share links that
they start on at the same epoch: that is how a copying node is used.

``table[e, t]`` counts the starts on link e in the epochs ``t - window + 1 .. t``, of which any ``window`` in a row
take at most ``room``. So another start at epoch k is possible exactly if all of ``table[e, k : k + window]`` are
below the room. Epochs count from 0; there is no room beyond a table's last epoch.
"""

from typing import Any, NamedTuple

import numpy as np

from ...core.errors import Unsupported
from ...core.kernel import kernel
from .problem import ArcTable

NEVER = -1  #: given back where there is no free epoch within the table

ABSENT = np.int32(2**30)  #: the chunk is not there
MAX_CELLS = 2**30  #: cells of the largest table of reservations
RECENT = 4  #: how many of a chunk's latest starts on a link are looked at for sharing


@kernel
def blocked_until(table: Any, link: int, start: int, window: int, room: int) -> int:
    """Return ``start`` if the link is free there, else the first epoch after the last full window."""
    if start + window > table.shape[1]:
        return int(table.shape[1]) + 1
    for t in range(start + window - 1, start - 1, -1):
        if table[link, t] >= room:
            return t + 1
    return start


@kernel
def earliest(table: Any, link: int, start: int, window: int, room: int) -> int:
    """Return the first epoch from ``start`` on with room for another start on the link, or ``NEVER``."""
    while start + window <= table.shape[1]:
        after = int(blocked_until(table, link, start, window, room))
        if after == start:
            return start
        start = after
    return NEVER


@kernel
def reserve(table: Any, link: int, start: int, window: int, count: int) -> None:
    """Add ``count`` starts at an epoch; a negative count removes them."""
    for t in range(start, start + window):
        table[link, t] += count


class SearchState(NamedTuple):
    """Mutable arrays of a search."""

    table: Any  #: (rows, epochs) reservations
    arrival: Any  #: (chunks, nodes) epoch, or ABSENT
    arc: Any  #: (chunks, nodes) the arc over which the chunk came, -1 for none
    start: Any  #: (chunks, nodes) when it started on that arc
    latest: Any  #: (chunks, links) the chunk's last send on the link, a position in the lists below; -1 for none
    send_link: Any  #: (chunks, sends)
    send_start: Any  #: (chunks, sends)
    send_before: Any  #: (chunks, sends) the chunk's send on that link before this one
    sends: Any  #: (chunks,) how many


def empty_state(holders: Any, links: int, rows: int, epochs: int, longest: int) -> SearchState:
    """Return the state in which only holders have chunks; raise Unsupported for too large a reservation table."""
    if rows * epochs > MAX_CELLS:
        raise Unsupported(f"{rows:,} links for {epochs:,} epochs exceed the reservation table; expected longer epochs")
    chunks, nodes = holders.shape
    room = nodes * longest
    return SearchState(
        np.zeros((rows, epochs), np.int16),
        np.where(holders, np.int32(0), ABSENT).astype(np.int32),
        np.full((chunks, nodes), -1, np.int32),
        np.zeros((chunks, nodes), np.int32),
        np.full((chunks, links), -1, np.int32),
        np.empty((chunks, room), np.int32),
        np.empty((chunks, room), np.int32),
        np.empty((chunks, room), np.int32),
        np.zeros(chunks, np.int32),
    )


@kernel
def has_sent(state: SearchState, chunk: int, link: int, start: int) -> bool:
    """Check if the chunk starts on the link at that epoch."""
    at = state.latest[chunk, link]
    while at >= 0:
        if state.send_start[chunk, at] == start:
            return True
        at = state.send_before[chunk, at]
    return False


@kernel
def send(arcs: ArcTable, state: SearchState, chunk: int, link: int, start: int) -> None:
    """Reserve one start of a chunk on a link."""
    at = state.sends[chunk]
    state.send_link[chunk, at] = link
    state.send_start[chunk, at] = start
    state.send_before[chunk, at] = state.latest[chunk, link]
    state.latest[chunk, link] = at
    state.sends[chunk] = at + 1
    reserve(state.table, arcs.row[link], start, arcs.window[link], 1)


@kernel
def take(arcs: ArcTable, state: SearchState, chunk: int, arc: int, start: int) -> None:
    """Send a chunk over an arc, sharing links that it already starts on at that very epoch."""
    for h in range(arcs.hop_first[arc], arcs.hop_first[arc + 1]):
        link, at = arcs.hop_link[h], start + arcs.hop_offset[h]
        if not has_sent(state, chunk, link, at):
            send(arcs, state, chunk, link, at)
    to = arcs.arc_head[arc]
    state.arrival[chunk, to] = start + arcs.arc_delay[arc]
    state.arc[chunk, to] = arc
    state.start[chunk, to] = start


@kernel
def withdraw(arcs: ArcTable, state: SearchState, chunk: int) -> None:
    """Remove all sends of a chunk: only its holders have it."""
    for at in range(state.sends[chunk]):
        link = state.send_link[chunk, at]
        reserve(state.table, arcs.row[link], state.send_start[chunk, at], arcs.window[link], -1)
        state.latest[chunk, link] = -1
    state.sends[chunk] = 0
    for node in range(state.arrival.shape[1]):
        if state.arc[chunk, node] >= 0:
            state.arc[chunk, node] = -1
            state.arrival[chunk, node] = ABSENT


@kernel
def retrace(arcs: ArcTable, state: SearchState, chunk: int, arc: Any, start: Any) -> None:
    """Send a withdrawn chunk by a row of arcs and starts, all of which must be free."""
    for node in range(len(arc)):
        if arc[node] >= 0:
            take(arcs, state, chunk, arc[node], start[node])


@kernel
def free_start(arcs: ArcTable, table: Any, arc: int, start: int) -> int:
    """Return the first epoch from ``start`` on at which every link of the arc is free, or ``NEVER``."""
    first, end = arcs.hop_first[arc], arcs.hop_first[arc + 1]
    h = first
    agreed = 0
    while agreed < end - first:
        link, offset = arcs.hop_link[h], arcs.hop_offset[h]
        at = earliest(table, arcs.row[link], start + offset, arcs.window[link], arcs.room[link])
        if at == NEVER:
            return NEVER
        if at > start + offset:
            start, agreed = at - offset, 0
        agreed += 1
        h = h + 1 if h + 1 < end else first
    return start


@kernel
def arc_price(arcs: ArcTable, price: Any, arc: int) -> float:
    """Sum the prices of an arc's links."""
    total = 0.0
    for h in range(arcs.hop_first[arc], arcs.hop_first[arc + 1]):
        total += price[arcs.hop_link[h]]
    return total


@kernel
def shared_price(arcs: ArcTable, state: SearchState, price: Any, chunk: int, arc: int, start: int) -> float:
    """Price the links that an arc adds to an existing send of the chunk; -1 if it cannot share one."""
    total = 0.0
    new_before = False
    for h in range(arcs.hop_first[arc], arcs.hop_first[arc + 1]):
        link, at = arcs.hop_link[h], start + arcs.hop_offset[h]
        new = not has_sent(state, chunk, link, at)
        if h > arcs.hop_first[arc] and new != new_before and not arcs.hop_copies[h]:
            return -1.0
        if new:
            window = arcs.window[link]
            if blocked_until(state.table, arcs.row[link], at, window, arcs.room[link]) != at:
                return -1.0
            total += price[link]
        new_before = new
    return total


@kernel
def passes_by_itself(arcs: ArcTable, state: SearchState, chunk: int, arc: int, start: int) -> bool:
    """Check that a chunk can share links of an arc without a copy at a node that makes none."""
    for h in range(arcs.hop_first[arc] + 1, arcs.hop_first[arc + 1]):
        if not arcs.hop_copies[h]:
            came = has_sent(state, chunk, arcs.hop_link[h - 1], start + arcs.hop_offset[h - 1])
            if came != has_sent(state, chunk, arcs.hop_link[h], start + arcs.hop_offset[h]):
                return False
    return True


@kernel
def best_start(
    arcs: ArcTable, state: SearchState, price: Any, weight: float, chunk: int, arc: int, ready: int, hint: int
) -> tuple[int, float, int]:
    """Return the start with the least sum of start and weighted price of new links, that price, and a hint.

    The start is ``NEVER`` if there is none. ``ready`` is the epoch from which the chunk is at the arc's tail;
    before ``hint`` the arc is known not to be free.
    """
    start = free_start(arcs, state.table, arc, max(ready, hint))
    free = start
    # Where a link takes several starts at once, the chunk may meet itself at a switch that does not copy.
    while start != NEVER and not passes_by_itself(arcs, state, chunk, arc, start):
        start = free_start(arcs, state.table, arc, start + 1)
    cost = weight * arc_price(arcs, price, arc)
    if arcs.hop_first[arc + 1] - arcs.hop_first[arc] > 1:
        at = state.latest[chunk, arcs.hop_link[arcs.hop_first[arc]]]
        looked = 0
        while at >= 0 and looked < RECENT:
            earlier = state.send_start[chunk, at]
            if earlier >= ready:
                extra = shared_price(arcs, state, price, chunk, arc, earlier)
                if extra >= 0 and (start == NEVER or earlier + weight * extra < start + cost):
                    start, cost = earlier, weight * extra
            at = state.send_before[chunk, at]
            looked += 1
    return start, cost, max(free, hint)
