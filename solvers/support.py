"""Rejection of models that a solver cannot solve, before the transfer."""

from __future__ import annotations

from ..core.errors import Unsupported
from ..core.solver import Capability
from .convexity import nonconvex_columns
from .matrix import MatrixModel


def require_capabilities(matrix: MatrixModel, title: str, can: Capability) -> None:
    """Raise an error if a model needs a capability that a solver lacks.

    Parameters
    ----------
    can : Capability
        Capabilities of the solver. A quadratic objective together with integer variables needs ``NONCONVEX_QP``.

    Raises
    ------
    Unsupported
        If the solver cannot solve the model; the message names the first reason.
    """
    if matrix.is_mixed_integer and Capability.MIP not in can:
        raise Unsupported(f"{title} supports no integer variables, and the model has {matrix.size.integers}")
    if matrix.quadratic_rows and Capability.QUADRATIC_CONSTRAINTS not in can:
        name = matrix.rows[matrix.quadratic_rows[0].row].name
        raise Unsupported(f"{title} supports no quadratic constraints, and {name} is one: use --solver scip or gurobi")
    if matrix.Q is None or Capability.NONCONVEX_QP in can:
        return
    if Capability.CONVEX_QP not in can:
        raise Unsupported(f"{title} supports no quadratic objective: use --solver scip or gurobi")
    if matrix.is_mixed_integer:
        raise Unsupported(
            f"{title} supports no quadratic objective together with integer variables: use --solver scip or gurobi"
        )
    bad = nonconvex_columns(matrix.Q)
    if bad is not None:
        names = ", ".join(matrix.columns[j].name for j in bad[:3]) + (", ..." if bad.size > 3 else "")
        raise Unsupported(
            f"{title} supports only convex quadratic objectives, and this one is not convex in {names}: "
            "use --solver scip or gurobi"
        )
