"""Runs of sessions under guard: progress output, and the result with values and bound."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..core.budget import Budget
from ..core.solver import SolverResult, Termination
from .guard import CallOutcome, StopReason, Worker, time_left_s
from .session import Session, SessionResult, Track

if TYPE_CHECKING:
    from .matrix import MatrixModel

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
    settled = matrix.trivial_termination()
    if settled is not None:
        return SessionResult(settled, matrix.empty_point(), bound=matrix.offset, message=matrix.contradiction or "")
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
        guarded = worker.run(
            lambda: session.run(limit_s),
            budget,
            limit_s=limit_s,
            ask=session.ask,
            tick=watch.tick,
            grace_s=session.grace_s,
        )
    finally:
        if worker.abandoned:
            atexit.register(session.fall_silent)
    watch.tell()
    return _explain(guarded, track, budget)


class _Watch:
    """Progress display of a running solver, in the waiting thread."""

    def __init__(self, track: Track, matrix: MatrixModel, budget: Budget) -> None:
        self._track, self._size, self._budget = track, matrix.size, budget
        self._shown: str | None = None
        self._ticks = 0

    def tick(self) -> None:
        """Show a new line at intervals; for silent solvers, show now and then that they run."""
        self._ticks += 1
        if self._track.line is None:
            if self._ticks % _TICKS_OF_SILENCE == 0:
                size = self._size
                self._budget.progress(f"{self._track.name}: {size.variables:,} variables, {size.constraints:,} rows")
        elif self._shown is None or self._ticks >= _TICKS_OF_A_LINE:
            self.tell()

    def tell(self) -> None:
        """Show the latest line, if it is new."""
        line = self._track.line
        if line is not None and line != self._shown:
            self._budget.progress(line)
            self._budget.tell(self._track.incumbent)
            self._shown, self._ticks = line, 0


def _explain(guarded: CallOutcome[SessionResult], track: Track, budget: Budget) -> SessionResult:
    """Return the result with the reason for stopping, if the solver only knows that it was asked to."""
    why = Termination.TIME_LIMIT if guarded.asked is StopReason.TIME_IS_UP else Termination.INTERRUPTED
    outcome = guarded.value
    if outcome is None:
        message = "the solver did not stop when it was asked to; it was abandoned, with what it had reported"
        return SessionResult(why, track.values, track.bound, track.nodes, message=message)
    if outcome.termination is not Termination.INTERRUPTED:
        return outcome
    if guarded.asked is None:
        # A library with a handler of its own has taken the user's Ctrl-C.
        budget.stop.set()
    message = "the time limit was reached" if why is Termination.TIME_LIMIT else outcome.message
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
    if outcome.termination in {Termination.INFEASIBLE, Termination.UNBOUNDED, Termination.INFEASIBLE_OR_UNBOUNDED}:
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
