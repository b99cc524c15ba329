"""A way to pose collectives, to run the method, and to verify what it gives."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.collective import Demand, collective_named
from cwb.core.instance import Instance
from cwb.core.outcome import Outcome
from cwb.core.schedule import Schedule
from cwb.core.topology import Topology
from cwb.heuristics.pccl.method import METHOD
from cwb.instances import load
from cwb.schedules.simulate import simulate
from cwb.schedules.verify import verify


@pytest.fixture(scope="session")
def pose() -> Callable[..., Instance]:
    def make(network: str | Topology, kind="all_to_all", size=2**20, chunks=1, ranks=None, also=()) -> Instance:
        base = load(network) if isinstance(network, str) else Instance("by hand", network)
        demand = Demand(collective_named(kind), Fraction(size), chunks, ranks)
        return base.with_changes(demand=demand, also=tuple(also))

    return make


@pytest.fixture(scope="session")
def run() -> Callable[..., Outcome]:
    def solve(posed: Instance, budget: Budget | None = None, **options: object) -> Outcome:
        chosen = METHOD.options.model_validate({"steps": 2000, "restarts": 1, "bound": "cut"} | options)
        return METHOD.run(METHOD.pose(posed, chosen), solvers.get("highs"), budget or Budget(), chosen)

    return solve


@pytest.fixture(scope="session")
def verify_schedule() -> Callable[..., float]:
    """Verify a schedule, simulate it with congestion, and give its time: no send comes later than a given end."""

    def verdict_of(posed: Instance, outcome: Outcome) -> float:
        posed = METHOD.pose(posed, METHOD.options())
        report = verify(posed, outcome.answer)
        assert not report.violations, report.violations
        assert posed.network.switches or not report.warnings, report.warnings
        trace = simulate(posed, outcome.answer)
        if isinstance(outcome.answer, Schedule):
            assert (trace.end_s <= outcome.answer.end_s * (1 + 1e-9)).all()
        assert trace.completion_s >= outcome.bound * (1 - 1e-9)
        return trace.completion_s

    return verdict_of
