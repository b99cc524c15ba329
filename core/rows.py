"""Constraints whose rule is called once for all rows (docs/constraints.md).

``@rows(m, m.V)`` declares the same as ``@m.Constraint(m.V)``: a Pyomo constraint with one rule. If the rule can be
read by arrays (:mod:`.array_rules`), the compiler of the solvers uses these, and a row becomes an expression when it is
accessed, for example by the writer of LP files. Any other rule is called row by row at once, as in Pyomo;
:func:`row_by_row_reasons` returns the reason.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from math import inf, isclose
from numbers import Real
from pathlib import Path
from traceback import extract_tb
from typing import Any, Self
from weakref import ref

import numpy as np
import pyomo.environ as pyo
from pyomo.core.base.constraint import ConstraintData
from pyomo.core.expr import LinearExpression, MonomialTermExpression
from pyomo.repn import generate_standard_repn

from .array_rules import (
    Array,
    Linear,
    Lists,
    LoopItems,
    NotVectorizable,
    Number,
    Relation,
    RuleEvaluation,
    Table,
    Terms,
    key_array,
    places_of,
    refuse,
    variables_of,
)
from .variables import Variables, create_singly

__all__ = [
    "ArrayRows",
    "Lists",
    "Table",
    "Variables",
    "array_rows",
    "is_of_arrays",
    "row_by_row_reasons",
    "rows",
    "var_or_zero",
]

_FEWEST = 3  #: Fewer rows are written out: there is nothing to gain.


class _UnpickledRule:
    """Rule of a complete constraint, kept for its description, and pickled as None: nested functions cannot be."""

    def __init__(self, rule: Any) -> None:
        self._rule = rule

    def __call__(self, *arguments: Any) -> Any:
        return self._rule(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_rule"], name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> Any:
        return type(None), ()


def rows(m: Any, *index: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a rule to declare its constraint, by the rule's name, for every member of the index.

    A true row without variables, such as ``0 == 0`` or ``(0, 0, 4)``, is left out. The rule is called more than once,
    in any order: its result may depend only on its index and on data that it does not change.
    """
    if len(index) == 1 and isinstance(index[0], list):
        # Pyomo would look at every member of a list.
        index = (pyo.SetOf(index[0]),)

    def declare(rule: Callable[..., Any]) -> Any:
        @wraps(rule)  # explanations show its docstring and the names of its arguments
        def row(m: Any, *key: Any) -> Any:
            relation = _evaluate_rule(rule, m, key)
            return pyo.Constraint.Skip if relation is True else relation

        constraint = pyo.Constraint(*index, rule=row)
        if index:
            constraint.index_set().construct()
            arrays = _read_or_reason(m, rule, list(constraint.index_set()))
            if isinstance(arrays, str):
                constraint.row_by_row_reason = arrays
            else:
                component = ref(constraint)
                constraint._data = {key: ArrayRow(arrays, component, key) for key in arrays.keys}
                constraint._constructed = True
        m.add_component(rule.__name__, constraint)
        if constraint.is_constructed():
            constraint._rule = _UnpickledRule(constraint._rule)
        return constraint

    return declare


def row_by_row_reasons(model: Any) -> dict[str, str]:
    """Return the reasons why constraints of :func:`rows` were written row by row, by their names.

    Those of fewer than three rows, which are always written so, are left out.
    """
    constraints = model.component_objects(pyo.Constraint)
    return {c.name: reason for c in constraints if (reason := getattr(c, "row_by_row_reason", ""))}


