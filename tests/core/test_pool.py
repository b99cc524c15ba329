"""The best different answers of a declared model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cwb
import pyomo.environ as pyo
import pytest
from click.testing import CliRunner
from cwb import solvers
from cwb.cli.solve import solve
from cwb.core.answers import is_same
from cwb.core.errors import InputError
from cwb.core.outcome import Status
from cwb.core.solver import Capability
from cwb.harness import registry
from cwb.harness.request import Request
from cwb.harness.run import FinishedRun, run
from cwb.instances import load
from cwb.schedules.files import read_schedule

SOLVERS = ("highs", "gurobi", "scip", "pyomo:cbc")


def run_with_pool(formulation: str, instance: str, pool: int, solver: str = "highs", **limits: float) -> FinishedRun:
    from cwb.instances.demand import with_demand

    posed = with_demand(load(instance), "all_reduce" if "mtree" in formulation else "all_gather", None, None)
    return run(posed, Request(formulation, solver, pool=pool, **limits))


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_pool_is_the_best_answers_in_their_order(solver: str, require_solver: Callable[[str], Any]) -> None:
    """On a ring of four sites the whole pool of trees is one answer at 4/3 of a tree's rate, and each tree one more;
    all pass the verifier, no two are the same, and every solver finds these values."""
    require_solver(solver)
    done = run_with_pool("mtree/selection", "ring(4)", 5, solver)
    values = [row["model_objective"] for row in done.record.pool]
    assert values == pytest.approx([4 / 3, 1, 1, 1, 1], abs=1e-6)
    assert [row["rank"] for row in done.record.pool] == [1, 2, 3, 4, 5]
    assert all(row["verified"] for row in done.record.pool)
    assert done.record.objective == done.record.pool[0]["objective"]
    assert not any(is_same(a, b) for i, a in enumerate(done.pool) for b in done.pool[:i])


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_pool_ends_where_there_are_no_more_answers(solver: str, require_solver: Callable[[str], Any]) -> None:
    """Three binary variables of which at most one is one have four solutions: a solver gives these, best first."""
    adapter = require_solver(solver)
    from cwb.core.budget import Budget
    from cwb.core.solver import SolverOptions, Termination

    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2, 3], domain=pyo.Binary)
    m.one = pyo.Constraint(expr=pyo.quicksum(m.x.values()) <= 1)
    m.o = pyo.Objective(expr=pyo.quicksum(i * x for i, x in m.x.items()), sense=pyo.maximize)
    found = []
    for result in adapter.pool(m, Budget(), SolverOptions(), 6):
        if result.termination is not Termination.OPTIMAL:
            assert result.termination is Termination.INFEASIBLE
            break
        found.append((result.objective, tuple(round(x.value) for x in m.x.values())))
    assert found == [(3, (0, 0, 1)), (2, (0, 1, 0)), (1, (1, 0, 0)), (0, (0, 0, 0))]
    message = run_with_pool("mtree/selection", "line(3)", 5, solver).record.message
    assert message == "1 of 5 answers: no more among the 2 solutions that differ in binary variables"


@pytest.mark.parametrize(
    ("formulation", "solver", "reason"),
    [
        ("forestcoll/max-flow", "highs", "gives only a bound"),
        ("bfb/lp", "highs", "no integer variables"),
        ("ten/ilp", "nobody", "does not find more than one solution"),
    ],
)
def test_what_has_no_pool_is_refused_before_anything_runs(
    formulation: str, solver: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model without answers or choices, and a solver that finds one solution only, are refused with the reason."""
    declared = registry.formulation(formulation)
    monkeypatch.setattr(type(declared), "index", lambda *_: pytest.fail("the model is built"))
    if solver == "nobody":
        highs = type(solvers.get("highs"))
        monkeypatch.setattr(highs, "capabilities", highs.capabilities & ~Capability.POOL)
    record = run_with_pool(formulation, "ring(4)", 2).record
    assert record.status == Status.UNSUPPORTED.value
    assert reason in record.message


def test_a_method_has_no_pool() -> None:
    """A method that is no declared model is refused, with where to look."""
    with pytest.raises(InputError, match="--pool: ring is no declared model"):
        run_with_pool("ring", "ring(4)", 2)


def test_files_have_their_ranks_in_their_names(tmp_path: Path) -> None:
    """``-o out.json`` writes every answer of the pool to a file, and the record names them."""
    asked = ["--formulation", "ten/ilp", "ring(4)", "--collective", "all_gather", "--pool", "2", "-q", "--json"]
    result = CliRunner().invoke(solve, [*asked, "-o", str(tmp_path / "out.json.gz")], standalone_mode=False)
    record = json.loads(result.stdout)
    paths = [row["answer"]["path"] for row in record["pool"]]
    assert paths == [str(tmp_path / f"out-{rank}.json.gz") for rank in (1, 2)]
    assert record["answer"]["path"] == paths[0]
    for path, row in zip(paths, record["pool"], strict=True):
        file = read_schedule(Path(path))
        assert cwb.verify(file.instance, file.answer).objective == row["objective"]
