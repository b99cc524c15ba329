"""Theorem 19 for one node and step: the smallest load, and an integer transport that attains it; compiled by numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def place(over: Any, counts: Any, capacity: int, pieces: int, sent: Any) -> Any:
    """Send whole pieces of classes of shards over links that each carry so many at most; fill ``sent`` (classes x links).

    Returns
    -------
    array of bool
        Links that are too few for the pieces that can come over them alone; none if all are sent.
    """
    classes, width = over.shape
    free, left = _fill(over, counts, capacity, pieces, sent)
    owner, origin, queue = np.empty((3, width), np.int64)
    reached = np.zeros(width, np.bool_)
    for c in range(classes):
        while left[c]:
            found = _search(c, over, sent, free, reached, owner, origin, queue)
            if found < 0:
                return reached
            _move(c, found, left, free, sent, owner, origin)
    reached[:] = False
    return reached


@njit(cache=True)
def _fill(over: Any, counts: Any, capacity: int, pieces: int, sent: Any) -> Any:
    """Send what fits, classes with the least choice first; give what is free on every link, and what is left of every class."""
    classes, width = over.shape
    sent[:] = 0
    free = np.full(width, capacity)
    left = counts * pieces
    choice = np.zeros(classes, np.int64)
    for c in range(classes):
        for i in range(width):
            choice[c] += over[c, i]
    for size in range(1, choice.max() + 1):  # those that have least choice come first
        for c in range(classes):
            if choice[c] == size:
                for i in range(width):
                    if over[c, i]:
                        amount = min(free[i], left[c])
                        sent[c, i] += amount
                        free[i] -= amount
                        left[c] -= amount
    return free, left


@njit(cache=True)
def _move(c: int, found: int, left: Any, free: Any, sent: Any, owner: Any, origin: Any) -> None:
    """Send more of a class by moving pieces along the way to a link with room."""
    amount, i = min(free[found], left[c]), found
    while origin[i] >= 0:
        amount = min(amount, sent[owner[i], origin[i]])
        i = origin[i]
    free[found] -= amount
    left[c] -= amount
    i = found
    while i >= 0:
        sent[owner[i], i] += amount
        if origin[i] >= 0:
            sent[owner[i], origin[i]] -= amount
        i = origin[i]


@njit(cache=True)
def _search(c: int, over: Any, sent: Any, free: Any, reached: Any, owner: Any, origin: Any, queue: Any) -> Any:
    """Find a link with room for more of a class, by moving others' pieces: that link or -1, and the links reached.

    ``owner`` is whose pieces would take a link, and ``origin`` the link that they would leave, or -1.
    """
    classes, width = sent.shape
    begin, end = 0, 0
    for i in range(width):
        reached[i] = over[c, i]
        if reached[i]:
            owner[i], origin[i], queue[end] = c, -1, i
            end += 1
    while begin < end:
        i = queue[begin]
        begin += 1
        if free[i]:
            return i
        for k in range(classes):
            if sent[k, i]:
                for j in range(width):
                    if over[k, j] and not reached[j]:
                        reached[j] = True
                        owner[j], origin[j], queue[end] = k, i, j
                        end += 1
    return -1


@njit(cache=True)
def least_load(over: Any, counts: Any, above: int, below: int) -> Any:
    """Raise a load, ``above / below`` shards on a link, until it is enough for all classes.

    Where it is not, a minimum cut names links with a larger quotient, and so on: Newton's method on the value of the minimum cut, which
    needs no more rounds than there are links.
    """
    classes, width = over.shape
    sent = np.empty((classes, width), np.int64)
    links = np.zeros(width, np.bool_)
    for c in range(classes):
        for i in range(width):
            links[i] |= over[c, i]
    while True:
        shards, size = _within(links, over, counts)
        if not size:
            return above, below
        if shards * below > above * size:
            above, below = shards, size
        links = place(over, counts, above, below, sent)


@njit(cache=True)
def _within(links: Any, over: Any, counts: Any) -> Any:
    """Count the shards that can come over some links alone, and these links."""
    shards, size = 0, 0
    for i in range(len(links)):
        size += links[i]
    for c in range(len(over)):
        inside = True
        for i in range(len(links)):
            inside &= links[i] or not over[c, i]
        if inside:
            shards += counts[c]
    return shards, size
