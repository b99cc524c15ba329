"""Fast reading of models whose expressions are plain: sums of variables times numbers.

Most models of this package are plain; read straight into arrays they cost a third of the time and half of the
memory of Pyomo's compiler, which keeps a dictionary for every row. Other models are left to that compiler, and both
give the same arrays.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import compress
from math import inf, isfinite
from operator import attrgetter, is_
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core import expr
from pyomo.core.base import Constraint, Var
from pyomo.core.base.constraint import ConstraintData, ScalarConstraint

from ..core.rows import ArrayRows, array_rows
from ..core.variables import is_lazy, list_variables

_SUMS = (expr.LinearExpression, expr.SumExpression)
_IS_FIXED = attrgetter("_fixed")
_CONSTRAINTS = (ConstraintData, ScalarConstraint)


class Columns(Sequence[Any]):
    """Variables that masks select of components, each given with the list of its variables, empty while they wait."""

    def __init__(self, parts: list[tuple[Any, list[Any], NDArray[np.bool_]]]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(mask)) for _, _, mask in self._parts)

    def __getitem__(self, number: Any) -> Any:
        return self._variables[number]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._variables)

    @cached_property
    def _variables(self) -> list[Any]:
        for component, _, _ in self._parts:
            component.items()  # creates the objects of lazy variables, which fills their list
        return [variable for _, every, mask in self._parts for variable in compress(every, mask.tolist())]

    def collect(self, read: Callable[[Sequence[Any]], NDArray[Any]]) -> NDArray[Any]:
        """Concatenate the arrays that a function returns for variables, along the last axis."""
        arrays = [
            np.repeat(read([component.pattern]), np.count_nonzero(mask), axis=-1)
            if is_lazy(component)
            else read(list(compress(every, mask.tolist())))
            for component, every, mask in self._parts
        ]
        return np.concatenate([read([]), *arrays], axis=-1)


class NotPlain(Exception):
    """Expression that this module does not read, though it may well be linear."""


class PlainRows:
    """Model as arrays: ``c x + offset`` of ``columns`` x, and ``rows`` with ``lower <= A x <= upper``.

    ``unused`` are variables of the model's components that appear nowhere.
    The model has no active components but constraints and objectives. Raise NotPlain if anything is not a sum of
    numbers and free variables times numbers, a variable of its components is fixed, or a row has no coefficient other
    than zero.
    """

    def __init__(self, model: Any, objective: Any) -> None:
        self.rows: list[Any] = []
        self._position: dict[int, int] = {}
        self._components: dict[int, tuple[int, list[Any], Any]] = {}
        self._width = 0
        self._blocks: list[tuple[Any, Any, Any]] = []
        self._index: list[int] = []
        self._data: list[float] = []
        self._ends = array("q", [0])
        self._lower, self._upper = array("d"), array("d")
        self.offset = 0.0 if objective is None else self._read(objective.expr, 1.0)
        self._ends.append(len(self._index))
        for component in model.component_objects(Constraint, active=True):
            if (many := array_rows(component)) is not None:
                self._add_many(component, many)
                continue
            for constraint in component.values():
                if constraint.active:
                    self._add(constraint)
        for component in model.component_objects(Var, active=True):
            self._columns_of(component)
        self._finish()

    def _add(self, constraint: Any) -> None:
        """Append a row in Pyomo's form: a constant side stays one, otherwise left less right is at most zero."""
        if constraint.__class__ not in _CONSTRAINTS:
            raise NotPlain
        expression = constraint.expr
        kind = expression.__class__
        if kind is expr.RangedExpression:
            lower, body, upper = expression.args
            if lower.__class__ not in native_numeric_types or upper.__class__ not in native_numeric_types:
                raise NotPlain
            constant = self._read(body, 1.0)
            lower, upper = lower - constant, upper - constant
        elif kind is expr.InequalityExpression or kind is expr.EqualityExpression:
            left, right = expression.args
            if left.__class__ in native_numeric_types:
                lower, upper = left - self._read(right, 1.0), inf
            else:
                constant = self._read(left, 1.0)
                lower, upper = -inf, -(constant + self._read(right, -1.0))
            if kind is expr.EqualityExpression:
                lower = upper = lower if upper == inf else upper
        else:
            raise NotPlain
        self.rows.append(constraint)
        self._ends.append(len(self._index))
        self._lower.append(lower)
        self._upper.append(upper)

    def _read(self, expression: Any, sign: float) -> float:
        """Append the terms of an expression, times a sign; return the constant.

        Ids of live objects differ, so an object with the id of a variable is that variable.
        """
        position, index, data = self._position, self._index, self._data
        column = position.get(id(expression))
        if column is not None:
            index.append(column)
            data.append(sign)
            return 0.0
        terms = expression.args if expression.__class__ in _SUMS else (expression,)
        try:
            columns = [position[id(term)] for term in terms]
        except KeyError:
            return sum((self._term(term, sign) for term in terms), start=0.0)
        index += columns
        data += [sign] * len(columns)
        return 0.0

    def _term(self, term: Any, sign: float) -> float:
        kind = term.__class__
        coefficient, variable = sign, term
        if kind is expr.MonomialTermExpression:
            factor, variable = term.args
            if factor.__class__ not in native_numeric_types:
                raise NotPlain
            coefficient = sign * factor
        elif kind in native_numeric_types:
            return sign * float(term)
        elif kind in _SUMS:
            return self._read(term, sign)
        elif not term.is_variable_type():
            raise NotPlain
        self._index.append(self._column(variable))
        self._data.append(coefficient)
        return 0.0

    def _column(self, variable: Any) -> int:
        """Return a variable's column; its whole component gets columns with it, in order."""
        position = self._position
        if id(variable) not in position:
            first, variables, _ = self._columns_of(variable.parent_component())
            position.update(zip(map(id, variables), range(first, first + len(variables)), strict=True))
        return position[id(variable)]

    def _columns_of(self, component: Any) -> tuple[int, list[Any], Any]:
        """Return the first column of a component, after those of earlier components, its variables, and itself."""
        if component is None or (not is_lazy(component) and component.is_reference()):
            raise NotPlain
        if id(component) not in self._components:
            variables = list_variables(component)
            if any(map(_IS_FIXED, variables)):
                raise NotPlain
            self._components[id(component)] = self._width, variables, component
            self._width += len(component)
        return self._components[id(component)]

    def _add_many(self, component: Any, many: ArrayRows) -> None:
        first_row = len(self.rows) + 1
        for terms in many.terms:
            first, block, _ = self._columns_of(terms.component)
            variables = terms.variables
            if block is not variables and (len(block) != len(variables) or not all(map(is_, block, variables))):
                raise NotPlain
            self._blocks.append((first_row + terms.entries, first + terms.places, terms.factors))
        self.rows += component._data.values()
        self._ends.extend([len(self._index)] * many.lower.size)
        self._lower.frombytes(np.ascontiguousarray(many.lower).tobytes())
        self._upper.frombytes(np.ascontiguousarray(many.upper).tobytes())

    def _by_row(self) -> Any:
        """Return all rows, the objective first, as a matrix."""
        shape = (len(self._ends) - 1, self._width)
        data, index, ends = np.array(self._data, dtype=float), np.array(self._index), np.array(self._ends)
        if self._blocks:
            row = np.concatenate([np.repeat(np.arange(shape[0]), np.diff(ends)), *(row for row, _, _ in self._blocks)])
            order = np.argsort(row, kind="stable")
            data = np.concatenate([data, *(factors for _, _, factors in self._blocks)])[order]
            index = np.concatenate([index, *(columns for _, columns, _ in self._blocks)])[order]
            ends = np.append(0, np.cumsum(np.bincount(row, minlength=shape[0])))
        if not np.isfinite(data).all() or not isfinite(self.offset):
            raise NotPlain
        index_type = np.intc if data.size < 2**31 else np.int64
        self._index, self._data, self._position, self._blocks = [], [], {}, []
        return sp.csr_array((data, index.astype(index_type), ends.astype(index_type)), shape)

    def _finish(self) -> None:
        # Through columns and back puts every row in the order of its columns.
        by_column = self._by_row().tocsc()
        by_column.sum_duplicates()
        by_column.eliminate_zeros()
        is_used = np.diff(by_column.indptr) > 0
        if not is_used.all():
            by_column = by_column[:, np.flatnonzero(is_used)]
        parts = [(c, every, is_used[k : k + len(c)]) for k, every, c in self._components.values()]
        self.columns, self.unused = Columns(parts), Columns([(c, every, ~mask) for c, every, mask in parts])
        matrix = by_column.tocsr()
        self.c = matrix[[0], :].toarray()[0]
        self.A = matrix[1:, :]
        if (np.diff(self.A.indptr) == 0).any():
            raise NotPlain
        self.lower, self.upper = np.array(self._lower), np.array(self._upper)
