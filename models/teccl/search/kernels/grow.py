"""Insertion of chunks into a schedule: one lazy search of Dijkstra over all of them at once, against the reservations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from ....common.reservations import NEVER
from .heap import Heap, drop_first, enter
from .state import ABSENT, Roads, State, best_start, retrace, take, withdraw


class Taste(NamedTuple):
    """What makes one arc better than another: the key is start + weighted price + slowness * delay - tail * eccentricity + noise."""

    weight: float
    slowness: float
    tail: float
    noise: float
    seed: int


@numba.njit(cache=True)
def scattered(item: int, seed: int) -> float:
    """Give a number from 0 up to 1 that looks random, the same for the same arguments."""
    x = np.uint64(item) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed) * np.uint64(0xD1B54A32D192ED03)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return float(x >> np.uint64(11)) / 9007199254740992.0


@numba.njit(cache=True)
def push_arcs(
    roads: Roads, state: State, price: Any, ecc: Any, taste: Taste, heap: Heap, size: int, chunk: int, node: int
) -> tuple[int, int]:
    """Enter every arc from a node to one without the chunk; give the new size of the heap and how many arcs were looked at."""
    arcs = len(roads.arc_head)
    ready = state.arrival[chunk, node]
    for arc in range(roads.arc_first[node], roads.arc_first[node + 1]):
        to = roads.arc_head[arc]
        if state.arrival[chunk, to] < ABSENT:
            continue
        start, cost, hint = best_start(roads, state, price, taste.weight, chunk, arc, ready, 0)
        if start == NEVER:
            continue
        item = chunk * arcs + arc
        key = start + cost + taste.slowness * roads.arc_delay[arc] - taste.tail * ecc[to]
        size = enter(heap, size, key + taste.noise * scattered(item, taste.seed), item, hint)
    return size, roads.arc_first[node + 1] - roads.arc_first[node]


@numba.njit(cache=True)
def insert(
    roads: Roads,
    state: State,
    lacking: Any,
    tail_of: Any,
    price: Any,
    ecc: Any,
    members: Any,
    taste: Taste,
    heap: Heap,
    target: int,
    allowed: int,
) -> tuple[int, int]:
    """Deliver withdrawn chunks to all who lack them.

    Parameters
    ----------
    lacking : array of bool, shape (chunks, nodes)
        Who needs a chunk and does not hold it.
    tail_of : array of int, shape (arcs,)
        Where every arc begins.
    price : array of float, shape (links,)
        Prices of the links.
    ecc : array of int, shape (nodes,)
        Largest distance from every node.
    members : array of int
        The chunks to insert.
    target, allowed : int
        Epochs beyond ``target`` at all receivers may add up to ``allowed``; more than that is given up.

    Returns
    -------
    tuple of int
        Sum of the epochs beyond the target, -1 where it was given up; and the number of arcs looked at.
    """
    arcs, nodes = len(roads.arc_head), state.arrival.shape[1]
    left = np.zeros(len(members), np.int64)
    place = np.zeros(state.arrival.shape[0], np.int64)
    size, work, late = 0, 0, 0
    for i in range(len(members)):
        chunk = members[i]
        place[chunk] = i
        for node in range(nodes):
            left[i] += lacking[chunk, node]
    waiting = left.sum()
    for i in range(len(members)):
        for node in range(nodes):
            if state.arrival[members[i], node] == 0 and state.arc[members[i], node] < 0:
                size, seen = push_arcs(roads, state, price, ecc, taste, heap, size, members[i], node)
                work += seen
    while waiting > 0 and size > 0:
        key, item, epoch = heap.key[0], heap.item[0], heap.epoch[0]
        size = drop_first(heap, size)
        chunk, arc = item // arcs, item % arcs
        to = roads.arc_head[arc]
        if state.arrival[chunk, to] < ABSENT or left[place[chunk]] == 0:
            continue
        work += 1
        ready = state.arrival[chunk, tail_of[arc]]
        start, cost, hint = best_start(roads, state, price, taste.weight, chunk, arc, ready, epoch)
        if start == NEVER:
            continue
        now = start + cost + taste.slowness * roads.arc_delay[arc] - taste.tail * ecc[to]
        now += taste.noise * scattered(item, taste.seed)
        if now > key and size > 0 and now > heap.key[0]:
            size = enter(heap, size, now, item, hint)
            continue
        take(roads, state, chunk, arc, start)
        if lacking[chunk, to]:
            left[place[chunk]] -= 1
            waiting -= 1
            late += max(0, state.arrival[chunk, to] - target)
            if late > allowed:
                return -1, work
        if left[place[chunk]] > 0:
            size, seen = push_arcs(roads, state, price, ecc, taste, heap, size, chunk, to)
            work += seen
    return (late if waiting == 0 else -1), work


@numba.njit(cache=True)
def prune(roads: Roads, state: State, lacking: Any, tail_of: Any, chunk: int) -> None:
    """Take back what brings a chunk to nodes that neither need it nor pass it on to one that does."""
    nodes = state.arrival.shape[1]
    wanted = np.zeros(nodes, np.bool_)
    useless = False
    for node in range(nodes):
        at = node
        while lacking[chunk, node] and not wanted[at]:
            wanted[at] = True
            if state.arc[chunk, at] < 0:
                break
            at = tail_of[state.arc[chunk, at]]
    for node in range(nodes):
        useless = useless or (state.arc[chunk, node] >= 0 and not wanted[node])
    if useless:
        arc, start = state.arc[chunk].copy(), state.start[chunk].copy()
        arc[~wanted] = -1
        withdraw(roads, state, chunk)
        retrace(roads, state, chunk, arc, start)
