"""Conversion of sends given in epochs, such as another program's output, to a timed schedule."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..core.instance import Instance
from ..core.schedule import Chunks, Schedule, sends_from_lists
from .verify.grid import grid_of


def schedule_in_epochs(
    instance: Instance, chunks: Chunks, sends: Iterable[tuple[int, int, tuple[int, ...]]]
) -> Schedule:
    """Time multi-link sends on the grid of an instance; hops that several share occur once.

    Parameters
    ----------
    sends : iterable of (int, int, tuple of int)
        Chunk, epoch of its start on the first link, and links; it starts on each further link upon arrival there.
    """
    grid = grid_of(instance)
    hops: set[tuple[int, int, int]] = set()
    for chunk, start, path in sends:
        at = start
        for link in path:
            hops.add((at, chunk, link))
            at += int(grid.delay[link])
    rows = sorted(hops)
    links = [link for _, _, link in rows]
    columns = sends_from_lists(
        [chunk for _, chunk, _ in rows],
        [int(grid.source[link]) for link in links],
        [int(grid.target[link]) for link in links],
        False,
        [(link,) for link in links],
    )
    epoch = grid.timing.epoch_s
    start_s = np.array([float(at * epoch) for at, _, _ in rows], dtype=np.float64)
    end_s = np.array([float((at + int(grid.delay[link])) * epoch) for at, _, link in rows], dtype=np.float64)
    return Schedule(instance.sha256, chunks, columns, start_s, end_s)
