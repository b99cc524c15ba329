"""Specification of a run, and its observers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.answers import Answer
from ..core.bounds import Certificate
from ..core.budget import Incumbent, Progress, Start, ignore
from ..core.instance import Instance
from ..core.outcome import Outcome, Status

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

    @property
    def verifier_limit_s(self) -> float | None:
        """Seconds for the verifier, in addition to the run's limit; None without a limit."""
        return None if self.time_limit_s is None else max(self.time_limit_s, LEAST_VERIFIER_S)

    def limits(self) -> dict[str, float]:
        """Return the limits that are set, as in records."""
        asked = {"time_limit_s": self.time_limit_s, "gap": self.gap}
        return {name: value for name, value in asked.items() if value is not None}


@dataclass(frozen=True)
class Listener:
    """Observers of a run in progress."""

    progress: Progress = ignore
    tell: Callable[[Incumbent], None] = ignore  #: Called with every better :class:`~cwb.core.budget.Incumbent`.
    posed: Callable[[Instance], None] = lambda _: None  #: Called with the problem as posed to the method.
    #: Called before every solve with a function that returns the arrays of the model.
    on_model: Callable[[Callable[[], Any]], None] = ignore
    answered: Callable[[], None] = lambda: None  #: Called when the method is done and verification begins.
    #: Called with True when the compilation of loops begins, with False when it ends.
    compiling: Callable[[bool], None] = lambda _: None


def plain_option(value: Any) -> Any:
    """Convert an option to plain data for a record."""
    return value if isinstance(value, str | int | float | bool | list | dict | None) else str(value)


class BestSoFar:
    """Recorder of a method's best answer and bound; passes every incumbent on to ``tell``."""

    def __init__(self, tell: Callable[[Incumbent], None]) -> None:
        self._tell = tell
        self._answer: Callable[[], Answer | None] | None = None
        self._bound: float | None = None
        self._certificate: Certificate | None = None

    def tell(self, incumbent: Incumbent) -> None:
        """Record a method's incumbent; values of a solver's own model are only forwarded."""
        if incumbent.answer is not None:
            self._answer = incumbent.answer
        if incumbent.certificate is not None:
            self._bound, self._certificate = incumbent.bound, incumbent.certificate
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
