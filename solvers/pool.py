"""Best solutions of a model, one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyomo.environ as pyo

from ..core.budget import Budget
from ..core.errors import Unsupported
from ..core.solver import SolverResult, Termination
from .compiled_model import CompiledLinearModel
from .matrix import BoolArray, FloatArray, MatrixModel


def binaries(matrix: MatrixModel) -> BoolArray:
    """Return the mask of the columns that distinguish solutions; raise Unsupported if there are none."""
    found: BoolArray = matrix.integer & (matrix.lower >= 0.0) & (matrix.upper <= 1.0)
    if not found.any():
        raise Unsupported("the model has no binary variables to distinguish the solutions of a pool")
    return found


def solve_by_exclusion(
    compiled: CompiledLinearModel, budget: Budget, known: Iterable[FloatArray] = ()
) -> Iterator[SolverResult]:
    """Solve repeatedly, with each solution excluded by a row on the binary variables.

    Parameters
    ----------
    compiled : Compiled
        Model to which a row is added for every solution.
    known : iterable of array
        Points that are excluded from the beginning.
    """
    matrix = compiled.assemble()
    chosen = np.flatnonzero(binaries(matrix))
    variables = [matrix.columns[j] for j in chosen]
    kept = pyo.ConcreteModel()
    kept.other = pyo.ConstraintList()

    def exclude(values: Iterable[float]) -> None:
        changed = [1.0 - x if round(value) else x for x, value in zip(variables, values, strict=True)]
        compiled.add_constraint(kept.other.add(pyo.quicksum(changed) >= 1.0))

    for point in known:
        exclude(point[chosen])
    while True:
        result = compiled.solve(budget)
        yield result
        if result.termination is not Termination.OPTIMAL:
            return
        exclude(variable.value for variable in variables)
