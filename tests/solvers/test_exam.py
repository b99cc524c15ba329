"""Every adapter takes the exam, and the exam can be failed."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyomo.environ as pe
import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.errors import CwbError
from cwb.core.solver import SolverOptions, SolverResult, Termination
from exam import Case, run_case
from exam_cases import CASES

pytestmark = pytest.mark.slow  # searches up to their limits


#: Programs of the system, which Pyomo drives: examined where they are installed.
DRIVEN = ("pyomo:cbc", "pyomo:glpk")


@pytest.mark.parametrize("solver", (*solvers.names(), *DRIVEN))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exam(solver: str, case: Case, tmp_path: Path, require_solver: Callable[[str], Any]) -> None:
    """One adapter answers one question of the exam as promised, or has a reason not to."""
    verdict, reason = run_case(case, require_solver(solver), tmp_path)
    if verdict == "skip":
        pytest.skip(reason)
    assert verdict == "pass", reason


def test_case_names_are_unique() -> None:
    """A line of the table stands for one case."""
    assert len({case.name for case in CASES}) == len(CASES)


class BrokenAdapter:
    """HiGHS with a fault: stands between the exam and a good adapter."""

    def __init__(self, fault: Callable[[SolverResult, Any], SolverResult], keep_options: bool = True) -> None:
        self.fault = fault
        self.keep_options = keep_options
        self.good = solvers.get("highs")
        self.name = "highs"
        self.capabilities = self.good.capabilities

    def solve(self, model: Any, budget: Budget, options: SolverOptions | None = None) -> SolverResult:
        options = options if options is not None and self.keep_options else SolverOptions()
        return self.fault(self.good.solve(model, budget, options), model)


def _forgets_constant(result: SolverResult, model: Any) -> SolverResult:
    return dataclasses.replace(result, objective=None if result.objective is None else result.objective - 7)


def _bound_is_objective(result: SolverResult, model: Any) -> SolverResult:
    return dataclasses.replace(result, bound=result.objective)


def _always_optimal(result: SolverResult, model: Any) -> SolverResult:
    return dataclasses.replace(result, termination=Termination.OPTIMAL)


def _loads_nothing(result: SolverResult, model: Any) -> SolverResult:
    for variable in model.component_data_objects(pe.Var):
        variable.set_value(None)
    return result


def _prints(result: SolverResult, model: Any) -> SolverResult:
    print("Set parameter TimeLimit to value 1")
    return result


def _drops_incumbent(result: SolverResult, model: Any) -> SolverResult:
    if result.termination is Termination.OPTIMAL:
        return result
    return dataclasses.replace(result, has_solution=False, objective=None)


def _fine(result: SolverResult, model: Any) -> SolverResult:
    return result


# The cases that are expected to find each fault; the whole exam for each would take minutes.
_FAULTS = {
    "forgets-constant": (BrokenAdapter(_forgets_constant), "lp-max"),
    "bound-is-objective": (BrokenAdapter(_bound_is_objective), "time-limit"),
    "always-optimal": (BrokenAdapter(_always_optimal), "lp-infeasible"),
    "loads-nothing": (BrokenAdapter(_loads_nothing), "mip"),
    "prints": (BrokenAdapter(_prints), "empty"),
    "drops-incumbent": (BrokenAdapter(_drops_incumbent), "node-limit"),
    "ignores-options": (BrokenAdapter(_fine, keep_options=False), "unknown-option"),
}


@pytest.mark.parametrize("fault", _FAULTS)
def test_broken_adapter_fails(fault: str, tmp_path: Path) -> None:
    """The exam is not passed by an adapter with a fault, so a pass means something."""
    broken, case_name = _FAULTS[fault]
    case = next(case for case in CASES if case.name == case_name)
    assert run_case(case, broken, tmp_path)[0] == "FAIL"


def test_the_unbroken_one_passes(tmp_path: Path) -> None:
    """Broken adapters fail because of their faults, not because of their frame."""
    for name in ("lp-max", "lp-infeasible", "mip", "empty", "unknown-option"):
        case = next(case for case in CASES if case.name == name)
        assert run_case(case, BrokenAdapter(_fine), tmp_path) == ("pass", "")


@pytest.mark.parametrize("name", solvers.names())
def test_missing_package_is_said_in_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its library an adapter says what to install, before it looks at the model."""
    solver = solvers.get(name)
    monkeypatch.setitem(sys.modules, solver.package, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda package: None)
    assert not solver.installation().ok
    assert not solver.licence().ok
    with pytest.raises(CwbError, match="is not installed: pip install") as caught:
        solver.solve(object(), Budget())
    assert caught.value.exit_status == 6
