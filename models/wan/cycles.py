"""Hamiltonian cycles: exactly by a dynamic program over sets of sites, or by random rotations of paths."""

from __future__ import annotations

from random import Random
from typing import Any

import numba
import numpy as np

from ...core.schedule import Ints
from ..common.wan.network import components

#: Sites up to which every set of them is looked at.
EXACT = 20

#: Rotations of a path after which another start is tried, for each site.
_ROTATIONS = 50


def exact_cycle(nodes: int, tail: Ints, head: Ints) -> list[int] | None:
    """Give a cycle through all sites, or None: there is none.

    Held and Karp's recursion: ``ends[S]`` are the sites at which a path can end that begins at site 0 and passes all of S, a set of the others.
    """
    near = np.zeros(nodes, dtype=np.int64)
    for a, b in zip(tail.tolist(), head.tolist(), strict=True):
        near[a] |= 1 << b
        near[b] |= 1 << a
    ends = path_ends(nodes, near)
    left = 2 ** (nodes - 1) - 1
    last = int(ends[left]) << 1 & int(near[0])
    if not last:
        return None
    cycle = [0]
    while last:
        site = last.bit_length() - 1
        cycle.append(site)
        left ^= 1 << (site - 1)
        last = int(ends[left]) << 1 & int(near[site])
    return cycle


@numba.njit(cache=True)
def path_ends(nodes: int, near: Any) -> Any:
    """Give the sites at which paths from site 0 can end, for every set of the others; site v is bit v - 1."""
    ends = np.zeros(2 ** (nodes - 1), np.int32)
    for chosen in range(1, len(ends)):
        for v in range(nodes - 1):
            if chosen >> v & 1:
                rest = chosen ^ (1 << v)
                if ends[rest] & (near[v + 1] >> 1) if rest else near[0] >> (v + 1) & 1:
                    ends[chosen] |= 1 << v
    return ends


def random_cycle(nodes: int, tail: Ints, head: Ints, source: Random) -> list[int] | None:
    """Look for a cycle through all sites from one random start (L. Pósa's rotations); None says nothing."""
    near: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in zip(tail.tolist(), head.tolist(), strict=True):
        near[a].append(b)
        near[b].append(a)
    path = [source.randrange(nodes)]
    inside = set(path)
    for _ in range(_ROTATIONS * nodes):
        end = path[-1]
        if len(path) == nodes and path[0] in near[end]:
            return path
        fresh = [site for site in near[end] if site not in inside]
        if fresh:
            path.append(source.choice(fresh))
            inside.add(path[-1])
            continue
        turn = path.index(source.choice(near[end])) + 1
        path[turn:] = path[turn:][::-1]
    return None


def cut_site(nodes: int, tail: Ints, head: Ints) -> int | None:
    """Give a site whose loss parts the others, so that no cycle passes all; None if there is none."""
    for site in range(nodes):
        kept = (tail != site) & (head != site)
        if (components(nodes, tail[kept], head[kept]) > 0).sum() > (1 if site else nodes - 1) and nodes > 2:
            return site
    return None
