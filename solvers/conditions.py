"""Rows and bounds of a compiled model in terms of its declaration."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from pyomo.core.base import Constraint
from pyomo.core.expr.numvalue import value

from ..core.explanation import Condition
from .conflict import LOWER, ROW, Part
from .matrix import MatrixModel

#: Names of index values by the name of the argument of a rule that takes them.
Labels = Mapping[str, Callable[[Any], str]]

#: Terms of a row that are written out.
TERMS = 8


def conditions_of(matrix: MatrixModel, parts: Sequence[Part], labels: Labels) -> tuple[Condition, ...]:
    """Return names and algebra for parts of a model.

    Parameters
    ----------
    labels : mapping of str to callable
        ``labels["e"](3)`` is the name of link 3 if rules call links ``e``.
    """
    return tuple(
        _of_constraint(matrix.rows[number], _row(matrix, number), labels)
        if kind == ROW
        else _of_bound(matrix, kind, number)
        for kind, number in parts
    )


def false_conditions(model: Any, labels: Labels) -> tuple[Condition, ...]:
    """Return the first constraint without variables that is false, if any."""
    for data in model.component_data_objects(Constraint, active=True):
        if data.body is not None and not getattr(data.body, "is_potentially_variable", lambda: False)():
            lower, body, upper = value(data.lower), value(data.body), value(data.upper)
            if (lower is not None and body < lower) or (upper is not None and body > upper):
                return (_of_constraint(data, _sides(f"{body:.6g}", *_infinite(lower, upper)), labels),)
    return ()


def equation_of(component: Any) -> str:
    """Return the docstring of a constraint's rule or of the function that declares it, else an empty text."""
    rule = _function(component)
    if rule is None:
        return ""
    outer = rule.__qualname__.partition(".<locals>")[0]
    found: Any = sys.modules.get(rule.__module__)
    for name in outer.split("."):
        found = getattr(found, name, None)
    text = inspect.getdoc(rule) or inspect.getdoc(found) if callable(found) else inspect.getdoc(rule)
    return " ".join((text or "").partition("\n\n")[0].split())


def index_names(component: Any, count: int) -> list[str]:
    """Return the names of a constraint's indices, which are its rule's arguments; empty if these are not so many."""
    function = _function(component)
    names = [] if function is None else list(inspect.signature(function).parameters)[1:]
    return names if len(names) == count else []


def _function(component: Any) -> Any:
    return getattr(getattr(component, "rule", None), "_fcn", None)


def _of_constraint(data: Any, algebra: str, labels: Labels) -> Condition:
    component = data.parent_component()
    return Condition("constraint", component.local_name, _index(data, labels), algebra, equation_of(component))


def _index(data: Any, labels: Labels) -> str:
    """Return a constraint's index, each part with the name that the rule gives it."""
    index = data.index()
    if index is None:
        return ""
    parts = index if isinstance(index, tuple) else (index,)
    names = index_names(data.parent_component(), len(parts))
    if not names:
        return ", ".join(map(str, parts))
    return ", ".join(f"{name}={part}{_label_text(labels, name, part)}" for name, part in zip(names, parts, strict=True))


def _label_text(labels: Labels, name: str, part: Any) -> str:
    label = labels[name](part) if name in labels else str(part)
    return "" if label == str(part) else f" ({label})"


def _of_bound(matrix: MatrixModel, kind: str, number: int) -> Condition:
    column = matrix.columns[number]
    bound = float(matrix.lower[number] if kind == LOWER else matrix.upper[number]) + 0.0
    algebra = f"{column.name} {'>=' if kind == LOWER else '<='} {bound:.6g}"
    return Condition("bound", column.parent_component().local_name, "", algebra)


def _row(matrix: MatrixModel, number: int) -> str:
    """Return a row as compiled, in units of the model."""
    part = slice(matrix.A.indptr[number], matrix.A.indptr[number + 1])
    terms = [
        _term(coefficient, matrix.columns[j].name)
        for coefficient, j in zip(matrix.A.data[part].tolist(), matrix.A.indices[part].tolist(), strict=True)
        if coefficient
    ]
    if any(row.row == number for row in matrix.quadratic_rows):
        terms.append("+ products of variables")
    body = " ".join(terms[:TERMS]) + (f" ... ({len(terms)} terms)" if len(terms) > TERMS else "")
    lower, upper = (float(side[number]) + 0.0 for side in (matrix.row_lower, matrix.row_upper))  # no -0.0
    return _sides(body.removeprefix("+ ") or "0", lower, upper)


def _term(coefficient: float, name: str) -> str:
    size = "" if abs(coefficient) == 1 else f"{abs(coefficient):.6g} "
    return f"{'-' if coefficient < 0 else '+'} {size}{name}"


def _sides(body: str, lower: float, upper: float) -> str:
    if lower == upper:
        return f"{body} = {lower:.6g}"
    left = f"{lower:.6g} <= " if lower > -inf and upper < inf else ""
    return f"{left}{body} <= {upper:.6g}" if upper < inf else f"{body} >= {lower:.6g}"


def _infinite(lower: float | None, upper: float | None) -> tuple[float, float]:
    return (-inf if lower is None else lower), (inf if upper is None else upper)
