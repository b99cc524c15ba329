"""Exact search for the fewest epochs of an all-to-all: a path in time for every pair, no two in one place.

A chunk that one rank needs is never copied, so that a schedule is a path in time for each pair. Where ranks store, a
path may wait on its way; where they pass on, it goes on at the index of its arrival, and may go round to wait. The
search shares no code with the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from cwb.benchmarks.findings.exact_epochs import Net, TooManyStatesError

#: Starts of a path: link and epoch.
Starts = list[tuple[int, int]]


def paths(net: Net, ends: tuple[int, int], epochs: int, *, passing: bool) -> Iterator[Starts]:
    """Yield the paths in time between two ranks that arrive within some epochs."""
    source, target = ends

    def extend(rank: int, now: int, been: frozenset[int], starts: Starts) -> Iterator[Starts]:
        for link, (tail, head, delay, _) in enumerate(net.links):
            if tail != rank or head == source or (not passing and head in been):
                continue
            last = min(now, epochs) if passing and rank != source else epochs
            for start in range(now, last + 1):
                if start + delay + net.distance[head][target] > epochs:
                    break
                further = [*starts, (link, start)]
                if head == target:
                    yield further
                else:
                    yield from extend(head, start + delay, been | {head}, further)

    return extend(source, 0, frozenset([source]), [])


def epochs_taken(net: Net, starts: Starts, epochs: int) -> int | None:
    """Return the epochs of links that a path takes as bits, or None if it takes one twice."""
    width = epochs + max(link[3] for link in net.links)
    taken = 0
    for link, start in starts:
        mine = ((1 << net.links[link][3]) - 1) << (link * width + start)
        if taken & mine:
            return None
        taken |= mine
    return taken


def choices(net: Net, ends: tuple[int, int], epochs: int, *, passing: bool) -> list[int]:
    """Return what the paths of a pair take, without those that take more than another one."""
    masks = {epochs_taken(net, starts, epochs) for starts in paths(net, ends, epochs, passing=passing)}
    kept: list[int] = []
    for mask in sorted((each for each in masks if each is not None), key=lambda each: (each.bit_count(), each)):
        if not any(smaller & mask == smaller for smaller in kept):
            kept.append(mask)
    return kept


def has_schedule(net: Net, epochs: int, *, passing: bool, states: int) -> bool:
    """Check whether all pairs have paths that share no epoch of a link."""
    pairs = [(s, t) for s in range(net.ranks) for t in range(net.ranks) if s != t]
    left = states

    def place(options: list[list[int]], taken: int) -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            raise TooManyStatesError
        if not options:
            return True
        free = [[mask for mask in each if not mask & taken] for each in options]
        fewest_left = min(range(len(free)), key=lambda i: len(free[i]))
        rest = free[:fewest_left] + free[fewest_left + 1 :]
        return any(place(rest, taken | mask) for mask in free[fewest_left])

    return place([choices(net, pair, epochs, passing=passing) for pair in pairs], 0)


def may_fit(net: Net, epochs: int) -> bool:
    """Check cuts and the sum of all distances against the starts of links that arrive in time."""
    starts = [max(0, (epochs - delay) // window + 1) for _, _, delay, window in net.links]
    for size in range(1, net.ranks):
        for some in combinations(range(net.ranks), size):
            into = sum(n for n, link in zip(starts, net.links, strict=True) if link[0] not in some and link[1] in some)
            if into < size * (net.ranks - size):
                return False
    hops = Net(net.ranks, tuple((tail, head, 1, 1) for tail, head, _, _ in net.links)).distance
    return sum(map(sum, hops)) <= sum(starts) and max(map(max, net.distance)) <= epochs


def fewest_epochs(net: Net, *, passing: bool, first: int = 1, states: int = 10**6) -> int:
    """Return the fewest epochs of an all-to-all of one chunk for each pair, at least ``first``."""
    epochs = first
    while not may_fit(net, epochs) or not has_schedule(net, epochs, passing=passing, states=states):
        epochs += 1
    return epochs
