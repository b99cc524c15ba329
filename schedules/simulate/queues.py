"""The queues of all links, first come, first served, for many sends at once."""

from __future__ import annotations

import numpy as np

from ...core.schedule import Floats, Ints
from .network import Wires
from .timing import Rules


class Queues:
    """From when on every link is free.

    Parameters
    ----------
    wires : Wires
        The links.
    rules : Rules
        How chunks pass them.
    """

    def __init__(self, wires: Wires, rules: Rules) -> None:
        self._wires, self._rules = wires, rules
        self._free = np.zeros(len(wires))
        self._stamp = np.zeros(len(wires), dtype=np.int64)

    def serve(
        self, link: Ints, asks: Floats, tail: Floats, serialization: Floats, send: Ints
    ) -> tuple[Floats, Floats, Ints]:
        """Let sends that ask for links take them.

        Parameters
        ----------
        link : array of int
            The link that each asks for.
        asks, tail : array of float
            When it asks, and when its last byte has come.
        serialization : array of float
            Seconds that its bytes take.
        send : array of int
            Decides between those that ask at the same time.

        Returns
        -------
        begin, end : array of float
            When each takes the link and leaves it.
        order : array of int
            The order in which they were served, link by link.
        """
        position = np.arange(len(link))
        if not self._rules.contended:
            return asks, np.maximum(asks + serialization, tail), position
        self._stamp[link] = position
        if (self._stamp[link] == position).all():
            return *self._take(link, asks, tail, serialization), position
        order = np.lexsort((send, asks, link))
        first = np.flatnonzero(np.diff(link[order], prepend=-1))
        length = np.diff(first, append=len(order))
        begin, end = np.empty(len(link)), np.empty(len(link))
        for k in range(int(length.max())):
            chosen = order[first[length > k] + k]
            begin[chosen], end[chosen] = self._take(link[chosen], asks[chosen], tail[chosen], serialization[chosen])
        return begin, end, order

    def _take(self, link: Ints, asks: Floats, tail: Floats, serialization: Floats) -> tuple[Floats, Floats]:
        """Serve sends of which no two ask for the same link."""
        begin = np.maximum(asks, self._free[link])
        end = np.maximum(begin + serialization, tail)
        self._free[link] = end + self._wires.latency_s[link] if self._rules.hold_latency else end
        return begin, end
