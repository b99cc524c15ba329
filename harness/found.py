"""What a run has found so far, for the case that it is broken off."""

from __future__ import annotations

from collections.abc import Callable

from ..core.answers import Answer
from ..core.bounds import Certificate
from ..core.budget import Incumbent
from ..core.method import Outcome, Status


class Found:
    """Keeps the best answer and the best bound that a method tells, and passes on what it tells.

    Parameters
    ----------
    tell : callable
        Who else takes in an :class:`~cwb.core.budget.Incumbent`.
    """

    def __init__(self, tell: Callable[[Incumbent], None]) -> None:
        self._tell = tell
        self._answer: Callable[[], Answer | None] | None = None
        self._bound: float | None = None
        self._certificate: Certificate | None = None

    def tell(self, incumbent: Incumbent) -> None:
        """Take in what the method tells; numbers of a solver's own model are passed on alone."""
        if incumbent.answer is not None:
            self._answer = incumbent.answer
        if incumbent.certificate is not None:
            self._bound, self._certificate = incumbent.bound, incumbent.certificate
        self._tell(incumbent)

    def outcome(self, message: str) -> Outcome:
        """The answer and the bound that were told last, whose objective is left to the verifier."""
        answer = None if self._answer is None else self._answer()
        return Outcome(
            Status.LIMIT if answer is None else Status.FEASIBLE,
            answer,
            bound=self._bound,
            certificate=self._certificate,
            message=message,
        )

    def bound_alone(self, message: str) -> Outcome:
        """The bound that was told last."""
        return Outcome(Status.LIMIT, bound=self._bound, certificate=self._certificate, message=message)
