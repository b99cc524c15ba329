"""Symbolic indices for evaluating a constraint rule once for all rows (docs/constraints.md).

In ``sum(m.flow[s, e] for e in leaving[u]) <= room[s]``, ``s`` and ``u`` are arrays with an entry for every row
(:class:`Number`). The loop over ``leaving[u]`` runs once, in a *scope* of its own (:class:`Scope`), and yields an array
with an entry for every element in every row; ``m.flow[s, e]`` is a :class:`Linear` expression with an entry for each of
these, which after the loop is summed by row. Anything that such arrays cannot express raises :class:`NotVectorizable`
or another exception; the rule is then called row by row. Code that counts the elements of a loop goes unnoticed, so
rows of every length are compared with the rule (:meth:`RuleEvaluation.sample_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from .schedule import ranges
from .variables import list_variables

_LARGEST_WHOLE = 2.0**53
_MOST_LENGTHS = 8
_PLAIN = (int, float, np.integer)
_OPERATORS = {np.add, np.subtract, np.multiply, np.true_divide, np.floor_divide, np.remainder, np.negative}
_LARGEST_TABLE = 1 << 22

Array: TypeAlias = NDArray[Any]


class NotVectorizable(BaseException):
    """Signal that a rule cannot be evaluated for all rows at once.

    No ``Exception``, so that an ``except Exception`` in the rule does not swallow it.
    """


@dataclass(eq=False)
class Places:
    """Position of each index in a set of integers, or in a product of such sets."""

    sets: list[Array]
    _lookups: list[tuple[Array, Array, Array | None, Array]] = field(init=False)

    def __post_init__(self) -> None:
        self._lookups = [self._lookup(members) for members in self.sets]

    @staticmethod
    def _lookup(members: Array) -> tuple[Array, Array, Array | None, Array]:
        """Return smallest member, extent and table of places, or the sorted codes and their places."""
        if not members.size:
            raise NotVectorizable
        low = members.min(axis=0)
        extent = members.max(axis=0) - low + 1
        box = int(np.prod(extent.astype(object)))
        code = _code(list((members - low).T), extent)
        if box <= max(_LARGEST_TABLE, 16 * len(members)):
            table = np.full(box, -1, dtype=np.int32)
            table[code] = np.arange(len(members), dtype=np.int32)
            return low, extent, None, table
        if box >= 2**62:
            raise NotVectorizable
        order = np.argsort(code)
        return low, extent, code[order], order

    @property
    def count(self) -> int:
        """Number of members of the product."""
        return prod(len(members) for members in self.sets)

    def find(self, columns: Sequence[Any], size: int) -> Array:
        """Find the places of indices, given part by part as arrays or numbers; -1 for non-members."""
        if sum(members.shape[1] for members in self.sets) != len(columns):
            raise NotVectorizable
        place: Any = 0
        missing: Any = False
        at = 0
        for members, (low, extent, codes, table) in zip(self.sets, self._lookups, strict=True):
            parts = []
            for k in range(members.shape[1]):
                column = columns[at + k]
                if not isinstance(column, int) and not (isinstance(column, np.ndarray) and column.dtype.kind == "i"):
                    raise NotVectorizable
                offset = column - low[k]
                outside = (offset < 0) | (offset >= extent[k])
                missing = missing | outside
                parts.append(np.where(outside, 0, offset) if np.any(outside) else offset)
            at += members.shape[1]
            code = _code(parts, extent)
            if codes is None:
                position = table[code]
            else:
                near = np.minimum(np.searchsorted(codes, code), len(codes) - 1)
                position = np.where(codes[near] == code, table[near], -1)
            missing = missing | (position < 0)
            place = place * len(members) + position
        return np.broadcast_to(np.where(missing, -1, place) if np.any(missing) else place, size)


def _code(parts: Sequence[Any], extent: Array) -> Any:
    code: Any = np.int64(0)
    for part, width in zip(parts, extent.tolist(), strict=True):
        code = code * width + part
    return code


def key_array(keys: list[Any]) -> Array:
    """Convert indices, each a number or a tuple, to an integer array of shape (members, dimensions)."""
    flat = chain.from_iterable(keys) if keys and isinstance(keys[0], tuple) else keys
    array = np.array(list(flat))
    if array.dtype.kind != "i" or not keys or (isinstance(keys[0], tuple) and len(set(map(len, keys))) > 1):
        raise NotVectorizable
    return array.reshape(len(keys), -1)


_cache: WeakKeyDictionary[Any, tuple[Places, list[Any]]] = WeakKeyDictionary()


def places_of(component: Any) -> Places:
    """Return the positions of an indexed component's members."""
    if component not in _cache:
        index = component.index_set()
        factors = list(map(list, index.subsets())) if hasattr(index, "subsets") else [list(index)]
        if len(component) != len(index):
            raise NotVectorizable
        sets = list(map(key_array, factors))
        _cache[component] = Places(sets), list_variables(component)
    places = _cache[component][0]
    if places.count != len(component):
        # Members were added or removed since.
        raise NotVectorizable
    return places