def _reason(rule: Callable[..., Any], error: BaseException) -> str:
    """Return the line of a rule that arrays could not evaluate, and the exception raised there."""
    file = getattr(getattr(rule, "__code__", None), "co_filename", "")
    lines = [frame for frame in extract_tb(error.__traceback__) if frame.filename == file]
    place = f"{Path(file).name}, line {lines[-1].lineno}: " if lines else ""
    if isinstance(error, NotVectorizable):
        return f"{place}arrays cannot evaluate {lines[-1].line or 'it'}" if lines else "arrays cannot evaluate the rule"
    return f"{place}{type(error).__name__}: {error}"


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Rows of a constraint, in the order of its index."""

    keys: list[Any]
    terms: list[Terms]
    #: ``lower`` and ``upper``: lower and upper sides, less the constants of the bodies.
    lower: Array
    upper: Array

    @property
    def has_terms(self) -> Array:
        """Mask of the rows that have any terms."""
        mask = np.zeros(len(self.keys), dtype=bool)
        for each in self.terms:
            mask[each.entries] = True
        return mask

    def expression(self, key: Any) -> Any:
        """Return one row as a Pyomo expression."""
        number = self._numbers[key]
        terms: list[Any] = []
        for each, order, ends in self._terms_by_row:
            here = order[ends[number] : ends[number + 1]]
            for place, factor in zip(each.places[here].tolist(), each.factors[here].tolist(), strict=True):
                variable = each.variables[place]
                terms.append(variable if factor == 1.0 else MonomialTermExpression((_short(factor), variable)))
        body = LinearExpression(terms)
        lower, upper = _short(self.lower[number].item()), _short(self.upper[number].item())
        if lower == upper:
            return body == upper
        if lower == -inf:
            return body <= upper
        return body >= lower if upper == inf else pyo.inequality(lower, body, upper)

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        return {key: number for number, key in enumerate(self.keys)}

    @cached_property
    def _terms_by_row(self) -> list[tuple[Terms, Array, Array]]:
        parts = []
        for each in self.terms:
            each.component.items()  # creates the objects of lazy variables, which fills their list
            entries = each.entries
            ends = np.append(0, np.cumsum(np.bincount(entries, minlength=len(self.keys))))
            parts.append((each, np.argsort(entries, kind="stable"), ends))
        return parts

    def agrees(self, m: Any, rule: Callable[..., Any], number: int) -> bool:
        """Check if a row of the arrays agrees with the one written out by the rule."""
        relation, lower, upper = _evaluate_rule(rule, m, self.keys[number]), self.lower[number], self.upper[number]
        read = Counter[tuple[int, int]]()
        for terms in self.terms:
            here = np.flatnonzero(terms.entries == number)
            for place, factor in zip(terms.places[here].tolist(), terms.factors[here].tolist(), strict=True):
                read[id(terms.component), place] += factor
        if isinstance(relation, bool):
            return relation and not read and lower <= 0.0 <= upper
        constraint = pyo.Constraint(expr=relation)
        constraint.construct()
        repn = generate_standard_repn(constraint.body, quadratic=False)
        if repn.nonlinear_expr is not None:
            return False
        factors = Counter[tuple[int, int]]()
        for variable, factor in zip(repn.linear_vars, repn.linear_coefs, strict=True):
            factors[_place(variable)] += factor
        low, up = constraint.lb, constraint.ub
        dust = 1e-15 * max(map(abs, factors.values()), default=0.0)
        return (
            all(_same(factors[each], read[each], dust) for each in factors.keys() | read.keys())
            and _same(-inf if low is None else low - repn.constant, lower, 0.0)
            and _same(inf if up is None else up - repn.constant, upper, 0.0)
        )


def _short(number: float) -> float:
    """Return an integral number as an integer, which is written without a decimal point."""
    return int(number) if number.is_integer() else number


def _place(variable: Any) -> tuple[int, int]:
    component, index = variable.parent_component(), variable.index()
    if index is None:
        return id(component), 0
    return id(component), int(places_of(component).find(index if isinstance(index, tuple) else (index,), 1)[0])


def _same(a: float, b: float, dust: float) -> bool:
    return a == b or isclose(a, b, rel_tol=1e-12, abs_tol=dust)


class ArrayRow(ConstraintData):  # type: ignore[misc]
    """Row whose expression is created on first access; an ordinary one from then on."""

    __slots__ = ()

    def __init__(self, arrays: ArrayRows, component: Any, index: Any) -> None:
        # What ConstraintData does, without a call for each of its bases.
        self._component = component  # type: ignore[misc]
        self._active = True  # type: ignore[misc]
        self._index = index  # type: ignore[misc]
        self._expr = arrays  # type: ignore[misc]

    @property
    def expr(self) -> Any:
        """Expression of the row, created on first access."""
        self.set_value(self._expr.expression(self._index))
        return self._expr

    def set_value(self, expr: Any) -> None:
        """Replace the row by an expression."""
        self.__class__ = ConstraintData
        self.set_value(expr)

    def to_bounded_expression(self, evaluate_bounds: bool = False) -> Any:
        """Return the lower side, body and upper side."""
        _ = self.expr
        return self.to_bounded_expression(evaluate_bounds)


def var_or_zero(variables: Any, *index: Any) -> Any:
    """Return the variable at an index, or 0 if there is none, as beyond the first or last epoch."""
    if isinstance(variables, _Variables):
        return variables.var_or_zero(index)
    key = index[0] if len(index) == 1 else index
    return variables[key] if key in variables else 0  # noqa: SIM401 - Pyomo has no get


def _evaluate_rule(rule: Callable[..., Any], block: Any, key: Any) -> Any:
    """Evaluate the rule at one index; a bool if it has no variable."""
    relation = rule(block, *key) if isinstance(key, tuple) else rule(block, key)
    if isinstance(relation, tuple) and len(relation) == 3 and all(isinstance(part, Real) for part in relation):
        return bool(relation[0] <= relation[1] <= relation[2])
    return relation


def is_of_arrays(row: Any) -> bool:
    """Check if a row is still that of the arrays, so that its body has no constant."""
    return row.__class__ is ArrayRow and isinstance(row._expr, ArrayRows)


def array_rows(constraint: Any) -> ArrayRows | None:
    """Return a constraint's arrays if no row was accessed, changed or removed; None otherwise."""
    if not constraint.is_indexed():
        return None
    data = constraint._data
    expression = getattr(next(iter(data.values()), None), "_expr", None)
    if not isinstance(expression, ArrayRows) or len(data) != expression.lower.size:
        return None
    intact = all(row.__class__ is ArrayRow and row._expr is expression and row._active for row in data.values())
    return expression if intact else None


