"""Values of a solved model by variable and constraint, as pandas DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..core.budget import Budget
from ..core.solver import Capability, Termination
from ..solvers.conflict import index_names

if TYPE_CHECKING:
    from ..solvers.base import Adapter
    from ..solvers.matrix import MatrixModel


@dataclass(frozen=True)
class SolvedModel:
    """Pyomo model with its arrays; rows and columns alone would not keep it."""

    model: Any
    matrix: MatrixModel


def model_frames(solved: SolvedModel, solver: Adapter, budget: Budget) -> dict[str, pd.DataFrame]:
    """Return the values of variables and constraints of a solved model; see :meth:`cwb.Run.model_values`."""
    matrix = solved.matrix
    x = np.array([column.value for column in matrix.columns], dtype=float)
    constants = np.array(matrix.body_constants())
    variables = {"value": x, "lower": matrix.lower, "upper": matrix.upper}
    rows = {
        "value": matrix.activity(x) + constants,
        "lower": matrix.row_lower + constants,
        "upper": matrix.row_upper + constants,
    }
    if (duals := _dual_values(solved, solver, budget)) is not None:
        rows["dual"] = duals
    return _frames(matrix.columns, variables) | _frames(matrix.rows, rows)


def _dual_values(solved: SolvedModel, solver: Adapter, budget: Budget) -> Any:
    """Solve a linear program once more for its dual values; None for other models and solvers.

    It is also None if the solve is stopped, as by the time limit.
    """
    matrix = solved.matrix
    if matrix.is_mixed_integer or matrix.Q is not None or matrix.quadratic_rows:
        return None
    if Capability.DUALS not in solver.capabilities:
        return None
    compiled = solver.compile(solved.model, budget)
    if compiled.solve(budget).termination is not Termination.OPTIMAL:
        return None
    return np.array([compiled.dual(row) for row in matrix.rows])


def _frames(parts: Sequence[Any], values: dict[str, Any]) -> dict[str, pd.DataFrame]:
    """Return a table for each component, with a row for each of its parts, without a -0.0."""
    places: dict[Any, list[int]] = {}
    for place, part in enumerate(parts):
        places.setdefault(part.parent_component().name, []).append(place)
    frames = {}
    for name, here in places.items():
        index = None
        if parts[here[0]].index() is not None:
            keys = [parts[place].index() for place in here]
            keys = [key if isinstance(key, tuple) else (key,) for key in keys]
            component = parts[here[0]].parent_component()
            names: list[str] | list[None] = index_names(component, len(keys[0])) or [None] * len(keys[0])
            index = (
                pd.MultiIndex.from_tuples(keys, names=names)
                if len(names) > 1
                else pd.Index([key for (key,) in keys], name=names[0])
            )
        frames[name] = pd.DataFrame({column: array[here] + 0.0 for column, array in values.items()}, index=index)
    return frames
