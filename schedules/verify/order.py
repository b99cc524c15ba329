"""Read and write order of sends: one integer order for steps and for times.

A send reads its chunk at its source and writes to its target. It sees exactly the writes of a smaller order than
its read.
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


def seen_s(start_s: Floats, end_s: Floats) -> Floats:
    """Return the times before which sends see arrivals.

    An arrival later than the start by rounding counts too: by :data:`TOLERANCE` of the time, but never by half of
    the shortest send, so that every send reads before it writes and no cycle of sends can feed itself. Sends must
    take more than zero time.
    """
    seen = TOLERANCE * start_s
    np.minimum(seen, float((end_s - start_s).min(initial=np.inf)) / 2, out=seen)
    seen += start_s
    np.nextafter(seen, np.inf, out=seen)
    return np.minimum(seen, end_s, out=seen)  # half of the shortest send may be less than a float can tell


def time_order(start_s: Floats, end_s: Floats) -> tuple[Ints, Ints]:
    """Order by times: a send sees what has arrived by its start, see :func:`seen_s`."""
    times = np.concatenate([end_s, seen_s(start_s, end_s)])
    ranks = np.unique(times, return_inverse=True)[1].astype(np.int64)
    return ranks[len(end_s) :], ranks[: len(end_s)]
