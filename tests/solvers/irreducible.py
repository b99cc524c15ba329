"""Contradictory conditions of a model, confirmed by another program."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from cwb.core.budget import Budget
from cwb.harness.clock import WallClock
from cwb.solvers.conflict import LOWER, ROW, UPPER, Conflict
from cwb.solvers.matrix import MatrixModel
from scipy.optimize import Bounds, LinearConstraint, milp


def budget(seconds: float = 30.0) -> Budget:
    """Limits with a clock."""
    return Budget(seconds, clock=WallClock(seconds))


def feasible(matrix: MatrixModel, parts: Any, *, whole: bool) -> bool:
    """Check with SciPy if parts of a model can be satisfied."""
    rows = [number for kind, number in parts if kind == ROW]
    size = len(matrix.columns)
    lower: Any = np.full(size, -inf)
    upper: Any = np.full(size, inf)
    for kind, number in parts:
        if kind == LOWER:
            lower[number] = matrix.lower[number]
        elif kind == UPPER:
            upper[number] = matrix.upper[number]
    sides: tuple[Any, Any] = (matrix.row_lower[rows], matrix.row_upper[rows])
    rule = LinearConstraint(matrix.A[rows], *sides)
    found = milp(
        np.zeros(size),
        constraints=rule if rows else None,
        bounds=Bounds(lower, upper),
        integrality=matrix.integer * whole,
    )
    assert found.status in (0, 2), found.message
    return bool(found.status == 0)


def require_irreducible(matrix: MatrixModel, conflict: Conflict) -> None:
    """The conflict cannot be met alone, and without each of its parts it can."""
    assert conflict.irreducible
    assert not feasible(matrix, conflict.parts, whole=conflict.whole)
    for part in conflict.parts:
        rest = [other for other in conflict.parts if other != part]
        assert feasible(matrix, rest, whole=True)