def variables_of(component: Any) -> list[Any]:
    """Return a component's members in order, provided that their places are known."""
    return _cache[component][1]


def refuse(self: Any, *_: Any) -> Any:
    """Reject an operation that needs the value in a single row."""
    raise NotVectorizable


@dataclass(eq=False)
class Scope:
    """Domain over which a rule is evaluated: the rows, or the elements of a loop in all rows."""

    size: int
    outer: Scope | None  #: The scope around the loop; None for that of the rows.
    up: Array | None  #: Entry of the outer scope that each entry belongs to.
    reading: RuleEvaluation  #: The evaluation that the scope is of.

    def within(self, inner: Scope) -> Array | None:
        """Map every entry of an inner scope to one of this; None if this scope does not enclose it."""
        path: Array | None = None
        scope: Scope | None = inner
        while scope is not None and scope is not self:
            path = scope.up if path is None or scope.up is None else scope.up[path]
            scope = scope.outer
        return path if scope is self else None


class RuleEvaluation:
    """One evaluation of a rule with arrays."""

    def __init__(self, rows: int) -> None:
        self.scope = Scope(rows, None, None, self)
        self._tables: dict[int, tuple[Places, Array, Array]] = {}
        self._owners: list[Any] = []
        self._rows, self._loops = self.scope, list[Scope]()

    def loop(self, up: Array, values: Array) -> Iterator[Any]:
        """Yield one element that stands for all, with its scope open."""
        outer = self.scope
        scope = self.scope = Scope(up.size, outer, up, self)
        columns = [Number(column, scope) for column in values.T] if values.ndim > 1 else [Number(values, scope)]
        yield columns[0] if values.ndim == 1 else tuple(columns)
        if self.scope is not scope:
            raise NotVectorizable
        self.scope = outer
        self._loops.append(scope)

    def sample_rows(self) -> set[int]:
        """Choose rows to compare with the rule: first, last, some between, and one per loop length."""
        size = self._rows.size
        rows = {0, size // 2, size - 1}
        for scope in self._loops:
            row = self._rows.within(scope)
            lengths = np.bincount(np.zeros(0, dtype=np.int64) if row is None else row, minlength=size)
            first = np.full(lengths.max() + 1, -1)
            first[lengths[::-1]] = np.arange(size)[::-1]
            first = first[first >= 0]
            rows.update(first[np.linspace(0, len(first) - 1, min(_MOST_LENGTHS, len(first))).astype(int)].tolist())
        return rows

    def align(self, number: Any) -> Any:
        """Return the values of a number in the open scope: a plain number or an array."""
        if not isinstance(number, Number):
            return number
        if number.scope is self.scope:
            return number.values
        path = number.scope.within(self.scope)
        if path is not None:
            return number.values[path]
        if not number.is_sum:
            raise NotVectorizable
        values, scope = number.values, number.scope
        while scope is not self.scope:
            if scope.outer is None or scope.up is None:
                raise NotVectorizable
            values, scope = np.bincount(scope.up, values, scope.outer.size), scope.outer
        return values

    def columns(self, key: Any) -> list[Any]:
        """Return the parts of an index in the open scope."""
        return [self.align(part) for part in (key if isinstance(key, tuple) else (key,))]

    def table(self, data: dict[Any, Any]) -> tuple[Places, Array, Array]:
        """Convert a dictionary of lists or numbers to arrays: places of keys, ends of their values, all values."""
        if id(data) not in self._tables:
            # Kept, so that no other one gets its id.
            self._owners.append(data)
            lists = list(data.values())
            if not isinstance(data, Lists):
                lists = [(value,) for value in lists]
            ends = np.cumsum([0, *map(len, lists)])
            flat = list(chain.from_iterable(lists))  # numbers, or integer tuples of one length
            values = np.array(flat) if flat else np.zeros(0, dtype=np.int64)
            if values.dtype.kind not in "if":
                raise NotVectorizable
            self._tables[id(data)] = Places([key_array(list(data))]), ends, values
        return self._tables[id(data)]


class Number(NDArrayOperatorsMixin):
    """Index, or a number that depends on it, with one value for every entry of a scope."""

    def __init__(self, values: Array, scope: Scope, *, is_sum: bool = False) -> None:
        self.values, self.scope, self.is_sum = values, scope, is_sum

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **_: Any) -> Any:
        """Apply an operator in the open scope."""
        if not all(isinstance(each, (Number, *_PLAIN)) for each in inputs):
            return NotImplemented
        if function is np.add and isinstance(inputs[0], int) and inputs[0] == 0:
            return Number(self.values, self.scope, is_sum=True)  # the beginning of a sum
        if function not in _OPERATORS:
            raise NotVectorizable
        reading = self.scope.reading
        values = [reading.align(each) for each in inputs]
        result = np.broadcast_to(function(*values), reading.scope.size)
        if result.dtype.kind != "f" and not (np.abs(function(*(1.0 * each for each in values))) < _LARGEST_WHOLE).all():
            raise NotVectorizable
        return Number(result, reading.scope)

    __bool__ = __len__ = __iter__ = __index__ = refuse
    __str__ = __repr__ = __format__ = __int__ = __float__ = __round__ = refuse
    __hash__ = refuse  # pyright: ignore[reportAssignmentType] # the mixin says that there is none


