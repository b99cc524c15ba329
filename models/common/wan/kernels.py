"""Compiled loops over trees: heights, and the best root. A tree is its n - 1 links; a link is ``tail[e]``, ``head[e]``."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

FAR = np.int64(2**62)


@numba.njit(cache=True)
def draw(state: Any, limit: int) -> int:
    """Draw a number below a limit (SplitMix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int((z ^ (z >> np.uint64(31))) >> np.uint64(33)) % limit


@numba.njit(cache=True)
def distances(start: int, links: Any, tail: Any, head: Any, length: Any, far: Any, hop: Any) -> None:
    """Write lengths and hops from a site to all others along a tree; ``links`` are in any order."""
    far[:] = -1
    far[start], hop[start] = 0, 0
    found = True
    while found:
        found = False
        for e in links:
            a, b = tail[e], head[e]
            if far[a] < 0 <= far[b]:
                a, b = b, a
            if far[b] < 0 <= far[a]:
                far[b], hop[b], found = far[a] + length[e], hop[a] + 1, True


@numba.njit(cache=True)
def centre(links: Any, tail: Any, head: Any, length: Any, nodes: int) -> Any:
    """Give the root of a tree that makes it lowest, the first of several, and the height from there."""
    far, hop = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    best, height = np.int64(0), FAR
    for start in range(nodes):
        distances(start, links, tail, head, length, far, hop)
        if far.max() < height:
            best, height = np.int64(start), far.max()
    return best, height


@numba.njit(cache=True)
def centres(trees: Any, tail: Any, head: Any, length: Any, nodes: int, roots: Any, heights: Any) -> None:
    """Write the best root and the height of every tree."""
    for i in range(len(trees)):
        roots[i], heights[i] = centre(trees[i], tail, head, length, nodes)
