"""The order in which links serve timed sends: by start, then by end."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.kernel import kernel, worth_compiling
from ...core.schedule import Floats, Ints

#: Part of a given time that is taken for rounding, where the order of sends that start or end together is concerned.
ROUNDING = 1e-14

#: Binary digits of the first table of distinct times, and by how many more each next one has.
_DIGITS, _MORE = 16, 4


def served_order(start_s: Floats, end_s: Floats) -> Any:
    """Sort sends by start, then end, then position; times that differ only by rounding are equal."""
    if not worth_compiling(len(start_s)):
        return np.lexsort((rank_times(end_s), rank_times(start_s))).astype(np.int64)
    order = np.arange(len(start_s), dtype=np.int32 if len(start_s) < 2**31 else np.int64)
    for times in (end_s, start_s):
        place = _places(*_number_times(times))
        order = _sort_by_place(order, place, int(place.max(initial=0)) + 1)
    return order


def rank_times(times_s: Floats) -> Any:
    """Rank times from 0; those that differ only by rounding are equal."""
    return _places(*np.unique(times_s, return_inverse=True))


def _places(values: Floats, where: Ints) -> Any:
    """Rank times; those that differ only by rounding are equal."""
    return np.cumsum(np.diff(values, prepend=0.0) > ROUNDING * values).astype(where.dtype)[where]


def _number_times(times_s: Floats) -> tuple[Floats, Any]:
    """Return times in order and the number of each given one among them, by hashing, since few are distinct.

    Some may be there twice.
    """
    number = np.empty(len(times_s), dtype=np.int32 if len(times_s) < 2**31 else np.int64)
    digits = _DIGITS
    while True:
        table, values = np.full(1 << digits, -1, dtype=number.dtype), np.empty(1 << (digits - 1))
        count = _number(times_s, times_s.view(np.uint64), np.uint64(64 - digits), table, values, number)
        if count >= 0:
            break
        digits += _MORE
    order = np.argsort(values[:count])
    rank = np.empty(count, dtype=number.dtype)
    rank[order] = np.arange(count, dtype=number.dtype)
    return values[order], rank[number]


@kernel
def _number(times: Any, bits: Any, shift: Any, table: Any, values: Any, number: Any) -> int:
    """Assign numbers to distinct values by first occurrence; return their count, -1 if half full."""
    count, mask, factor = 0, len(table) - 1, np.uint64(0x9E3779B97F4A7C15)
    for at in range(len(times)):
        place = np.int64((bits[at] * factor) >> shift)
        while table[place] >= 0 and values[table[place]] != times[at]:
            place = (place + 1) & mask
        if table[place] < 0:
            if count == len(values):
                return -1
            values[count], table[place] = times[at], count
            count += 1
        number[at] = table[place]
    return count


@kernel
def _sort_by_place(order: Any, place: Any, count: int) -> Any:
    """Sort an order by place, stably."""
    first = np.zeros(count + 1, dtype=np.int64)
    for at in place:
        first[at + 1] += 1
    first = np.cumsum(first)
    found = np.empty(len(order), dtype=order.dtype)
    for item in order:
        at = place[item]
        found[first[at]] = item
        first[at] += 1
    return found
