"""Whether data that is only copied reaches all who need it: one compiled pass over millions of sends.

It says yes where nothing is to be reported; where it does not, :mod:`.replay` finds out what is wrong, if anything.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Chunks, Ints, Sends
from ..cells import strides
from .holdings import Members
from .network import Network

#: Sends from which on compiled code is loaded for them.
COMPILED = 200_000

#: Cells, chunks times nodes, for every send.
_CELLS = 4

#: Order of what is never written.
_NEVER = 2**31 - 1


def copied_right(network: Network, chunks: Chunks, sends: Sends, read: Ints, write: Ints) -> bool:
    """Whether every send reads what its source holds, brings what is used there, and all have what they need in the end.

    Parameters
    ----------
    network : Network
        The network.
    chunks, sends : Chunks, Sends
        The schedule; all numbers are in range.
    read, write : array of int, shape (sends,)
        Orders at which each send reads its source and writes to its target, see :mod:`.order`.

    Returns
    -------
    bool
        False, too, where sends are few, sums are made, or switches send chunks on.
    """
    cells = len(chunks) * network.nodes
    if len(sends) < COMPILED or cells > _CELLS * len(sends) or chunks.reduced.any() or sends.reduce.any():
        return False
    if network.buffer_bytes or (network.node_rank[sends.source] < 0).any():
        return False
    if int(write.min()) < 0 or int(write.max()) >= _NEVER:
        return False
    members = Members.of(chunks, network)
    since, used = np.full(cells, _NEVER, dtype=np.int32), np.zeros(cells, dtype=np.bool_)
    groups = chunks.held_by, chunks.needed_by, members.offset, members.nodes
    cell = strides(sends, len(chunks), network.nodes)
    return bool(_right(*cell, *groups, sends.chunk, sends.source, sends.target, read, write, since, used))


@kernel
def _right(
    per_chunk: int,
    per_node: int,
    held_by: Any,
    needed_by: Any,
    offset: Any,
    members: Any,
    chunk: Any,
    source: Any,
    target: Any,
    read: Any,
    write: Any,
    since: Any,
    used: Any,
) -> bool:
    """Check all sends; ``since`` is the order at which each cell got its chunk, -1 if it has it from the start."""
    for c in range(len(held_by)):
        for place in range(offset[held_by[c]], offset[held_by[c] + 1]):
            since[c * per_chunk + members[place] * per_node] = -1
    for send in range(len(chunk)):
        cell = chunk[send] * per_chunk + target[send] * per_node
        if since[cell] != _NEVER:
            return False  # it is there already
        since[cell] = write[send]
    for send in range(len(chunk)):
        cell = chunk[send] * per_chunk + source[send] * per_node
        if since[cell] >= read[send]:
            return False  # it is not there yet
        used[cell] = True
    for c in range(len(needed_by)):
        for place in range(offset[needed_by[c]], offset[needed_by[c] + 1]):
            cell = c * per_chunk + members[place] * per_node
            if since[cell] == _NEVER:
                return False
            used[cell] = True
    useless = 0
    for send in range(len(chunk)):
        useless += not used[chunk[send] * per_chunk + target[send] * per_node]
    return useless == 0
