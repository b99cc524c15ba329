"""Time of exported messages on a switch whose links serve what comes first: cwb's rules in another order.

A message passes the link of its rank to the switch, is stored there, and passes the link to the other rank. A link
serves one message at a time, and of those that wait the one that came first; what happens at one time is in the order
in which it was caused. Nothing is truncated to whole nanoseconds.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count

from cwb.core.topology import Topology
from cwb.exchange.chakra.trace import RECV, SEND, Trace

Action = Callable[[Fraction], None]


class Links:
    """Links that serve one message at a time, and the events in the order of their times."""

    def __init__(self, bandwidth_Bps: Fraction, latency_s: Fraction) -> None:
        self.bandwidth_Bps, self.latency_s = bandwidth_Bps, latency_s
        self.events: list[tuple[Fraction, int, Action]] = []
        self.number = count()
        self.busy: set[tuple[str, int]] = set()
        self.waiting: dict[tuple[str, int], deque[tuple[int, Action]]] = defaultdict(deque)

    def plan(self, time: Fraction, action: Action) -> None:
        """Add an event."""
        heappush(self.events, (time, next(self.number), action))

    def send(self, time: Fraction, link: tuple[str, int], size: int, then: Action) -> None:
        """Send bytes over a link, at once or when it is free, and act when they have arrived."""
        if link in self.busy:
            self.waiting[link].append((size, then))
            return
        self.busy.add(link)
        free = time + size / self.bandwidth_Bps
        self.plan(free + self.latency_s, then)
        self.plan(free, lambda time: self.release(time, link))

    def release(self, time: Fraction, link: tuple[str, int]) -> None:
        """Let the next message pass."""
        self.busy.remove(link)
        if self.waiting[link]:
            self.send(time, link, *self.waiting[link].popleft())

    def run(self) -> Fraction:
        """Act until nothing is planned, and return the last time."""
        time = Fraction(0)
        while self.events:
            time, _, action = heappop(self.events)
            action(time)
        return time


def first_come_s(trace: Trace, network: Topology) -> Fraction:
    """Return the seconds that a trace takes on a switch with equal links."""
    first = network.links[0]
    links = Links(first.bandwidth_Bps, first.latency_s)
    waits = [{node.id: len(set(node.after)) for node in nodes} for nodes in trace.ranks]
    following = [defaultdict(list) for _ in trace.ranks]
    arrived: set[tuple[int, int, int]] = set()
    expected: dict[tuple[int, int, int], tuple[int, int]] = {}
    for rank, nodes in enumerate(trace.ranks):
        for node in nodes:
            for before in set(node.after):
                following[rank][before].append(node.id)
    by_id = [{node.id: node for node in nodes} for nodes in trace.ranks]

    def end(time: Fraction, rank: int, number: int) -> None:
        for after in following[rank][number]:
            waits[rank][after] -= 1
        for after in sorted(after for after in following[rank][number] if not waits[rank][after]):
            begin(time, rank, after)

    def arrive(time: Fraction, message: tuple[int, int, int], number: int) -> None:
        end(time, message[0], number)
        arrived.add(message)
        if message in expected:
            end(time, *expected[message])

    def begin(time: Fraction, rank: int, number: int) -> None:
        node = by_id[rank][number]
        if node.type == SEND:
            message = rank, node.peer, node.tag

            def forward(time: Fraction) -> None:
                links.send(time, ("down", node.peer), node.size_bytes, lambda time: arrive(time, message, number))

            links.send(time, ("up", rank), node.size_bytes, forward)
        elif node.type != RECV:
            links.plan(time + Fraction(1, 10**9), lambda time: end(time, rank, number))
        elif (node.peer, rank, node.tag) in arrived:
            links.plan(time, lambda time: end(time, rank, number))
        else:
            expected[node.peer, rank, node.tag] = rank, number

    for rank, numbers in enumerate(waits):
        for number in [number for number, left in numbers.items() if not left]:
            begin(Fraction(0), rank, number)
    return links.run()
