"""First-come-first-served queues of all links, for many sends at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Floats, Ints
from .network import Wires
from .timing import Rules

#: So many sends at a time are served by a compiled loop.
COMPILED = 2**15


class Queues:
    """Queues of all links: the time from which each is free."""

    def __init__(self, wires: Wires, rules: Rules) -> None:
        self._wires, self._rules = wires, rules
        self._free = np.zeros(len(wires))
        self._stamp = np.zeros(len(wires), dtype=np.int64)

    def serve(
        self, link: Ints, asks: Floats, tail: Floats, serialization: Floats, send: Ints
    ) -> tuple[Floats, Floats, Ints]:
        """Serve sends that ask for links.

        Parameters
        ----------
        asks, tail : array of float
            Times of the request, and of the arrival of the send's last byte.
        serialization : array of float
            Transmission time of the bytes in seconds.
        send : array of int
            Number of the send, which breaks ties between simultaneous requests.

        Returns
        -------
        begin, end : array of float
            Times at which each occupies and leaves the link.
        order : array of int
            Order of service, link by link.
        """
        position = np.arange(len(link))
        if not self._rules.contended:
            return asks, np.maximum(asks + serialization, tail), position
        self._stamp[link] = position
        if (self._stamp[link] == position).all():
            return *self._take(link, asks, tail, serialization), position
        order = self._order(link, asks, send)
        begin, end = np.empty(len(link)), np.empty(len(link))
        if len(link) >= COMPILED and asks.dtype == serialization.dtype == np.float64:
            held = self._wires.latency_s if self._rules.hold_latency else np.zeros(len(self._wires))
            _take_in_order(order, link, asks, tail, serialization, held, self._free, begin, end)
            return begin, end, order
        first = np.flatnonzero(np.diff(link[order], prepend=-1))
        length = np.diff(first, append=len(order))
        for k in range(int(length.max())):
            chosen = order[first[length > k] + k]
            begin[chosen], end[chosen] = self._take(link[chosen], asks[chosen], tail[chosen], serialization[chosen])
        return begin, end, order

    def _order(self, link: Ints, asks: Floats, send: Ints) -> Ints:
        if len(self._wires) > 2**16 or (np.diff(send) < 0).any():
            return np.lexsort((send, asks, link))
        by_time = np.argsort(asks, kind="stable")
        return by_time[np.argsort(link[by_time].astype(np.uint16), kind="stable")]

    def _take(self, link: Ints, asks: Floats, tail: Floats, serialization: Floats) -> tuple[Floats, Floats]:
        """Serve sends on distinct links."""
        begin = np.maximum(asks, self._free[link])
        end = np.maximum(begin + serialization, tail)
        self._free[link] = end + self._wires.latency_s[link] if self._rules.hold_latency else end
        return begin, end


@kernel
def _take_in_order(
    order: Any, link: Any, asks: Any, tail: Any, serialization: Any, held: Any, free: Any, begin: Any, end: Any
) -> None:
    """Serve sends in turn; see :meth:`Queues._take`."""
    for at in order:
        on = link[at]
        begin[at] = max(asks[at], free[on])
        end[at] = max(begin[at] + serialization[at], tail[at])
        free[on] = end[at] + held[on]