def _read_or_reason(m: Any, rule: Callable[..., Any], keys: list[Any]) -> ArrayRows | str:
    """Return the rows of a rule by arrays, or the reason against; empty if there are too few rows."""
    if len(keys) < _FEWEST:
        return ""
    try:
        with np.errstate(divide="raise", invalid="raise", over="raise"):
            reading = RuleEvaluation(len(keys))
            arrays = _read(m, rule, keys, reading)
            telling = reading.sample_rows() | set(np.flatnonzero(~arrays.has_terms)[:1].tolist())
            with create_singly(m):
                wrong = next((n for n in telling if not arrays.agrees(m, rule, n)), None)
            if wrong is not None:
                return f"arrays give another row than the rule at index {keys[wrong]}"
            return _drop_empty_rows(arrays)
    except (Exception, NotVectorizable) as error:
        # A rule that is wrong fails for a single row too, with Pyomo's message.
        return _reason(rule, error)


def _read(m: Any, rule: Callable[..., Any], keys: list[Any], reading: RuleEvaluation) -> ArrayRows:
    relation = rule(_Model(m, reading), *(Number(column, reading.scope) for column in key_array(keys).T))
    if reading.scope.outer is not None:
        raise NotVectorizable
    if isinstance(relation, tuple):
        low, body, high = relation
        middle = _side(body, reading)
        sides = [reading.align(side) - middle.constant for side in (low, high)]
        return ArrayRows(keys, middle.terms, *(_broadcast(side, len(keys)) for side in sides))
    if not isinstance(relation, Relation):
        raise NotVectorizable
    left, right = _side(relation.left, reading), _side(relation.right, reading)
    # As Pyomo has it, the body is what varies; if both sides do, the left less the right.
    stands = np.zeros(len(keys), dtype=bool)
    for each in left.terms:
        stands[each.entries] = True
    signs = np.where(stands, -1.0, 1.0)
    terms = left.terms + [replace(each, factors=each.factors * signs[each.entries]) for each in right.terms]
    difference = _broadcast(left.constant - right.constant, len(keys))
    lower = np.where(stands, -inf, difference)
    upper = np.where(stands, -difference, inf)
    if relation.is_equation:
        lower = upper = np.where(stands, -difference, difference)
    return ArrayRows(keys, terms, lower + 0.0, upper + 0.0)


