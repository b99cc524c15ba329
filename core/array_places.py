"""Positions of indices in their sets, looked up by rules that are evaluated for all rows at once.

Indices that are not integers, and members with different numbers of parts, raise :class:`NotVectorizable`.
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


class NotVectorizable(BaseException):
    """Signal that a rule cannot be evaluated for all rows at once.

    No ``Exception``, so that an ``except Exception`` in the rule does not swallow it.
    """


@dataclass(eq=False)
class Places:
    """Position of each index in a set of integers, or in a product of such sets."""

    sets: list[Array]
    _factors: list[tuple[Array, Array, Array | None, Array]] = field(init=False)

    def __post_init__(self) -> None:
        self._factors = [self._factor(members) for members in self.sets]

    @staticmethod
    def _factor(members: Array) -> tuple[Array, Array, Array | None, Array]:
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
        for members, (low, extent, codes, table) in zip(self.sets, self._factors, strict=True):
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
    """Convert numbers, or integer tuples of one length, to an array."""
    array = np.array(values) if values else np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "if":
        raise NotVectorizable
    return array


def key_array(keys: list[Any]) -> Array:
    """Convert indices, each a number or a tuple, to an integer array of shape (members, dimensions)."""
    flat = chain.from_iterable(keys) if keys and isinstance(keys[0], tuple) else keys
    array = np.array(list(flat))
    if array.dtype.kind != "i" or not keys or (isinstance(keys[0], tuple) and len(set(map(len, keys))) > 1):
        raise NotVectorizable
    return array.reshape(len(keys), -1)


_known: WeakKeyDictionary[Any, tuple[Places, list[Any]]] = WeakKeyDictionary()


def places_of(component: Any) -> Places:
    """Return the positions of an indexed component's members."""
    if component not in _known:
        index = component.index_set()
        factors = list(index.subsets()) if hasattr(index, "subsets") else [index]
        if len(component) != len(index):
            raise NotVectorizable
        _known[component] = Places([key_array(list(factor)) for factor in factors]), members(component)
    places = _known[component][0]
    if places.count != len(component):
        # It has others by now.
        raise NotVectorizable
    return places


def variables_of(component: Any) -> list[Any]:
    """Return a component's members in order, provided that their places are known."""
    return _known[component][1]


def members(component: Any) -> list[Any]:
    """Return ``list(component.values())`` of variables or constraints, in half the time."""
    data = component._data
    if data.__class__ is not dict:
        return list(component.values())
    return list(map(data.__getitem__, component.keys()))
