"""Sessions: one model inside one native solver, with progress reports and results.

Inside a session everything is minimized, and the costs are multiplied by ``MatrixModel.cost_scale``.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.budget import Incumbent
from ..core.solver import Termination, relative_gap

if TYPE_CHECKING:
    from .matrix import FloatArray, MatrixModel


class Track:
    """Reports of a running solver, written by its callbacks and read by the waiting thread.

    Parameters
    ----------
    name : str
        Name of the solver, shown in progress lines.

    Attributes
    ----------
    values : FloatArray or None
        Best point found so far, in the order of the columns.
    bound : float or None
        Proved bound on the minimized objective.
    nodes : int or None
        Number of finished search nodes.
    incumbent : Incumbent
        Best objective and bound, with the model's own sign.
    cancel : threading.Event
        Set when the solver is asked to stop.
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

    def tell(self, nodes: int | None, best: float | None, bound: float | None) -> None:
        """Record the progress of a search, in terms of the minimized objective without scale."""
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
    ``run`` and ``close`` in another thread than the rest. ``ask`` is called while ``run`` runs.
    """

    version: str
    track: Track
    keeps_duals = False
    """True if outcomes of linear programs bring dual values."""
    tells_conflict = False
    """True if the outcome of an infeasible model names constraints that exclude one another."""
    grace_s: float | None = None
    """Seconds to return in after it was asked to stop; by default the guard's."""

    @abstractmethod
    def load(self, matrix: MatrixModel, *, start: bool) -> None:
        """Transfer the model, with the values of its variables as a start if ``start`` is true."""

    @abstractmethod
    def run(self, limit_s: float | None) -> SessionResult:
        """Solve within a number of seconds."""

    @abstractmethod
    def ask(self) -> None:
        """Ask the running solver to stop; called from another thread."""

    @abstractmethod
    def close(self) -> None:
        """Free all native objects."""

    def fall_silent(self) -> None:  # noqa: B027 - most sessions need not
        """Stop all callbacks: the process ends while the abandoned solver still runs."""
