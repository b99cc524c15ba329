"""A limit of time keeps what has been found, and says so: solvers here end at theirs after a counted number of
solves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.outcome import Status
from cwb.core.record import EXIT_STATUS
from cwb.core.solver import Capability, SolverOptions, Termination
from cwb.instances import load
from cwb.models.teccl import solve_all_to_all, solve_astar, solve_lp, solve_milp
from cwb.models.teccl.options import AllToAllOptions, AstarOptions, LpOptions, MilpOptions
from cwb.models.teccl.problem import pose
from cwb.schedules import verdict_of
from grids import network, on_grid, with_switch


@dataclass
class Ends:
    """HiGHS, which ends at its limit from the given solve on, with the point that it has or without one."""

    after: int
    keeps: bool
    solved: int = 0
    name: str = "highs"
    capabilities: Capability = Capability.LP | Capability.MIP

    def solve(self, model: Any, budget: Budget, options: SolverOptions | None = None) -> Any:
        """Solve; from the counted solve on, say that the time was over."""
        result = solvers.get("highs").solve(model, budget, options or SolverOptions())
        self.solved += 1
        if self.solved <= self.after:
            return result
        has = self.keeps and result.has_solution
        objective = result.objective if has else None
        return replace(result, termination=Termination.TIME_LIMIT, has_solution=has, objective=objective, bound=None)


def ring():
    """Four ranks on a ring with a chord: an all-gather takes more than the cuts say."""
    links = [(i, (i + 1) % 4, 1, 0) for i in range(4)] + [(i, (i - 1) % 4, 1, 0) for i in range(4)] + [(0, 2, 1, 0)]
    return network(4, links)


def run_to_an_end(instance, module, options, after, keeps):
    """Run a method with a solver that ends; what it answers is right, and the status is that of what it has."""
    outcome = module.run(instance, Ends(after, keeps), Budget(), options)
    if outcome.answer is None:
        assert outcome.status is Status.LIMIT
        assert EXIT_STATUS[outcome.status.value] == 4
        assert "time" in outcome.message or "limit" in outcome.message
        return outcome
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert verdict.ok, verdict.violations
    assert outcome.status is (Status.OPTIMAL if outcome.bound == outcome.objective else Status.FEASIBLE)
    assert EXIT_STATUS[outcome.status.value] == 0
    return outcome


DECLARATIVE = [
    (solve_milp, MilpOptions(), {}),
    (solve_milp, MilpOptions(start="none"), {}),
    (solve_milp, MilpOptions(objective="late", start="none"), {}),
    (solve_milp, MilpOptions(objective="paper"), {}),
    (solve_milp, MilpOptions(objective="paper", epochs=9), {}),
    (solve_milp, MilpOptions(all_reduce="stages"), {"kind": "all_reduce"}),
    (solve_lp, LpOptions(), {"fluid": True}),
    (solve_lp, LpOptions(objective="paper"), {"fluid": True}),
    (solve_lp, LpOptions(objective="paper", epochs=9), {"fluid": True}),
    (solve_astar, AstarOptions(), {}),
    (solve_astar, AstarOptions(start="none"), {}),
]


@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("keeps", [True, False], ids=["keeps", "nothing"])
@pytest.mark.parametrize(("module", "options", "posed"), DECLARATIVE)
@pytest.mark.parametrize(
    "topology", [ring(), pytest.param(with_switch(), marks=pytest.mark.nightly)], ids=["ring", "switch"]
)
def test_declarative_models(topology, module, options, posed, after, keeps):
    """Whenever the solver ends, the answer is a verified schedule with two honest numbers, or nothing with a reason.

    ``ended`` asserts it.
    """
    run_to_an_end(on_grid(topology, **posed), module, options, after, keeps)


@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("keeps", [True, False], ids=["keeps", "nothing"])
def test_all_to_all(after, keeps):
    """Flows that were checked before the limit, or that the solver kept and that are checked then, are the answer."""
    instance = on_grid(ring(), "all_to_all", fluid=True)
    outcome = run_to_an_end(instance, solve_all_to_all, AllToAllOptions(), after, keeps)
    assert (outcome.answer is None) == (after == 0 and not keeps)


def test_a_point_at_the_limit_is_an_answer():
    """The general form and the linear program take the point that a solver has when its time is over."""
    options = MilpOptions(objective="late", epochs=6, chunk_size="25 KB", chunks=2, epoch="slow")
    demand = Demand(Collective.ALL_GATHER, Fraction(200_000), ranks=tuple(range(5)))
    dgx1 = load("dgx1()").with_changes(demand=demand)
    outcome = run_to_an_end(pose(dgx1, options), solve_milp, options, 0, keeps=True)
    assert (outcome.status, outcome.metrics["lower_bound_epochs"]) == (Status.FEASIBLE, 4)
    assert "in the time that there was" in outcome.message
    outcome = run_to_an_end(on_grid(ring(), fluid=True), solve_lp, LpOptions(), 0, keeps=False)
    assert outcome.answer is None
    assert "no schedule found in time" in outcome.message


def test_a_limit_is_not_taken_for_infeasibility():
    """If nothing is found, the bound stays and only one model is solved, not models of ever more epochs."""
    instance = on_grid(ring())
    solver = Ends(0, keeps=False)
    outcome = solve_milp.run(instance, solver, Budget(), MilpOptions(objective="late", start="none"))
    assert outcome.status is Status.LIMIT
    assert solver.solved == 1
    assert outcome.metrics["lower_bound_epochs"] == solve_milp.lower_bound(solve_milp.epoch_problem(instance))[0]
