"""Exact search for the fewest epochs of whole chunks on small networks, with storing ranks or ranks that pass on.

It shares no code with the package. Time is counted in integers, no solver takes part, and a network that would take
more than a given number of states is reported as undecided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from operator import or_

#: Distance where no path leads.
FAR = 10**6

#: A link: tail, head, epochs from start to arrival, epochs from a start to the next one.
Link = tuple[int, int, int, int]

#: A send of a schedule: chunk, link, epoch of its start.
Send = tuple[int, int, int]


class TooManyStatesError(Exception):
    """Search that has visited more states than it may."""


@dataclass(frozen=True)
class Net:
    """Ranks and links in epochs."""

    ranks: int
    links: tuple[Link, ...]

    @cached_property
    def distance(self) -> list[list[int]]:
        """Epochs of the fastest path between two ranks."""
        found = [[0 if a == b else FAR for b in range(self.ranks)] for a in range(self.ranks)]
        for tail, head, delay, _ in self.links:
            found[tail][head] = min(found[tail][head], delay)
        for via in range(self.ranks):
            for a in range(self.ranks):
                for b in range(self.ranks):
                    found[a][b] = min(found[a][b], found[a][via] + found[via][b])
        return found

    @cached_property
    def is_connected(self) -> bool:
        """Check whether every rank reaches every other one."""
        return max(map(max, self.distance)) < FAR


def demand(kind: str, ranks: int) -> list[tuple[int, frozenset[int]]]:
    """Source and targets of every chunk of an all-gather or all-to-all."""
    if kind == "all_gather":
        return [(s, frozenset(range(ranks)) - {s}) for s in range(ranks)]
    return [(s, frozenset([t])) for s in range(ranks) for t in range(ranks) if s != t]


@dataclass(frozen=True)
class State:
    """Bits (chunk, rank) that have come, that come at this index, and that will come; epochs until links are free."""

    have: int
    fresh: int
    coming: tuple[int, ...]
    busy: tuple[int, ...]

    @cached_property
    def still_coming(self) -> int:
        """Bits of all that is on its way."""
        return reduce(or_, self.coming)


class Search:
    """Search for a schedule of a given number of epochs; ranks store, or pass on at once what they receive."""

    def __init__(self, net: Net, kind: str, epochs: int, *, passing: bool, states: int) -> None:
        self.net, self.epochs, self.passing, self.left = net, epochs, passing, states
        self.chunks = demand(kind, net.ranks)
        self.longest = max(link[2] for link in net.links)
        self.wanted = sum(1 << self.bit(c, t) for c, (_, targets) in enumerate(self.chunks) for t in targets)
        self.seen: set[tuple[int, State]] = set()
        self.sends: list[Send] = []
        self.cuts = [
            (
                [e for e, link in enumerate(net.links) if link[0] not in inside and link[1] in inside],
                self.mask_by_chunk(frozenset(inside)),
            )
            for size in range(1, net.ranks)
            for inside in combinations(range(net.ranks), size)
        ]

    def bit(self, chunk: int, rank: int) -> int:
        """Number of the bit of a chunk at a rank."""
        return chunk * self.net.ranks + rank

    def mask_by_chunk(self, inside: frozenset[int]) -> list[tuple[int, int]]:
        """For every chunk that a set of ranks needs and does not begin with: bits of the set, bits that are needed."""
        return [
            (
                sum(1 << self.bit(c, v) for v in inside),
                sum(1 << self.bit(c, v) for v in inside & targets),
            )
            for c, (source, targets) in enumerate(self.chunks)
            if source not in inside and inside & targets
        ]

    def run(self) -> list[Send] | None:
        """Return a schedule, or None if none exists."""
        start = State(0, 0, (0,) * self.longest, (0,) * len(self.net.links))
        return self.sends if self.visit(0, start) else None

    def visit(self, now: int, state: State) -> bool:
        """Try all sends of an epoch, and those after it."""
        done = state.have | state.still_coming
        if self.wanted & ~done == 0:
            return True
        if not self.may_end(now, state, done) or (now, state) in self.seen:
            return False
        self.left -= 1
        if self.left < 0:
            raise TooManyStatesError
        options = [list(self.options(now, link, state, done)) for link in range(len(self.net.links))]
        if self.choose(now, state, options, []):
            return True
        self.seen.add((now, state))
        return False

    def options(self, now: int, link: int, state: State, done: int) -> Iterator[int]:
        """Chunks that a link may start, and -1 where it may wait."""
        tail, head, delay, window = self.net.links[link]
        if state.busy[link]:
            yield -1
            return
        found = 0
        for chunk, (source, targets) in enumerate(self.chunks):
            at_tail, at_head = 1 << self.bit(chunk, tail), self.bit(chunk, head)
            there = tail == source or (state.fresh if self.passing else state.have) & at_tail
            if not there or head == source or self.is_late(state, at_head, delay):
                continue
            missing = (t for t in targets if not done >> self.bit(chunk, t) & 1)
            if any(now + delay + self.net.distance[head][t] <= self.epochs for t in missing):
                found += 1
                yield chunk
        # Where a link is free again in the next epoch, a start of something useful takes nothing from others.
        if not found or window > 1:
            yield -1

    def is_late(self, state: State, bit: int, delay: int) -> bool:
        """Check whether a chunk would come to a rank that has it by then, which helps only where ranks pass on."""
        if self.passing:
            return bool(state.coming[delay - 1] >> bit & 1)
        return bool(state.have >> bit & 1) or any(mask >> bit & 1 for mask in state.coming[:delay])

    def choose(self, now: int, state: State, options: list[list[int]], chosen: list[int]) -> bool:
        """Complete the choice of an epoch link by link."""
        if len(chosen) < len(options):
            for chunk in options[len(chosen)]:
                chosen.append(chunk)
                if self.choose(now, state, options, chosen):
                    return True
                chosen.pop()
            return False
        coming = [*state.coming, 0]
        busy = list(state.busy)
        for link, chunk in enumerate(chosen):
            _, head, delay, window = self.net.links[link]
            if chunk >= 0:
                coming[delay - 1] |= 1 << self.bit(chunk, head)
                busy[link] = window
        arrived = coming[0]
        keep = self.wanted if self.passing else -1
        after = State(
            state.have | (arrived & keep),
            arrived if self.passing else 0,
            tuple(coming[1 : self.longest + 1]),
            tuple(max(each - 1, 0) for each in busy),
        )
        size = len(self.sends)
        self.sends += [(chunk, link, now) for link, chunk in enumerate(chosen) if chunk >= 0]
        if self.visit(now + 1, after):
            return True
        del self.sends[size:]
        return False

    def may_end(self, now: int, state: State, done: int) -> bool:
        """Check distances and cuts: a state that passes neither has no schedule that ends in time."""
        for chunk, (source, targets) in enumerate(self.chunks):
            for target in targets:
                if not done >> self.bit(chunk, target) & 1 and not self.reaches(now, state, chunk, source, target):
                    return False
        for entering, rows in self.cuts:
            missing = 0
            for inside, needed in rows:
                # What a set of ranks has stays there only if ranks store.
                there = state.fresh | state.still_coming if self.passing else done
                missing += needed & ~done != 0 and there & inside == 0
            if missing and missing > sum(self.starts(now, state, link) for link in entering):
                return False
        return True

    def reaches(self, now: int, state: State, chunk: int, source: int, target: int) -> bool:
        """Check whether a chunk can come to a rank in time from somewhere."""
        room = self.epochs - now
        distance = self.net.distance
        if distance[source][target] <= room:
            return True
        here = state.fresh if self.passing else state.have
        for rank in range(self.net.ranks):
            bit = self.bit(chunk, rank)
            if here >> bit & 1 and distance[rank][target] <= room:
                return True
            for wait, mask in enumerate(state.coming, 1):
                if mask >> bit & 1 and wait + distance[rank][target] <= room:
                    return True
        return False

    def starts(self, now: int, state: State, link: int) -> int:
        """Count the starts of a link whose arrivals are in time."""
        _, _, delay, window = self.net.links[link]
        last = self.epochs - delay - now - state.busy[link]
        return 0 if last < 0 else last // window + 1


def fewest(net: Net, kind: str, *, passing: bool, first: int = 1, states: int = 10**6) -> tuple[int, list[Send]]:
    """Return the fewest epochs, at least ``first``, and a schedule."""
    epochs = first
    while True:
        found = Search(net, kind, epochs, passing=passing, states=states).run()
        if found is not None:
            return epochs, found
        epochs += 1
