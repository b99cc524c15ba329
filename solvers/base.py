"""What the adapters share: the way from a Pyomo model to a result.

An adapter is a :class:`Adapter` (light: it imports no solver library before it solves) that opens a
:class:`Session` (one model inside one native solver). The session applies the options, takes the compiled model,
runs in the guard's thread and reads its answer; everything else happens here, once for all solvers.

Inside a session everything is minimized, and the costs are multiplied by ``MatrixModel.cost_scale``.
"""

from __future__ import annotations

import importlib.util
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from ..core.budget import Budget, Incumbent
from ..core.errors import InputError, SolverUnavailable
from ..core.solver import (
    Availability,
    Capability,
    SolverOptions,
    SolverResult,
    Termination,
    relative_gap,
)
from .guard import used_again, used_once
from .options import Offered, checked

if TYPE_CHECKING:
    from .compiled import Compiled
    from .matrix import FloatArray, MatrixModel

DEFAULT_OPTIONS = SolverOptions()

#: What sets options that are the same for every solver, as errors say it.
TIME_LIMIT = "the budget's time limit (--time-limit)"
THREADS = "the budget's threads (--threads)"
COEFFICIENTS = "cwb, which rejects smaller coefficients"
COSTS = "cwb, which scales costs itself"
SEED = "the budget's seed (--seed)"
LOG_FILE = "the budget's log file (--log-file)"

#: Fields of :class:`SolverOptions` that a solver may have a name of its own for.
_FIELDS = {
    "rel_gap": Offered(float, 0.0),
    "node_limit": Offered(int, 0.0),
    # With a looser one, what a solver calls optimal may be far beyond the optimum.
    "feasibility_tolerance": Offered(float, 0.0, 1e-5),
}


class Track:
    """What a running solver has reported so far: written by its callbacks, read by the thread that waits.

    Parameters
    ----------
    name : str
        Name of the solver, shown in progress lines.

    Attributes
    ----------
    values : FloatArray or None
        Best point found so far, in the order of the columns.
    bound : float or None
        Proved bound, minimizing.
    nodes : int or None
        Nodes done.
    line : str or None
        Latest progress line.
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
        """Take in where a search is; the numbers are those of the minimized objective without scale."""
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
    """Rows, and lower and upper bounds of columns, that a solver says exclude one another."""

    rows: Sequence[int]
    lower: Sequence[int]
    upper: Sequence[int]


@dataclass(frozen=True)
class SessionResult:
    """What a session found: as in :class:`~cwb.core.solver.SolverResult`, minimized, values not loaded yet.

    ``duals`` are those of the rows of a linear program, times the factor of the costs: changes of the optimum per unit
    of a right-hand side. ``conflict`` is why the model is infeasible, where the solver was asked and reports it.
    ``pool`` has the best points, the best first, where several were asked for.
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


def settled(outcome: SessionResult, matrix: MatrixModel, without_costs: Callable[[], SessionResult]) -> SessionResult:
    """Distinguish infeasible from unbounded, where the solver does not, by another solve without costs."""
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
    """Whether outcomes of linear programs bring dual values."""
    tells_conflict = False
    """Whether the outcome of an infeasible model brings what excludes one another, where the solver has that."""
    grace_s: float | None = None
    """Seconds to return in after it was asked to stop; by default the guard's."""

    @abstractmethod
    def load(self, matrix: MatrixModel, *, start: bool) -> None:
        """Hand the model over, with the values of its variables as a start when ``start`` is true."""

    @abstractmethod
    def run(self, limit_s: float | None) -> SessionResult:
        """Solve within a number of seconds."""

    @abstractmethod
    def ask(self) -> None:
        """Ask the running solver to stop; called from another thread."""

    @abstractmethod
    def close(self) -> None:
        """Free everything native."""

    def fall_silent(self) -> None:  # noqa: B027 - most sessions need not
        """Call back no more: the process ends while the solver, which was left behind, still runs."""


