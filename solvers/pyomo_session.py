"""One run of a solver that Pyomo drives (docs/solvers.md).

The compiled arrays are written as a Pyomo model again, minimized and with scaled costs as in every session, so that
all solvers have the same input.
"""

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.log import LoggingIntercept
from pyomo.core.expr import LinearExpression
from pyomo.opt import TerminationCondition as Condition

from ..core.budget import Budget
from ..core.errors import CwbError, InputError
from ..core.solver import SolverOptions, Termination
from .adapters import PyomoSolver
from .matrix import INTEGRALITY, MatrixModel
from .options import INFINITY, known_solver, rejected_value_error, unknown_option_error
from .session import WITHOUT_SOLUTION, Session, SessionResult, Track, resolve_unclear

_TERMINATIONS = {
    **dict.fromkeys((Condition.optimal, Condition.globallyOptimal), Termination.OPTIMAL),
    Condition.infeasible: Termination.INFEASIBLE,
    Condition.unbounded: Termination.UNBOUNDED,
    Condition.infeasibleOrUnbounded: Termination.INFEASIBLE_OR_UNBOUNDED,
    Condition.maxTimeLimit: Termination.TIME_LIMIT,
    **dict.fromkeys((Condition.maxIterations, Condition.maxEvaluations), Termination.NODE_LIMIT),
    **dict.fromkeys((Condition.userInterrupt, Condition.resourceInterrupt), Termination.INTERRUPTED),
}

#: What GLPK says in its log; the first that is there counts. Pyomo takes a linear program that is cut short for an
#: optimal or infeasible one.
_GLPK_WORDS = (
    ("TIME LIMIT EXCEEDED", Termination.TIME_LIMIT),
    ("RELATIVE MIP GAP TOLERANCE REACHED", Termination.OPTIMAL),
    ("HAS NO PRIMAL FEASIBLE SOLUTION", Termination.INFEASIBLE),
    ("HAS NO INTEGER FEASIBLE SOLUTION", Termination.INFEASIBLE),
    ("HAS UNBOUNDED PRIMAL SOLUTION", Termination.UNBOUNDED),
    ("HAS NO DUAL FEASIBLE SOLUTION", Termination.INFEASIBLE_OR_UNBOUNDED),
)

_GLPK_BOUND = re.compile(r"^\+.*mip =.*>=\s+(\S+)", re.MULTILINE)

_PROVED = {Termination.OPTIMAL, *WITHOUT_SOLUTION}

_PATIENCE_S = 3.0  #: Seconds that a program has to end by itself, before it is killed; fewer than the grace.

_one_at_a_time = threading.Lock()


