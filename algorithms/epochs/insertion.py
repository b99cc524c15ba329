"""Kernels that insert chunks into a schedule by a lazy Dijkstra over all of them at once."""

import math
from typing import Any, NamedTuple

import numpy as np

from ...core.kernel import kernel
from .problem import ArcTable
from .state import ABSENT, NEVER, SearchState, arc_price, best_start, retrace, take, withdraw


class Heap(NamedTuple):
    """Binary heap in arrays; the caller keeps its ``size``."""

    key: Any
    item: Any
    epoch: Any


def empty_heap(room: int) -> Heap:
    """Return a heap with room for so many entries."""
    return Heap(np.empty(room, np.float64), np.empty(room, np.int64), np.empty(room, np.int32))


@kernel
def push_entry(heap: Heap, size: int, key: float, item: int, epoch: int) -> int:
    """Add an entry and return the new size."""
    at = size
    while at > 0:
        above = (at - 1) // 2
        if heap.key[above] < key or (heap.key[above] == key and heap.item[above] <= item):
            break
        heap.key[at], heap.item[at], heap.epoch[at] = heap.key[above], heap.item[above], heap.epoch[above]
        at = above
    heap.key[at], heap.item[at], heap.epoch[at] = key, item, epoch
    return size + 1


@kernel
def drop_first(heap: Heap, size: int) -> int:
    """Remove the smallest entry, entry 0, and return the new size."""
    size -= 1
    key, item, epoch = heap.key[size], heap.item[size], heap.epoch[size]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and (
            heap.key[below + 1] < heap.key[below]
            or (heap.key[below + 1] == heap.key[below] and heap.item[below + 1] < heap.item[below])
        ):
            below += 1
        if key < heap.key[below] or (key == heap.key[below] and item <= heap.item[below]):
            break
        heap.key[at], heap.item[at], heap.epoch[at] = heap.key[below], heap.item[below], heap.epoch[below]
        at = below
    heap.key[at], heap.item[at], heap.epoch[at] = key, item, epoch
    return size


class Search(NamedTuple):
    """Arrays of a search for the nodes that need a chunk and do not hold it at the start."""

    arcs: ArcTable
    state: SearchState
    lacking: Any  #: bool (chunks, nodes)
    partial: Any  #: bool (chunks,) True for chunks that not every storing node holds or needs
    heap: Heap


class KeyWeights(NamedTuple):
    """Weights of an arc's key: start + weight * price + slowness * delay - tail * reach + noise.

    ``reach`` is that of the arc's head. A chunk may leave up to ``wait`` epochs late, to find several links free.
    """

    weight: float
    slowness: float
    tail: float
    noise: float
    wait: float
    seed: int


@kernel
def hash_to_fraction(item: int, seed: int) -> float:
    """Return a pseudorandom number in [0, 1) that depends only on the arguments."""
    x = np.uint64(item) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed) * np.uint64(0xD1B54A32D192ED03)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return float(x >> np.uint64(11)) / 9007199254740992.0


@kernel
def push_arcs(
    arcs: ArcTable, state: SearchState, price: Any, keys: KeyWeights, heap: Heap, size: int, chunk: int, node: int
) -> tuple[int, int]:
    """Push every arc from a node to one without the chunk; return the heap's size and arcs examined."""
    count, looked = len(arcs.arc_head), 0
    ready = state.arrival[chunk, node]
    begin = ready + int(keys.wait * hash_to_fraction(chunk * state.arrival.shape[1] + node, keys.seed))
    for arc in range(arcs.arc_first[node], arcs.arc_first[node + 1]):
        to = arcs.arc_head[arc]
        if state.arrival[chunk, to] < ABSENT:
            continue
        looked += 1
        start, cost, hint = best_start(arcs, state, price, keys.weight, chunk, arc, ready, begin)
        if start == NEVER:
            continue
        item = chunk * count + arc
        key = start + cost + keys.slowness * arcs.arc_delay[arc] - keys.tail * arcs.reach[to]
        size = push_entry(heap, size, key + keys.noise * hash_to_fraction(item, keys.seed), item, hint)
    return size, looked


@kernel
def lacking_nodes(state: SearchState, lacking: Any, chunk: int, target: int) -> tuple[int, int]:
    """Count the nodes that still lack a chunk, and sum the epochs beyond the target at the others."""
    count, late = 0, 0
    for node in range(lacking.shape[1]):
        if lacking[chunk, node] and state.arrival[chunk, node] < ABSENT:
            late += max(0, state.arrival[chunk, node] - target)
        elif lacking[chunk, node]:
            count += 1
    return count, late


