"""Specification of a run, and its observers: of progress, answers, models, and whether a solver was called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..core.answers import Answer
from ..core.bounds import Certificate
from ..core.budget import Budget, Incumbent, Progress, Start, ignore
from ..core.errors import InputError
from ..core.files import write_whole
from ..core.instance import Instance
from ..core.outcome import Outcome, Status
from ..core.solver import CompiledModel, ModelSize, SolverOptions, SolverResult
from ..exchange.models import FORMATS, write_model
from ..solvers.base import DEFAULT_OPTIONS, Adapter

if TYPE_CHECKING:
    from ..solvers.matrix import MatrixModel

DEFAULT_SOLVER = "highs"

LEAST_VERIFIER_S = 60.0  #: The verifier may take as long as the run, and so many seconds at least.


@dataclass(frozen=True)
class Request:
    """Specification of a run."""

    model: str  #: Name of the method to run.
    solver: str = DEFAULT_SOLVER
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    threads: int = 1
    #: ``time_limit_s`` and ``gap``: limits of the run; None for the method's own.
    time_limit_s: float | None = None
    gap: float | None = None
    log_file: str | None = None
    solver_options: Mapping[str, Any] = field(default_factory=dict)
    pool: int = 1  #: Number of different solutions of a declared model, the best first.
    start: Start | None = None  #: Answer from which the search of a declared model starts.
    bounds: str = "none"  #: Bounds of other methods that an answer is compared with: ``none``, ``cheap`` or ``all``.

    @property
    def verifier_limit_s(self) -> float | None:
        """Seconds for the verifier, in addition to the run's limit; None without a limit."""
        return None if self.time_limit_s is None else max(self.time_limit_s, LEAST_VERIFIER_S)

    def limits(self) -> dict[str, float]:
        """Return the limits that are set, as in records."""
        limits = {"time_limit_s": self.time_limit_s, "gap": self.gap}
        return {name: value for name, value in limits.items() if value is not None}


@dataclass(frozen=True)
class Listener:
    """Observers of a run in progress."""

    progress: Progress = ignore
    tell: Callable[[Incumbent], None] = ignore  #: Called with every better :class:`~cwb.core.budget.Incumbent`.
    on_problem: Callable[[Instance], None] = lambda _: None  #: Called with the problem as posed to the method.
    #: Called before every solve with a function that returns the arrays of the model.
    on_model: Callable[[Callable[[], Any]], None] = ignore
    answered: Callable[[], None] = lambda: None  #: Called when the method is done and verification begins.
    #: Called with True when the compilation of loops begins, with False when it ends.
    compiling: Callable[[bool], None] = lambda _: None


def plain_option(value: Any) -> Any:
    """Convert an option to plain data for a record."""
    return value if isinstance(value, str | int | float | bool | list | dict | None) else str(value)


MOST_REPORTS = 200  #: Reports of a run that are kept; of more, every other one is left out.


def report_of(incumbent: Incumbent, seconds: float) -> dict[str, Any]:
    """Return an incumbent as records have it, without numbers that JSON cannot represent."""
    values = {name: getattr(incumbent, name) for name in ("objective", "bound")}
    finite = {name: float(v) if v is not None and isfinite(v) else None for name, v in values.items()}
    return {**finite, "of": "solver" if incumbent.of_solver else "method", "seconds": seconds}


def extend_history(history: list[dict[str, Any]], report: Mapping[str, Any]) -> None:
    """Append a report, completed by the one of the same origin before it, if it says something new."""
    last: Mapping[str, Any] = next((each for each in reversed(history) if each["of"] == report["of"]), {})
    values = {name: last.get(name) if report[name] is None else report[name] for name in ("objective", "bound")}
    if any(value != last.get(name) for name, value in values.items()):
        history.append({**report, **values})
    if len(history) > MOST_REPORTS:
        del history[1:-1:2]


class BestSoFar:
    """Recorder of a method's best answer and bound; passes every incumbent on to ``tell``."""

    def __init__(self, tell: Callable[[Incumbent], None], elapsed_s: Callable[[], float]) -> None:
        self._tell, self._elapsed_s = tell, elapsed_s
        self.history: list[dict[str, Any]] = []
        self._answer: Callable[[], Answer | None] | None = None
        self._bound: float | None = None
        self._certificate: Certificate | None = None

    def tell(self, incumbent: Incumbent) -> None:
        """Record a method's incumbent; values of a solver's own model are only forwarded."""
        if incumbent.answer is not None:
            self._answer = incumbent.answer
        if incumbent.certificate is not None:
            self._bound, self._certificate = incumbent.bound, incumbent.certificate
        extend_history(self.history, report_of(incumbent, self._elapsed_s()))
        self._tell(incumbent)

    def outcome(self, message: str) -> Outcome:
        """Return the last reported answer and bound; the verifier computes the objective."""
        answer = None if self._answer is None else self._answer()
        return Outcome(
            Status.LIMIT if answer is None else Status.FEASIBLE,
            answer,
            bound=self._bound,
            certificate=self._certificate,
            message=message,
        )

    def bound_outcome(self, message: str) -> Outcome:
        """Return the last reported bound without an answer."""
        return Outcome(Status.LIMIT, bound=self._bound, certificate=self._certificate, message=message)


class RecordingSolver:
    """Wrapper that records whether a solver is called: records name only solvers that ran.

    It adds the user's options by the solver's own names to those of the method.
    """

    def __init__(self, solver: Adapter, own: Mapping[str, object] = MappingProxyType({})) -> None:
        self.solver, self.own, self.called = solver, own, False
        self.name, self.capabilities = solver.name, solver.capabilities
        self.installation, self.licence = solver.installation, solver.licence

    def solve(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> SolverResult:
        """Solve a Pyomo model."""
        self.called = True
        return self.solver.solve(model, budget, self.solver.with_own(options, self.own))

    def compile(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> CompiledModel:
        """Pass a linear Pyomo model to the solver once."""
        self.called = True
        return self.solver.compile(model, budget, self.solver.with_own(options, self.own))

    def pool(self, model: Any, budget: Budget, options: SolverOptions, count: int) -> Iterator[SolverResult]:
        """Yield the best solutions of a Pyomo model."""
        self.called = True
        return self.solver.pool(model, budget, self.solver.with_own(options, self.own), count)

    def check_options(self) -> None:
        """Reject options unknown to the solver, before anything runs."""
        if self.own:
            self.solver.check_options(self.own)


class LastModel:
    """Keeps the last model of a run (``Listener.on_model``) as solved, with all later changes."""

    def __init__(self, path: Path) -> None:
        if path.suffix not in FORMATS:
            raise InputError(f"a file that ends in {path.suffix!r}; expected {' or '.join(FORMATS)}", source=str(path))
        self.path = path
        self.size: ModelSize | None = None
        self._text: Callable[[], bytes] | None = None

    def __call__(self, model: Callable[[], MatrixModel]) -> None:
        """Replace the kept model."""
        matrix, suffix = model(), self.path.suffix
        self.size = matrix.size
        if matrix.quadratic_rows:
            # Such a model is never kept between solves, so Pyomo's is what is solved; later it may be changed.
            text = write_model(matrix.rows[0].model(), suffix)
            self._text = lambda: text
            return
        from ..solvers.highs_common import model_text

        self._text = lambda: model_text(matrix, suffix)

    def write(self) -> bool:
        """Write the file; return False, and write nothing, if no solver received a model."""
        if self._text is None:
            return False
        write_whole(self.path, self._text())
        return True
