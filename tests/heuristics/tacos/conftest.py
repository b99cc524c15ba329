"""A way to pose collectives, to run the method and to have its answer verified."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from cwb.core.collective import Demand, collective_named
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, Topology
from cwb.harness import Request
from cwb.harness.run import FinishedRun
from cwb.harness.run import run as bench_run
from cwb.instances import load

Graph = list[tuple[int, int, Fraction, Fraction]]


def topology_of(ranks: int, links: Graph) -> Topology:
    """Make a network of links ``(source, target, bytes per second, latency)``."""
    return Topology(
        tuple(Node(str(rank)) for rank in range(ranks)),
        tuple(Link(str(a), str(b), Fraction(rate), Fraction(late)) for a, b, rate, late in links),
    )


@pytest.fixture(scope="session")
def pose() -> Callable[..., Instance]:
    def make(network: str | Topology, kind: str = "all_gather", size: int = 2**30, chunks: int = 1, ranks=None):
        base = load(network) if isinstance(network, str) else Instance("by hand", network)
        return base.with_changes(demand=Demand(collective_named(kind), Fraction(size), chunks, ranks))

    return make


@pytest.fixture(scope="session")
def solve() -> Callable[..., FinishedRun]:
    def run(posed: Instance, seed: int = 0, **options: object) -> FinishedRun:
        return bench_run(posed, Request("tacos", options=options, seed=seed))

    return run


@pytest.fixture(scope="session")
def graph() -> Callable[[int, Graph], Topology]:
    return topology_of


@pytest.fixture(scope="session")
def rectangle() -> Callable[..., Topology]:
    """A mesh whose links along x and along y differ in bandwidth, in GiB/s."""

    def make(x: int, y: int, along_x: int, along_y: int) -> Topology:
        links: Graph = []
        for rank in range(x * y):
            near = [(rank + 1, along_x)] if rank % x < x - 1 else []
            near += [(rank + x, along_y)] if rank // x < y - 1 else []
            for other, rate in near:
                links += [
                    (a, b, Fraction(rate * 2**30), Fraction(1, 2_000_000)) for a, b in ((rank, other), (other, rank))
                ]
        return topology_of(x * y, links)

    return make
