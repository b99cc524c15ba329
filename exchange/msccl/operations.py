"""Transfers as operations of GPUs: what is sent, received, added and copied, from where to where, after what.

Operations are made in the order of the schedule. What an operation has to wait for are the last writing of what it
reads, and the last writing and all reading since of what it writes. Where input and output may be the same memory, they
are the same here, which is right for both.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.collective import Collective
from ...core.errors import InputError
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
    into: "Operation" = field(init=False)  # the operation that does its work, where two are one

    def __post_init__(self) -> None:
        self.into = self


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


def operations(flow: Flow, shape: Shape) -> list[list[Operation]]:
    """Return the operations of every GPU, in order."""
    return _OperationBuilder(flow, shape).list_operations()


class _OperationBuilder:
    """Makes operations, and knows where every rank has which chunk."""

    def __init__(self, flow: Flow, shape: Shape) -> None:
        self.flow, self.shape, self.times = flow, shape, shape.instances
        self.meaning = Meaning(flow.kind, flow.ranks, flow.grains * self.times)
        self.found: list[list[Operation]] = [[] for _ in range(flow.ranks)]
        self.written: list[dict[int, Operation]] = [{} for _ in range(flow.ranks)]
        self.read: list[dict[int, list[Operation]]] = [{} for _ in range(flow.ranks)]
        self.bases = [self.meaning.bases(rank, inplace=shape.inplace) for rank in range(flow.ranks)]
        self.scratch = [0] * flow.ranks
        self.stored: dict[tuple[int, int], int] = {}  # where a rank collects a chunk that it does not need
        self.changed: set[tuple[int, int]] = set()  # chunk and rank: no longer in the input
        self.held = [frozenset(piece.kind[0]) for piece in flow.chunks]
        self.needed = [frozenset(piece.kind[1]) for piece in flow.chunks]
        self.staged = flow.kind is Collective.ALL_TO_ALL and shape.inplace
        self.last_staged: list[Operation | None] = [None] * flow.ranks
        self.relays: dict[tuple[int, int], int] = {}
        self.lane: dict[tuple[int, int], int] = {}

    def list_operations(self) -> list[list[Operation]]:
        for rank in range(self.flow.ranks) if self.staged else ():
            self.scratch[rank] = self.meaning.grains
            self._copy(rank, ("i", 0), ("s", 0), self.meaning.grains)
            self.last_staged[rank] = self.found[rank][-1]
        for index, hop, sends in self._events():
            transfer = self.flow.transfers[index]
            for offset, count, group in self._pieces(transfer.chunk):
                channel = group + self.shape.instances * self.shape.groups * self.lane[index, hop]
                if sends:
                    self._send(index, hop, offset, count, channel)
                else:
                    self._receive(index, hop, offset, count, channel)
            if not sends and hop == len(transfer.way) - 2:
                self.changed.add((transfer.chunk, transfer.way[-1]))
        self._own_parts()
        for written in self.written:
            for operation in written.values():
                operation.kept = operation.target[0] == "o"
        return self.found

    def _pieces(self, chunk: int) -> Iterator[tuple[int, int, int]]:
        grains, largest = self.flow.chunks[chunk].grains, self.shape.largest
        for instance in range(self.times):
            group = instance * self.shape.groups + chunk % self.shape.groups
            for offset in range(0, grains, largest):
                yield instance * grains + offset, min(largest, grains - offset), group

    def _events(self) -> Iterator[tuple[int, int, bool]]:
        """Yield sends and receives of all hops in order: transfer, hop, whether it sends."""
        rows: list[tuple[int, int, int, int, int, int]] = []
        for index, (chunk, way, _, read, write, _) in enumerate(self.flow.transfers):
            for hop in range(len(way) - 1):
                rows.append((read, chunk, 2 * hop, index, hop, 1))
                last = hop == len(way) - 2
                rows.append((write if last else read, chunk, _LAST if last else 2 * hop + 1, index, hop, 0))
        table = np.array(rows, dtype=np.int64).reshape(-1, 6)
        order = np.lexsort(table[:, [3, 2, 1, 0]].T)
        self._find_lanes(table[order])
        for index, hop, sends in table[order][:, 3:].tolist():
            yield index, hop, bool(sends)

    def _find_lanes(self, events: np.ndarray) -> None:
        """Spread hops over further channels, where a connection would not be in order or a channel has no room.

        A connection receives in the order in which it is sent on, and a channel of a GPU has room for some neighbours.
        """
        transfers, groups = self.flow.transfers, self.shape.groups
        received = {(index, hop): row for row, (index, hop, sends) in enumerate(events[:, 3:].tolist()) if not sends}
        neighbours: list[set[int]] = [set() for _ in range(self.flow.ranks)]
        last: dict[tuple[int, int, int], list[int]] = {}
        lane: dict[tuple[int, int], int] = {}
        for index, hop, sends in events[:, 3:].tolist():
            if not sends:
                continue
            source, target = transfers[index].way[hop : hop + 2]
            neighbours[source].add(target)
            rows = last.setdefault((source, target, transfers[index].chunk % groups), [])
            row = received[index, hop]
            found = next((number for number, before in enumerate(rows) if before < row), len(rows))
            rows[found : found + 1] = [row]
            lane[index, hop] = found
        crowded = max(map(len, neighbours), default=0) > BLOCKS_PER_CHANNEL
        colours = -(-self.flow.ranks // BLOCKS_PER_CHANNEL) if crowded else 1
        for (index, hop), number in lane.items():
            source, target = transfers[index].way[hop : hop + 2]
            colour = (target - source) % self.flow.ranks // BLOCKS_PER_CHANNEL if crowded else 0
            self.lane[index, hop] = number * colours + colour

    def _send(self, index: int, hop: int, offset: int, count: int, channel: int) -> None:
        transfer = self.flow.transfers[index]
        gpu, target = transfer.way[hop : hop + 2]
        place = self._place(transfer.chunk, gpu) if hop == 0 else self._relay(index, hop)
        if place is None:
            raise InputError(f"rank {gpu} sends data that it does not have yet", place="sends")
        place = _shift_place(place, offset)
        given = (target, channel)
        made = Operation("s", gpu, place, place, count, given=given, chunk=transfer.chunk, hop=transfer.hop(hop))
        self._add(made, place, None)

    def _receive(self, index: int, hop: int, offset: int, count: int, channel: int) -> None:
        transfer = self.flow.transfers[index]
        source, gpu = transfer.way[hop : hop + 2]
        taken = source, channel
        known: dict[str, Any] = {"chunk": transfer.chunk, "hop": transfer.hop(hop)}
        if hop < len(transfer.way) - 2:
            place = _shift_place(self._relay(index, hop + 1), offset)
            operation = Operation("r", gpu, place, place, count, taken, passed=True, **known)
            self._add(operation, None, place)
            return
        target = _shift_place(self._collection_place(transfer.chunk, gpu), offset)
        has = self._place(transfer.chunk, gpu)
        if not transfer.reduce or has is None:
            self._add(Operation("r", gpu, target, target, count, taken, **known), None, target)
        elif self.shape.fused:
            own = _shift_place(has, offset)
            self._add(Operation("rrc", gpu, own, target, count, taken, **known), own, target)
        else:  # in two steps, for want of ``rrc``
            own, part = _shift_place(has, offset), ("s", self._room(gpu, count))
            same = self.shape.only_inplace and self._address(gpu, own) == self._address(gpu, target)
            if own != target and not same:
                self._add(Operation("cpy", gpu, own, target, count, home=taken), own, target)
            self._add(Operation("r", gpu, part, part, count, taken), None, part)
            operation = Operation("re", gpu, part, target, count, home=taken)
            self._add(operation, part, target)
            self._reads(operation, target)

    def _own_parts(self) -> None:
        """Copy to the output what a rank has and needs itself."""
        kind, part = self.flow.kind, self.meaning.part
        roots = {piece.kind[0][0] for piece in self.flow.chunks}
        root = next(iter(roots), 0)
        for rank in range(self.flow.ranks):
            match kind:
                case Collective.ALL_GATHER:
                    self._copy(rank, ("i", 0), ("o", rank * part), part)
                case Collective.ALL_TO_ALL:
                    start = ("s" if self.staged else "i", rank * part)
                    self._copy(rank, start, ("o", rank * part), part)
                case Collective.BROADCAST if rank == root:
                    self._copy(rank, ("i", 0), ("o", 0), self.meaning.grains)
                case Collective.SCATTER if rank == root:
                    self._copy(rank, ("i", rank * part), ("o", 0), part)
        if kind is Collective.GATHER:
            root = self.flow.chunks[0].kind[1][0] if self.flow.chunks else 0
            self._copy(root, ("i", 0), ("o", root * part), part)

    def _copy(self, gpu: int, source: Place, target: Place, count: int) -> None:
        if self.shape.only_inplace and self._address(gpu, source) == self._address(gpu, target):
            return
        for offset in range(0, count, self.shape.largest):
            some = min(self.shape.largest, count - offset)
            here, there = _shift_place(source, offset), _shift_place(target, offset)
            self._add(Operation("cpy", gpu, here, there, some), here, there)

    def _place(self, chunk: int, rank: int) -> Place | None:
        """Return the present place of a chunk at a rank."""
        if (chunk, rank) in self.changed:
            return self._collection_place(chunk, rank)
        if rank in self.held[chunk]:
            return "s" if self.staged else "i", self.flow.chunks[chunk].input * self.times
        return None

    def _collection_place(self, chunk: int, rank: int) -> Place:
        """Return the place where a rank collects a chunk: output if it needs it, else scratch."""
        if rank in self.needed[chunk]:
            return "o", self.flow.chunks[chunk].output * self.times
        if (chunk, rank) not in self.stored:
            self.stored[chunk, rank] = self._room(rank, self.flow.chunks[chunk].grains * self.times)
        return "s", self.stored[chunk, rank]

    def _relay(self, index: int, hop: int) -> Place:
        transfer = self.flow.transfers[index]
        if (index, hop) not in self.relays:
            grains = self.flow.chunks[transfer.chunk].grains * self.times
            self.relays[index, hop] = self._room(transfer.way[hop], grains)
        return "s", self.relays[index, hop]

    def _room(self, rank: int, grains: int) -> int:
        self.scratch[rank] += grains
        return self.scratch[rank] - grains

    def _address(self, gpu: int, place: Place) -> int:
        return self.bases[gpu]["ios".index(place[0])] + place[1]

    def _add(self, operation: Operation, read: Place | None, written: Place | None) -> None:
        gpu = operation.gpu
        if self.staged and (staged := self.last_staged[gpu]) is not None:
            operation.after.append(staged)
        if read is not None:
            self._reads(operation, read)
        if written is not None:
            address = self._address(gpu, written)
            before = self.written[gpu].get(address)
            if before is not None and before is not operation:
                operation.after.append(before)
            operation.after += [one for one in self.read[gpu].pop(address, ()) if one is not operation]
            self.written[gpu][address] = operation
        self.found[gpu].append(operation)

    def _reads(self, operation: Operation, place: Place) -> None:
        gpu, address = operation.gpu, self._address(operation.gpu, place)
        before = self.written[gpu].get(address)
        if before is not None and before is not operation:
            before.readers += 1
            operation.after.append(before)
        self.read[gpu].setdefault(address, []).append(operation)


def _shift_place(place: Place, offset: int) -> Place:
    return place[0], place[1] + offset
