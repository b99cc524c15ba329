"""The best solutions of a model, one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyomo.environ as pyo

from ..core.budget import Budget
from ..core.errors import Unsupported
from ..core.solver import SolverOptions, SolverResult, Termination
from .matrix import BoolArray, FloatArray, MatrixModel

if TYPE_CHECKING:
    from .base import Adapter


def binaries(matrix: MatrixModel) -> BoolArray:
    """Columns by which solutions are distinguished.

    Raises
    ------
    Unsupported
        If there are none.
    """
    found: BoolArray = matrix.integer & (matrix.lower >= 0.0) & (matrix.upper <= 1.0)
    if not found.any():
        raise Unsupported("the model has no binary variables, by which solutions of a pool could be distinguished")
    return found


def by_exclusion(
    adapter: Adapter, model: Any, budget: Budget, options: SolverOptions, known: Iterable[FloatArray] = ()
) -> Iterator[SolverResult]:
    """Solve, exclude what was found by a row on the binary variables, and solve again.

    Parameters
    ----------
    adapter, model, budget, options
        Who solves what, and how.
    known : iterable of array
        Points that are excluded from the beginning.
    """
    compiled = adapter.compile(model, budget, options)
    matrix = compiled.assembled()
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
