"""Transfers as operations of GPUs: what is sent, received, added and copied, from where to where, after what.

Operations are made in the order of the schedule. What an operation has to wait for are the last writing of what it
reads, and the last writing and all reading since of what it writes. Where input and output may be the same memory, they
are the same here, which is right for both.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

import numpy as np

from ...core.collective import Collective
from ...core.errors import InputError
from ...core.schedule import Ints
from .dialects import BLOCKS_PER_CHANNEL
from .flow import Flow, Hop
from .outcome import Meaning

_LAST = 2**20  #: Order of the last receiving among what belongs to one transfer.
Place = tuple[str, int]  #: A place: buffer and offset.
_NO_HOP = Hop(0, -1)


@dataclass(eq=False, slots=True)
class Operation:
    """An operation of a GPU on one piece."""

    kind: str
    gpu: int
    source: Place
    target: Place
    count: int
    #: ``taken`` and ``given``: GPU to receive from or send to, and the channel.
    taken: tuple[int, int] | None = None
    given: tuple[int, int] | None = None
    home: tuple[int, int] | None = None  #: Of a copy or addition, the connection whose thread block executes it.
    chunk: int = -1
    hop: Hop = _NO_HOP
    passed: bool = False  #: Whether it receives data that is only forwarded.
    after: "list[Operation]" = field(default_factory=list)
    readers: int = 0
    kept: bool = False
    place: tuple[int, int] = (0, 0)
    fused_into: "Operation | None" = None

    @property
    def performer(self) -> "Operation":
        """The operation that does the work of this one: that into which it is fused, else itself."""
        return self.fused_into or self


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


def operations(flow: Flow, shape: Shape) -> Iterator[list[Operation]]:
    """Yield the operations of one GPU after another, in order; only those of one are held."""
    events = _Events(flow, shape)
    for rank in range(flow.ranks):
        yield _OperationBuilder(flow, shape, events, rank).list_operations()


class _Events:
    """Sends and receives of all hops in order, by the GPU that they are at."""

    def __init__(self, flow: Flow, shape: Shape) -> None:
        ways = [transfer.way for transfer in flow.transfers]
        chunk, read, write = (
            np.fromiter((transfer[column] for transfer in flow.transfers), np.int64, len(ways)) for column in (0, 3, 4)
        )
        hops = np.fromiter(map(len, ways), np.int64, len(ways)) - 1
        nodes = np.fromiter(chain.from_iterable(ways), np.int64)
        index = np.repeat(np.arange(len(ways)), hops)
        hop = np.arange(len(index)) - np.repeat(np.cumsum(hops) - hops, hops)
        source, target = (nodes[np.arange(len(index)) + index + end] for end in (0, 1))
        last = hop == hops[index] - 1
        time = np.concatenate([read[index], np.where(last, write[index], read[index])])
        turn = np.concatenate([2 * hop, np.where(last, _LAST, 2 * hop + 1)])
        order = np.lexsort((np.tile(index, 2), turn, np.tile(chunk[index], 2), time))
        self.lane = self._find_lanes(flow.ranks, source, target, chunk[index] % shape.groups, order)
        self._rows = np.stack([np.tile(index, 2), np.tile(hop, 2), np.tile(self.lane, 2)])
        self._events = _Groups(np.concatenate([source, target])[order], order, flow.ranks)
        self.held = _chunks_of_ranks([piece.kind[0] for piece in flow.chunks], flow.ranks)
        self.needed = _chunks_of_ranks([piece.kind[1] for piece in flow.chunks], flow.ranks)

    @staticmethod
    def _find_lanes(ranks: int, source: Ints, target: Ints, group: Ints, order: Ints) -> Ints:
        """Return the further channel of every hop, where a connection is not in order or a channel has no room.

        A connection receives in the order in which it is sent on, and a channel of a GPU has room for some neighbours.
        """
        hops = len(source)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        pair = source * ranks + target
        link = (pair * (group.max(initial=0) + 1) + group).tolist()
        received = place[hops:].tolist()
        last: dict[int, list[int]] = defaultdict(list)  # of every lane the last receive, negative: the lanes are sorted
        lane = np.zeros(hops, dtype=np.int64)
        for send in order[order < hops].tolist():
            rows, row = last[link[send]], -received[send]
            found = bisect_right(rows, row)
            rows[found : found + 1] = [row]
            if found:
                lane[send] = found
        neighbours = np.bincount(np.unique(pair) // ranks, minlength=1)
        if neighbours.max() <= BLOCKS_PER_CHANNEL:
            return lane
        return lane * -(-ranks // BLOCKS_PER_CHANNEL) + (target - source) % ranks // BLOCKS_PER_CHANNEL

    def at(self, rank: int) -> Iterator[tuple[int, int, int, bool]]:
        """Yield those of a GPU: transfer, hop, lane, whether it sends."""
        events = self._events.of(rank)
        yield from zip(*self._rows[:, events].tolist(), (events < len(self.lane)).tolist(), strict=True)


class _Groups:
    """Values by their group, in order."""

    def __init__(self, group: Ints, values: Ints, groups: int) -> None:
        self._values = values[np.argsort(group, kind="stable")]
        self._begin = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))])

    def of(self, group: int) -> Ints:
        return self._values[self._begin[group] : self._begin[group + 1]]


def _chunks_of_ranks(ranks: list[tuple[int, ...]], groups: int) -> _Groups:
    chunk = np.repeat(np.arange(len(ranks)), np.fromiter(map(len, ranks), np.int64, len(ranks)))
    return _Groups(np.fromiter(chain.from_iterable(ranks), np.int64), chunk, groups)


class _OperationBuilder:
    """Makes the operations of a GPU, and knows where it has which chunk."""

    def __init__(self, flow: Flow, shape: Shape, events: _Events, rank: int) -> None:
        self.flow, self.shape, self.events, self.rank, self.times = flow, shape, events, rank, shape.instances
        self.meaning = Meaning(flow.kind, flow.ranks, flow.grains * self.times)
        self.found: list[Operation] = []
        self.written: dict[int, Operation] = {}
        self.read: dict[int, list[Operation]] = {}
        self.base = dict(zip("ios", self.meaning.bases(rank, inplace=shape.inplace), strict=True))
        self.scratch = 0
        self.stored: dict[int, int] = {}  # where it collects a chunk that it does not need
        self.changed: set[int] = set()  # chunks that are no longer in the input
        self.staged = flow.kind is Collective.ALL_TO_ALL and shape.inplace
        self.last_staged: Operation | None = None
        self.relays: dict[tuple[int, int], int] = {}
        self.held, self.needed = ({*some.of(rank).tolist()} for some in (events.held, events.needed))

    def list_operations(self) -> list[Operation]:
        if self.staged:
            self.scratch = self.meaning.grains
            self._copy(("i", 0), ("s", 0), self.meaning.grains)
            self.last_staged = self.found[-1]
        pieces, groups = cache(self._pieces), self.shape.groups
        transfers, chunks = self.flow.transfers, self.flow.chunks
        for index, hop, lane, sends in self.events.at(self.rank):
            transfer = transfers[index]
            for offset, count, group in pieces(chunks[transfer.chunk].grains, transfer.chunk % groups):
                channel = group + self.times * groups * lane
                if sends:
                    self._send(index, hop, offset, count, channel)
                else:
                    self._receive(index, hop, offset, count, channel)
            if not sends and hop == len(transfer.way) - 2:
                self.changed.add(transfer.chunk)
        self._own_parts()
        for operation in self.written.values():
            operation.kept = operation.target[0] == "o"
        return self.found

    def _pieces(self, grains: int, group: int) -> list[tuple[int, int, int]]:
        largest = self.shape.largest
        return [
            (instance * grains + offset, min(largest, grains - offset), instance * self.shape.groups + group)
            for instance in range(self.times)
            for offset in range(0, grains, largest)
        ]

    def _send(self, index: int, hop: int, offset: int, count: int, channel: int) -> None:
        transfer, gpu = self.flow.transfers[index], self.rank
        place = self._place(transfer.chunk) if hop == 0 else self._relay(index, hop)
        if place is None:
            raise InputError(f"rank {gpu} sends data that it does not have yet", place="sends")
        place = _shift_place(place, offset)
        given = (transfer.way[hop + 1], channel)
        made = Operation("s", gpu, place, place, count, given=given, chunk=transfer.chunk, hop=transfer.hop(hop))
        self._add(made, place, None)

    def _receive(self, index: int, hop: int, offset: int, count: int, channel: int) -> None:
        transfer, gpu = self.flow.transfers[index], self.rank
        taken = transfer.way[hop], channel
        chunk, came = transfer.chunk, transfer.hop(hop)
        if hop < len(transfer.way) - 2:
            place = _shift_place(self._relay(index, hop + 1), offset)
            operation = Operation("r", gpu, place, place, count, taken, chunk=chunk, hop=came, passed=True)
            self._add(operation, None, place)
            return
        target = _shift_place(self._collection_place(chunk), offset)
        has = self._place(chunk) if transfer.reduce else None
        if has is None:
            self._add(Operation("r", gpu, target, target, count, taken, chunk=chunk, hop=came), None, target)
        elif self.shape.fused:
            own = _shift_place(has, offset)
            self._add(Operation("rrc", gpu, own, target, count, taken, chunk=chunk, hop=came), own, target)
        else:  # in two steps, for want of ``rrc``
            own, part = _shift_place(has, offset), ("s", self._room(count))
            same = self.shape.only_inplace and self._address(own) == self._address(target)
            if own != target and not same:
                self._add(Operation("cpy", gpu, own, target, count, home=taken), own, target)
            self._add(Operation("r", gpu, part, part, count, taken), None, part)
            operation = Operation("re", gpu, part, target, count, home=taken)
            self._add(operation, part, target)
            self._reads(operation, target)

    def _own_parts(self) -> None:
        """Copy to the output what the GPU has and needs itself."""
        kind, part, rank, grains = self.flow.kind, self.meaning.part, self.rank, self.meaning.grains
        held, needed, _ = self.flow.chunks[0].kind if self.flow.chunks else ((0,), (0,), False)
        match kind:
            case Collective.ALL_GATHER:
                self._copy(("i", 0), ("o", rank * part), part)
            case Collective.ALL_TO_ALL:
                self._copy(("s" if self.staged else "i", rank * part), ("o", rank * part), part)
            case Collective.BROADCAST if rank == held[0]:
                self._copy(("i", 0), ("o", 0), grains)
            case Collective.SCATTER if rank == held[0]:
                self._copy(("i", rank * part), ("o", 0), part)
            case Collective.GATHER if rank == needed[0]:
                self._copy(("i", 0), ("o", rank * part), part)

    def _copy(self, source: Place, target: Place, count: int) -> None:
        if self.shape.only_inplace and self._address(source) == self._address(target):
            return
        for offset in range(0, count, self.shape.largest):
            some = min(self.shape.largest, count - offset)
            here, there = _shift_place(source, offset), _shift_place(target, offset)
            self._add(Operation("cpy", self.rank, here, there, some), here, there)

    def _place(self, chunk: int) -> Place | None:
        """Return the present place of a chunk."""
        if chunk in self.changed:
            return self._collection_place(chunk)
        if chunk in self.held:
            return "s" if self.staged else "i", self.flow.chunks[chunk].input * self.times
        return None

    def _collection_place(self, chunk: int) -> Place:
        """Return the place where a chunk is collected: output if it is needed, else scratch."""
        piece = self.flow.chunks[chunk]
        if chunk in self.needed:
            return "o", piece.output * self.times
        if chunk not in self.stored:
            self.stored[chunk] = self._room(piece.grains * self.times)
        return "s", self.stored[chunk]

    def _relay(self, index: int, hop: int) -> Place:
        if (index, hop) not in self.relays:
            grains = self.flow.chunks[self.flow.transfers[index].chunk].grains
            self.relays[index, hop] = self._room(grains * self.times)
        return "s", self.relays[index, hop]

    def _room(self, grains: int) -> int:
        self.scratch += grains
        return self.scratch - grains

    def _address(self, place: Place) -> int:
        return self.base[place[0]] + place[1]

    def _add(self, operation: Operation, read: Place | None, written: Place | None) -> None:
        if self.last_staged is not None:
            operation.after.append(self.last_staged)
        if read is not None:
            self._reads(operation, read)
        if written is not None:
            address = self._address(written)
            before = self.written.get(address)
            if before is not None and before is not operation:
                operation.after.append(before)
            operation.after += [one for one in self.read.pop(address, ()) if one is not operation]
            self.written[address] = operation
        self.found.append(operation)

    def _reads(self, operation: Operation, place: Place) -> None:
        address = self._address(place)
        before = self.written.get(address)
        if before is not None and before is not operation:
            before.readers += 1
            operation.after.append(before)
        self.read.setdefault(address, []).append(operation)


def _shift_place(place: Place, offset: int) -> Place:
    return (place[0], place[1] + offset) if offset else place
