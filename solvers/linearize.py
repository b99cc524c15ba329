"""Decomposition of a Pyomo model into a linear part and quadratic pieces.

A model of plain sums is read by :mod:`.plain_rows`. The linear part of any other goes through Pyomo's own compiler.
That compiler knows no quadratic terms and fails at the first false constraint without variables, so components that it
does not support are set aside first (deactivated while it runs) and compiled here.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pyomo.common.errors import InfeasibleConstraintException, InvalidValueError
from pyomo.core.base import Block, Constraint, Expression, Objective, Param, Set, Suffix, Var, maximize
from pyomo.core.base.boolean_var import BooleanVar
from pyomo.core.base.external import ExternalFunction
from pyomo.core.base.set import RangeSet
from pyomo.core.expr.numvalue import polynomial_degree, value
from pyomo.repn import generate_standard_repn
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from ..core.errors import InputError, Unsupported
from .plain_rows import NotPlain, PlainRows

#: Relative: how far a constraint without variables may be off before it makes the model infeasible.
CONSTANT_TOLERANCE = 1e-8

_KNOWN = {Block, BooleanVar, Constraint, Expression, ExternalFunction, Objective, Param, RangeSet, Set, Suffix, Var}


@dataclass(eq=False)
class LinearParts:
    """Parts of a model; see :class:`~cwb.solvers.matrix.MatrixModel` for the names."""

    columns: Any
    rows: list[Any]
    sign: float
    c: NDArray[Any]
    offset: float
    A: Any
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    Q: Any = None
    quadratic_rows: list[tuple[int, Any]] = field(default_factory=list)
    unused: Sequence[Any] = ()
    contradiction: str | None = None


#: Body that Pyomo's linear compiler does not support: constant, linear and quadratic terms.
_Piece = tuple[float, list[tuple[Any, float]], list[tuple[Any, Any, float]]]


def linear_parts(model: Any) -> LinearParts:
    """Compile a Pyomo model; raises as :func:`~cwb.solvers.matrix.compile_matrix` does."""
    objective = _objective(model)
    if not {component.ctype for component in model.component_objects(active=True)} - _KNOWN:
        with suppress(NotPlain):
            return from_plain_rows(model, objective)
    return from_compiler(model, objective)


def from_compiler(model: Any, objective: Any) -> LinearParts:
    """Compile any model, using Pyomo's compiler as far as possible."""
    try:
        info, aside = _compile(model, objective)
        parts = _from_standard_form(info, objective)
    except InvalidValueError as error:
        raise InputError(" ".join(str(error).split())) from None
    if aside:
        _add_pieces(parts, aside, objective)
    ids = {id(column) for column in parts.columns}
    every = model.component_data_objects(Var, active=True)
    parts.unused = [variable for variable in every if id(variable) not in ids and not variable.fixed]
    return parts


def from_plain_rows(model: Any, objective: Any) -> LinearParts:
    """Read a model of plain sums; raises :class:`~cwb.solvers.plain_rows.NotPlain` for others."""
    plain = PlainRows(model, objective)
    sign = _sign(objective)
    return LinearParts(
        columns=plain.columns,
        rows=plain.rows,
        sign=sign,
        c=sign * plain.c + 0.0,  # no -0.0
        offset=sign * plain.offset + 0.0,
        A=plain.A,
        row_lower=plain.lower,
        row_upper=plain.upper,
        unused=plain.unused,
    )


def _sign(objective: Any) -> float:
    return -1.0 if objective is not None and objective.sense == maximize else 1.0


def _objective(model: Any) -> Any:
    objectives = list(model.component_data_objects(Objective, active=True))
    if len(objectives) > 1:
        raise InputError(
            f"the model has {len(objectives)} active objectives, but a solver supports one: "
            + ", ".join(objective.name for objective in objectives[:3])
        )
    return objectives[0] if objectives else None


def _compile(model: Any, objective: Any) -> tuple[Any, list[Any]]:
    """Run Pyomo's linear compiler; return its result and the components that were set aside.

    At its first failure, components with a degree above one or no variables are set aside. If it fails again, over
    terms that cancel out such as x - x or 0*(x*y), everything is: that is slower and always right.
    """
    compiler = LinearStandardFormCompiler()
    rounds: tuple[Callable[[int | None], bool] | None, ...] = (None, lambda degree: degree != 1, lambda degree: True)
    failure: Exception = ValueError()
    for is_set_aside in rounds:
        aside = [] if is_set_aside is None else _choose(model, objective, is_set_aside)
        try:
            with _inactive(aside):
                return compiler.write(model, mixed_form=True), aside
        except InvalidValueError:
            raise
        except (ValueError, NameError, InfeasibleConstraintException) as error:
            # Pyomo's versions differ: before 6.10.1 a false constraint ends in the NameError of an exception that was
            # not imported. What does not go away by setting things aside is raised after the last round.
            failure = error
            if unknown := model.collect_ctypes(active=True) - _KNOWN:
                kinds = ", ".join(sorted(kind.__name__ for kind in unknown))
                text = f"the model has components that solvers do not support: {kinds}; write them as constraints"
                raise Unsupported(text) from None
    raise failure


def _choose(model: Any, objective: Any, is_set_aside: Callable[[int | None], bool]) -> list[Any]:
    parts = [
        c for c in model.component_data_objects(Constraint, active=True) if is_set_aside(polynomial_degree(c.body))
    ]
    if objective is not None and is_set_aside(polynomial_degree(objective.expr)):
        parts.append(objective)
    return parts


def _sides(constraint: Any) -> tuple[float, float]:
    lower, upper = constraint.lb, constraint.ub
    return -inf if lower is None else lower, inf if upper is None else upper