class Adapter(ABC):
    """A solver adapter, see :class:`~cwb.core.solver.Solver`."""

    name: str
    title: str
    package: ClassVar[str]
    requirement: ClassVar[str]
    capabilities: Capability
    numbers_threads: ClassVar[bool] = False
    """Whether the library counts the threads that have called it, so that they must be used again."""
    elsewhere: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Options by the solver's own names that are set by other means: fields of :class:`SolverOptions`, or in words."""

    @abstractmethod
    def open(self, budget: Budget, options: SolverOptions) -> Session:
        """Start a session and apply the options to it."""

    def installed(self) -> Availability:
        """Whether the solver's library can be imported; does not import it."""
        if importlib.util.find_spec(self.package) is None:
            return Availability(False, f'{self.name} is not installed: pip install "{self.requirement}"')
        version = metadata.version(self.package)
        return Availability(True, f"{self.title} {version}", version)

    def licensed(self) -> Availability:
        """Whether it may be used; a free solver may be when it is installed."""
        return self.installed()

    def with_own(self, options: SolverOptions, own: Mapping[str, object]) -> SolverOptions:
        """Options with others by the solver's own names, which win.

        Parameters
        ----------
        options : SolverOptions
            What a method asks for.
        own : mapping of str to object
            What a user asks for beside it. What is the solver's name of a field of :class:`SolverOptions`, such as its
            gap, is that field.

        Raises
        ------
        InputError
            If a field's value is not a number.
        """
        asked: dict[str, Any] = {}
        extra = dict(options.extra)
        for name, value in own.items():
            field = self.means_of(name)
            if field in _FIELDS:
                asked[field] = checked(self.title, name, value, {name: _FIELDS[field]})
            else:
                extra[name] = value
        return replace(options, **asked, extra=extra)

    def means_of(self, name: str) -> str:
        """What sets an option of the solver's, where that is not its own name; else nothing."""
        return self.elsewhere.get(name, "")

    def check_options(self, own: Mapping[str, object]) -> None:
        """Try options by the solver's own names, without a model.

        Raises
        ------
        InputError
            If one is unknown, has a value that the solver does not take, or is set by other means.
        SolverUnavailable
            If the solver or its licence is missing.
        """
        self.require_installed()
        self.open(Budget(), self.with_own(DEFAULT_OPTIONS, own)).close()

    def solve(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> SolverResult:
        """Solve a Pyomo model and load the best point found into its variables.

        The objective is computed from the loaded values, not taken from the solver. The time limit is what the
        clock of the budget has left (the budget's whole limit when the clock knows none); it is kept even when
        the solver does not, see :mod:`~cwb.solvers.guard`. Progress is shown from the calling thread.

        Parameters
        ----------
        model : pyomo.environ.ConcreteModel
            The model. Fixed variables are constants; its values change, nothing else of it.
        budget : Budget
            Limits and services.
        options : SolverOptions, optional
            What is asked for beside the model.

        Raises
        ------
        SolverUnavailable
            If the solver or its licence is missing, or the licence is too small for the model.
        Unsupported
            If the model needs what the solver cannot do.
        InputError
            If an option is unknown, or has a value that the solver does not take.
        """
        return next(self.solutions(model, budget, options))

    def solutions(self, model: Any, budget: Budget, options: SolverOptions) -> Iterator[SolverResult]:
        """Solve once, and give the points that the session has kept: the best one, or a pool, the best first."""
        from .running import finish, run_session

        self.require_installed()
        with budget.clock.phase("transfer") as transfer:
            session, matrix = self.transfer(model, budget, options)
        lend = used_again if self.numbers_threads else used_once
        with lend(self.name, session.close) as worker, budget.clock.phase("solve") as lap:
            outcome = run_session(session, matrix, worker, budget)
        yield finish(self.name, session.version, matrix, outcome, transfer.seconds, lap.seconds)
        for values in outcome.pool[1:]:
            other = replace(outcome, values=values, bound=None)
            yield finish(self.name, session.version, matrix, other, transfer.seconds, lap.seconds)

    def compile(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> Compiled:
        """Hand a linear Pyomo model over once, to be changed and solved again.

        Integer variables are allowed; dual values exist without them only. A solver that keeps nothing between solves
        begins each from the start.

        Raises
        ------
        Unsupported
            If the model is not linear.
        InputError, SolverUnavailable
            As :meth:`solve` does.
        """
        from .compiled import Compiled

        self.require_installed()
        with budget.clock.phase("transfer") as lap:
            session, matrix = self.transfer(model, budget, options, load=False)
            session.close()
        return Compiled(self, matrix, options, lap.seconds)

    def pool(self, model: Any, budget: Budget, options: SolverOptions, count: int) -> Iterator[SolverResult]:
        """Solutions that differ in a binary variable, the best first, each loaded into the model while it is the last.

        Each is found by a solve of its own, in which those before are excluded by a row; a result that is not optimal
        is the last.

        Parameters
        ----------
        model, budget, options
            As of :meth:`solve`; the model is linear.
        count : int
            How many are likely to be taken.

        Raises
        ------
        Unsupported
            If the model is not linear, or has no binary variables.
        """
        from .pool import by_exclusion

        del count
        return by_exclusion(self, model, budget, options)

    def require_installed(self) -> None:
        """Raise :class:`SolverUnavailable` if the library is missing."""
        found = self.installed()
        if not found.ok:
            raise SolverUnavailable(found.message)

    def transfer(
        self, model: Any, budget: Budget, options: SolverOptions, *, load: bool = True
    ) -> tuple[Session, MatrixModel]:
        """Open a session, compile the model and hand it over. Options are checked before the model is compiled."""
        # Pyomo is imported when something is solved, not when solvers are listed.
        from .matrix import compile_matrix
        from .support import refuse_what_cannot_be_solved

        _require_writable(budget.log_file)
        session = self.open(budget, options)
        try:
            matrix = compile_matrix(model)
            refuse_what_cannot_be_solved(matrix, self.title, self.capabilities)
            session.track.sign = matrix.sign
            if load and not matrix.is_settled:
                session.load(matrix, start=options.use_start)
        except BaseException:
            session.close()
            raise
        return session, matrix


def _require_writable(log_file: str | None) -> None:
    if log_file is None:
        return
    try:
        with Path(log_file).open("a"):
            pass
    except OSError as error:
        raise InputError(f"cannot write the solver's log: {error}") from None
