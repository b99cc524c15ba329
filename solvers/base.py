"""Common part of the adapters, from a Pyomo model to a result.

An adapter is an :class:`Adapter` (light: it imports no solver library before it solves) that opens a
:class:`~cwb.solvers.session.Session` (one model inside one native solver), which runs in the guard's thread; everything
else is done here, once for all solvers (docs/solvers.md).
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from ..core.budget import Budget
from ..core.errors import InputError, SolverUnavailable
from ..core.solver import Availability, Capability, SolverOptions, SolverResult
from .guard import lend_worker
from .options import NativeOption, check_option
from .session import Session, SessionResult, Track, finish, run_session

if TYPE_CHECKING:
    from .compiled_model import CompiledLinearModel
    from .matrix import MatrixModel

__all__ = ["Adapter", "Session", "SessionResult", "Track"]

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
    "rel_gap": NativeOption(float, 0.0),
    "node_limit": NativeOption(int, 0.0),
    # With a looser one, what a solver calls optimal may be far beyond the optimum.
    "feasibility_tolerance": NativeOption(float, 0.0, 1e-5),
}


class Adapter:
    """Adapter of a solver, see :class:`~cwb.core.solver.Solver`."""

    name: str
    title: str
    option_word: ClassVar[str] = "option"  #: What the solver calls its options, for errors.
    package: ClassVar[str]
    requirement: ClassVar[str]
    capabilities: Capability
    #: True if the library counts the threads that have called it, so that they must be used again.
    numbers_threads: ClassVar[bool] = False
    #: Options by the solver's own names that are set by other means: fields of :class:`SolverOptions`, or in words.
    elsewhere: ClassVar[Mapping[str, str]] = MappingProxyType({})
    #: Class of its sessions in this package, ``module:class``; an adapter from elsewhere overrides :meth:`open`.
    session: ClassVar[str]

    def open(self, budget: Budget, options: SolverOptions) -> Session:
        """Start a session and apply the options to it."""
        module, _, name = self.session.partition(":")
        session: Session = getattr(importlib.import_module(f".{module}", __package__), name)(self, budget, options)
        return session

    def own_options(self, options: SolverOptions) -> Iterator[tuple[str, object]]:
        """Yield options by the solver's own names; raise InputError for one that is set by other means."""
        for name, value in options.extra.items():
            if means := self.means_of(name):
                raise InputError(f"{self.title}'s {self.option_word} {name} is set by {means}, not directly")
            yield name, value

    def installation(self) -> Availability:
        """Check if the solver's library can be imported, without importing it."""
        if importlib.util.find_spec(self.package) is None:
            return Availability(False, f'{self.name} is not installed: pip install "{self.requirement}"')
        version = metadata.version(self.package)
        return Availability(True, f"{self.title} {version}", version)

    def licence(self) -> Availability:
        """Check if the solver may be used; a free one may if it is installed."""
        return self.installation()

    def with_own(self, options: SolverOptions, own: Mapping[str, object]) -> SolverOptions:
        """Return options with additional ones by the solver's own names, which take precedence.

        Of the solver's own options, which a user has set, its name of a field of :class:`SolverOptions`, such as its
        gap, sets that field.
        """
        fields: dict[str, Any] = {}
        extra = dict(options.extra)
        for name, value in own.items():
            field = self.means_of(name)
            if field in _FIELDS:
                fields[field] = check_option(self.title, name, value, {name: _FIELDS[field]})
            else:
                extra[name] = value
        return replace(options, **fields, extra=extra)

    def means_of(self, name: str) -> str:
        """Return the means by which cwb sets one of the solver's options; empty if there is none."""
        return self.elsewhere.get(name, "")

    def check_options(self, own: Mapping[str, object]) -> None:
        """Validate options by the solver's own names, without a model.

        Raise InputError if one is unknown, has a value that the solver does not accept, or is set by other means, and
        SolverUnavailable without the solver or its licence.
        """
        self.require_installed()
        self.open(Budget(), self.with_own(DEFAULT_OPTIONS, own)).close()

    def solve(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> SolverResult:
        """Solve a Pyomo model and load the best point found into its variables.

        The objective is computed from the loaded values, not read from the solver. The time limit is the remaining time
        of the budget's clock (the budget's whole limit if the clock knows none); it is enforced even if the solver does
        not, see :mod:`~cwb.solvers.guard`. Progress is shown from the calling thread. Fixed variables are constants;
        only the values of the model change. Raise SolverUnavailable without the solver or its licence, or if that is
        too small for the model; Unsupported if the model needs a capability that the solver lacks; InputError for
        options as :meth:`check_options`.
        """
        return next(self.solutions(model, budget, options))

    def solutions(self, model: Any, budget: Budget, options: SolverOptions) -> Iterator[SolverResult]:
        """Solve once, and yield the points that the session kept: the best, or a pool, best first."""
        self.require_installed()
        with budget.clock.phase("transfer") as transfer:
            session, matrix = self.transfer(model, budget, options)
        with (
            lend_worker(self.name, session.close, again=self.numbers_threads) as worker,
            budget.clock.phase("solve") as lap,
        ):
            outcome = run_session(session, matrix, worker, budget)
        yield finish(self.name, session.version, matrix, outcome, transfer.seconds, lap.seconds)
        for values in outcome.pool[1:]:
            other = replace(outcome, values=values, bound=None)
            yield finish(self.name, session.version, matrix, other, transfer.seconds, lap.seconds)

    def compile(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> CompiledLinearModel:
        """Transfer a linear Pyomo model once, for changes and re-solves.

        Integer variables are allowed; dual values exist only without them. A solver that keeps nothing between solves
        starts each from scratch. Raise Unsupported if the model is not linear, others as :meth:`solve`.
        """
        from .compiled_model import CompiledLinearModel

        self.require_installed()
        with budget.clock.phase("transfer") as lap:
            session, matrix = self.transfer(model, budget, options, load=False)
            session.close()
        return CompiledLinearModel(self, matrix, options, lap.seconds)

    def pool(self, model: Any, budget: Budget, options: SolverOptions, count: int) -> Iterator[SolverResult]:
        """Yield solutions that differ in a binary variable, best first, each loaded into the model.

        Each is found by a separate solve, in which rows exclude the earlier ones; a result that is not optimal is the
        last. The model must be linear, with binary variables.
        """
        from .compiled_model import solve_by_exclusion

        yield from solve_by_exclusion(self.compile(model, budget, options), budget)

    def require_installed(self) -> None:
        """Raise :class:`SolverUnavailable` if the library is missing."""
        installation = self.installation()
        if not installation.ok:
            raise SolverUnavailable(installation.message)

    def transfer(
        self, model: Any, budget: Budget, options: SolverOptions, *, load: bool = True
    ) -> tuple[Session, MatrixModel]:
        """Open a session, check the options, compile the model and transfer it."""
        # Pyomo is imported when something is solved, not when solvers are listed.
        from .matrix import compile_matrix
        from .support import require_capabilities

        _require_writable(budget.log_file)
        session = self.open(budget, options)
        try:
            matrix = compile_matrix(model)
            require_capabilities(matrix, self.title, self.capabilities)
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
