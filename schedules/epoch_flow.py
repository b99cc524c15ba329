"""Maximum flows over time, for the verifier of :class:`~cwb.core.bounds.EpochFlow`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.errors import InputError
from ..core.topology import NodeKind
from .verify.grid import Grid

#: Nodes of the network over time that are tried.
MAX_NODES = 500_000

#: The most chunks: what is left on a link and its way back together fits into the 32 bits of the flow's numbers.
MAX_CHUNKS = 2**30 - 1


def fewest_epochs_of_flow(grid: Grid, sources: Sequence[tuple[int, int]], sink: int, epochs: int) -> int:
    """Return ``epochs`` if the chunks do not fit into ``epochs - 1``, else 0.

    Parameters
    ----------
    grid : Grid
        The network, with whole chunks.
    sources : sequence of (int, int)
        Nodes and the number of their chunks that the sink needs.
    epochs : int
        Number of epochs claimed as a lower bound.
    """
    if grid.timing.fluid:
        raise InputError("this bound is one of whole chunks", place="certificate")
    if not sources or epochs <= 0 or not grid.window.all():  # a link that takes any number in a tick bounds nothing
        return 0
    horizon = epochs - 1
    if (horizon + 1) * len(grid.topology.nodes) > MAX_NODES:
        raise InputError(f"{epochs:,} epochs are too many to be checked", place="certificate.epochs")
    wanted = sum(count for _, count in sources)
    if wanted > MAX_CHUNKS:
        raise InputError(f"a flow of {wanted:,} chunks is too large to be checked", place="certificate")
    return epochs if _flow(grid, sources, sink, horizon, wanted) < wanted else 0


def _flow(grid: Grid, sources: Sequence[tuple[int, int]], sink: int, horizon: int, wanted: int) -> int:
    """Return the largest number of chunks, up to ``wanted``, that reach the sink by the horizon."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    nodes, times = len(grid.topology.nodes), horizon + 1
    at = np.arange(times)
    heads, tails, room = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()

    def add(a: np.ndarray, b: np.ndarray, capacity: int | np.ndarray) -> None:
        tails.append(a)
        heads.append(b)
        # More than all chunks never pass; so no sum of what is written here leaves 64 bits.
        room.append(np.broadcast_to(np.minimum(capacity, wanted), a.shape))

    first = _first(grid, [source for source, _ in sources])
    # Where starts count in blocks, chunks may come too early or leave too late by their count: at the ends of such
    # links they must be able to wait.
    blocks = grid.window > 1
    early = {*grid.source[blocks].tolist(), *grid.target[blocks].tolist()}
    for node, data in enumerate(grid.topology.nodes):
        if data.kind is NodeKind.COMPUTE or data.buffer_bytes != 0 or node in early:
            add(node * times + at[:-1], node * times + at[1:], wanted)
    extra = nodes * times + 2
    for e in range(len(grid.source)):
        delay, window, capacity = int(grid.delay[e]), int(grid.window[e]), int(grid.capacity[e])
        a, b = int(grid.source[e]), int(grid.target[e])
        begin = np.arange(first[a], horizon - delay + 1, window)
        # All starts of a block share its room and count as if they had left with it: a node of its own collects them.
        for k in begin.tolist():
            block = np.arange(k, min(k + window, horizon - delay + 1))
            if len(block) == 1:
                add(a * times + block, b * times + block + delay, capacity)
                continue
            add(a * times + block, np.full(len(block), extra), capacity)
            add(np.array([extra]), np.array([b * times + k + delay]), capacity)
            extra += 1
    source = nodes * times
    where = np.array([node * times for node, _ in sources])
    add(np.full(len(where), source), where, np.array([count for _, count in sources]))
    columns = tuple(np.concatenate(part) for part in (tails, heads, room))
    graph = coo_array((columns[2], (columns[0], columns[1])), shape=(extra, extra)).tocsr()  # adds up what is parallel
    graph.data = np.minimum(graph.data, wanted).astype(np.int32)
    return int(maximum_flow(graph, source, sink * times + horizon).flow_value)


def _first(grid: Grid, sources: Sequence[int]) -> list[int]:
    """Return the earliest arrival index at each node, beyond every horizon if unreachable."""
    far = [2**40] * len(grid.topology.nodes)
    for source in sources:
        far[source] = 0
    for _ in far:
        before = list(far)
        for a, b, delay in zip(grid.source.tolist(), grid.target.tolist(), grid.delay.tolist(), strict=True):
            far[b] = min(far[b], far[a] + delay)
        if far == before:
            break
    return far
