"""Options by the solvers' own names, from the command line and from Python."""

from __future__ import annotations

import cwb
import pyomo.environ as pyo
import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.errors import InputError, SolverUnavailable
from cwb.core.solver import SolverOptions, Termination
from cwb.harness.clock import WallClock
from cwb.solvers.options import NativeOption, read_options

#: Of every solver: a good option as it is typed, one with a slip and what is meant, a value of another kind, a value
#: out of range, and one that cwb sets by other means.
ASKED = {
    "highs": ("presolve=off", "presolv", "presolve", "simplex_strategy=1.5", "mip_heuristic_effort=7", "threads=2"),
    "gurobi": ("presolve=0", "MIPFokus", "MIPFocus", "MIPFocus=0.5", "MIPFocus=9", "TimeLimit=3"),
    "scip": (
        "presolving/maxrounds=0",
        "limits/gapp",
        "limits/gap",
        "lp/pricing=z",
        "limits/memory=-5",
        "limits/time=3",
    ),
}


def option(text: str) -> dict[str, str]:
    name, _, value = text.partition("=")
    return {name: value}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_wrong_is_said_in_one_line(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A slip is told what is meant, a wrong kind or size what is expected, and nothing else is printed."""
    solver = solvers.get(name)
    good, slip, meant, kind, size, other = ASKED[name]
    try:
        solver.check_options(option(good))
    except SolverUnavailable as error:
        pytest.skip(str(error))
    with pytest.raises(InputError, match=f"did you mean {meant!r}"):
        solver.check_options({slip: 1})
    for wrong in (kind, size):
        with pytest.raises(InputError, match="expected"):
            solver.check_options(option(wrong))
    with pytest.raises(InputError, match="is set by the budget"):
        solver.check_options(option(other))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["highs", "highs-pdlp"])
@pytest.mark.parametrize("option", ["small_matrix_value", "user_objective_scale", "user_bound_scale"])
def test_options_that_make_another_model_are_refused(name: str, option: str) -> None:
    """Coefficients are not dropped and bounds keep their unit, whatever a user asks of the solver."""
    with pytest.raises(InputError, match="is set by cwb"):
        solvers.get(name).check_options({option: 1})


@pytest.mark.parametrize(
    ("name", "option"),
    [("highs", "primal_feasibility_tolerance"), ("gurobi", "FeasibilityTol"), ("scip", "numerics/feastol")],
)
def test_loose_feasibility_is_refused(name: str, option: str) -> None:
    """A tolerance under which a point beyond the optimum would be called optimal is no option."""
    solver = solvers.get(name)
    solver.check_options({option: 1e-6})
    with pytest.raises(InputError, match="expected a number from 0 to 1e-05"):
        solver.check_options({option: 0.1})


def test_a_solver_that_has_not_run_bounds_nothing() -> None:
    """If HiGHS refuses to begin, its numbers are not set, and none is used."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.Binary)
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.c = pyo.Constraint(expr=2 * m.x <= 3)
    asked = SolverOptions(extra={"read_solution_file": "no such file"})
    result = solvers.get("highs").solve(m, Budget(10.0, clock=WallClock(10.0)), asked)
    assert (result.termination, result.bound) == (Termination.ERROR, None)
    assert "has not solved the model" in result.message


@pytest.mark.parametrize(("name", "own"), [("highs", "mip_rel_gap"), ("gurobi", "mipgap"), ("scip", "limits/gap")])
def test_the_solver_s_name_of_the_gap_is_the_gap(name: str, own: str) -> None:
    """A solver's own name for a common option takes precedence over the method's value, as all own options do."""
    asked = SolverOptions(rel_gap=1e-9, extra={"a": 1, "b": 2})
    both = solvers.get(name).with_own(asked, {own: "1e-3", "b": 3})
    assert both == SolverOptions(rel_gap=1e-3, extra={"a": 1, "b": 3})
    with pytest.raises(InputError, match="expected a number from 0"):
        solvers.get(name).with_own(asked, {own: "small"})


def test_values_are_read_in_the_option_s_type() -> None:
    """Text is read as what the option takes; what would be cut off or guessed is refused."""
    assert NativeOption(float).read("1e-3") == 1e-3
    assert NativeOption(int).read(2.0) == 2
    assert NativeOption(bool).read("off") is False
    assert NativeOption(str).read(3) == "3"
    for kind, wrong in ((int, 0.5), (int, True), (bool, 2), (float, "nan"), (str, True), (float, [1]), (bool, 1.0)):
        with pytest.raises(ValueError):
            NativeOption(kind).read(wrong)


def test_options_are_read_as_a_solver_writes_them() -> None:
    """Type, range and description come from the solver's own file of options."""
    text = "# the gap\n# [type: real, advanced: FALSE, range: [0,1e20], default: 0]\nlimits/gap = 0\n"
    assert read_options(text) == {"limits/gap": NativeOption(float, 0.0, 1e20, description="the gap")}


@pytest.mark.parametrize("method", ["mcf/flow", "all-to-all-mcf"])
def test_options_reach_every_solve(method: str) -> None:
    """A solver that may make no step finds nothing, whether the model is handed over once or kept for re-solves."""
    own = {"simplex_iteration_limit": 0, "presolve": "off", "solver": "simplex"}
    stopped = cwb.solve("torus(3,3)", method, collective="all_to_all", solver_options=own)
    assert (stopped.status, stopped.solver_options) == ("limit", own)
    assert cwb.solve("torus(3,3)", method, collective="all_to_all").status == "optimal"
