"""Reservation tables: which links are free in which epochs, where any ``window`` epochs in a row take at most ``room`` starts.

``table[e, t]`` counts the starts on link e in the epochs ``t - window + 1 .. t``. So one more start at epoch k keeps every window within its
room exactly where all of ``table[e, k : k + window]`` are below it, whatever window and room are. Epochs count from 0; a table that is asked
beyond its last epoch has no room there.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

#: Given back where there is no free epoch within the table.
NEVER = -1

Table = NDArray[np.int16]


def empty_table(links: int, epochs: int) -> Table:
    """Give a table without any start; shape (links, epochs)."""
    return np.zeros((links, epochs), dtype=np.int16)


@numba.njit(cache=True)
def blocked_until(table: Any, link: int, start: int, window: int, room: int) -> int:
    """Tell from which epoch on a start may be tried: ``start`` itself if it is free there, else the first one after the last full window."""
    if start + window > table.shape[1]:
        return int(table.shape[1])
    for t in range(start + window - 1, start - 1, -1):
        if table[link, t] >= room:
            return t + 1
    return start


@numba.njit(cache=True)
def earliest(table: Any, link: int, start: int, window: int, room: int) -> int:
    """Give the first epoch from ``start`` on at which the link takes one more start; ``NEVER`` if there is none within the table."""
    while start + window <= table.shape[1]:
        after = int(blocked_until(table, link, start, window, room))
        if after == start:
            return start
        start = after
    return NEVER


@numba.njit(cache=True)
def reserve(table: Any, link: int, start: int, window: int, count: int) -> None:
    """Add ``count`` starts at an epoch, or take them away where it is negative."""
    for t in range(start, start + window):
        table[link, t] += count
