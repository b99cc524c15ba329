"""Happens-before order of the events of MSCCL and MSCCL++ programs, and races: accesses that it leaves unordered.

An *actor* is a thread block, the queue of a port channel, or the host of a GPU, which begins calls. Its *events*, such
as instructions, are numbered in order. Signals, packets, semaphores and barriers give an event *sources*: for other
actors, how many of their events have certainly ended when it has ended. Whether an event has always ended before
another one begins is searched backward over sources, the latest first; results are kept, since they remain valid.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from .findings import Findings, Note

SEARCHED_PER_EVENT = 64  #: Search steps that every addition of sources grants to all searches together.
MAX_RACES = 32  #: After more races than these, no others are looked for.


class Access(NamedTuple):
    """A read or write of one unit of data by an event, with the unit's number in it."""

    actor: int
    event: int
    unit: int


Part = Access  #: An ended unit of an event: such as one whose packet has been received.


class Source(NamedTuple):
    """Number of an actor's ended events, and an ended part of the next; ``relaxed`` promises no earlier writes."""

    actor: int
    events: int
    part: Part | None = None
    relaxed: bool = False


class Order:
    """Happens-before order: sources of events, and searches over them."""

    def __init__(self, count: int) -> None:
        self.events: list[list[int]] = [[] for _ in range(count)]  # those that have sources, in order
        self.sources: list[list[tuple[Source, ...]]] = [[] for _ in range(count)]  # of each of these
        self.parts: dict[Part, list[Source]] = {}
        self.certain: tuple[list[dict[int, int]], ...] = tuple([{} for _ in range(count)] for _ in range(2))
        self.budget = 2**16

    def add(self, actor: int, event: int, *sources: Source) -> None:
        """Add sources of an event, the events of an actor in order."""
        self.budget += SEARCHED_PER_EVENT
        events = self.events[actor]
        if events and events[-1] == event:
            self.sources[actor][-1] += sources
        else:
            events.append(event)
            self.sources[actor].append(sources)

    def ends_before(self, first: Access, start: int, second: Access, *, relaxed: bool) -> bool | None:
        """Return True if an access has always ended when another one begins; None if the search was aborted.

        The sources of the second one have been added; ``start`` events of its actor have ended for certain when it
        begins. With ``relaxed``, signals without a promise on earlier writes count.
        """
        if first.actor == second.actor and (first.event < start or first[1:] == second[1:]):
            return True
        certain = self.certain[relaxed][second.actor]
        if certain.get(first.actor, 0) > first.event:
            return True
        return self._search(first, start, second, relaxed=relaxed)

    def _search(self, first: Access, start: int, second: Access, *, relaxed: bool) -> bool | None:
        """Search backward over sources, from the second access until the first one is reached."""
        reached: dict[int, int] = {}
        parts: set[Part] = set()
        rest: deque[tuple[int, int, int]] = deque()

        def reach(waiting: list[Source]) -> None:
            """Add ended events and parts to those reached; queue the events whose sources are not searched yet."""
            while waiting:
                source = waiting.pop()
                if source.relaxed and not relaxed:
                    continue
                since = reached.get(source.actor, 0)
                if source.events > since:
                    reached[source.actor] = source.events
                    rest.append((source.actor, since, source.events))
                if source.part is not None and source.part not in parts:
                    parts.add(source.part)
                    waiting += self.parts.get(source.part, ())

        reach([Source(second.actor, start, part=second)])
        while reached.get(first.actor, 0) <= first.event and first not in parts:
            if not rest:
                return False
            self.budget -= 1
            if self.budget < 0:
                return None
            actor, low, high = rest.popleft()
            here = self.events[actor]
            place = bisect_left(here, high) - 1
            if place >= 0 and here[place] >= low:
                rest.append((actor, low, here[place]))
                reach([*self.sources[actor][place]])
        certain = self.certain[relaxed][second.actor]
        if second not in self.parts:  # otherwise it is certain for this unit alone
            for actor, events in reached.items():
                if actor != second.actor and events > certain.get(actor, 0):
                    certain[actor] = events
        return True


class Races:
    """Detector of races: accesses to the same memory, at least one a write, that nothing puts in order."""

    def __init__(
        self, gpus: int, order: Order, findings: Findings, place: Callable[[Access], str], call: Callable[[Access], int]
    ) -> None:
        self.order, self.findings, self.place, self.call = order, findings, place, call
        self.last_write: list[dict[int, Access]] = [{} for _ in range(gpus)]
        self.read: list[dict[int, list[Access]]] = [{} for _ in range(gpus)]

    def note_read(self, gpu: int, address: int, access: Access, start: int) -> None:
        """Check a read against the last write; ``start`` events of its actor have ended when it begins."""
        before = self.last_write[gpu].get(address)
        if before is not None and (before.actor != access.actor or before.event >= start):
            self.check_order(before, start, access, writes=True)
        since = self.read[gpu].setdefault(address, [])
        if since and since[-1].actor == access.actor:
            since[-1] = access
        else:
            since.append(access)

    def note_write(self, gpu: int, address: int, access: Access, start: int) -> None:
        """Check a write against the last write and the reads since."""
        before = self.last_write[gpu].get(address)
        if before is not None and (before.actor != access.actor or before.event >= start):
            self.check_order(before, start, access, writes=True)
        for other in self.read[gpu].pop(address, ()):
            self.check_order(other, start, access, writes=False)
        self.last_write[gpu][address] = access

    def forget(self, gpu: int, address: int) -> list[tuple[Access, bool]]:
        """Forget the accesses to an address; return them, each with whether it wrote."""
        last_write = self.last_write[gpu].pop(address, None)
        accesses = [(one, False) for one in self.read[gpu].pop(address, ())]
        return accesses if last_write is None else [(last_write, True), *accesses]

    def check_order(self, first: Access, start: int, second: Access, *, writes: bool) -> None:
        """Report a race unless the first access, a write if ``writes``, has always ended before the second."""
        if (first.actor == second.actor and first.event < start) or self.findings.counts.get("race", 0) > MAX_RACES:
            return
        before = self.order.ends_before(first, start, second, relaxed=not writes)
        if before:
            return
        what = "written" if writes else "read"
        if writes and self.order.ends_before(first, start, second, relaxed=True):
            if self.call(first) < self.call(second):
                return  # what a call has written is there when it has ended
            text = f"uses memory that is written by {self.place(first)}, and only relaxed signals are between them"
            self.findings.add("relaxed", Note(text), self.place(second))
            return
        text = f"uses memory that is {what} by {self.place(first)}, and nothing puts them in order"
        if before is None:
            text += ", as far as was searched"
        self.findings.add("race", text, self.place(second))
