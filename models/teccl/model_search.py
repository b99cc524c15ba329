"""State and steps that TE-CCL's searches by models share: bound, best schedule, solves, bisection, outcome."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

from ...core.bounds import Certificate, SolverBound
from ...core.budget import Budget, Incumbent
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Schedule
from ...core.solver import ModelSize, Solver, SolverOptions, SolverResult
from .bounds import lower_bound
from .problem import EpochProblem, epoch_problem

WHOLLY = 1 - 1e-6  #: A smaller part of the demands is less than all of them for certain.


@dataclass(kw_only=True)
class ModelSearch:
    """Search for the fewest epochs by models of K epochs, with its bound and best schedule."""

    problem: EpochProblem
    solver: Solver
    budget: Budget
    simple: int  #: Epochs that the certificate proves to be needed.
    certificate: Certificate | None
    low: int  #: Epochs that are needed in the models, which may have further rules.
    high: int | None = None  #: Epochs of the best schedule.
    answer: Callable[[], Schedule] | None = None  #: Returns the best schedule.
    reports: list[SolverResult] = field(default_factory=list)
    stopped: bool = False  #: A solve has ended without an answer.

    @classmethod
    def with_bound(cls, problem: EpochProblem, solver: Solver, budget: Budget, **more: Any) -> Self:
        """Begin a search with the best of the simple bounds, and report it."""
        low, certificate = lower_bound(problem)
        budget.tell_bound(problem.seconds(low), certificate)
        more |= {"simple": low, "certificate": certificate, "low": max(1, low)}
        return cls(problem=problem, solver=solver, budget=budget, **more)

    @property
    def is_over(self) -> bool:
        """True if a solve has ended without an answer, or the budget has ended."""
        return self.stopped or self.budget.is_exhausted

    def solve_model(self, model: Any, limits: SolverOptions, budget: Budget | None = None) -> SolverResult:
        """Solve a model, by default with all of the time that is left."""
        result = self.solver.solve(model, budget or self.budget, limits)
        self.reports.append(result)
        return result

    def keep(self, epochs: int, answer: Callable[[], Schedule], *, tell: bool = True) -> bool:
        """Keep and report a schedule if it takes fewer epochs than the best one; return True if it does."""
        if self.high is not None and epochs >= self.high:
            return False
        self.high, self.answer = epochs, answer
        if tell:
            self.budget.tell(Incumbent(float(self.problem.seconds(epochs)), answer=answer))
        return True

    def bisect(self, within: Callable[[int], object], gap: Fraction = Fraction(0)) -> None:
        """Search between bound and best schedule until they are within a relative gap."""
        while self.high is not None and self.high - self.low > gap * self.high and not self.is_over:
            within((self.low + self.high - 1) // 2)

    def outcome(self, low: int, most: int | None, message: str, metrics: Mapping[str, object]) -> Outcome:
        """Return the outcome; ``low`` epochs are needed for the instance, and at most ``most`` were allowed."""
        proof = self.certificate
        if low > self.simple and self.reports:
            proof = SolverBound(self.reports[-1].solver, self.reports[-1].version)
        reports = tuple(self.reports)
        outcome = Outcome(
            Status.INFEASIBLE if most is not None and most < low else Status.LIMIT,
            message=message,
            reports=reports,
            size=max((report.size for report in reports), key=lambda size: size.variables, default=ModelSize()),
            iterations=len(reports),
            metrics=metrics,
        )
        if self.answer is None or self.high is None:
            return outcome
        return replace(
            outcome,
            status=Status.OPTIMAL if proof is not None and low >= self.high else Status.FEASIBLE,
            answer=self.answer(),
            objective=float(self.problem.seconds(self.high)),
            bound=None if proof is None else float(self.problem.seconds(low)),
            certificate=proof,
        )


def without_small_switches(instance: Instance) -> EpochProblem:
    """Put an instance on its grid; reject one with a switch that stores a limited amount."""
    problem = epoch_problem(instance)
    if any(problem.holds):
        raise Unsupported("only teccl-milp supports switches with limited storage")
    return problem


def epochs_of_model(epochs: int | None, default: int, least: int) -> int:
    """Return the model's number of epochs K."""
    if epochs is not None and epochs < least:
        raise InputError(f"K = {epochs} is too small: {least} epochs are needed", source="-O", place="epochs")
    return default if epochs is None else epochs


def needed_seconds(problem: EpochProblem, part: float, epochs: int, least: int) -> float | None:
    """Return the least seconds if no larger part can be met in ``epochs`` epochs.

    One epoch more if something is lacking, else this number if no fewer suffice; None if fewer may.
    """
    if part < WHOLLY:
        return float(problem.seconds(epochs + 1))
    return float(problem.seconds(epochs)) if epochs == least else None
