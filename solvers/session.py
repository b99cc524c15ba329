"""Sessions: one model inside one native solver, its run under guard with progress reports, and the result.

Inside a session everything is minimized, and the costs are multiplied by ``MatrixModel.cost_scale``.
"""

from __future__ import annotations

import atexit
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.budget import Budget, Incumbent
from ..core.solver import SolverResult, Termination, relative_gap
from .guard import CallOutcome, StopReason, Worker, time_left_s
from .options import INFINITY

if TYPE_CHECKING:
    from .matrix import FloatArray, MatrixModel

WITHOUT_SOLUTION = {Termination.INFEASIBLE, Termination.UNBOUNDED, Termination.INFEASIBLE_OR_UNBOUNDED}


class Track:
    """Reports of a running solver, written by its callbacks and read by the waiting thread.

    Of the minimized objective are ``values``, the best point found so far, and ``bound``; ``incumbent`` has the model's
    own sign. ``cancel`` is set when the solver is asked to stop.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.sign = 1.0
        self.values: FloatArray | None = None
        self.bound: float | None = None
        self.nodes: int | None = None
        self.line: str | None = None
        self.incumbent = Incumbent(of_solver=True)
        self.cancel = threading.Event()

    def tell(self, nodes: int | None, best: float | None, bound: float | None, scale: float = 1.0) -> None:
        """Record the progress of a search by the minimized objective times a scale; infinite numbers are none."""
        best, bound = (None if v is None or abs(v) >= INFINITY else v / scale for v in (best, bound))
        self.nodes, self.bound = nodes, bound
        objective, proved = (None if value is None else self.sign * value + 0.0 for value in (best, bound))
        self.incumbent = Incumbent(objective, proved, of_solver=True)
        gap = relative_gap(best, bound)
        parts = [
            None if nodes is None else f"{nodes} nodes",
            "no solution yet" if objective is None else f"best {objective:.6g}",
            None if proved is None else f"bound {proved:.6g}",
            None if gap is None else f"gap {gap:.2%}",
        ]
        self.line = f"{self.name}: " + ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class NativeConflict:
    """Rows, and lower and upper bounds of columns, that a solver reports as conflicting."""

    rows: Sequence[int]
    lower: Sequence[int]
    upper: Sequence[int]


@dataclass(frozen=True)
class SessionResult:
    """Result of a session: a :class:`~cwb.core.solver.SolverResult`, minimized, values not loaded yet.

    ``duals`` are those of the rows of a linear program, times the factor of the costs: changes of the optimum per
    unit of a right-hand side. ``conflict`` is the reason for infeasibility, if requested and reported. ``pool`` has
    the best points, best first, if several were requested.
    """

    termination: Termination
    values: FloatArray | None = None
    bound: float | None = None
    nodes: int | None = None
    iterations: int | None = None
    message: str = ""
    duals: Sequence[float] | None = None
    conflict: NativeConflict | None = None
    pool: Sequence[FloatArray] = ()


def resolve_unclear(
    outcome: SessionResult, matrix: MatrixModel, without_costs: Callable[[], SessionResult]
) -> SessionResult:
    """Distinguish infeasible from unbounded by another solve without costs, if the solver does not."""
    unclear = outcome.termination is Termination.INFEASIBLE_OR_UNBOUNDED or (
        outcome.termination is Termination.UNBOUNDED and matrix.is_mixed_integer
    )
    if not unclear:
        return outcome
    again = without_costs()
    if again.termination is Termination.OPTIMAL:
        return SessionResult(Termination.UNBOUNDED, message="feasible, and the objective has no bound")
    return SessionResult(again.termination, message=again.message)


class Session(ABC):
    """One model inside one native solver.

    ``load`` is called once, then ``run`` (which may be called again), then ``close``; never two at once, but
    ``run`` and ``close`` in another thread than the rest. ``request_stop`` is called while ``run`` runs.
    """

    version: str
    track: Track
    keeps_duals = False  #: True if outcomes of linear programs bring dual values.
    tells_conflict = False  #: True if the outcome of an infeasible model names constraints that exclude one another.
    grace_s: float | None = None  #: Seconds to return in after it was asked to stop; by default the guard's.

    @abstractmethod
    def load(self, matrix: MatrixModel, *, start: bool) -> None:
        """Transfer the model, with the values of its variables as a start if ``start`` is true."""

    @abstractmethod
    def run(self, limit_s: float | None) -> SessionResult:
        """Solve within a number of seconds."""

    @abstractmethod
    def request_stop(self) -> None:
        """Ask the running solver to stop; called from another thread."""

    @abstractmethod
    def close(self) -> None:
        """Free all native objects."""

    def fall_silent(self) -> None:  # noqa: B027 - most sessions need not
        """Stop all callbacks: the process ends while the abandoned solver still runs."""


#: The guard looks up to 20 times a second: a line is shown twice a second at most, a silent solver every 10 seconds.
_TICKS_OF_A_LINE, _TICKS_OF_SILENCE = 10, 200


def run_session(
    session: Session,
    matrix: MatrixModel,
    worker: Worker,
    budget: Budget,
    whole: Callable[[], MatrixModel] | None = None,
) -> SessionResult:
    """Run a session under guard, unless there are no columns or a contradiction.

    ``whole`` returns the model in its solved form, if only the solver has all of it.
    """
    trivial = matrix.trivial_termination()
    if trivial is not None:
        import numpy as np

        point = None if matrix.contradiction is not None else np.zeros(0)  # the only one without columns
        return SessionResult(trivial, point, bound=matrix.offset, message=matrix.contradiction or "")
    limit_s = time_left_s(budget)
    if budget.stop.is_set():
        return SessionResult(Termination.INTERRUPTED, message="stopped before the solve began")
    if limit_s is not None and limit_s <= 0:
        return SessionResult(Termination.TIME_LIMIT, message="no time was left for the solve")

    budget.on_model(whole or (lambda: matrix))
    track = session.track
    track.cancel.clear()
    watch = _Watch(track, matrix, budget)
    try:
        call = worker.run(
            lambda: session.run(limit_s),
            budget,
            limit_s=limit_s,
            request_stop=session.request_stop,
            tick=watch.tick,
            grace_s=session.grace_s,
        )
    finally:
        if worker.abandoned:
            atexit.register(session.fall_silent)
    watch.tell()
    return _explain(call, track, budget)


class _Watch:
    """Progress display of a running solver, in the waiting thread."""

    def __init__(self, track: Track, matrix: MatrixModel, budget: Budget) -> None:
        self._track, self._size, self._budget = track, matrix.size, budget
        self._last_line: str | None = None
        self._last_report = Incumbent(of_solver=True)
        self._ticks = 0

    def tick(self) -> None:
        """Show a new line at intervals; for silent solvers, show now and then that they run."""
        self._ticks += 1
        self._tell_numbers()
        if self._track.line is None:
            if self._ticks % _TICKS_OF_SILENCE == 0:
                size = self._size
                self._budget.progress(f"{self._track.name}: {size.variables:,} variables, {size.constraints:,} rows")
        elif self._last_line is None or self._ticks >= _TICKS_OF_A_LINE:
            self.tell()

    def tell(self) -> None:
        """Show the latest line, if it is new."""
        line = self._track.line
        if line is not None and line != self._last_line:
            self._budget.progress(line)
            self._tell_numbers()
            self._last_line, self._ticks = line, 0

    def _tell_numbers(self) -> None:
        if self._track.incumbent != self._last_report:
            self._last_report = self._track.incumbent
            self._budget.tell(self._last_report)


def _explain(call: CallOutcome[SessionResult], track: Track, budget: Budget) -> SessionResult:
    """Return the result with the reason for stopping, if the solver only knows that it was asked to."""
    why = Termination.TIME_LIMIT if call.stop_reason is StopReason.TIME_IS_UP else Termination.INTERRUPTED
    outcome = call.value
    if outcome is None:
        message = "the solver did not stop when it was asked to; it was abandoned, with what it had reported"
        return SessionResult(why, track.values, track.bound, track.nodes, message=message)
    if outcome.termination is not Termination.INTERRUPTED:
        return outcome
    if call.stop_reason is None:
        # A library with a handler of its own has taken the user's Ctrl-C.
        budget.stop.set()
    message = outcome.message
    if why is Termination.TIME_LIMIT:
        # The solver's advice, after its own word for the end, holds however it was stopped.
        message = "; ".join(("the time limit was reached", *message.split("; ")[1:]))
    return SessionResult(why, outcome.values, outcome.bound, outcome.nodes, outcome.iterations, message)


def finish(
    name: str, version: str, matrix: MatrixModel, outcome: SessionResult, transfer_s: float, solve_s: float
) -> SolverResult:
    """Load the values and create the result.

    The bound is rounded to the next value that the objective can take if all its costs are integers on integer
    variables, and is never on the wrong side of the objective.
    """
    objective: float | None = None
    bound = matrix.tighten_bound(outcome.bound)
    if outcome.values is not None:
        values = matrix.polish_point(outcome.values)
        matrix.load(values)
        least = matrix.minimized_objective(values)
        objective = matrix.sign * least + 0.0
        if bound is not None and (bound > least or abs(least - bound) <= 1e-12 * abs(least)):
            bound = least
    if outcome.termination in WITHOUT_SOLUTION:
        bound = None
    return SolverResult(
        solver=name,
        version=version,
        termination=outcome.termination,
        has_solution=objective is not None,
        objective=objective,
        bound=None if bound is None else matrix.sign * bound + 0.0,
        nodes=outcome.nodes,
        iterations=outcome.iterations,
        transfer_s=transfer_s,
        solve_s=solve_s,
        size=matrix.size,
        message=outcome.message,
        row_by_row=matrix.row_by_row,
    )
