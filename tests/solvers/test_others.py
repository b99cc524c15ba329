"""Gurobi and SCIP: licences, parameters, and what is particular to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import exam_models
import pyomo.environ as pe
import pytest
from cwb.core.budget import Budget
from cwb.core.errors import InputError, SolverUnavailable
from cwb.core.solver import SolverOptions, Termination
from cwb.solvers import get

BUDGET = Budget(time_limit_s=30.0)


def _large(n: int) -> Any:
    m = pe.ConcreteModel()
    m.x = pe.Var(range(n), bounds=(0, 1))
    m.c = pe.Constraint(expr=sum(m.x.values()) <= n / 2)
    m.o = pe.Objective(expr=sum((k % 7) * m.x[k] for k in range(n)), sense=pe.maximize)
    return m


@pytest.fixture
def gurobi() -> Any:
    solver = get("gurobi")
    if not solver.licence().ok:
        pytest.skip(solver.licence().message)
    return solver


@pytest.fixture
def scip(require_solver: Callable[[str], Any]) -> Any:
    return require_solver("scip")


def test_model_too_large_for_the_licence(gurobi: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """With the free licence a large model is one clear line, and the exit status of a missing licence."""
    try:
        gurobi.solve(_large(2500), BUDGET)
    except SolverUnavailable as error:
        assert "the model has 2500 variables and 1 rows" in str(error)
        assert "--solver highs or scip" in str(error)
        assert "\n" not in str(error)
        assert error.exit_status == 6
    assert capfd.readouterr().out == ""


def test_missing_licence_is_one_line(gurobi: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A licence that is missing or expired is one clear line, too, from the probe and from a solve."""
    import gurobipy

    def no_licence(**_: object) -> None:
        raise gurobipy.GurobiError(10009, "License expired 2025-01-01\nsee the website")

    monkeypatch.setattr(gurobipy, "Env", no_licence)
    assert not gurobi.licence().ok
    assert "License expired 2025-01-01 see the website" in gurobi.licence().message
    with pytest.raises(SolverUnavailable, match="Gurobi cannot be used: License expired"):
        gurobi.solve(exam_models.mip(), BUDGET)


def test_licence_says_when_it_expires(gurobi: Any) -> None:
    """A good licence tells its day."""
    assert "licence expires" in gurobi.licence().message


@pytest.mark.parametrize(
    ("name", "extra", "words"),
    [
        ("gurobi", {"MIPFokus": 1}, "MIPFokus"),
        ("gurobi", {"MIPFocus": 99}, "does not accept 99 for its parameter MIPFocus"),
        ("gurobi", {"MIPFocus": "much"}, "does not accept 'much'"),
        ("gurobi", {"timelimit": 3}, "set by the budget's time limit"),
        ("scip", {"limits/gapp": 1}, "SCIP has no parameter 'limits/gapp'; did you mean 'limits/gap'?"),
        (
            "scip",
            {"limits/memory": -5},
            "does not accept -5 for its parameter limits/memory; expected a number from 0 to",
        ),
        ("scip", {"lp/threads": "many"}, "does not accept 'many'"),
        ("scip", {"limits/time": 3}, "set by the budget's time limit"),
    ],
)
def test_parameters_are_checked(name: str, extra: dict[str, object], words: str, request: Any) -> None:
    """A misspelt parameter, a bad value and a parameter that belongs elsewhere are errors."""
    with pytest.raises(InputError) as caught:
        request.getfixturevalue(name).solve(exam_models.mip(), BUDGET, SolverOptions(extra=extra))
    assert words in str(caught.value)


@pytest.mark.parametrize("own_limit", [True, False], ids=["own-limit", "asked-to-stop"])
def test_scip_says_why_it_does_not_end(own_limit: bool, scip: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A form on variables without bounds that SCIP has no bound for says what would help, whoever stops SCIP."""
    if not own_limit:
        from cwb.solvers.scip_session import ScipSession

        run = ScipSession.run
        monkeypatch.setattr(ScipSession, "run", lambda session, limit_s: run(session, None))
    result = scip.solve(exam_models.singular_qp(), Budget(time_limit_s=1.5))
    assert result.termination is Termination.TIME_LIMIT
    assert result.bound is None
    assert "needs bounds on its variables" in result.message


@pytest.mark.parametrize("name", ["gurobi", "scip"])
def test_quadratic_rows_with_two_sides(name: str, request: Any) -> None:
    """A quadratic row with two sides, a linear part and a constant keeps both of its sides, in both senses."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 4))
    m.y = pe.Var(bounds=(0, 4))
    m.c = pe.Constraint(expr=(3, m.x * m.x + m.y + 1, 8))
    m.d = pe.Constraint(expr=m.y == 1)
    m.o = pe.Objective(expr=m.x)
    solver = request.getfixturevalue(name)
    assert solver.solve(m, BUDGET).objective == pytest.approx(1.0, abs=1e-4)
    m.o.sense = pe.maximize
    assert solver.solve(m, BUDGET).objective == pytest.approx(6**0.5, abs=1e-4)


@pytest.mark.parametrize("name", ["gurobi", "scip"])
def test_quadratic_start(name: str, request: Any) -> None:
    """A start of a quadratic model is handed over with what the adapter has added to it."""
    m = exam_models.miqp()
    m.i.set_value(2)
    result = request.getfixturevalue(name).solve(m, BUDGET, SolverOptions(use_start=True))
    assert result.objective == pytest.approx(0.16, abs=1e-5)
