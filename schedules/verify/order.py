"""When sends read and write: one integer order for steps and for times.

A send reads what its source holds and writes to its target. It sees every write of a smaller order than its read, and
no other.
"""

from __future__ import annotations

import numpy as np

from ...core.schedule import Floats, Ints

#: Relative difference between two times that is taken for rounding.
TOLERANCE = 1e-9


def step_order(step: Ints) -> tuple[Ints, Ints]:
    """Order by steps: a send reads before its step and writes after it."""
    if len(step) and int(step.max()) > len(step):
        step = np.unique(step, return_inverse=True)[1]
    return 2 * step, 2 * step + 1


def time_order(start_s: Floats, end_s: Floats) -> tuple[Ints, Ints]:
    """Order by times: a send sees what has arrived by its start.

    An arrival later than the start by rounding counts too: by :data:`TOLERANCE` of the time, but never by half of the
    shortest send, so that every send reads before it writes and no circle of sends can feed itself. Sends must take
    longer than nothing.
    """
    if not len(start_s):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    slack = np.minimum(TOLERANCE * start_s, float((end_s - start_s).min()) / 2)
    times = np.concatenate([end_s, start_s + slack])
    reads = np.concatenate([np.zeros(len(end_s), dtype=np.bool_), np.ones(len(start_s), dtype=np.bool_)])
    order = np.argsort(times, kind="stable")
    later = np.empty(len(times), dtype=np.int64)
    later[0] = 0
    later[1:] = (np.diff(times[order]) != 0) | np.diff(reads[order])
    rank = np.empty(len(times), dtype=np.int64)
    rank[order] = np.cumsum(later)
    return rank[len(end_s) :], rank[: len(end_s)]
