"""Where indices are in the order of their sets, which rules that are called once for all rows look up.

Indices that are no integers, and members that differ in their number of parts, raise :class:`NotByArrays`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

_LARGEST_TABLE = 1 << 22


class NotByArrays(BaseException):
    """A rule does something that cannot be evaluated for all rows at once.

    No ``Exception``, so that a rule with ``except Exception`` does not go on with something else.
    """


@dataclass(eq=False)
class Places:
    """Where each index is in the order of its set, or of a product of sets, whose members are integers.

    Parameters
    ----------
    sets : list of array, shape (members, dimensions)
        The factors of the product.
    """

    sets: list[Array]
    _factors: list[tuple[Array, Array, Array | None, Array]] = field(init=False)

    def __post_init__(self) -> None:
        self._factors = [self._factor(members) for members in self.sets]

    @staticmethod
    def _factor(members: Array) -> tuple[Array, Array, Array | None, Array]:
        """Smallest member, extent, and a table of places; or the codes in order and their places."""
        if not members.size:
            raise NotByArrays
        low = members.min(axis=0)
        extent = members.max(axis=0) - low + 1
        box = int(np.prod(extent.astype(object)))
        code = _code(list((members - low).T), extent)
        if box <= max(_LARGEST_TABLE, 16 * len(members)):
            table = np.full(box, -1, dtype=np.int32)
            table[code] = np.arange(len(members), dtype=np.int32)
            return low, extent, None, table
        if box >= 2**62:
            raise NotByArrays
        order = np.argsort(code)
        return low, extent, code[order], order

    @property
    def count(self) -> int:
        """Members of the product."""
        return prod(len(members) for members in self.sets)

    def find(self, columns: Sequence[Any], size: int) -> Array:
        """Places of indices, given part by part as arrays or numbers; -1 for those that are not members."""
        if sum(members.shape[1] for members in self.sets) != len(columns):
            raise NotByArrays
        place: Any = 0
        missing: Any = False
        at = 0
        for members, (low, extent, codes, table) in zip(self.sets, self._factors, strict=True):
            parts = []
            for k in range(members.shape[1]):
                column = columns[at + k]
                if not isinstance(column, int) and not (isinstance(column, np.ndarray) and column.dtype.kind == "i"):
                    raise NotByArrays
                offset = column - low[k]
                outside = (offset < 0) | (offset >= extent[k])
                missing = missing | outside
                parts.append(np.where(outside, 0, offset) if np.any(outside) else offset)
            at += members.shape[1]
            code = _code(parts, extent)
            if codes is None:
                found = table[code]
            else:
                near = np.minimum(np.searchsorted(codes, code), len(codes) - 1)
                found = np.where(codes[near] == code, table[near], -1)
            missing = missing | (found < 0)
            place = place * len(members) + found
        return np.broadcast_to(np.where(missing, -1, place) if np.any(missing) else place, size)


def _code(parts: Sequence[Any], extent: Array) -> Any:
    code: Any = np.int64(0)
    for part, width in zip(parts, extent.tolist(), strict=True):
        code = code * width + part
    return code


def plain_array(values: list[Any]) -> Array:
    """Numbers, or tuples of as many integers."""
    array = np.array(values) if values else np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "if":
        raise NotByArrays
    return array


def key_array(keys: list[Any]) -> Array:
    """Indices, each a number or a tuple, as an array of integers (members, dimensions)."""
    flat = chain.from_iterable(keys) if keys and isinstance(keys[0], tuple) else keys
    array = np.array(list(flat))
    if array.dtype.kind != "i" or not keys or (isinstance(keys[0], tuple) and len(set(map(len, keys))) > 1):
        raise NotByArrays
    return array.reshape(len(keys), -1)


_known: WeakKeyDictionary[Any, tuple[Places, list[Any]]] = WeakKeyDictionary()


def places_of(component: Any) -> Places:
    """Where the members of an indexed component are in its order."""
    if component not in _known:
        index = component.index_set()
        factors = list(index.subsets()) if hasattr(index, "subsets") else [index]
        if len(component) != len(index):
            raise NotByArrays
        _known[component] = Places([key_array(list(factor)) for factor in factors]), members(component)
    places = _known[component][0]
    if places.count != len(component):
        # It has others by now.
        raise NotByArrays
    return places


def variables_of(component: Any) -> list[Any]:
    """The members of a component whose places are known, in their order."""
    return _known[component][1]


def members(component: Any) -> list[Any]:
    """What ``list(component.values())`` is, of variables or constraints, in half the time."""
    data = component._data
    if data.__class__ is not dict:
        return list(component.values())
    return list(map(data.__getitem__, component.keys()))
