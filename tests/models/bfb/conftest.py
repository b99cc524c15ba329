"""Instances, and random digraphs in which every node has as many links in as out."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random

import pytest
from cwb.core.collective import Demand, collective_named
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, Topology
from cwb.instances import load

GB = 10**9


def digraph(n: int, pairs: list[tuple[int, int]], bandwidth: int = GB, latency: Fraction = Fraction(0)) -> Topology:
    links = tuple(Link(str(a), str(b), Fraction(bandwidth), latency) for a, b in pairs)
    return Topology(tuple(Node(str(i)) for i in range(n)), links)


def reaches_all(n: int, pairs: list[tuple[int, int]]) -> bool:
    seen, waiting = {0}, [0]
    while waiting:
        fresh = {b for a, b in pairs if a == waiting[-1]} - seen
        waiting.pop()
        seen |= fresh
        waiting += fresh
    return len(seen) == n


def regular(n: int, degree: int, source: Random) -> Topology:
    """Superpose random permutations without fixed points, which may have links in common; again until all is
    connected."""
    while True:
        pairs: list[tuple[int, int]] = []
        while len(pairs) < n * degree:
            order = source.sample(range(n), n)
            if all(a != b for a, b in enumerate(order)):
                pairs += enumerate(order)
        if reaches_all(n, pairs) and reaches_all(n, [(b, a) for a, b in pairs]):
            return digraph(n, pairs)


def instance(network: str | Topology, kind: str = "all_gather", size: int = GB, chunks: int = 1) -> Instance:
    base = load(network) if isinstance(network, str) else Instance("by hand", network)
    return base.with_changes(demand=Demand(collective_named(kind), Fraction(size), chunks))


@pytest.fixture(scope="session")
def graph() -> Callable[..., Topology]:
    return digraph


@pytest.fixture(scope="session")
def random_digraph() -> Callable[..., Topology]:
    return regular


@pytest.fixture(scope="session")
def pose() -> Callable[..., Instance]:
    return instance
