"""Paths around lost links: a repair that keeps all senders and receivers."""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...core.errors import InputError
from ...core.schedule import Bools, Floats, Ints
from ...core.topology import Topology

#: Into so many parts at most what a pair of nodes sends is divided, each with a path of its own.
MOST_PARTS = 16


@dataclass(frozen=True, eq=False)
class ReroutedPaths:
    """Paths in the changed network."""

    #: first index of each path in ``links``, and the links of all
    offset: Ints
    links: Ints
    moved: Bools  #: (paths,) True if a path differs from the old one


def reroute(new: Topology, source: Ints, target: Ints, offset: Ints, links: Ints, size: Floats) -> ReroutedPaths:
    """Keep paths whose links all exist, and lead the others around.

    A lost link is -1, and a path without links has to be found. It is replaced by one whose busiest link, with its
    present load, finishes first; among those by one with the fewest links. Raise InputError if no path is left.
    """
    hops = np.diff(offset)
    lost = hops == 0
    np.logical_or.at(lost, np.repeat(np.arange(len(size)), hops), links < 0)
    busy = np.zeros(len(new.links))
    kept = np.repeat(~lost, hops)
    np.add.at(busy, links[kept], np.repeat(size, hops)[kept])
    rate = np.array([float(link.bandwidth_Bps) for link in new.links])
    paths = [links[a:b] for a, b in pairwise(offset.tolist())]
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for path in np.flatnonzero(lost).tolist():
        groups[int(source[path]), int(target[path])].append(path)
    out = links_out(new)
    for (first, last), members in groups.items():
        for part in np.array_split(np.array(members), min(len(members), MOST_PARTS)):
            found = best_path(out, busy, rate, first, last, float(size[part].sum()))
            if found is None:
                ends = f"{new.nodes[first].name} to {new.nodes[last].name}"
                raise InputError(f"no path is left from {ends}", place="network.links")
            busy[found] += size[part].sum()
            for path in part.tolist():
                paths[path] = found
    return ReroutedPaths(np.cumsum([0, *map(len, paths)]), np.concatenate(paths or [links[:0]]), lost)


def images(old: Topology, new: Topology) -> Ints:
    """Return the new link of every old one, parallel links in order; -1 if it is gone."""
    left: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, link in enumerate(new.links):
        left[link.source, link.target].append(number)
    found = [left[ends].pop(0) if left[ends] else -1 for ends in ((link.source, link.target) for link in old.links)]
    return np.array(found, dtype=np.int64)


def links_out(network: Topology) -> list[list[tuple[int, int]]]:
    """List the links out of every node, with their head nodes."""
    out: list[list[tuple[int, int]]] = [[] for _ in network.nodes]
    for link, (a, b) in enumerate(network.link_ends):
        out[a].append((link, b))
    return out


def best_path(
    out: list[list[tuple[int, int]]], busy: Floats, rate: Floats, source: int, target: int, size: float
) -> Ints | None:
    """Find the path whose busiest link finishes first, of those the shortest; None if there is none."""
    best: dict[int, tuple[float, int]] = {source: (0.0, 0)}
    came: dict[int, tuple[int, int]] = {}
    heap = [(0.0, 0, source)]
    while heap:
        seconds, hops, node = heapq.heappop(heap)
        if node == target:
            break
        if (seconds, hops) > best[node]:
            continue
        for link, end in out[node]:
            reached = max(seconds, (busy[link] + size) / rate[link]), hops + 1
            if end not in best or reached < best[end]:
                best[end], came[end] = reached, (link, node)
                heapq.heappush(heap, (*reached, end))
    if target not in came:
        return None
    path: list[int] = []
    while target != source:
        link, target = came[target]
        path.append(link)
    return np.array(path[::-1], dtype=np.int64)
