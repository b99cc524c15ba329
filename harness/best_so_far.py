"""Best answer and bound of a run so far, kept in case it is interrupted."""

from __future__ import annotations

from collections.abc import Callable

from ..core.answers import Answer
from ..core.bounds import Certificate
from ..core.budget import Incumbent
from ..core.outcome import Outcome, Status


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