@contextmanager
def _inactive(components: Sequence[Any]) -> Iterator[None]:
    for component in components:
        component.deactivate()
    try:
        yield
    finally:
        for component in components:
            component.activate()


def _from_standard_form(info: Any, objective: Any) -> LinearParts:
    """Convert Pyomo's rows, two for a range, to rows with two sides."""
    constraints = [row.constraint for row in info.rows]
    kinds = np.fromiter((row.bound_type for row in info.rows), dtype=np.int8, count=len(info.rows))
    rhs = np.asarray(info.rhs, dtype=float)
    # A range comes as its upper row, immediately followed by its lower row.
    second = np.zeros(len(constraints), dtype=bool)
    for i in np.flatnonzero((kinds[1:] == -1) & (kinds[:-1] == 1)):
        second[i + 1] = constraints[i] is constraints[i + 1]
    lower = np.where(kinds <= 0, rhs, -inf)
    upper = np.where(kinds >= 0, rhs, inf)
    lower[:-1][second[1:]] = rhs[1:][second[1:]]
    firsts = np.flatnonzero(~second)
    A = info.A.tocsr()
    c = info.c.toarray()[0] if info.c.shape[0] else np.zeros(len(info.columns))
    rows = [constraints[i] for i in firsts] if second.any() else constraints
    return LinearParts(
        columns=list(info.columns),
        rows=rows,
        sign=_sign(objective),
        c=c,
        offset=float(info.c_offset[0]) if len(info.c_offset) else 0.0,
        A=A[firsts] if second.any() else A,
        row_lower=lower[firsts],
        row_upper=upper[firsts],
    )


def _piece(component: Any) -> _Piece:
    is_constraint = component.ctype is Constraint
    body = component.body if is_constraint else component.expr
    repn = generate_standard_repn(body, quadratic=True)
    if repn.nonlinear_expr is not None:
        what = f"constraint {component.name}" if is_constraint else f"objective {component.name}"
        raise Unsupported(
            f"{what} is neither linear nor quadratic: the solvers support no 1/x, exp, log or products of three; "
            "state it otherwise (y >= 1/x as x*y >= 1) or approximate it by lines"
        )
    linear = [(v, float(value(a))) for v, a in zip(repn.linear_vars, repn.linear_coefs, strict=True)]
    pairs = zip(repn.quadratic_vars, repn.quadratic_coefs, strict=True)
    quadratic = [(v, w, float(value(a))) for (v, w), a in pairs if value(a) != 0.0]
    return float(value(repn.constant)), linear, quadratic


def _add_pieces(parts: LinearParts, components: Sequence[Any], objective: Any) -> None:
    """Append the set-aside components: new columns, the quadratic objective, and rows at the end."""
    pieces = [(component, _piece(component)) for component in components]
    index = {id(v): j for j, v in enumerate(parts.columns)}
    for _, (_, linear_terms, quadratic_terms) in pieces:
        for v in [v for v, _ in linear_terms] + [v for pair in quadratic_terms for v in pair[:2]]:
            if id(v) not in index:
                index[id(v)] = len(parts.columns)
                parts.columns.append(v)
    width = len(parts.columns)
    parts.c = np.append(parts.c, np.zeros(width - parts.c.size))
    parts.A = sp.csr_array((parts.A.data, parts.A.indices, parts.A.indptr), shape=(parts.A.shape[0], width))

    lower, upper, linear = [], [], []
    for component, (constant, linear_terms, quadratic_terms) in pieces:
        Q = _symmetric(quadratic_terms, index, width)
        terms = [(index[id(v)], a) for v, a in linear_terms]
        if component is objective:
            parts.c = parts.sign * np.bincount([j for j, _ in terms], [a for _, a in terms], width)
            parts.offset = parts.sign * constant
            parts.Q = None if Q is None else parts.sign * Q
            continue
        low, up = _sides(component)
        if Q is None and not any(a for _, a in terms):
            tolerance = CONSTANT_TOLERANCE * max(1.0, abs(constant))
            if parts.contradiction is None and not low - tolerance <= constant <= up + tolerance:
                text = f"is false whatever the variables are: {constant:.12g} is outside its sides"
                parts.contradiction = f"constraint {component.name} {text}"
            continue
        if Q is not None:
            parts.quadratic_rows.append((len(parts.rows), Q))
        parts.rows.append(component)
        linear.append(terms)
        lower.append(low - constant)
        upper.append(up - constant)
    if linear:
        entries = [(row, column, a) for row, terms in enumerate(linear) for column, a in terms]
        i, j, data = zip(*entries, strict=True) if entries else ((), (), ())
        block = sp.coo_array((np.array(data, dtype=float), (i, j)), shape=(len(linear), width))
        parts.A = sp.vstack([parts.A, block], format="csr")
    parts.row_lower = np.append(parts.row_lower, lower)
    parts.row_upper = np.append(parts.row_upper, upper)


def _symmetric(terms: Sequence[tuple[Any, Any, float]], index: dict[int, int], width: int) -> Any:
    """Return symmetric Q with 1/2 x' Q x = sum of the terms, or None without terms."""
    if not terms:
        return None
    i = np.array([index[id(v)] for v, _, _ in terms])
    j = np.array([index[id(w)] for _, w, _ in terms])
    a = np.array([a for _, _, a in terms])
    Q = sp.coo_array((np.append(a, a), (np.append(i, j), np.append(j, i))), shape=(width, width)).tocsc()
    Q.sum_duplicates()
    Q.eliminate_zeros()
    return Q if Q.nnz else None
