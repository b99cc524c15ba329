"""Which constraints of an infeasible model clash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.budget import Budget
from ...core.solver import Solver, SolverOptions, Termination


def clashing_constraints(model: Any, candidates: Sequence[Any], solver: Solver, budget: Budget) -> list[Any]:
    """Find an irreducible set of constraints that cannot be met together, by leaving out one after the other.

    Parameters
    ----------
    model : ConcreteModel
        An infeasible linear model.
    candidates : sequence of ConstraintData
        The active constraints that may be left out; the others always stay.
    solver : Solver
        Solves the model once for each candidate.
    budget : Budget
        Limits of the run.

    Returns
    -------
    list of ConstraintData
        A subset that is infeasible, and feasible without any one of it. Larger where the budget ended first.
    """
    needed: list[Any] = []
    try:
        for constraint in candidates:
            constraint.deactivate()
            if solver.solve(model, budget, SolverOptions()).termination is not Termination.INFEASIBLE:
                constraint.activate()
                needed.append(constraint)
    finally:
        for constraint in candidates:
            constraint.activate()
    return needed