class PyomoSession(Session):
    """See :class:`~cwb.solvers.session.Session`."""

    grace_s = 5.0  #: A program has a limit of whole seconds, and writes what it has found to a file when it ends.

    def __init__(self, adapter: PyomoSolver, budget: Budget, options: SolverOptions) -> None:
        self.track = Track(adapter.name)
        self.version = adapter.installation().version or "unknown"
        self.title = adapter.title
        self.traits = known_solver(adapter.factory_name)
        self.is_glpk = adapter.factory_name == "glpk"
        with _one_at_a_time:
            self.solver: Any = pyo.SolverFactory(adapter.factory_name)
        self._log_file = budget.log_file
        self._options = options
        self._mip_gap = options.rel_gap
        self._ended = threading.Event()
        self.model: Any = None
        self._deadline: float | None = None
        for name, value in adapter.own_options(options):
            if self.traits.options is not None and name not in self.traits.options:
                raise unknown_option_error(self.title, name, sorted(self.traits.options))
            if any(character.isspace() for character in str(value)):
                raise rejected_value_error(self.title, name, value, "a value without blanks")
        if options.node_limit is not None and not self.traits.node_limit:
            budget.progress(f"{self.title}: no option is known for a limit of nodes; the search has none")
        if options.extra and self.traits.options is None:
            budget.progress(f"{self.title}: options are unknown, and are passed on unchanged")
        settings = {
            self.traits.tolerance: options.feasibility_tolerance,
            self.traits.seed: budget.seed % 2**31,
            self.traits.threads: budget.threads if budget.threads > 1 else None,
            **options.extra,
        }
        for name, value in settings.items():
            if name and value is not None:
                self.solver.options[name] = value

    def load(self, matrix: MatrixModel, *, start: bool) -> None:
        """Write the arrays as a Pyomo model."""
        self.matrix = matrix
        self.scale = matrix.cost_scale
        with _one_at_a_time:
            self.model, self.variables = _as_pyomo(matrix, self.scale)
        if not matrix.is_mixed_integer:
            return
        settings = {
            self.traits.gap: self._mip_gap,
            self.traits.node_limit: self._options.node_limit,
            # With integer costs the solver itself knows the step.
            self.traits.increment: 1e-12 if matrix.objective_step is None else None,
            **self.traits.always,
        }
        for name, value in settings.items():
            if name and value is not None and name not in self._options.extra:
                self.solver.options[name] = value

    def run(self, limit_s: float | None) -> SessionResult:
        """Solve; infeasible is distinguished from unbounded by solving again without costs."""
        self._deadline = None if limit_s is None else monotonic() + limit_s

        def without_costs() -> SessionResult:
            self.model.cost.set_value(0.0 * self.variables[0])
            return self._solve()

        return resolve_unclear(self._solve(), self.matrix, without_costs)

    def _solve(self) -> SessionResult:
        with self._turn() as is_mine:
            if not is_mine or self.track.cancel.is_set():
                return SessionResult(Termination.INTERRUPTED, message="stopped before the solver began")
            self._ended.clear()
            try:
                outcome = self._call()
            finally:
                self._ended.set()
        if outcome.termination is Termination.ERROR:
            raise CwbError(f"{self.title} failed: {outcome.message}")
        return outcome

    @contextmanager
    def _turn(self) -> Iterator[bool]:
        """Wait until no other solver of Pyomo's runs; False if asked to stop before."""
        while not (is_mine := _one_at_a_time.acquire(timeout=0.05)):
            if self.track.cancel.is_set():
                break
        try:
            yield is_mine
        finally:
            if is_mine:
                _one_at_a_time.release()

    def _call(self) -> SessionResult:
        """Solve once; append the log to that of earlier solves, which Pyomo would overwrite."""
        if self._log_file is None:
            return self._call_solver()
        with TemporaryDirectory(prefix="cwb-") as folder:
            log = Path(folder) / "log"
            try:
                return self._call_solver(logfile=str(log))
            finally:
                if log.exists():
                    with Path(self._log_file).open("ab") as file:
                        file.write(log.read_bytes())

    def _call_solver(self, **more: Any) -> SessionResult:
        arguments: dict[str, Any] = {"load_solutions": False, "tee": False, **more}
        if self._deadline is not None:
            rest_s = max(0.1, self._deadline - monotonic())
            arguments["timelimit"] = round(rest_s, 3) if self.traits.takes_fractions else max(1, int(rest_s))
        log = StringIO()
        # Pyomo keeps what the program has written; nothing of an earlier solve may be taken for it.
        self.solver._log, self.solver._rc = "", None
        try:
            with LoggingIntercept(log, "pyomo"):
                return self._read(self.solver.solve(self.model, **arguments))
        except InputError:
            raise
        except Exception as error:
            if self.track.cancel.is_set() or self.solver._rc in {-signal.SIGINT, 128 + signal.SIGINT}:
                return SessionResult(
                    Termination.INTERRUPTED, message="the solver was ended, and what it had found is lost"
                )
            words = " ".join(f"{error} {log.getvalue()}".split())
            return SessionResult(Termination.ERROR, message=words[:500])

    def _read(self, results: Any) -> SessionResult:
        words = str(self.solver._log or "")
        for name in self._options.extra:
            if f"No match for {name}" in words:
                raise InputError(f"{self.title} has no option {name!r}")
        condition = results.solver.termination_condition
        termination = _TERMINATIONS.get(condition, Termination.ERROR)
        if self.is_glpk:
            heard = _GLPK_WORDS[:1] if termination is Termination.OPTIMAL else _GLPK_WORDS
            termination = next((kind for phrase, kind in heard if phrase in words), termination)
        if termination not in _PROVED and (self.track.cancel.is_set() or "ctrl-c" in words):
            termination = Termination.INTERRUPTED
        is_late = self._deadline is not None and monotonic() >= self._deadline - 0.5
        if termination is Termination.NODE_LIMIT and self._options.node_limit is None and is_late:
            # CBC says of a linear program that is out of time that it is out of iterations.
            termination = Termination.TIME_LIMIT
        values = self._values(results) if termination not in WITHOUT_SOLUTION else None
        message = "" if termination is Termination.OPTIMAL else str(condition)
        if termination is Termination.OPTIMAL and values is None:
            return SessionResult(
                Termination.NUMERICAL, message="what the solver calls optimal does not keep to the rows"
            )
        if termination is Termination.OPTIMAL and self.traits.is_first_order and not self.matrix.is_mixed_integer:
            return SessionResult(
                Termination.NUMERICAL, values, message="a first-order method may have ended here, which proves no bound"
            )
        return SessionResult(
            termination, values, self._bound(results, termination, values), _nodes(results), message=message
        )

    def _values(self, results: Any) -> Any:
        """Return the point, as precise as it was written, if there is a feasible integral one."""
        if not len(results.solution):
            return None
        for variable in self.variables:
            variable.set_value(None, skip_validation=True)
        self.model.solutions.load_from(results)
        # What a solver leaves out is zero, as in its file.
        values = np.array([0.0 if v.value is None else v.value for v in self.variables], dtype=float)
        matrix = self.matrix
        fraction = np.abs(values - np.round(values))[matrix.integer]
        point = matrix.polish_point(values)
        activity, size = matrix.A @ point, np.maximum(1.0, abs(matrix.A) @ np.abs(point))
        excess = np.maximum(matrix.row_lower - activity, activity - matrix.row_upper)
        is_feasible = (
            fraction.max(initial=0.0) <= INTEGRALITY
            and bool((excess <= 1e-6 * size).all())
            and bool((np.abs(values - point) <= 1e-5 * np.maximum(1.0, np.abs(values))).all())
        )
        return values if is_feasible else None

    def _bound(self, results: Any, termination: Termination, values: Any) -> float | None:
        """Return the proved bound, weakened by the gap and the written digits."""
        matrix = self.matrix
        if termination is Termination.OPTIMAL and values is not None:
            least = matrix.minimized_objective(values)
            slack = self.traits.digits * float(np.abs(matrix.c) @ np.abs(values))
            if matrix.is_mixed_integer:
                if not self.traits.gap:
                    # At which gap it has stopped is not known.
                    bound = self._reported_bound(results)
                    return bound if bound is not None and bound < least - slack else None
                slack += self._mip_gap / (1.0 - min(self._mip_gap, 0.5)) * abs(least - matrix.offset)
            return least - slack
        return (
            self._reported_bound(results) if matrix.is_mixed_integer and termination not in WITHOUT_SOLUTION else None
        )

    def _reported_bound(self, results: Any) -> float | None:
        """Return the solver's bound, with the error of its digits on the safe side."""
        bound = results.problem.lower_bound
        if self.is_glpk:
            lines = _GLPK_BOUND.findall(str(self.solver._log or ""))
            with suppress(IndexError, ValueError):
                bound = float(lines[-1])
        if not isinstance(bound, int | float) or not isfinite(bound) or abs(bound) >= INFINITY:
            return None
        return float(bound - self.traits.digits * abs(bound)) / self.scale + self.matrix.offset

    def request_stop(self) -> None:
        """End the solver's process, if any; with a delay if its own time limit should end it."""
        self.track.cancel.set()
        time_is_up = self._deadline is not None and monotonic() >= self._deadline
        delay_s = _PATIENCE_S - 1.0 if time_is_up and not self.traits.stops_on_interrupt else 0.0
        threading.Thread(target=self._end, args=(delay_s,), name="cwb-end", daemon=True).start()

    def _end(self, delay_s: float) -> None:
        """Signal the program, which may not have started yet, until it has ended."""
        executable = None
        with suppress(Exception):
            executable = self.solver.executable()
        if executable is None or self._ended.wait(delay_s):
            return
        first = signal.SIGINT if self.traits.stops_on_interrupt else signal.SIGTERM
        began = monotonic()
        # Again and again: CBC hears it only while it branches.
        while not self._ended.wait(0.1):
            is_late = monotonic() - began > _PATIENCE_S
            for child in _children(str(executable)):
                with suppress(ProcessLookupError):
                    os.kill(child, getattr(signal, "SIGKILL", first) if is_late else first)

    def close(self) -> None:
        """Release the model."""
        self._ended.set()
        self.model = None
        self.variables = []


