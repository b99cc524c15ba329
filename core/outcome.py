"""Claims of methods, and the verifier's verdict on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .answers import Answer
from .bounds import Certificate
from .display import DisplayMixin
from .solver import ModelSize, SolverResult


class Status(Enum):
    """Status at the end of a run."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    LIMIT = "limit"
    UNSUPPORTED = "unsupported"
    ERROR = "error"


#: Message of a model that is solved, where no answer follows from its solution: the limit was not reached.
NO_ANSWER = "the model is solved, and its solution is no answer to the instance"

#: Message of a model whose bound on the time is infinite.
NO_TIME = "no finite time is enough: data cannot reach a rank that needs it"


@dataclass(frozen=True)
class Alternative:
    """One of several solutions of a declared model."""

    answer: Answer
    model_objective: float | None


@dataclass(frozen=True)
class Outcome:
    """Claims of a method; the verifier recomputes the objective and checks the certificate."""

    status: Status  #: ``optimal`` only with an answer and a bound that meet within the method's stated gap.
    answer: Answer | None = None
    objective: float | None = None  #: Claimed value of the answer.
    bound: float | None = None  #: Proved bound on the best possible value.
    certificate: Certificate | None = None
    message: str = ""  #: Reason why there is no answer, or a remark on it for the user.
    reports: tuple[SolverResult, ...] = ()
    size: ModelSize = field(default_factory=ModelSize)  #: The largest model that was passed to a solver.
    iterations: int = 0
    #: The method's own numbers, of those that :attr:`~cwb.core.method.Method.metrics` declares; never a score.
    metrics: Mapping[str, Any] = field(default_factory=dict)
    pool: tuple[Alternative, ...] = ()  #: Best solutions, if more than one was requested; the first is :attr:`answer`.


@dataclass(frozen=True, repr=False)
class Verdict(DisplayMixin):
    """Findings of the verifier; created in ``schedules``, never by the method."""

    violations: tuple[str, ...] = ()  #: The first errors of the answer or its certificate; empty if there are none.
    objective: float | None = None  #: The objective recomputed from the answer alone.
    bound: float | None = None  #: The bound recomputed from the certificate; None if this is not possible.
    metrics: Mapping[str, Any] = field(default_factory=dict)  #: Numbers of the answer, documented on the method's page.

    @property
    def ok(self) -> bool:
        """True if there are no violations."""
        return not self.violations

    def _facts(self) -> Mapping[str, object]:
        return {"ok": self.ok, "objective": self.objective, "bound": self.bound, "violations": self.violations or None}