def _broadcast(numbers: Any, size: int) -> Array:
    return np.broadcast_to(numbers, size).astype(float)


def _drop_empty_rows(many: ArrayRows) -> ArrayRows:
    stands = many.has_terms
    if stands.all():
        return many
    if not ((many.lower <= 0.0) & (many.upper >= 0.0))[~stands].all():
        raise NotVectorizable
    number = np.cumsum(stands) - 1
    terms = [replace(each, at=number[each.entries]) for each in many.terms]
    keys = [key for key, has_terms in zip(many.keys, stands.tolist(), strict=True) if has_terms]
    return replace(many, keys=keys, terms=terms, lower=many.lower[stands], upper=many.upper[stands])


def _side(side: Any, reading: RuleEvaluation) -> Linear:
    """Return a side of a relation without zero terms, which Pyomo leaves out."""
    if not isinstance(side, Linear):
        if not isinstance(side, (Number, int, float)):
            raise NotVectorizable
        return Linear([], reading.align(side), reading.scope)
    here = side.close_loops()
    terms = [
        each
        if (nonzero := each.factors != 0.0).all()
        else replace(each, places=each.places[nonzero], factors=each.factors[nonzero], at=each.entries[nonzero])
        for each in here.terms
    ]
    return Linear(terms, here.constant, here.scope)


class _Model:
    """Model as seen by a rule that is called with arrays."""

    def __init__(self, model: Any, reading: RuleEvaluation) -> None:
        self._model, self._reading = model, reading

    def __getattr__(self, name: str) -> Any:
        component = getattr(self._model, name)
        if isinstance(component, (int, float, Lists, Table)):
            return component
        kind = getattr(component, "ctype", None)
        if kind is pyo.Var:
            if component.is_indexed():
                return _Variables(component, self._reading)
            size = self._reading.scope.size
            terms = Terms(component, np.zeros(size, dtype=np.int64), np.ones(size), None, [component])
            return Linear([terms], 0.0, self._reading.scope)
        if kind is pyo.Param and not component.mutable:
            return Table(component.extract_values()) if component.is_indexed() else component.value
        if kind in {pyo.Set, pyo.RangeSet}:
            return self._set(component)
        raise NotVectorizable

    def _set(self, component: Any) -> Any:
        if component.is_indexed():
            return Lists({key: list(members) for key, members in component.items()})
        return _Members(component, self._reading)


class _Members:
    """Set of the model, for loops in a rule."""

    def __init__(self, component: Any, reading: RuleEvaluation) -> None:
        self._component, self._reading = component, reading

    def __iter__(self) -> Iterator[Any]:
        members = np.array(list(self._component))
        if members.dtype.kind not in "iu":
            raise NotVectorizable
        size = self._reading.scope.size
        up = np.repeat(np.arange(size), len(members))
        return iter(LoopItems(self._reading, up, np.tile(members, (size, 1) if members.ndim > 1 else size)))

    __contains__ = refuse

    def __len__(self) -> int:
        return len(self._component)


class _Variables:
    """Indexed variable of the model."""

    def __init__(self, component: Any, reading: RuleEvaluation) -> None:
        self._component, self._reading = component, reading

    def __getitem__(self, key: Any) -> Linear:
        reading = self._reading
        scope = reading.scope
        places = places_of(self._component).find(reading.columns(key), scope.size)
        if (places < 0).any():
            raise NotVectorizable
        return Linear(
            [Terms(self._component, places, np.ones(scope.size), None, variables_of(self._component))], 0.0, scope
        )

    def var_or_zero(self, key: tuple[Any, ...]) -> Linear:
        """Return the variables at those indices that exist."""
        scope = self._reading.scope
        if not len(self._component):
            return Linear([], 0.0, scope)
        places = places_of(self._component).find(self._reading.columns(key), scope.size)
        at = np.flatnonzero(places >= 0)
        return Linear(
            [Terms(self._component, places[at], np.ones(at.size), at, variables_of(self._component))], 0.0, scope
        )

    __contains__ = refuse
