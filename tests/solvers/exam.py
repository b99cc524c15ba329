"""The exam that every adapter takes: cases as data, one table for all solvers.

``python tests/solvers/exam.py`` prints the table; ``test_exam.py`` makes a test of every cell. A case whose needs a
solver does not have is skipped with the reason, after the solver has refused it in the way that is promised.
"""

from __future__ import annotations

import ctypes
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyomo.environ as pe
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.errors import CwbError, SolverUnavailable, Unsupported
from cwb.core.solver import Capability, Solver, SolverResult, Termination

TOLERANCE = 1e-5


@dataclass(frozen=True)
class Expectation:
    """The expected result of a solve; values are looked up by the variables' names."""

    termination: Termination = Termination.OPTIMAL
    objective: float | None = None
    values: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Case:
    """One question of the exam.

    ``build`` gives the model and ``expected`` what must come out; a case that does more than one solve has ``act``
    instead, which is handed the solver and a folder and raises AssertionError. ``not_for`` names solvers that a case
    is beyond, though no capability says so, with the reason.
    """

    name: str
    proves: str
    needs: Capability
    build: Callable[[], Any] | None = None
    expected: Expectation = Expectation()
    act: Callable[[Solver, Path], None] | None = None
    not_for: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def stdout_kept_clean() -> Iterator[None]:
    """Fail if anything, Python or a C library, writes to stdout."""
    sys.stdout.flush()
    with tempfile.TemporaryFile() as file, redirect_stdout(io.StringIO()) as printed:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            ctypes.CDLL(None).fflush(None)
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        written = file.read().decode() + printed.getvalue()
    assert not written, f"wrote to stdout: {written[:200]!r}"


def close(a: float, b: float) -> bool:
    """Equal within the exam's tolerance."""
    return abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))


def check_point(model: Any, result: SolverResult) -> None:
    """Check a result against the Pyomo model itself: feasible, integral, the objective and the side of the bound."""
    objectives = list(model.component_data_objects(pe.Objective, active=True))
    if not result.has_solution:
        assert result.objective is None
        return
    for variable in model.component_data_objects(pe.Var, active=True):
        assert variable.value is not None, f"{variable.name} has no value"
        assert variable.is_continuous() or variable.fixed or variable.value == round(variable.value)
        low, up = variable.bounds
        assert variable.fixed or low is None or variable.value >= low
        assert variable.fixed or up is None or variable.value <= up
    for constraint in model.component_data_objects(pe.Constraint, active=True):
        body = pe.value(constraint.body)
        assert constraint.lb is None or body >= constraint.lb - TOLERANCE, f"{constraint.name} is violated"
        assert constraint.ub is None or body <= constraint.ub + TOLERANCE, f"{constraint.name} is violated"
    sense = objectives[0].sense if objectives else pe.minimize
    assert result.objective is not None
    assert close(result.objective, pe.value(objectives[0].expr) if objectives else 0.0)
    if result.bound is not None:
        assert sense * result.bound <= sense * result.objective + TOLERANCE * max(1.0, abs(result.objective))


def check(model: Any, result: SolverResult, expected: Expectation) -> None:
    """Check a result against what was expected."""
    assert result.termination is expected.termination, f"{result.termination} {result.message}"
    check_point(model, result)
    if expected.termination is Termination.OPTIMAL:
        assert result.has_solution
        assert result.bound is not None
        assert expected.objective is not None
        assert result.objective is not None
        # Relative where the optimum is tiny, so that "zero" is not within the tolerance of everything.
        size = max(abs(expected.objective), 1e-12) if 0 < abs(expected.objective) < 1e-2 else 1.0
        assert close(result.objective / size, expected.objective / size), f"{result.objective} != {expected.objective}"
        assert close(result.bound / size, expected.objective / size), f"bound {result.bound}"
    for name, value in expected.values:
        assert close(model.find_component(name).value, value), f"{name} = {model.find_component(name).value}"


def run_case(case: Case, solver: Solver, folder: Path) -> tuple[str, str]:
    """Put one question to one solver.

    Returns
    -------
    (str, str)
        ``pass``, ``skip`` or ``FAIL``, and the reason of the latter two.
    """
    if solver.name in case.not_for:
        return "skip", case.not_for[solver.name]
    try:
        with stdout_kept_clean():
            missing = case.needs & ~solver.capabilities
            if missing:
                return "skip", _refusal(case, solver, missing)
            if case.act is not None:
                case.act(solver, folder)
            else:
                assert case.build is not None
                model = case.build()
                check(model, solver.solve(model, Budget(time_limit_s=30.0)), case.expected)
    except SolverUnavailable as error:
        return "skip", str(error)
    except (AssertionError, CwbError) as error:
        return "FAIL", f"{type(error).__name__}: {error}"
    return "pass", ""


def _refusal(case: Case, solver: Solver, missing: Capability) -> str:
    """Have the solver refuse a model that it cannot solve."""
    if case.build is None:
        return f"no {missing.name}"
    model = case.build()
    try:
        solver.solve(model, Budget())
    except Unsupported as error:
        return f"refused: {error}"
    raise AssertionError(f"{missing.name} is missing, but the model was not refused")


def run_exam(solver: Solver, folder: Path | None = None) -> list[tuple[str, str, str]]:
    """(case, verdict, reason) for every case."""
    from exam_cases import CASES

    with tempfile.TemporaryDirectory() as temporary:
        return [(case.name, *run_case(case, solver, folder or Path(temporary))) for case in CASES]


def main() -> int:
    """Print the table; 1 if anything failed."""
    from rich.console import Console
    from rich.table import Table

    names = (*solvers.names(), *solvers.pyomo_solver_names())
    table = Table("case", *names)
    reasons: dict[str, None] = {}
    columns = [run_exam(solvers.get(name)) for name in names]
    for row in zip(*columns, strict=True):
        table.add_row(row[0][0], *(verdict for _, verdict, _ in row))
        reasons |= {
            f"{name} {verdict}s {case}: {why}": None
            for name, (case, verdict, why) in zip(names, row, strict=True)
            if why
        }
    console = Console(width=160)
    console.print(table)
    for reason in reasons:
        console.print(reason, markup=False, highlight=False)
    return int(any(verdict == "FAIL" for column in columns for _, verdict, _ in column))


if __name__ == "__main__":
    sys.exit(main())