@dataclass(frozen=True, eq=False)
class Terms:
    """Products of coefficients and variables of one component."""

    component: Any
    places: Array  #: Position in the component of every term's variable.
    factors: Array  #: Coefficient of every term's variable.
    at: Array | None  #: Entry of the scope that each term belongs to; None if that is its own position in the arrays.
    variables: list[Any]  #: Variables of the component at the time of reading.

    @property
    def entries(self) -> Array:
        """Entry of the scope that each term belongs to."""
        return np.arange(self.places.size) if self.at is None else self.at

    def scale(self, factor: Any) -> Terms:
        """Return the terms multiplied by a number, or by one number per entry."""
        by_entry = factor[self.at] if isinstance(factor, np.ndarray) and self.at is not None else factor
        return replace(self, factors=self.factors * by_entry)


class Linear:
    """Linear expression in every entry of a scope: terms and a constant."""

    __array_ufunc__ = None

    def __init__(self, terms: list[Terms], constant: Any, scope: Scope, *, is_sum: bool = False) -> None:
        self.terms, self.constant, self.scope, self.is_sum = terms, constant, scope, is_sum

    def close_loops(self) -> Linear:
        """Convert to the open scope, summing over the loops that have ended."""
        open_scope, here = self.scope.reading.scope, self
        while here.scope is not open_scope:
            outer, up = here.scope.outer, here.scope.up
            if outer is None or up is None or not self.is_sum:
                # Of a scope around: it would be added once for every entry.
                raise NotVectorizable
            constant: Any = np.bincount(up, np.broadcast_to(here.constant, up.size).astype(float), outer.size)
            if not constant.any():
                constant = 0.0
            within = [replace(terms, at=up if terms.at is None else up[terms.at]) for terms in here.terms]
            here = Linear(within, constant, outer)
        return here

    def _add(self, other: Any, sign: float) -> Any:
        if isinstance(other, (Number, *_PLAIN)):
            here = self.close_loops()
            return Linear(here.terms, here.constant + sign * here.scope.reading.align(other), here.scope)
        if not isinstance(other, Linear):
            return NotImplemented
        left, right = self.close_loops(), other.close_loops()
        others = right.terms if sign == 1.0 else [terms.scale(sign) for terms in right.terms]
        return Linear([*left.terms, *others], left.constant + sign * right.constant, left.scope)

    def __add__(self, other: Any) -> Any:
        return self._add(other, 1.0)

    def __radd__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 0:
            return Linear(self.terms, self.constant, self.scope, is_sum=True)
        return self._add(other, 1.0)

    def __sub__(self, other: Any) -> Any:
        return self._add(other, -1.0)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._add(other, 1.0)

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, (Number, *_PLAIN)):
            return NotImplemented
        here = self.close_loops()
        factor = here.scope.reading.align(other)
        return Linear([terms.scale(factor) for terms in here.terms], here.constant * factor, here.scope)

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
    """Constraint ``left <= right`` or ``left == right``."""

    left: Any
    right: Any
    is_equation: bool

    __bool__ = refuse


