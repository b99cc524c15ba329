"""How an algorithm becomes a method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.budget import Budget
from ...core.collective import CollectiveKind
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome, Status
from ...core.schedule import StepSchedule
from ...core.solver import Solver
from ..common.compose import merge
from ..common.schedule_bounds import best_bound
from .assemble import Algorithm, assemble
from .problem import Problem, pose_problem, why_not


class NoOptions(Strict):
    """The algorithm leaves nothing to choose."""


def fits_all(problem: Problem) -> str | None:
    """Have nothing against any problem."""
    del problem
    return None


def define(
    name: str,
    summary: str,
    paper: str,
    collectives: tuple[CollectiveKind, ...],
    algorithm: Callable[[Problem, Any], Algorithm],
    options: type[Strict] = NoOptions,
    fits: Callable[[Problem], str | None] = fits_all,
) -> Method:
    """Make a method.

    Parameters
    ----------
    name, summary, paper : str
        See :class:`~cwb.core.method.Method`.
    collectives : tuple of CollectiveKind
        What the algorithm defines.
    algorithm : callable
        ``algorithm(problem, options) -> Algorithm``.
    options : type of Strict
        What can be chosen.
    fits : callable
        ``fits(problem) -> str | None``: the reason why the network or the group does not fit.
    """

    def fault(instance: Instance) -> str | None:
        return why_not(instance, collectives) or fits(pose_problem(instance))

    def supports(instance: Instance) -> str | None:
        if not instance.demands:
            return fault(instance)
        faults = (fault(instance.of_one(demand)) for demand in instance.demands)
        return next((reason for reason in faults if reason is not None), None)

    def run(instance: Instance, solver: Solver, budget: Budget, given: Any) -> Outcome:
        del solver, budget
        problems = [pose_problem(instance.of_one(demand)) for demand in instance.demands]
        schedules = [assemble(problem, algorithm(problem, given)) for problem in problems]
        bound, certificate = best_bound(instance)
        schedule = merge(instance.sha256, schedules)
        return Outcome(Status.FEASIBLE, schedule, bound=float(bound), certificate=certificate)

    return Method(
        name=name,
        kind=Kind.HEURISTIC,
        summary=summary,
        paper=paper,
        answer_type=StepSchedule,
        options=options,
        run=run,
        supports=supports,
        needs_solver=False,
    )
