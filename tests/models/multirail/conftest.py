"""The fabrics of the dissertation's tables 3.3 and 3.4, and a way to run the methods."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.collective import Demand, collective_named
from cwb.core.fabric import WiredFabric, parse_fabric
from cwb.core.instance import Instance
from cwb.core.outcome import Outcome
from cwb.harness.clock import WallClock
from cwb.heuristics.multirail import BLUECONNECT, THEMIS
from cwb.models.multirail.method import THEMIS_LP

GIB = 2**30
METHODS = {m.name: m for m in (BLUECONNECT, THEMIS, THEMIS_LP)}


def make_fabric(notation: str, gib_per_s, latency_s=None) -> WiredFabric:
    dimensions = parse_fabric(notation).dimensions
    latency = latency_s or [0] * len(dimensions)
    return WiredFabric(dimensions, tuple(Fraction(b) * GIB for b in gib_per_s), tuple(Fraction(a) for a in latency))


@pytest.fixture(scope="session")
def fabric() -> Callable[..., WiredFabric]:
    return make_fabric


@pytest.fixture(scope="session")
def pose() -> Callable[..., Instance]:
    def make(network, chunks: int = 1, kind: str = "all_reduce", size: int = GIB) -> Instance:
        return Instance("multirail", network, Demand(collective_named(kind), Fraction(size), chunks))

    return make


@pytest.fixture(scope="session")
def solve() -> Callable[..., tuple[Instance, Outcome]]:
    def run(name: str, instance: Instance, solver=None, **options: object) -> tuple[Instance, Outcome]:
        method = METHODS[name]
        assert method.supports(instance) is None
        chosen = method.options.model_validate(options)
        posed = method.pose(instance, chosen)
        budget = Budget(None, 1, 0, None, None, WallClock(None))
        return posed, method.run(posed, solver or solvers.get(), budget, chosen)

    return run