class LoopItems:
    """Iterable whose elements differ between rows."""

    def __init__(self, reading: RuleEvaluation, up: Array, values: Array) -> None:
        self._reading, self._up, self._values = reading, up, values

    def __iter__(self) -> Iterator[Any]:
        return self._reading.loop(self._up, self._values) if self._up.size else iter(())

    __bool__ = __len__ = __contains__ = __getitem__ = refuse


class _ByIndex(dict[Any, Any]):
    """Dictionary that also takes an index of all rows at once."""

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except (TypeError, NotVectorizable):
            return _look_up(self, key)


class Lists(_ByIndex):
    """Lists by index, such as the links that leave each node: a ``defaultdict(list)`` for rules read by arrays."""

    def __missing__(self, key: Any) -> list[Any]:
        items: list[Any] = []
        self[key] = items
        return items


class Table(_ByIndex):
    """Numbers by index, such as link bandwidths, for rules that are read by arrays."""

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the number at an index, or the default if there is none."""
        try:
            return super().get(key, default)
        except (TypeError, NotVectorizable):
            return _look_up(self, key, default)


def _look_up(data: dict[Any, Any], key: Any, default: Any = None) -> Any:
    """Return the entry of a dictionary at an index: an iterable or a number."""
    parts = key if isinstance(key, tuple) else (key,)
    reading = next((part.scope.reading for part in parts if isinstance(part, Number)), None)
    if reading is None:
        raise TypeError(f"an index is expected, not {key!r}")
    if not data:
        none = np.zeros(0, dtype=np.int64)
        if isinstance(data, Lists):
            return LoopItems(reading, none, none)
        return refuse(data) if default is None else default
    places, ends, values = reading.table(data)
    position = places.find(reading.columns(key), reading.scope.size)
    if not isinstance(data, Lists):
        if (position < 0).any():
            if not isinstance(default, _PLAIN):
                raise NotVectorizable
            return Number(np.where(position < 0, default, values[position]), reading.scope)
        return Number(values[position], reading.scope)
    lengths = np.where(position < 0, 0, np.append(np.diff(ends), 0)[position])
    up = np.repeat(np.arange(position.size), lengths)
    return LoopItems(reading, up, values[ranges(np.append(ends[:-1], 0)[position], lengths)])
