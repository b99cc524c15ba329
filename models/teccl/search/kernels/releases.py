"""Earliest starts on a link that many chunks want to use."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def start_times(releases: Any, kinds: Any, far: int) -> Any:
    """Give the earliest n-th start on links of every kind.

    Parameters
    ----------
    releases : array of int, shape (nodes, chunks)
        When the chunks can be at every node, sorted.
    kinds : array of int, shape (kinds, 3)
        Tail, window and room.
    far : int
        A chunk released then or later never comes.

    Returns
    -------
    array of int, shape (kinds, chunks)
        Sorted; ``far`` where there is none.
    """
    count = releases.shape[1]
    found = np.empty((len(kinds), count), np.int64)
    for kind in range(len(kinds)):
        tail, window, room = kinds[kind]
        for n in range(count):
            start = releases[tail, n]
            if n >= room:
                start = max(start, found[kind, n - room] + window)
            found[kind, n] = min(start, far)
    return found