def _as_pyomo(matrix: MatrixModel, scale: float) -> tuple[Any, list[Any]]:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(len(matrix.columns)))
    variables = list(model.x.values())
    bounds = zip(variables, matrix.lower.tolist(), matrix.upper.tolist(), matrix.integer.tolist(), strict=True)
    for variable, lower, upper, integer in bounds:
        variable.domain = pyo.Integers if integer else pyo.Reals
        variable.setlb(_finite(lower))
        variable.setub(_finite(upper))

    def total(columns: Any, coefficients: Any) -> Any:
        terms = [variables[j] for j in columns.tolist()]
        return LinearExpression(linear_coefs=coefficients.tolist(), linear_vars=terms)

    model.rows = pyo.ConstraintList()
    A = matrix.A
    for i, (lower, upper) in enumerate(zip(matrix.row_lower.tolist(), matrix.row_upper.tolist(), strict=True)):
        part = slice(A.indptr[i], A.indptr[i + 1])
        body = total(A.indices[part], A.data[part])
        if lower == upper:
            model.rows.add(body == lower)
        elif isfinite(lower) or isfinite(upper):
            model.rows.add((_finite(lower), body, _finite(upper)))
    costs = np.flatnonzero(matrix.c)
    # Without a cost some writers would write no objective at all.
    model.cost = pyo.Objective(expr=total(costs, matrix.c[costs] * scale) if len(costs) else 0.0 * variables[0])
    return model, variables


def _finite(bound: float) -> float | None:
    return bound if isfinite(bound) else None


def _nodes(results: Any) -> int | None:
    with suppress(AttributeError, TypeError, ValueError):
        return int(results.solver.statistics.branch_and_bound.number_of_created_subproblems)
    return None


def _children(executable: str) -> list[int]:
    """Return this process's child processes that run a program; none without ``/proc``."""
    parent, program = os.getpid(), os.path.realpath(executable)
    pids: list[int] = []
    with suppress(OSError):
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError, ValueError, IndexError):
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                    programs = {os.path.realpath(entry / "exe"), *(entry / "cmdline").read_text().split("\0")[:2]}
                    if int(fields[1]) == parent and programs & {program, executable}:
                        pids.append(int(entry.name))
    return pids
