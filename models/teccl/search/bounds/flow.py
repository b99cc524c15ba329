"""Maximum flows into one node, with the cut that limits them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .....core.schedule import Bools, Ints
from ....common import flow_kernels


class FlowNetwork:
    """Edges between nodes, parallel ones allowed; capacities change from question to question.

    Parameters
    ----------
    nodes : int
        Number of nodes.
    tail, head : array of int, shape (edges,)
        Ends of the edges.
    """

    def __init__(self, nodes: int, tail: Ints, head: Ints) -> None:
        edges = len(tail)
        ends = np.concatenate([tail, head])
        order = np.argsort(ends, kind="stable")
        place = np.empty(2 * edges, dtype=np.int64)
        place[order] = np.arange(2 * edges)
        self._first = np.searchsorted(ends[order], np.arange(nodes + 1)).astype(np.int64)
        self._head = np.concatenate([head, tail])[order].astype(np.int64)
        self._mate = place[(order + edges) % (2 * edges)] if edges else place
        self._arc = place[:edges]
        self._nodes = nodes
        self._work: Any = flow_kernels.scratch(nodes, 2 * edges)
        self._grown = np.zeros(nodes, dtype=np.bool_)

    def into(self, sink: int, capacity: Ints, supply: Ints, wanted: int) -> tuple[int, Bools]:
        """Give the flow into a node, not more than wanted, and the nodes on its side of a least cut where it is less.

        Parameters
        ----------
        capacity : array of int, shape (edges,)
            At least 0 each.
        supply : array of int, shape (nodes,)
            What may start at every node.
        """
        cap = np.zeros(len(self._head), dtype=np.int64)
        cap[self._arc] = capacity
        level, queue, cursor, path, touched, _ = self._work
        level[:] = -1
        flow, _, _ = flow_kernels.flow_into(
            sink,
            np.int64(wanted),
            self._first,
            self._head,
            self._mate,
            cap,
            supply.astype(np.int64),
            self._grown,
            level,
            queue,
            cursor,
            path,
            touched,
        )
        side = level >= 0
        side[sink] = True
        return int(flow), side
