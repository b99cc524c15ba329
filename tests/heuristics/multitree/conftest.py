"""A way to pose collectives and to run the method."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from cwb.core.budget import Budget
from cwb.core.collective import Demand, collective_named
from cwb.core.instance import Instance
from cwb.core.outcome import Outcome
from cwb.core.topology import Topology
from cwb.heuristics.multitree.method import METHOD
from cwb.instances import load


@pytest.fixture(scope="session")
def pose() -> Callable[..., Instance]:
    def make(network: str | Topology, kind: str = "all_reduce", size: int = 2**30, chunks: int = 1, ranks=None):
        base = load(network) if isinstance(network, str) else Instance("by hand", network)
        return base.with_changes(demand=Demand(collective_named(kind), Fraction(size), chunks, ranks))

    return make


@pytest.fixture(scope="session")
def run() -> Callable[..., Outcome]:
    def solve(posed: Instance, budget: Budget | None = None, **options: object) -> Outcome:
        return METHOD.run(posed, None, budget or Budget(), METHOD.options.model_validate(options))

    return solve
