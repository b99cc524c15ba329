"""How an algorithm becomes a method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...core.budget import Budget
from ...core.collective import CollectiveKind
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome
from ...core.schedule import StepSchedule
from ...core.solver import Solver
from ..common.schedule_bounds import best_bound
from .assemble import Algorithm, answer
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

    def supports(instance: Instance) -> str | None:
        return why_not(instance, collectives) or fits(pose_problem(instance))

    def run(instance: Instance, solver: Solver, budget: Budget, given: Any) -> Outcome:
        del solver, budget
        problem = pose_problem(instance)
        bound, certificate = best_bound(instance)
        return replace(answer(problem, algorithm(problem, given)), bound=float(bound), certificate=certificate)

    return Method(
        name=name,
        kind=Kind.HEURISTIC,
        summary=summary,
        paper=paper,
        answer_type=StepSchedule,
        options=options,
        run=run,
        objective_unit=seconds,
        supports=supports,
        needs_solver=False,
    )


def seconds(instance: Instance) -> str:
    """Schedules are measured in seconds."""
    del instance
    return "s"
