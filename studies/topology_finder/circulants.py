"""Circulants of few steps and little bandwidth time, found by search over sets of offsets.

T_L and T_B of a set are exact, by theorem 19 of the direct-connect paper; how sets are chosen and what is optimal:
docs/methods/topology-finder.md, "Circulants by search". Multiplying all offsets by a unit modulo N gives the same
network, so every set with a unit is represented by one with offset 1. The result depends on the seed alone.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, gcd
from random import Random
from typing import TypeAlias

import numpy as np

from ...algorithms.breadth_first.broadcast import Broadcast, IncomingLinks
from ...core.errors import InputError

Offsets: TypeAlias = tuple[int, ...]

Tried = Callable[[Offsets, int], tuple[int, int]]  #: Tries a set of offsets up to a diameter.

#: Sets of offsets up to which all are tried; of more, all with an offset of 1 if those are few, else those of a climb.
ALL_SETS = 20_000
WITH_ONE = 4_000

#: Sets that a climb tries, and how many in a row that are no better make it start again.
TRIALS = 20_000
PATIENCE = 300

FURTHER = 2  #: How many steps more than the fewest are still of interest, as the bandwidth time may be less.
BALANCED = 400_000  #: Nodes times links of the networks of one diameter that are balanced.


@dataclass(frozen=True)
class Circulant:
    """A circulant with the values of its breadth-first all-gather."""

    nodes: int
    offsets: Offsets  #: In ascending order; of a two-way circulant those up to N / 2.
    two_way: bool  #: True if node i is linked with i + a and i - a, False if only to i + a.
    steps: int  #: T_L in units of alpha: the diameter.
    bandwidth: Fraction  #: T_B in units of M/B.

    @property
    def expression(self) -> str:
        """Generator expression."""
        return f"{'' if self.two_way else 'directed_'}circulant({self.nodes}, {list(self.offsets)})"


def search(nodes: int, degree: int, *, two_way: bool, seed: int = 0, trials: int = TRIALS) -> list[Circulant]:
    """Find the circulants on the Pareto frontier of steps and bandwidth time, by ascending steps.

    The degree is less than N; two-way circulants of odd degree exist only for even N, with offset N / 2. A climb tries
    ``trials`` sets if there are too many to try all.
    """
    if not 1 <= degree < nodes:
        raise InputError(f"{degree} links of each of {nodes} nodes; expected from 1 to {nodes - 1}", place="degree")
    if two_way and degree % 2 and nodes % 2:
        return []
    random = Random(f"{seed}:{nodes}:{degree}:{two_way}")  # noqa: S311 (nothing is secret here)
    groups = _by_steps(nodes, degree, two_way, trials, random)
    best: list[Circulant] = []
    for steps, sets in sorted(groups.items()):
        least = _least_bandwidth(nodes, degree, sets, two_way)
        if not best or least[0] < best[-1].bandwidth:
            best.append(Circulant(nodes, least[1], two_way, steps, least[0]))
        if least[0] == Fraction(nodes - 1, nodes):
            break
    return best


def rings(nodes: int, links: Offsets, most: int) -> list[int]:
    """Count the nodes at hop distance 1, 2, ... from node 0; empty if some are too far."""
    everybody = (1 << nodes) - 1
    rest, front = everybody - 1, 1
    counts: list[int] = []
    while rest and len(counts) < most:
        near = 0
        for a in links:
            near |= front << a | front >> (nodes - a)
        front = near & rest
        if not front:
            return []
        rest ^= front
        counts.append(front.bit_count())
    return [] if rest else counts


def links_of(nodes: int, offsets: Offsets, two_way: bool) -> Offsets:
    """Return the targets of the links out of node 0."""
    return tuple(sorted({*offsets, *(nodes - a for a in offsets)})) if two_way else offsets


def balance(nodes: int, links: Offsets) -> Broadcast:
    """Return the breadth-first broadcast of a circulant, with exact values."""
    node = np.arange(nodes)[:, None]
    source = (node - np.array(links)) % nodes
    numbers = source * len(links) + np.arange(len(links))
    return Broadcast(IncomingLinks(range(nodes), source, numbers, len(links), ((1, nodes),)))


def _least_bandwidth(nodes: int, degree: int, sets: Iterable[Offsets], two_way: bool) -> tuple[Fraction, Offsets]:
    """Return the least T_B of some sets and the first set that attains it."""
    least: tuple[Fraction, Offsets] = (Fraction(nodes), ())
    for offsets in sets:
        bandwidth = balance(nodes, links_of(nodes, offsets, two_way)).bandwidth(degree)
        if bandwidth < least[0]:
            least = bandwidth, offsets
        if bandwidth == Fraction(nodes - 1, nodes):
            break
    return least


def _by_steps(nodes: int, degree: int, two_way: bool, trials: int, random: Random) -> dict[int, list[Offsets]]:
    """Try sets of offsets, and keep some of every diameter."""
    groups: dict[int, list[Offsets]] = {}
    room = max(16, BALANCED // (nodes * degree))
    width = degree // 2 if two_way else degree
    largest = (nodes - 1) // 2 if two_way else nodes - 1
    middle = (nodes // 2,) if two_way and degree % 2 else ()

    def evaluate(offsets: Offsets, most: int) -> tuple[int, int]:
        """Return steps and sum of distances, to be minimized."""
        counts = rings(nodes, links_of(nodes, offsets, two_way), most)
        if not counts:
            return nodes, nodes * nodes
        if len(sets := groups.setdefault(len(counts), [])) < room and offsets not in sets:
            sets.append(offsets)
        return len(counts), sum(t * count for t, count in enumerate(counts, 1))

    if comb(largest, width) <= ALL_SETS:
        for offsets in _normal(nodes, largest, width):
            evaluate((*offsets, *middle), nodes)
    elif comb(largest - 1, width - 1) <= WITH_ONE:
        for rest in combinations(range(2, largest + 1), width - 1):
            evaluate((1, *rest, *middle), min(groups, default=nodes) + FURTHER)
    else:
        _climb(evaluate, trials, largest, width, middle, random)
    return groups


def _normal(nodes: int, largest: int, width: int) -> Iterator[Offsets]:
    """Yield all sets of offsets; of those with a unit modulo N only the ones with 1."""
    for offsets in combinations(range(1, largest + 1), width):
        if offsets[:1] == (1,) or all(gcd(nodes, a) > 1 for a in offsets):
            yield offsets


def _climb(evaluate: Tried, trials: int, largest: int, width: int, middle: Offsets, random: Random) -> None:
    """Replace one offset at a time if the result is no worse; restart after many trials without improvement."""
    base = largest ** (1 / width)  # like digits, its powers reach near every node
    powers = {round(base**i) for i in range(width)}
    start = sorted(powers | set(range(1, width + 1)) if len(powers) < width else powers)
    best, fails = tuple(start[:width]), 0
    score: tuple[int, int] | None = None
    for _ in range(trials):
        if score is None:
            offsets = best
        else:
            others = set(best) - {random.choice(best)}
            while len(others) < width:
                others.add(random.randint(1, largest))
            offsets = tuple(sorted(others))
        new = evaluate((*offsets, *middle), score[0] + FURTHER if score else largest)
        fails = 0 if score is None or new < score else fails + 1
        if score is None or new <= score:
            best, score = offsets, new
        if fails > PATIENCE:
            best, score = tuple(sorted(random.sample(range(1, largest + 1), width))), None
