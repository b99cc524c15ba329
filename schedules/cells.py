"""Numbers of cells, pairs of chunk and node, of which neighbouring sends use neighbouring ones."""

from __future__ import annotations

import numpy as np

from ..core.schedule import Sends

#: Sends that are looked at.
_SAMPLE = 2**16


def strides(sends: Sends, chunks: int, nodes: int) -> tuple[int, int]:
    """What a chunk and a node count in the number of their cell.

    Where sends come target by target, the cells of a node lie side by side, otherwise those of a chunk: tables of all
    cells are larger than the caches of a processor.
    """
    together = np.count_nonzero(np.diff(sends.target[:_SAMPLE]) == 0)
    return (1, chunks) if 2 * together > min(len(sends), _SAMPLE) else (nodes, 1)
