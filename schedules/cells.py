"""Tables over cells, (chunk, node) pairs, for compiled passes over the sends of a schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.kernel import kernel
from ..core.ragged import offsets
from ..core.schedule import Ints, Sends

_SAMPLE = 2**16  #: Sends that are looked at.
_CELLS = 4  #: Cells for every send up to which one table of all cells is smaller than what else is kept of the sends.


def strides(sends: Sends, chunks: int, nodes: int) -> tuple[int, int]:
    """Return strides of chunk and node in a cell's number: cells that sends visit in turn should be adjacent."""
    together = np.count_nonzero(np.diff(sends.target[:_SAMPLE]) == 0)
    return (1, chunks) if 2 * together > min(len(sends), _SAMPLE) else (nodes, 1)


Layout = tuple[int, int, Ints, Ints]  #: Strides of chunk and node in a batch; its first chunk and its first send.


def divide_into_batches(sends: Sends, chunks: int, nodes: int) -> tuple[Layout, int, Any]:
    """Divide chunks into batches that share a table of cells, several where one table would be too large.

    Return the layout (strides count chunks from 0 in their batch; the other two columns have an end as well), the
    number of cells of the largest batch, and the index of the sends batch by batch.
    """
    if chunks * nodes <= _CELLS * len(sends):
        whole = np.array([0, chunks]), np.array([0, len(sends)])
        return (*strides(sends, chunks, nodes), *whole), chunks * nodes, slice(None)
    in_order = (sends.chunk[1:] >= sends.chunk[:-1]).all()
    first_send = offsets(np.bincount(sends.chunk, minlength=chunks))
    order = slice(None) if in_order else np.argsort(sends.chunk, kind="stable")
    return (nodes, 1, np.arange(chunks + 1), first_send), nodes, order


def numbered_slots(sends: Sends, chunks: int, nodes: int) -> tuple[Any, Any, int]:
    """Assign numbers to the cells that sends write to.

    Return, for every send, the number of its chunk's cell at the source (-1 if nothing is written there) and at the
    target; and the count of numbered cells.
    """
    kind = np.int32 if len(sends) < 2**31 else np.int64
    layout, cells, order = divide_into_batches(sends, chunks, nodes)
    waits, feeds = np.empty(len(sends), dtype=kind), np.empty(len(sends), dtype=kind)
    ends, table = (sends.chunk[order], sends.source[order], sends.target[order]), np.full(cells, -1, dtype=kind)
    count = _number(layout, ends, table, waits, feeds)
    if not isinstance(order, slice):
        waits[order], feeds[order] = waits.copy(), feeds.copy()
    return waits, feeds, int(count)


@kernel
def _number(layout: Any, ends: Any, table: Any, waits: Any, feeds: Any) -> int:
    """Assign numbers to the written cells batch by batch; return their count."""
    per_chunk, per_node, first_chunk, first_send = layout
    chunk, source, target = ends
    count = 0
    for batch in range(len(first_chunk) - 1):
        base, sends = first_chunk[batch] * per_chunk, range(first_send[batch], first_send[batch + 1])
        for send in sends:
            cell = chunk[send] * per_chunk + target[send] * per_node - base
            if table[cell] < 0:
                table[cell] = count
                count += 1
            feeds[send] = table[cell]
        for send in sends:
            waits[send] = table[chunk[send] * per_chunk + source[send] * per_node - base]
        for send in sends:
            table[chunk[send] * per_chunk + target[send] * per_node - base] = -1
    return count
