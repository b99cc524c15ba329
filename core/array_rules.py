"""What the rule of a constraint is called with when it is called once for all rows: arrays that look like indices.

A rule is ordinary Python: ``sum(m.flow[s, e] for e in leaving[u]) <= room[s]``. Here ``s`` and ``u`` are arrays with an
entry for every row (:class:`Number`). The loop over ``leaving[u]`` runs once and gives an array with an entry for every
element in every row, in a *scope* of its own (:class:`Scope`); ``m.flow[s, e]`` is a :class:`Linear` expression with an
entry for each of these, and belongs to the rows when the loop is over, as a sum.

Whatever such arrays cannot express raises :class:`NotByArrays`, or another exception: conditions on an index, ranges,
lengths, texts, plain dictionaries, numbers out of range. The rule is then called row by row. What counts the elements of
a loop goes unnoticed here, so rows of every length are compared with the rule (:meth:`Reading.telling`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from operator import add, floordiv, mod, mul, sub, truediv
from typing import Any

import numpy as np

from .array_places import Array, NotByArrays, Places, key_array, plain_array
from .ragged import ranges

_LARGEST_WHOLE = 2.0**53
_MOST_LENGTHS = 8
_PLAIN = (int, float, np.integer)


def refuse(self: Any, *_: Any) -> Any:
    """Reject what would need to know one row."""
    raise NotByArrays


@dataclass(eq=False)
class Scope:
    """What a rule is evaluated over: the rows, or in a loop of the rule the elements of all rows.

    Parameters
    ----------
    size : int
        Entries.
    outer : Scope or None
        The scope around the loop; None for that of the rows.
    up : array or None
        The entry of the outer scope that each entry belongs to.
    reading : Reading
        The call of the rule.
    """

    size: int
    outer: Scope | None
    up: Array | None
    reading: Reading

    def within(self, inner: Scope) -> Array | None:
        """Entry of this scope for every entry of an inner one; None if it is not around it."""
        path: Array | None = None
        scope: Scope | None = inner
        while scope is not None and scope is not self:
            path = scope.up if path is None or scope.up is None else scope.up[path]
            scope = scope.outer
        return path if scope is self else None


class Reading:
    """One call of a rule with arrays.

    Parameters
    ----------
    rows : int
        Rows of the constraint.
    """

    def __init__(self, rows: int) -> None:
        self.scope = Scope(rows, None, None, self)
        self._tables: dict[int, tuple[Places, Array, Array]] = {}
        self._seen: list[Any] = []
        self._rows, self._loops = self.scope, list[Scope]()

    def loop(self, up: Array, values: Array) -> Iterator[Any]:
        """Return one element that stands for all, with its scope open."""
        outer = self.scope
        scope = self.scope = Scope(up.size, outer, up, self)
        columns = [Number(column, scope) for column in values.T] if values.ndim > 1 else [Number(values, scope)]
        yield columns[0] if values.ndim == 1 else tuple(columns)
        if self.scope is not scope:
            raise NotByArrays
        self.scope = outer
        self._loops.append(scope)

    def telling(self) -> set[int]:
        """Rows that are compared with the rule: some at the ends and between, and one for each length of its loops."""
        size = self._rows.size
        found = {0, size // 2, size - 1}
        for scope in self._loops:
            row = self._rows.within(scope)
            lengths = np.bincount(np.zeros(0, dtype=np.int64) if row is None else row, minlength=size)
            first = np.full(lengths.max() + 1, -1)
            first[lengths[::-1]] = np.arange(size)[::-1]
            first = first[first >= 0]
            found.update(first[np.linspace(0, len(first) - 1, min(_MOST_LENGTHS, len(first))).astype(int)].tolist())
        return found

    def aligned(self, number: Any) -> Any:
        """Values of a number in the scope that is open: a plain number, or an array."""
        if not isinstance(number, Number):
            return number
        if number.scope is self.scope:
            return number.values
        path = number.scope.within(self.scope)
        if path is not None:
            return number.values[path]
        if not number.is_sum:
            raise NotByArrays
        values, scope = number.values, number.scope
        while scope is not self.scope:
            if scope.outer is None or scope.up is None:
                raise NotByArrays
            values, scope = np.bincount(scope.up, values, scope.outer.size), scope.outer
        return values

    def columns(self, key: Any) -> list[Any]:
        """The parts of an index in the scope that is open."""
        return [self.aligned(part) for part in (key if isinstance(key, tuple) else (key,))]

    def table(self, data: dict[Any, Any]) -> tuple[Places, Array, Array]:
        """A dictionary of lists or numbers as arrays: where a key is, where its values end, and all values."""
        if id(data) not in self._tables:
            # Kept, so that no other one gets its id.
            self._seen.append(data)
            lists = list(data.values())
            if not isinstance(data, Lists):
                lists = [(value,) for value in lists]
            ends = np.cumsum([0, *map(len, lists)])
            values = plain_array(list(chain.from_iterable(lists)))
            self._tables[id(data)] = Places([key_array(list(data))]), ends, values
        return self._tables[id(data)]


class Number:
    """An index, or a number that depends on it: one value for every entry of a scope."""

    __array_ufunc__ = None

    def __init__(self, values: Array, scope: Scope, *, is_sum: bool = False) -> None:
        self.values, self.scope, self.is_sum = values, scope, is_sum

    def _with(self, other: Any, operation: Callable[[Any, Any], Any], *, is_reflected: bool = False) -> Any:
        if not isinstance(other, (Number, *_PLAIN)):
            return NotImplemented
        reading = self.scope.reading
        left, right = reading.aligned(self), reading.aligned(other)
        if is_reflected:
            left, right = right, left
        result = np.broadcast_to(operation(left, right), reading.scope.size)
        if result.dtype.kind != "f" and not (np.abs(operation(1.0 * left, right)) < _LARGEST_WHOLE).all():
            raise NotByArrays
        return Number(result, reading.scope)

    def __add__(self, other: Any) -> Any:
        return self._with(other, add)

    def __radd__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 0:
            # The beginning of a sum.
            return Number(self.values, self.scope, is_sum=True)
        return self._with(other, add, is_reflected=True)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, sub)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, sub, is_reflected=True)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, mul)

    def __rmul__(self, other: Any) -> Any:
        return self._with(other, mul, is_reflected=True)

    def __truediv__(self, other: Any) -> Any:
        return self._with(other, truediv)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(other, truediv, is_reflected=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, floordiv)

    def __mod__(self, other: Any) -> Any:
        return self._with(other, mod)

    def __neg__(self) -> Any:
        return self._with(-1, mul)

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __len__ = __iter__ = __index__ = refuse
    __hash__ = __str__ = __repr__ = __format__ = __int__ = __float__ = __round__ = __abs__ = __pow__ = refuse


@dataclass(frozen=True, eq=False)
class Terms:
    """Variables of one component times numbers.

    Parameters
    ----------
    component : pyomo.environ.Var
    places : array of int
        Which of its variables.
    factors : array of float
    at : array of int or None
        The entry of the scope that each term belongs to; None where that is its own place in the arrays.
    variables : list
        Those that the component had when it was read.
    """

    component: Any
    places: Array
    factors: Array
    at: Array | None
    variables: list[Any]

    @property
    def entries(self) -> Array:
        """The entry of every term."""
        return np.arange(self.places.size) if self.at is None else self.at

    def scaled(self, factor: Any) -> Terms:
        """Times a number, or one for each entry."""
        by_entry = factor[self.at] if isinstance(factor, np.ndarray) and self.at is not None else factor
        return replace(self, factors=self.factors * by_entry)

    def moved(self, up: Array) -> Terms:
        """The same terms in the scope around."""
        return replace(self, at=up if self.at is None else up[self.at])


class Linear:
    """A linear expression in every entry of a scope: terms and a constant."""

    __array_ufunc__ = None

    def __init__(self, terms: list[Terms], constant: Any, scope: Scope, *, is_sum: bool = False) -> None:
        self.terms, self.constant, self.scope, self.is_sum = terms, constant, scope, is_sum

    def here(self) -> Linear:
        """The expression in the scope that is open: the sum of a loop that is over."""
        open_scope, here = self.scope.reading.scope, self
        while here.scope is not open_scope:
            outer, up = here.scope.outer, here.scope.up
            if outer is None or up is None or not self.is_sum:
                # Of a scope around: it would be added once for every entry.
                raise NotByArrays
            constant: Any = np.bincount(up, np.broadcast_to(here.constant, up.size).astype(float), outer.size)
            if not constant.any():
                constant = 0.0
            here = Linear([terms.moved(up) for terms in here.terms], constant, outer)
        return here

    def _added(self, other: Any, sign: float) -> Any:
        if isinstance(other, (Number, *_PLAIN)):
            here = self.here()
            return Linear(here.terms, here.constant + sign * here.scope.reading.aligned(other), here.scope)
        if not isinstance(other, Linear):
            return NotImplemented
        left, right = self.here(), other.here()
        added = right.terms if sign == 1.0 else [terms.scaled(sign) for terms in right.terms]
        return Linear([*left.terms, *added], left.constant + sign * right.constant, left.scope)

    def __add__(self, other: Any) -> Any:
        return self._added(other, 1.0)

    def __radd__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 0:
            return Linear(self.terms, self.constant, self.scope, is_sum=True)
        return self._added(other, 1.0)

    def __sub__(self, other: Any) -> Any:
        return self._added(other, -1.0)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._added(other, 1.0)

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, (Number, *_PLAIN)):
            return NotImplemented
        here = self.here()
        factor = here.scope.reading.aligned(other)
        return Linear([terms.scaled(factor) for terms in here.terms], here.constant * factor, here.scope)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self * (1 / other) if isinstance(other, _PLAIN) else NotImplemented

    def __neg__(self) -> Any:
        return self * -1.0

    def __le__(self, other: Any) -> Any:
        return Relation(self, other, is_equation=False)

    def __ge__(self, other: Any) -> Any:
        return Relation(other, self, is_equation=False)

    def __eq__(self, other: object) -> Any:
        return Relation(self, other, is_equation=True)

    __hash__ = refuse
    __bool__ = __ne__ = __lt__ = __gt__ = __len__ = __iter__ = __str__ = __repr__ = __format__ = refuse


@dataclass(frozen=True, eq=False)
class Relation:
    """``left <= right``, or ``left == right``."""

    left: Any
    right: Any
    is_equation: bool

    __bool__ = refuse


class Each:
    """Something to loop over whose elements differ between rows."""

    def __init__(self, reading: Reading, up: Array, values: Array) -> None:
        self._reading, self._up, self._values = reading, up, values

    def __iter__(self) -> Iterator[Any]:
        return self._reading.loop(self._up, self._values) if self._up.size else iter(())

    __bool__ = __len__ = __contains__ = __getitem__ = refuse


class Lists(dict[Any, Any]):
    """Lists by index, such as the links that leave each node; an index that has none gets an empty one.

    Like ``defaultdict(list)``, and rules that are read by arrays can use it.
    """

    def __missing__(self, key: Any) -> list[Any]:
        found: list[Any] = []
        self[key] = found
        return found

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except (TypeError, NotByArrays):
            return _looked_up(self, key)


class Table(dict[Any, float]):
    """Numbers by index, such as the bandwidth of each link, that rules can use which are read by arrays."""

    def get(self, key: Any, default: Any = None) -> Any:
        """The number of an index, or another one where there is none."""
        try:
            return super().get(key, default)
        except (TypeError, NotByArrays):
            return _looked_up(self, key, default)

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except (TypeError, NotByArrays):
            return _looked_up(self, key)


def _looked_up(data: dict[Any, Any], key: Any, default: Any = None) -> Any:
    """What a dictionary has for an index: something to loop over, or a number."""
    parts = key if isinstance(key, tuple) else (key,)
    reading = next((part.scope.reading for part in parts if isinstance(part, Number)), None)
    if reading is None:
        raise TypeError(f"an index is expected, not {key!r}")
    if not data:
        none = np.zeros(0, dtype=np.int64)
        return (
            Each(reading, none, none) if isinstance(data, Lists) else default if default is not None else refuse(data)
        )
    places, ends, values = reading.table(data)
    found = places.find(reading.columns(key), reading.scope.size)
    if not isinstance(data, Lists):
        if (found < 0).any():
            if not isinstance(default, _PLAIN):
                raise NotByArrays
            return Number(np.where(found < 0, default, values[found]), reading.scope)
        return Number(values[found], reading.scope)
    lengths = np.where(found < 0, 0, np.append(np.diff(ends), 0)[found])
    up = np.repeat(np.arange(found.size), lengths)
    return Each(reading, up, values[ranges(np.append(ends[:-1], 0)[found], lengths)])


def row_indices(keys: list[Any], reading: Reading) -> list[Number]:
    """The index of every row, part by part."""
    return [Number(column, reading.scope) for column in key_array(keys).T]
