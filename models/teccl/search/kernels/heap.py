"""A growing binary heap in arrays: a key, an item and an epoch with each entry; equal keys come out by item."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np


class Heap(NamedTuple):
    """Entries ``0 .. size - 1``, of which ``size`` is kept by the caller."""

    key: Any
    item: Any
    epoch: Any


def empty_heap(room: int) -> Heap:
    """Give a heap with room for so many entries."""
    return Heap(np.empty(room, np.float64), np.empty(room, np.int64), np.empty(room, np.int32))


@numba.njit(cache=True)
def enter(heap: Heap, size: int, key: float, item: int, epoch: int) -> int:
    """Add an entry and give the new size."""
    at = size
    while at > 0:
        above = (at - 1) // 2
        if heap.key[above] < key or (heap.key[above] == key and heap.item[above] <= item):
            break
        heap.key[at], heap.item[at], heap.epoch[at] = heap.key[above], heap.item[above], heap.epoch[above]
        at = above
    heap.key[at], heap.item[at], heap.epoch[at] = key, item, epoch
    return size + 1


@numba.njit(cache=True)
def drop_first(heap: Heap, size: int) -> int:
    """Remove the smallest entry, which is entry 0, and give the new size."""
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
