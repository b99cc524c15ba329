"""Tables over cells, (chunk, node) pairs, for compiled passes over the sends of a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.kernel import kernel
from ..core.ragged import offsets
from ..core.schedule import Ints, Sends

_SAMPLE = 2**16  #: Sends that are looked at.
_CELLS = 4  #: Cells for every send up to which one table of all cells is smaller than what else is kept of the sends.


def strides(sends: Sends, chunks: int, nodes: int) -> tuple[int, int]:
    """Return the strides of chunk and node in the number of a cell.

    The cells of a node are adjacent if sends are sorted by target, otherwise those of a chunk: tables of all cells
    exceed processor caches.
    """
    together = np.count_nonzero(np.diff(sends.target[:_SAMPLE]) == 0)
    return (1, chunks) if 2 * together > min(len(sends), _SAMPLE) else (nodes, 1)


@dataclass(frozen=True, eq=False)
class Batches:
    """Batches of chunks that share a table of cells; several where one table would be too large."""

    #: Strides of the chunk (counted from 0 in its batch) and of the node in the number of a cell.
    per_chunk: int
    per_node: int
    cells: int  #: Number of cells of the largest batch.
    #: First chunk of every batch, and its first place in ``order``; shape (batches + 1,).
    chunk: Ints
    send: Ints
    order: Ints  #: Sends batch by batch; empty if they already are in this order.

    @classmethod
    def of(cls, sends: Sends, chunks: int, nodes: int) -> Batches:
        """Divide the chunks into batches."""
        order = np.zeros(0, dtype=np.int64)
        if chunks * nodes <= _CELLS * len(sends):
            whole = np.array([0, chunks]), np.array([0, len(sends)])
            return cls(*strides(sends, chunks, nodes), chunks * nodes, *whole, order)
        if (sends.chunk[1:] < sends.chunk[:-1]).any():
            order = np.argsort(sends.chunk, kind="stable")
        send = offsets(np.bincount(sends.chunk, minlength=chunks))
        return cls(nodes, 1, nodes, np.arange(chunks + 1), send, order)

    @property
    def columns(self) -> tuple[int, int, Ints, Ints, Ints]:
        """The fields as arguments of compiled loops."""
        return self.per_chunk, self.per_node, self.chunk, self.send, self.order


def numbered_slots(sends: Sends, chunks: int, nodes: int) -> tuple[Any, Any, int]:
    """Assign numbers to the cells that sends write to.

    Return, for every send, the number of its chunk's cell at the source (-1 if nothing is written there) and at the
    target; and the count of numbered cells.
    """
    kind = np.int32 if len(sends) < 2**31 else np.int64
    batches = Batches.of(sends, chunks, nodes)
    waits, feeds = np.empty(len(sends), dtype=kind), np.empty(len(sends), dtype=kind)
    table = np.full(batches.cells, -1, dtype=kind)
    count = _number(batches.columns, (sends.chunk, sends.source, sends.target), table, waits, feeds)
    return waits, feeds, int(count)


@kernel
def _number(batches: Any, ends: Any, table: Any, waits: Any, feeds: Any) -> int:
    """Assign numbers to the written cells batch by batch; return their count."""
    per_chunk, per_node, first_chunk, first_send, order = batches
    chunk, source, target = ends
    count = 0
    for batch in range(len(first_chunk) - 1):
        base, places = first_chunk[batch] * per_chunk, range(first_send[batch], first_send[batch + 1])
        for place in places:
            send = order[place] if len(order) else place
            cell = chunk[send] * per_chunk + target[send] * per_node - base
            if table[cell] < 0:
                table[cell] = count
                count += 1
            feeds[send] = table[cell]
        for place in places:
            send = order[place] if len(order) else place
            waits[send] = table[chunk[send] * per_chunk + source[send] * per_node - base]
        for place in places:
            send = order[place] if len(order) else place
            table[chunk[send] * per_chunk + target[send] * per_node - base] = -1
    return count
