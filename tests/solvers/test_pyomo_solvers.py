"""Solvers that Pyomo drives: names, options, and bounds that claim no more than is known."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import exam_models
import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.errors import InputError, SolverUnavailable, Unsupported
from cwb.core.solver import SolverOptions, Termination, as_resolving_solver
from cwb.solvers.options import KNOWN_SOLVERS

BUDGET = Budget(time_limit_s=30.0)


@pytest.fixture(params=KNOWN_SOLVERS)
def solver(request: pytest.FixtureRequest, require_solver: Callable[[str], Any]) -> Any:
    """CBC and GLPK, where they are installed; cuOpt is not required, since it needs a GPU."""
    if request.param == "cuopt" and not solvers.get("pyomo:cuopt").installation().ok:
        pytest.skip("cuOpt is not installed")
    return require_solver(f"pyomo:{request.param}")


def test_names_of_solvers_that_are_not_there() -> None:
    """A name that Pyomo does not know, and one whose program is missing, are unavailable; no name is refused."""
    with pytest.raises(SolverUnavailable, match="knows no solver 'nope'"):
        solvers.get("pyomo:nope").solve(object(), BUDGET)
    if not shutil.which("ipopt"):
        with pytest.raises(SolverUnavailable, match="pyomo:ipopt is not installed"):
            solvers.get("pyomo:ipopt").solve(object(), BUDGET)
    with pytest.raises(InputError, match="is not a solver"):
        solvers.get("pyomo:../cbc")


def test_what_is_found_is_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without programs none is found."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert solvers.pyomo_solver_names() == ()


def test_asking_for_one_imports_nothing() -> None:
    """The adapter is made, and says what it can do, without Pyomo."""
    program = (
        "import sys\nfrom cwb import solvers\nprint(solvers.get('pyomo:cbc').capabilities)\n"
        "assert not {'pyomo', 'scipy', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("cbc", "heuristicsOnOf", "did you mean 'heuristicsOnOff'"),
        ("glpk", "cut", "did you mean 'cuts'"),
        ("cbc", "ratioGap", "is set by rel_gap"),
        ("glpk", "write", "has no option 'write'"),
    ],
)
def test_options_are_checked(name: str, option: str, message: str, require_solver: Callable[[str], Any]) -> None:
    """Unknown options are refused with a suggestion, and those that have another way are refused with it."""
    solver = require_solver(f"pyomo:{name}")
    with pytest.raises(InputError, match=message):
        solver.solve(exam_models.mip(), BUDGET, SolverOptions(extra={option: 1}))


@pytest.mark.parametrize(("name", "option", "value"), [("cbc", "cutsOnOff", "off"), ("glpk", "nointopt", "")])
def test_options_are_taken(name: str, option: str, value: str, require_solver: Callable[[str], Any]) -> None:
    """A known option reaches the solver, which still solves."""
    solver = require_solver(f"pyomo:{name}")
    result = solver.solve(exam_models.mip(), BUDGET, SolverOptions(extra={option: value}))
    assert result.termination is Termination.OPTIMAL
    assert result.objective == 7.0


def test_a_bound_claims_no_more_than_the_gap(solver: Any) -> None:
    """With a gap of 10 % the bound of a MIP is below its objective by as much, and never above the optimum."""
    exact = solver.solve(exam_models.small_makespan(), BUDGET)
    result = solver.solve(exam_models.small_makespan(), BUDGET, SolverOptions(rel_gap=0.1))
    assert result.termination is Termination.OPTIMAL
    assert result.bound <= exact.objective * (1 + 1e-9)
    assert result.bound <= result.objective * 0.9 * (1 + 1e-9)


def test_a_limit_of_nodes_that_is_not_kept_is_told(require_solver: Callable[[str], Any]) -> None:
    """GLPK has no limit of nodes: it searches on, and says so."""
    glpk = require_solver("pyomo:glpk")
    lines: list[str] = []
    budget = Budget(time_limit_s=30.0, progress=lines.append)
    result = glpk.solve(exam_models.mip(), budget, SolverOptions(node_limit=1))
    assert result.termination is Termination.OPTIMAL
    assert any("limit of nodes" in line for line in lines)


def test_a_stop_ends_the_program(require_solver: Callable[[str], Any]) -> None:
    """A GLPK that is stopped ends at once, and nothing is claimed."""
    glpk = require_solver("pyomo:glpk")
    budget = Budget(time_limit_s=60.0)
    timer = threading.Timer(1.0, budget.stop.set)
    timer.start()
    began = time.monotonic()
    result = glpk.solve(exam_models.hard_mip(), budget)
    timer.join()
    assert time.monotonic() - began < 20
    assert result.termination is Termination.INTERRUPTED
    assert not result.has_solution


def test_dual_values_are_not_offered(solver: Any) -> None:
    """A method that needs dual values refuses the solver before it solves."""
    with pytest.raises(Unsupported, match="dual values"):
        as_resolving_solver(solver)
