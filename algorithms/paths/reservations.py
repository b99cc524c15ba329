"""Network of the path search, and reservations of its links and buffers; compiled.

Busy ticks are bits where all links are alike, and sorted intervals otherwise. Algorithm 3 of the dissertation,
sections 6.4.6 and 6.4.7.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.kernel import kernel
from ...core.schedule import Bools, Ints
from ..graphs.bits import low_bit

Words = NDArray[np.uint64]

NEVER = 2**61  #: larger than any tick


class PathNetwork(NamedTuple):
    """Network of the path search: edges are links, or paths through switches that cannot store."""

    tail: Ints
    head: Ints
    first: Ints  #: (nodes + 1,) and (edges,) edges by the node that they leave
    leaving: Ints
    part_first: Ints  #: (edges + 1,) and (parts,) links of every edge, in order
    link: Ints
    offset: Ints  #: (sizes, parts) ticks from the edge's start until a chunk enters the link, and for which it holds it
    window: Ints
    delay: Ints  #: (sizes, edges) ticks from the start to the arrival
    #: (nodes,) False for switches without multicast, which send a chunk only as often as they have received it
    branches: Bools
    room: Ints  #: (nodes,) units that a switch can hold; -1 without limit
    units: Ints  #: (sizes,) units of a chunk of every size


class Reservations(NamedTuple):
    """Busy times of links and buffers."""

    words: Words  #: (links, words) one bit per tick if every window is one tick; otherwise without columns
    #: (links, room), (links, room) and (links,) otherwise: sorted, disjoint, non-adjacent busy intervals of every link,
    #: and their number
    begin: Ints
    end: Ints
    runs: Ints
    #: (nodes, room), thrice, and (nodes,) arrival, last start (both included) and units of each chunk held by a switch,
    #: and their number; without columns if no switch has a limit
    stay_begin: Ints
    stay_end: Ints
    stay_units: Ints
    stays: Ints


@kernel
def free_bit(words: Any, link: int, tick: int) -> int:
    """Return the first tick from ``tick`` on whose bit is not set; :data:`NEVER` beyond the table."""
    word, last = tick >> 6, words.shape[1]
    if word >= last:
        return NEVER
    free = ~words[link, word] & (~np.uint64(0) << np.uint64(tick & 63))
    while free == np.uint64(0):
        word += 1
        if word >= last:
            return NEVER
        free = ~words[link, word]
    return (word << 6) + low_bit(free)


@kernel
def after(end: Any, count: int, tick: int) -> int:
    """Return the index of the first interval that ends after a tick."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if end[middle] <= tick:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def free_window(busy: Any, link: int, tick: int, window: int) -> int:
    """Return the first tick from ``tick`` on at which a link is free for a window."""
    begin, end, count = busy.begin[link], busy.end[link], busy.runs[link]
    place = after(end, count, tick)
    while place < count and begin[place] < tick + window:
        tick = end[place]
        place += 1
    return tick


@kernel
def earliest(net: Any, busy: Any, size: int, edge: int, tick: int) -> int:
    """Return the first tick from ``tick`` on at which all links of an edge are free for a chunk."""
    if busy.words.shape[1]:
        return free_bit(busy.words, net.link[net.part_first[edge]], tick)
    first, last = net.part_first[edge], net.part_first[edge + 1]
    part, good = first, 0
    while good < last - first:  # until every link, one after the other, has nothing against the start
        at = tick + net.offset[size, part]
        free = free_window(busy, net.link[part], at, net.window[size, part])
        good = good + 1 if free == at else 1
        tick += free - at
        part = part + 1 if part + 1 < last else first
    return tick


@kernel
def has_room(net: Any, busy: Any, edge: int) -> bool:
    """Check that the lists of an edge's links can store another interval."""
    if not busy.words.shape[1]:
        for part in range(net.part_first[edge], net.part_first[edge + 1]):
            if busy.runs[net.link[part]] + 1 > busy.begin.shape[1]:
                return False
    return True


@kernel
def take(net: Any, busy: Any, size: int, edge: int, start: int) -> None:
    """Reserve the links of an edge for a chunk that starts at a tick."""
    for part in range(net.part_first[edge], net.part_first[edge + 1]):
        link, at = net.link[part], start + net.offset[size, part]
        if busy.words.shape[1]:
            busy.words[link, at >> 6] |= np.uint64(1) << np.uint64(at & 63)
        else:
            _insert(busy, link, at, at + net.window[size, part])


@kernel
def give_back(net: Any, busy: Any, size: int, edge: int, start: int) -> None:
    """Undo :func:`take`."""
    for part in range(net.part_first[edge], net.part_first[edge + 1]):
        link, at = net.link[part], start + net.offset[size, part]
        if busy.words.shape[1]:
            busy.words[link, at >> 6] &= ~(np.uint64(1) << np.uint64(at & 63))
        else:
            _remove_interval(busy, link, at, at + net.window[size, part])


@kernel
def _insert(busy: Any, link: int, begin: int, end: int) -> None:
    begins, ends, count = busy.begin[link], busy.end[link], busy.runs[link]
    place = after(ends, count, begin - 1)  # the first one that ends at the new one's begin or later
    joins_left = place < count and ends[place] == begin
    right = place + 1 if joins_left else place
    joins_right = right < count and begins[right] == end
    if joins_left and joins_right:
        ends[place] = ends[right]
        begins[right : count - 1] = begins[right + 1 : count].copy()
        ends[right : count - 1] = ends[right + 1 : count].copy()
        busy.runs[link] = count - 1
    elif joins_left:
        ends[place] = end
    elif joins_right:
        begins[place] = begin
    else:
        begins[place + 1 : count + 1] = begins[place:count].copy()
        ends[place + 1 : count + 1] = ends[place:count].copy()
        begins[place], ends[place] = begin, end
        busy.runs[link] = count + 1


@kernel
def _remove_interval(busy: Any, link: int, begin: int, end: int) -> None:
    begins, ends, count = busy.begin[link], busy.end[link], busy.runs[link]
    place = after(ends, count, begin)
    if begins[place] == begin and ends[place] == end:
        begins[place : count - 1] = begins[place + 1 : count].copy()
        ends[place : count - 1] = ends[place + 1 : count].copy()
        busy.runs[link] = count - 1
    elif begins[place] == begin:
        begins[place] = end
    elif ends[place] == end:
        ends[place] = begin
    else:
        begins[place + 1 : count + 1] = begins[place:count].copy()
        ends[place + 1 : count + 1] = ends[place:count].copy()
        ends[place], begins[place + 1] = begin, end
        busy.runs[link] = count + 1


@kernel
def can_stay(net: Any, busy: Any, size: int, node: int, begin: int, end: int) -> bool:
    """Check that a switch has room for a chunk from one tick to another, both included."""
    room = net.room[node] - net.units[size]
    begins, ends, units = busy.stay_begin[node], busy.stay_end[node], busy.stay_units[node]
    count = busy.stays[node]
    for later in range(-1, count):  # when the chunk comes, and whenever something else comes while it is there
        tick = begins[later] if later >= 0 else begin
        if begin <= tick <= end:
            load = 0
            for other in range(count):
                if begins[other] <= tick <= ends[other]:
                    load += units[other]
            if load > room:
                return False
    return True


@kernel
def stay(net: Any, busy: Any, size: int, node: int, begin: int, end: int) -> None:
    """Hold a chunk in a switch from one tick to another, both included."""
    if begin <= end:
        place = busy.stays[node]
        busy.stay_begin[node, place], busy.stay_end[node, place] = begin, end
        busy.stay_units[node, place] = net.units[size]
        busy.stays[node] = place + 1
