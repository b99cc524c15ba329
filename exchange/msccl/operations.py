"""Transfers as operations of GPUs: what is sent, received, added and copied, from where to where, after what.

Operations are made in the order of the schedule. What an operation has to wait for are the last writing of what it
reads, and the last writing and all reading since of what it writes. Where input and output may be the same memory, they
are the same here, which is right for both.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...core.collective import Collective
from ...core.errors import InputError
from ...core.schedule import Bools, Ints
from .dialects import BLOCKS_PER_CHANNEL
from .flow import Flow, Hops
from .outcome import Meaning
from .program import BUFFERS, NAMES

_LAST = 2**20  #: Order of the last receiving among what belongs to one transfer.
Place = tuple[str, int]  #: A place: buffer and offset.
_INPUT, _OUTPUT, _SCRATCH = range(3)
#: Kinds of operations: numbers of the types of steps.
SEND, RECEIVE, REDUCE, COPY, ADD, RCS, RRS, RRCS = map(
    NAMES.index, ("s", "r", "rrc", "cpy", "re", "rcs", "rrs", "rrcs")
)
CHANNEL = 32  #: Bits of the channel in the number of a connection; the other GPU is above them.


@dataclass(eq=False, slots=True)
class Operation:
    """An operation of a GPU on one piece."""

    kind: str
    gpu: int
    source: Place
    target: Place
    count: int
    #: ``into`` and ``out``: GPU to receive from or send to, and the channel.
    into: tuple[int, int] | None = None
    out: tuple[int, int] | None = None
    chunk: int = -1
    #: ``start`` and ``link``: start and first link of its hop (:class:`~.flow.Hops`).
    start: int = 0
    link: int = -1
    passed: bool = False  #: Whether it receives data that is only forwarded.
    after: "list[Operation]" = field(default_factory=list)
    place: tuple[int, int] = (0, 0)  #: Thread block and step.
    performer: "Operation | None" = None  #: The operation that does the work of this one: itself if it is not fused.


@dataclass(frozen=True)
class Shape:
    """Options of lowering a schedule."""

    instances: int = 1
    groups: int = 1  #: Channels that the chunks of a copy are spread over.
    largest: int = 71
    inplace: bool = False  #: Whether input and output may be the same memory.
    only_inplace: bool = False  #: Whether input and output always are the same memory.
    fused: bool = True
    joined: bool = False


def operations(flow: Flow, shape: Shape) -> Iterator["Operations"]:
    """Yield the operations of one GPU after another; only those of one are held."""
    yield from map(partial(Operations, flow, shape, _Events(flow, shape)), range(flow.ranks))


class _Events:
    """Sends and receives of all hops in order, by the GPU that they are at."""

    def __init__(self, flow: Flow, shape: Shape) -> None:
        hops = flow.hops
        time = np.concatenate([hops.read, np.where(hops.last, hops.write, hops.read)])
        turn = np.concatenate([2 * hops.number, np.where(hops.last, _LAST, 2 * hops.number + 1)])
        order = np.lexsort((turn, np.tile(hops.chunk, 2), time))
        self.lane = self._find_lanes(flow.ranks, hops.source, hops.target, hops.chunk % shape.groups, order)
        sizes = [piece[1:] for piece in flow.chunks]
        self.grains, self.input, self.output = np.array(sizes, dtype=np.int64).reshape(-1, 3).T
        rank = np.concatenate([hops.source, hops.target])[order]
        by_rank = np.argsort(rank, kind="stable")
        self.order, self.begin = order[by_rank], np.searchsorted(rank[by_rank], np.arange(flow.ranks + 1))
        self.pairs = [  # chunks and the ranks that hold or need them
            np.sort(
                [-1, *(n * flow.ranks + one for n, piece in enumerate(flow.chunks) for one in piece.kind[:2][side])]
            )
            for side in (0, 1)
        ]

    @staticmethod
    def _find_lanes(ranks: int, source: Ints, target: Ints, group: Ints, order: Ints) -> Ints:
        """Return the further channel of every hop, where a connection is not in order or a channel has no room.

        A connection receives in the order in which it is sent on, and a channel of a GPU has room for some neighbours.
        """
        hops = len(source)
        place = np.argsort(order)
        pair = source * ranks + target
        link = pair * (group.max(initial=0) + 1) + group
        lane = np.zeros(hops, dtype=np.int64)
        by_link = np.lexsort((place[:hops], link))
        if ((np.diff(place[hops:][by_link]) < 0) & (np.diff(link[by_link]) == 0)).any():
            last: dict[int, list[int]] = defaultdict(list)  # of lanes the last receive, negative: lanes are sorted
            for send in order[order < hops].tolist():
                rows, row = last[int(link[send])], -int(place[hops + send])
                number = bisect_right(rows, row)
                rows[number : number + 1] = [row]
                lane[send] = number
        neighbours = np.bincount(np.unique(pair, return_counts=True)[0] // ranks, minlength=1)
        if neighbours.max() <= BLOCKS_PER_CHANNEL:
            return lane
        return lane * -(-ranks // BLOCKS_PER_CHANNEL) + (target - source) % ranks // BLOCKS_PER_CHANNEL


class Operations:
    """Operations of a GPU on one piece each, in order, as columns; -1 is none."""

    def __init__(self, flow: Flow, shape: Shape, events: _Events, rank: int) -> None:
        self.flow, self.shape, self.events, self.rank = flow, shape, events, rank
        self.meaning = Meaning(flow.kind, flow.ranks, flow.grains * shape.instances)
        self.base = np.array(self.meaning.bases(rank, inplace=shape.inplace))
        staged = flow.kind is Collective.ALL_TO_ALL and shape.inplace
        first = self._copies(0, (_SCRATCH, 0), self.meaning.grains if staged else 0)
        columns = np.concatenate([first, self._transfers(staged=staged), self._own_part(staged=staged)], axis=1)
        self.kind, self.sources, self.targets, self.count = columns[0], columns[1:3], columns[3:5], columns[5]
        self.into, self.out = columns[6:8]  #: Connections to receive from and to send over.
        self.home = columns[8]  #: Of a copy or addition, the connection whose thread block executes it.
        self.row, self.passed = columns[9:]  #: Hop, and whether it receives data that is only forwarded.
        self.performer = np.arange(len(self.kind))  #: The operation that does the work of each.
        self._find_order(first.shape[1])

    def _transfers(self, *, staged: bool) -> Ints:
        """Return the operations of what is sent and received, as rows of columns."""
        shape, events, times, groups = self.shape, self.events, self.shape.instances, self.shape.groups
        here = events.order[events.begin[self.rank] : events.begin[self.rank + 1]]
        row, sends = here % max(len(events.lane), 1), here < len(events.lane)
        hops, index = Hops._make(column[row] for column in self.flow.hops), np.arange(len(row))
        chunk = hops.chunk
        grains, ends = events.grains[chunk], hops.last & ~sends
        relays = np.where(sends, hops.number > 0, ~ends)
        _, number = np.unique(chunk, return_inverse=True)
        first = np.full(len(row), len(row))  # receiving of a chunk, after which it is no longer in the input
        np.minimum.at(first, number[ends], index[ends])
        changed = first[number] < index
        here = chunk * self.flow.ranks + self.rank
        holds, needs = (some[np.searchsorted(some, here, "right") - 1] == here for some in events.pairs)
        if (sends & ~relays & ~changed & ~holds).any():
            raise InputError(f"rank {self.rank} sends data that it does not have yet", place="sends")
        adds = ends & hops.reduce & (changed | holds)
        scratch, parts = self._scratch(chunk, row + ~sends, relays, relays | ((ends | changed) & ~needs), adds, staged)
        collected = np.where(needs, _OUTPUT, _SCRATCH), np.where(needs, events.output[chunk] * times, scratch)
        own = (
            np.where(changed, collected[0], _SCRATCH if staged else _INPUT),
            np.where(changed, collected[1], events.input[chunk] * times),
        )
        passing = np.full(len(row), _SCRATCH), scratch
        target = [np.where(relays, *some) for some in zip(passing, np.where(sends, own, collected), strict=True)]
        source = [np.where(relays | ~(sends | adds), *some) for some in zip(target, own, strict=True)]

        splits = -(-grains // shape.largest)
        event = np.repeat(index, times * splits)
        instance, split = np.divmod(np.arange(len(event)) - np.searchsorted(event, event), splits[event])
        offset = instance * grains[event] + split * shape.largest
        count = np.minimum(shape.largest, grains[event] - split * shape.largest)
        channel = instance * groups + (chunk % groups + times * groups * events.lane[row])[event]
        peer = np.where(sends, hops.target, hops.source)[event]
        link, none = (peer << CHANNEL) + channel, np.full(len(event), -1)
        here, there = (np.stack([some[0][event], some[1][event] + offset]) for some in (source, target))
        kind = np.where(sends, SEND, np.where(adds, REDUCE, RECEIVE))[event]
        out, into = np.where(sends[event], (link, none), (none, link))
        passed = (relays & ~sends)[event]
        columns = np.stack([kind, *here, *there, count, into, out, none, row[event], passed])
        return columns if shape.fused else self._separate(columns, parts[event] + offset)

    def _scratch(
        self, chunk: Ints, relay: Ints, relays: Bools, stored: Bools, adds: Bools, staged: bool
    ) -> tuple[Ints, Ints]:
        """Return offsets in scratch memory: where what is passed on or collected there lies, and parts to be added.

        Room is made in the order of events.
        """
        size = self.events.grains[chunk] * self.shape.instances
        rows = np.flatnonzero(stored)
        key = np.where(relays, len(self.events.grains) + relay, chunk)[rows]
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        new = np.zeros(len(chunk), dtype=np.int64)
        new[rows[first]] = size[rows[first]]
        more = np.zeros_like(new) if self.shape.fused else np.where(adds, size, 0)
        end = (self.meaning.grains if staged else 0) + np.cumsum(new + more)
        place = np.zeros_like(new)
        place[rows] = (end - more - new)[rows[first]][number]
        return place, end - more

    def _separate(self, columns: Ints, part: Ints) -> Ints:
        """Make additions of a copy, a receiving in scratch memory and an addition, for want of ``rrc``."""
        kind, here, there, into = columns[0], columns[1:3], columns[3:5], columns[6]
        adds = kind == REDUCE
        same = (here == there).all(axis=0) | (self.shape.only_inplace & (self._address(*here) == self._address(*there)))
        times = np.where(adds, 3 - same, 1)
        row = np.repeat(np.arange(len(kind)), times)
        turn = np.arange(len(row)) - np.searchsorted(row, row) + 3 - times[row]  # 0 copies, 1 receives, 2 adds
        split, columns = adds[row], columns[:, row]
        scratch = np.stack([np.full(len(row), _SCRATCH), part[row]])
        columns[0] = np.where(split, np.array([COPY, RECEIVE, ADD])[turn], columns[0])
        columns[1:3] = np.where(split & (turn > 0), scratch, columns[1:3])
        columns[3:5] = np.where(split & (turn == 1), scratch, columns[3:5])
        columns[8] = np.where(split & (turn != 1), into[row], -1)
        columns[6] = np.where(split & (turn != 1), -1, columns[6])
        return columns

    def _own_part(self, *, staged: bool) -> Ints:
        """Copy to the output what the GPU has and needs itself."""
        kind, part, rank = self.flow.kind, self.meaning.part, self.rank
        holds, needs, _ = self.flow.chunks[0].kind if self.flow.chunks else ((0,), (0,), False)
        if kind in (Collective.ALL_GATHER, Collective.ALL_TO_ALL) or (kind is Collective.GATHER and rank == needs[0]):
            source = 0 if kind is not Collective.ALL_TO_ALL else rank * part
            return self._copies(source, (_OUTPUT, rank * part), part, _SCRATCH if staged else _INPUT)
        if kind in (Collective.BROADCAST, Collective.SCATTER) and rank == holds[0]:
            whole = kind is Collective.BROADCAST
            return self._copies(0 if whole else rank * part, (_OUTPUT, 0), self.meaning.grains if whole else part)
        return self._copies(0, (_OUTPUT, 0), 0)

    def _copies(self, source: int, target: tuple[int, int], count: int, buffer: int = _INPUT) -> Ints:
        largest = self.shape.largest
        same = self.shape.only_inplace and self._address(buffer, source) == self._address(*target)
        offset = np.arange(0, 0 if same else count, largest)
        none, some = np.full(len(offset), -1), np.minimum(largest, count - offset)
        places = none + 1 + buffer, source + offset, none + 1 + target[0], target[1] + offset
        return np.stack([none + 1 + COPY, *places, some, none, none, none, none, none + 1])

    def _address(self, buffer: Any, offset: Any) -> Any:
        return self.base[buffer] + offset

    def _find_order(self, staged: int) -> None:
        """Find what every operation comes after: the last writing of what it reads or writes, and reading since."""
        reads, writes = np.flatnonzero(self.kind != RECEIVE), np.flatnonzero(self.kind != SEND)
        one = np.append(reads, writes)
        write = np.arange(len(one)) >= len(reads)
        address = np.append(self._address(*self.sources[:, reads]), self._address(*self.targets[:, writes]))
        order = np.lexsort((write, one, address))
        one, write, address = one[order], write[order], address[order]
        index, begins = np.arange(len(one)), np.diff(address, prepend=-1) != 0
        start = np.maximum.accumulate(np.where(begins, index, 0))
        before = np.append(-1, np.maximum.accumulate(np.where(write, index, -1)))[:-1]
        after = np.append(np.minimum.accumulate(np.where(write, index, len(index))[::-1])[::-1], len(index))[1:]
        follows = np.flatnonzero(before >= start)
        again = np.append(start, -1)[after] == start  # whether it is written later
        read = np.flatnonzero(~write & again)
        earlier, later = np.append(one[before[follows]], one[read]), np.append(one[follows], one[after[read]])
        turn = np.append(write[follows], np.full(len(read), 2))
        other = earlier != later
        self.readers = np.bincount(earlier[other & (turn == 0)], minlength=len(self.kind))
        self.keeps = np.zeros(len(self.kind), dtype=bool)
        self.keeps[one[write & ~again]] = True
        self.keeps &= self.targets[0] == _OUTPUT
        late = np.arange(staged, len(self.kind) if staged else 0)
        earlier = np.append(np.full(len(late), staged - 1), earlier[other])
        later, turn = np.append(late, later[other]), np.append(np.full(len(late), -1), turn[other])
        order = np.lexsort((earlier, turn, later))
        self.after, self.later = earlier[order], later[order]  #: Pairs of operations in this order.
        self.after_begin = np.searchsorted(self.later, np.arange(len(self.kind) + 1))

    def objects(self) -> list[Operation]:
        """Return the operations one by one."""
        columns, hops = (self.kind, *self.sources, *self.targets, self.count, self.passed), self.flow.hops
        ends = ([connection_end(number) for number in column.tolist()] for column in (self.into, self.out))
        objects = [
            Operation(NAMES[kind], self.rank, (BUFFERS[a], source), (BUFFERS[b], target), count, passed=passed != 0)
            for kind, a, source, b, target, count, passed in zip(*(column.tolist() for column in columns), strict=True)
        ]
        work = ([objects[place] for place in self.performer.tolist()],)
        for one, row, one.into, one.out, one.performer in zip(objects, self.row.tolist(), *ends, *work, strict=True):
            if row >= 0:
                one.chunk, one.start, one.link = int(hops.chunk[row]), int(hops.start[row]), int(hops.link[row])
        for earlier, later in zip(self.after.tolist(), self.later.tolist(), strict=True):
            objects[later].after.append(objects[earlier])
        return objects


def connection_end(number: int) -> tuple[int, int] | None:
    """Return the other GPU and the channel of a connection; None if there is none."""
    return None if number < 0 else (number >> CHANNEL, number % (1 << CHANNEL))