@kernel
def insert(search: Search, price: Any, members: Any, keys: KeyWeights, target: int, allowed: int) -> tuple[int, int]:
    """Deliver the chunks ``members`` to all nodes that still lack them.

    Return the epochs beyond ``target``, summed over receivers, -1 if above ``allowed``, and the arcs examined.
    """
    arcs, state, lacking, _, heap = search
    count, nodes = len(arcs.arc_head), state.arrival.shape[1]
    lacks = np.zeros(len(members), np.int64)
    place = np.zeros(state.arrival.shape[0], np.int64)
    size, work, late = 0, 0, 0
    for i in range(len(members)):
        chunk = members[i]
        place[chunk] = i
        lacks[i], beyond = lacking_nodes(state, lacking, chunk, target)
        late += beyond
    waiting = lacks.sum()
    for i in range(len(members)):
        for node in range(nodes):
            if lacks[i] > 0 and state.arrival[members[i], node] < ABSENT:
                size, looks = push_arcs(arcs, state, price, keys, heap, size, members[i], node)
                work += looks
    while waiting > 0 and size > 0:
        key, item, epoch = heap.key[0], heap.item[0], heap.epoch[0]
        size = drop_first(heap, size)
        chunk, arc = item // count, item % count
        to = arcs.arc_head[arc]
        if state.arrival[chunk, to] < ABSENT or lacks[place[chunk]] == 0:
            continue
        work += 1
        ready = state.arrival[chunk, arcs.arc_tail[arc]]
        start, cost, hint = best_start(arcs, state, price, keys.weight, chunk, arc, ready, epoch)
        if start == NEVER:
            continue
        now = start + cost + keys.slowness * arcs.arc_delay[arc] - keys.tail * arcs.reach[to]
        now += keys.noise * hash_to_fraction(item, keys.seed)
        if now > key and size > 0 and now > heap.key[0]:
            size = push_entry(heap, size, now, item, hint)
            continue
        take(arcs, state, chunk, arc, start)
        if lacking[chunk, to]:
            lacks[place[chunk]] -= 1
            waiting -= 1
            late += max(0, state.arrival[chunk, to] - target)
            if late > allowed:
                return -1, work
        if lacks[place[chunk]] > 0:
            size, looks = push_arcs(arcs, state, price, keys, heap, size, chunk, to)
            work += looks
    return (late if waiting == 0 else -1), work


@kernel
def prune(arcs: ArcTable, state: SearchState, lacking: Any, chunk: int) -> None:
    """Withdraw sends of a chunk to nodes that neither need it nor forward it to one that does."""
    nodes = state.arrival.shape[1]
    useful = np.zeros(nodes, np.bool_)
    useless = False
    for node in range(nodes):
        at = node
        while lacking[chunk, node] and not useful[at]:
            useful[at] = True
            if state.arc[chunk, at] < 0:
                break
            at = arcs.arc_tail[state.arc[chunk, at]]
    for node in range(nodes):
        useless = useless or (state.arc[chunk, node] >= 0 and not useful[node])
    if useless:
        arc, start = state.arc[chunk].copy(), state.start[chunk].copy()
        arc[~useful] = -1
        withdraw(arcs, state, chunk)
        retrace(arcs, state, chunk, arc, start)


@kernel
def cheapest_tree(arcs: ArcTable, price: Any, holders: Any, need: Any, heap: Heap, load: Any, reached: Any) -> None:
    """Grow a tree of cheap arcs from a chunk's holders to its receivers; add its starts to ``load``."""
    nodes = len(holders)
    missing, size = 0, 0
    for node in range(nodes):
        reached[node] = holders[node]
        missing += need[node] and not holders[node]
    for node in range(nodes):
        if holders[node]:
            for arc in range(arcs.arc_first[node], arcs.arc_first[node + 1]):
                size = push_entry(heap, size, arc_price(arcs, price, arc), arc, 0)
    while missing > 0 and size > 0:
        arc = heap.item[0]
        size = drop_first(heap, size)
        to = arcs.arc_head[arc]
        if reached[to]:
            continue
        reached[to] = True
        missing -= need[to]
        for h in range(arcs.hop_first[arc], arcs.hop_first[arc + 1]):
            load[arcs.hop_link[h]] += 1
        for further in range(arcs.arc_first[to], arcs.arc_first[to + 1]):
            if not reached[arcs.arc_head[further]]:
                size = push_entry(heap, size, arc_price(arcs, price, further), further, 0)


@kernel
def spread_prices(arcs: ArcTable, price: Any, holders: Any, need: Any, heap: Heap, rounds: int) -> Any:
    """Compute prices, from initial ones, under which cheapest trees spread over all links; shape (links,)."""
    chunks, nodes = holders.shape
    reached = np.zeros(nodes, np.bool_)
    now = price.copy()
    for _ in range(rounds):
        load = np.zeros(len(price))
        for chunk in range(chunks):
            cheapest_tree(arcs, now, holders[chunk], need[chunk], heap, load, reached)
        load *= price
        top = load.max()
        if top <= 0:
            break
        # One after the other and by the C library, so that compiled or not the numbers are the same to the last bit.
        before, after = 0.0, 0.0
        for link in range(len(now)):
            now[link] *= math.exp(0.5 * load[link] / top)
            before += price[link]
            after += now[link]
        now *= before / after
    return now
