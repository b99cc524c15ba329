"""A compiled loop in which two trees at a time share their edges anew, so that both together become lower."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from .growth import lower, shift

#: Trees that are drawn for the tallest of them to be the first of a pair; and how often it is of as many as there are.
_DRAWN, _FROM_ALL = 6, 0.25


@numba.njit(cache=True)
def pair(random: Any, count: int, height: Any) -> tuple[int, int]:
    """Draw two trees, of which the first is more likely to be a tall one."""
    first = int(random.random() * count)
    for _ in range(count if random.random() < _FROM_ALL else _DRAWN - 1):
        other = int(random.random() * count)
        if height[other] > height[first]:
            first = other
    second = int(random.random() * (count - 1))
    return first, second + 1 if second >= first else second


@numba.njit(cache=True)
def exchange(
    trials: int,
    random: Any,
    count: int,
    root: Any,
    copies: Any,
    trees: Any,
    height: Any,
    start: Any,
    head: Any,
    residual: Any,
    weight: Any,
) -> int:
    """Take as many copies of two trees out as both have, grow the first as low as it goes, then the second in what is left.

    Parents are chosen by what is left of edges, at random within a factor, so that a pair can be tried again. The pair stays if the sum of
    the cubes of its heights falls; or is equal, if no tree has to be divided for it.

    Parameters
    ----------
    trials : int
        Pairs to try.
    random : numpy.random.Generator
        Where all chance comes from.
    count : int
        Trees, at least 2; the columns ``root``, ``copies``, ``trees`` and ``height`` have room for more.
    start, head, residual, weight : array
        The network and what its edges have left, as :func:`.growth.lower` takes them.

    Returns
    -------
    int
        Trees after all; the columns and ``residual`` are changed.
    """
    fresh = np.empty((2, trees.shape[1]), dtype=np.int64)
    for _ in range(trials):
        a, b = pair(random, count, height)
        amount = min(copies[a], copies[b])
        divided = copies[a] != copies[b]
        if divided and count == len(root):
            continue
        shift(trees[a], amount, residual)
        shift(trees[b], amount, residual)
        liking = weight * (0.25 + random.random(len(weight)))
        low_a = lower(root[a], amount, 0.0, start, head, residual, liking, fresh[0])
        gain = height[a] ** 3 + height[b] ** 3 - low_a**3
        low_b = -1
        if low_a >= 0 and gain > 0:
            shift(fresh[0], -amount, residual)
            low_b = lower(root[b], amount, 0.0, start, head, residual, liking, fresh[1])
            gain -= low_b**3
            shift(fresh[0], amount, residual)
        if low_b < 0 or gain < 0 or (gain == 0 and divided):
            shift(trees[a], -amount, residual)
            shift(trees[b], -amount, residual)
            continue
        if divided:
            rest = a if copies[a] > amount else b
            root[count], copies[count], height[count] = root[rest], copies[rest] - amount, height[rest]
            trees[count, :] = trees[rest]
            copies[rest] = amount
            count += 1
        trees[a, :], trees[b, :] = fresh[0], fresh[1]
        height[a], height[b] = low_a, low_b
        shift(fresh[0], -amount, residual)
        shift(fresh[1], -amount, residual)
    return count
