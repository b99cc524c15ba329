"""Arcs from storing node to storing node: one link, or a chain of links through nodes that do not store."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from ....core.schedule import Bools, Ints
from .kernels.state import MOST_STARTS, Roads
from .problem import EpochNetwork

#: Chains kept for a pair of nodes; with one only, every 16th random instance with switches stays open.
CHAINS = 8


@dataclass(frozen=True, eq=False)
class Arcs:
    """Everything about the network that the search asks for.

    Parameters
    ----------
    roads : Roads
        Links and arcs.
    tail : array of int, shape (arcs,)
        Where every arc begins.
    ecc : array of int, shape (nodes,)
        Largest distance from every node to a storing one.
    price : array of float, shape (1, links)
        Prices of the links: the epochs that a start takes.
    longest : int
        Hops of the longest arc.
    """

    roads: Roads
    tail: Ints
    ecc: Ints
    price: np.ndarray
    longest: int


def make_arcs(network: EpochNetwork) -> Arcs:
    """Find the arcs of a network, sorted by their tails, the fastest first."""
    found: list[tuple[int, int, int, tuple[int, ...]]] = []
    leaving: list[list[int]] = [[] for _ in range(network.nodes)]
    for link, tail in enumerate(network.tail.tolist()):
        leaving[tail].append(link)
    heads, delays = network.head.tolist(), network.delay.tolist()
    stores = network.stores.tolist()
    for node in np.flatnonzero(network.stores).tolist():
        found += sorted(chains(node, leaving, heads, delays, stores))
    tails = np.array([arc[1] for arc in found], dtype=np.int64)
    hops = np.array([len(arc[3]) for arc in found], dtype=np.int64)
    links = np.array([link for arc in found for link in arc[3]], dtype=np.int64)
    hop_first = np.concatenate([[0], np.cumsum(hops)]).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(network.delay[links])])
    offset = before[:-1] - np.repeat(before[hop_first[:-1]], hops)
    copies: Bools = network.stores | network.copies
    roads = Roads(
        np.arange(network.links),
        network.window.astype(np.int32),
        np.minimum(network.room, MOST_STARTS).astype(np.int32),
        np.searchsorted(tails, np.arange(network.nodes + 1)).astype(np.int64),
        network.head[links[hop_first[1:] - 1]].astype(np.int32),
        (before[hop_first[1:]] - before[hop_first[:-1]]).astype(np.int32),
        hop_first,
        links.astype(np.int32),
        offset.astype(np.int32),
        copies[network.tail[links]],
    )
    reach = np.where(network.stores[None, :], network.distance, 0)
    reach[reach >= 1 << 40] = 0
    price = (network.window / network.room)[None, :].astype(np.float64)
    return Arcs(roads, tails, reach.max(axis=1).astype(np.int64), price, int(hops.max(initial=1)))


def chains(
    source: int, leaving: list[list[int]], head: list[int], delay: list[int], stores: list[bool]
) -> list[tuple[int, int, int, tuple[int, ...]]]:
    """Give up to ``CHAINS`` fastest chains from a node to every other storing one: delay, source, head and links."""
    count = [0] * len(leaving)
    heap: list[tuple[int, int, tuple[int, ...]]] = [(0, source, ())]
    found: list[tuple[int, int, int, tuple[int, ...]]] = []
    while heap:
        total, node, path = heappop(heap)
        passed = {source, *(head[link] for link in path)}
        if path:
            if node == source or count[node] >= CHAINS:
                continue
            count[node] += 1
            if stores[node]:
                found.append((total, source, node, path))
                continue
        for link in leaving[node]:
            to = head[link]
            if to not in passed and count[to] < CHAINS:
                heappush(heap, (total + delay[link], to, (*path, link)))
    return found
