"""Shortest delays between all nodes."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def all_distances(nodes: int, tail: Any, head: Any, delay: Any, far: int) -> Any:
    """Give the shortest delays between all pairs of nodes, ``far`` where there is no way (Floyd and Warshall)."""
    distance = np.full((nodes, nodes), far, dtype=np.int64)
    for v in range(nodes):
        distance[v, v] = 0
    for e in range(len(tail)):
        distance[tail[e], head[e]] = min(distance[tail[e], head[e]], delay[e])
    for via in range(nodes):
        for u in range(nodes):
            first = distance[u, via]
            if first >= far:
                continue
            for v in range(nodes):
                through = first + distance[via, v]
                distance[u, v] = min(distance[u, v], through)
    return distance
