"""Schedules that are there before any model: when they end a run, when a model starts from them, and rounds that follow
them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import cwb
import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.outcome import Status
from cwb.core.solver import Capability, SolverOptions, SolverResult, Termination
from cwb.core.timing import BandwidthChange
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.harness.clock import WallClock
from cwb.harness.run import Request, run
from cwb.instances import load
from cwb.models.teccl import solve_astar, solve_milp
from cwb.models.teccl.options import AstarOptions, MilpOptions
from cwb.schedules import verdict_of
from draws import draws
from grids import network, on_grid, small_networks
from hypothesis import given, settings
from hypothesis import strategies as st

KINDS = ["all_gather", "all_to_all", "broadcast", "scatter", "gather"]


@dataclass
class Idle:
    """A solver that finds nothing, and keeps what it was asked."""

    asked: SolverOptions | None = None
    limits_s: list[float | None] = field(default_factory=list)
    name: str = "highs"
    capabilities: Capability = Capability.LP | Capability.MIP

    def solve(self, model: Any, budget: Budget, options: SolverOptions | None = None) -> Any:
        """Say that the time was over."""
        del model
        self.asked = options
        self.limits_s.append(budget.clock.remaining_s())
        return SolverResult("idle", "1", Termination.TIME_LIMIT, has_solution=False)


@pytest.mark.parametrize(("size", "epochs"), [(10**9, 35), (1000, 1182)])
def test_early_stop_on_two_chassis(size, epochs):
    """An all-gather on NDv2 with a gap of 30 % ends with a construction that meets the bound, and no model is
    solved."""
    instance = load("ndv2(chassis=2)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(size)))
    record = run(instance, Request("teccl-milp", gap=0.3)).record
    assert (record.verified, record.status, record.metrics["models"]) == (True, "optimal", 0)
    assert record.metrics["epochs"] == record.metrics["start_epochs"] == epochs
    assert "no model was solved" in record.message


@pytest.mark.slow
def test_rounds_stop_early_on_two_chassis():
    """Without a construction, rounds with a gap of 30 % end an all-gather of 1 GB on NDv2 within it, verified."""
    instance = load("ndv2(chassis=2)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(10**9)))
    record = run(instance, Request("teccl-astar", options={"start": "none"}, gap=0.3)).record
    assert record.verified
    assert 35 <= record.metrics["epochs"] <= 35 / 0.7


@given(small_networks(), st.sampled_from(KINDS), st.integers(1, 2))
@settings(max_examples=draws(15))
def test_rounds_without_a_solver(topology, kind, chunks):
    """Rounds whose solver finds nothing follow the schedule to begin with and end with it or a shorter one."""
    instance = on_grid(topology, kind, chunks)
    outcome = solve_astar.run(instance, Idle(), Budget(), AstarOptions())
    assert outcome.answer is not None
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert verdict.ok, verdict.violations
    assert verdict.metrics["epochs"] <= outcome.metrics["start_epochs"]


def test_a_switch_that_does_not_copy_passes_a_chunk_on_once():
    """Rounds that cannot follow a plan to its end do not send what has left such a switch with the plan once more."""
    nodes = (*(Node(f"n{rank}") for rank in range(4)), Node("n4", NodeKind.SWITCH, buffer_bytes=Fraction(0)))
    ends = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 1), (0, 1), (1, 4), (4, 0), (4, 1), (4, 2), (4, 3)]
    fast, late = Fraction(10**9), Fraction(1, 2_000_000)
    links = (
        Link(f"n{a}", f"n{b}", fast if (a, b) == (4, 3) else fast / 2, late if (a, b) == (4, 0) else Fraction(0))
        for a, b in ends
    )
    instance = on_grid(Topology(nodes, tuple(links)), "all_gather", 2)
    outcome = solve_astar.run(instance, Idle(), Budget(), AstarOptions())
    assert outcome.answer is not None
    assert verdict_of(instance, outcome.answer, outcome.certificate).ok


@given(small_networks(), st.sampled_from(KINDS), st.integers(0, 3), st.integers(1, 5), st.data())
@settings(max_examples=12)
def test_greedy_rounds(topology, kind, first, length, data):
    """If a link is down for some epochs, greedy rounds make a valid schedule."""
    link = data.draw(st.integers(0, len(topology.links) - 1))
    instance = on_grid(topology, kind)
    change = BandwidthChange(link, first, first + length, Fraction(0))
    instance = instance.with_changes(timing=replace(instance.timing, changes=(change,)))
    search = solve_milp.run(instance, Idle(), Budget(), MilpOptions())
    if "start_epochs" in search.metrics:
        assert verdict_of(instance, search.answer, search.certificate).ok


@pytest.mark.parametrize("objective", ["late", "paper"])
def test_a_model_starts_from_the_construction(objective):
    """HiGHS takes the start that it is handed: with no node to search it still has a schedule."""
    links = [(i, (i + 1) % 5, 1, 0) for i in range(5)] + [(0, 2, Fraction(1, 2), 0)]
    instance = on_grid(network(5, links), chunks=2)
    idle = Idle()
    outcome = solve_milp.run(instance, idle, Budget(), MilpOptions(objective=objective, epochs=12))
    assert idle.asked is not None
    assert idle.asked.use_start
    assert (outcome.status, "no model gave a better one" in outcome.message) == (Status.FEASIBLE, True)
    outcome = solve_milp.run(instance, solvers.get("highs"), Budget(), MilpOptions(objective=objective, epochs=12))
    assert verdict_of(instance, outcome.answer, outcome.certificate).ok


def test_rounds_share_the_time():
    """A round that has a start gets its share of what is left; a limit below what rounds and start need ends the
    run."""
    topology = load("internal1(2)").network
    instance = on_grid(topology, chunks=2, epoch_us=Fraction(40, 100))
    idle = Idle()
    budget = Budget(time_limit_s=100.0, clock=WallClock(100.0))
    outcome = solve_astar.run(instance, idle, budget, AstarOptions(round_epochs=2))
    assert outcome.answer is not None
    assert len(idle.limits_s) > 1
    assert sorted(idle.limits_s) == idle.limits_s
    assert idle.limits_s[0] <= 50
    most = outcome.metrics["start_epochs"]
    outcome = solve_astar.run(instance, Idle(), Budget(), AstarOptions(round_epochs=2, epochs=most - 1))
    assert outcome.status is Status.LIMIT


@given(small_networks(), st.sampled_from(KINDS), st.sampled_from([0, 1, 40]))
@settings(max_examples=12)
def test_rounds_in_parts(topology, kind, columns):
    """Rounds that are solved by a chunk, or by some, after the others make a valid schedule."""
    instance = on_grid(topology, kind)
    options = AstarOptions(start="none")
    search = solve_astar.AstarSearch.with_bound(
        solve_astar.without_small_switches(instance),
        solvers.get("highs"),
        Budget(),
        options=options,
        epochs=solve_astar._round_epochs(solve_astar.without_small_switches(instance), options),
        columns=columns,
    )
    assert search.run()
    search.keep_sends(search.sends)
    outcome = search.outcome(search.simple, None, "", {})
    assert verdict_of(instance, outcome.answer, outcome.certificate).ok


def test_rounds_begin_with_nothing(monkeypatch):
    """With start=none rounds too large for one model make a schedule, and no construction is called."""
    for name in ("initial_schedule", "greedy_sends"):
        monkeypatch.setattr(solve_astar, name, None)
    instance = on_grid(load("internal1(3)").network, epoch_us=Fraction(40, 100))
    options = AstarOptions(start="none", round_epochs=12)
    outcome = solve_astar.run(instance, solvers.get("highs"), Budget(), options)
    assert verdict_of(instance, outcome.answer, outcome.certificate).ok
    assert outcome.metrics["rounds"] < len(outcome.reports)
    outcome = solve_astar.run(instance, Idle(), Budget(), options)
    assert (outcome.status, outcome.message) == (
        Status.LIMIT,
        "the rounds took no end in time: stopped after 0 epochs",
    )


def test_what_ends_with_a_construction_has_a_certificate():
    """If bandwidth varies and no certificate is known, a model proves the optimum; without a bound none is claimed."""
    changes = [{"source": "1", "target": "0", "epochs": [1, 2], "factor": "0"}]
    options = {"epoch_duration": "1.0 s", "timing": "store-and-forward", "bandwidth": changes}
    instance = cwb.load("line(2, bandwidth='1 B/s', latency='0 s')", collective="broadcast", size="1 B")
    record = cwb.solve(instance, "teccl-milp", **options)
    assert record.status == "optimal"
    assert record.verified
    assert record.bound == record.objective
