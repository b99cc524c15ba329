"""Connected components of a graph."""

from __future__ import annotations

import numpy as np

from ...core.schedule import Ints


def components(nodes: int, tail: Ints, head: Ints, *, strong: bool = False) -> Ints:
    """Return the weakly, or strongly, connected component of every node; shape (nodes,)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(tail), dtype=np.int8), (tail, head)), shape=(nodes, nodes))
    label = connected_components(graph, connection="strong" if strong else "weak")[1]
    return np.asarray(label, dtype=np.int64)
