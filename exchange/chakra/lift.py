"""Traces as schedules in steps, so that they are verified, timed, drawn and compared like any other.

Traces written by cwb name the chunk of each message and its use; of others the data follows from the declared
collective (docs/exchange/chakra.md, "In"). The verifier decides whether the result is the collective.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, gcd

import numpy as np

from ...core.collective import Collective, Demand
from ...core.errors import InputError
from ...core.grouping import group_by_key
from ...core.instance import Instance
from ...core.schedule import Chunks, StepSchedule
from ...core.topology import Topology
from ...schedules.verify import verify
from ..msccl.lift import SUMS, Message, schedule_messages, steps_of_copies, steps_of_sums
from ..msccl.outcome import ROOTED
from .trace import ADDED, PASSED, RECV, SEND, Node, Replay, Trace, run_of

#: Collectives of which a chunk is for all ranks, so that several sends of the same data may wait for nothing.
_FOR_ALL = frozenset({Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.BROADCAST})


@dataclass(frozen=True)
class _Way:
    """Messages that pass something on without a change: the ranks, the first sending, the last receiving, its size."""

    ranks: tuple[int, ...]
    send: int
    receive: int
    units: int
    data: int
    use: int


@dataclass
class _Part:
    """Transfers of the same data: its origin, its receivers, and each rank's final sum, in which ranks are bits."""

    units: int
    ways: list[int] = field(default_factory=list)
    origins: set[int] = field(default_factory=set)
    receivers: set[int] = field(default_factory=set)
    passing: set[int] = field(default_factory=set)
    sums: dict[int, int] = field(default_factory=dict)


def lift_trace(
    trace: Trace, topology: Topology, kind: Collective, size_bytes: Fraction | None, name: str
) -> tuple[Instance, StepSchedule]:
    """Convert a trace to a schedule, and verify it.

    A message takes a shortest path over links and switches. With ``point_to_point`` every message is data of its own.
    The size is that of the full buffer, by default the sum of the messages' sizes.
    """
    if len(topology.ranks) != trace.ngpus:
        raise InputError(f"is of {trace.ngpus} ranks, but the network has {len(topology.ranks)}")
    replay = run_of(trace)
    if replay.problems:
        raise InputError(f"fails: {replay.problems[0]}; see cwb check")
    if not replay.messages:
        raise InputError("has no message")
    why: InputError | None = None
    has_data = all(node.data >= 0 for nodes in trace.ranks for node in nodes if node.type in (SEND, RECV))
    # Dependent sends forward, or add to, received data; or they forward it, and receives only wait.
    read = (_stated_ways,) if has_data else (partial(_alike, types=(SEND, RECV)), partial(_alike, types=(SEND,)))
    for rule in read:
        try:
            return _TraceReader(trace, replay, topology, kind, size_bytes, name).schedule(rule)
        except InputError as error:
            why = why or error
    assert why is not None  # noqa: S101 (both have failed)
    raise why


class _TraceReader:
    def __init__(
        self, trace: Trace, replay: Replay, topology: Topology, kind: Collective, size_bytes: Fraction | None, name: str
    ) -> None:
        self.trace, self.replay, self.topology, self.kind = trace, replay, topology, kind
        self.size_bytes, self.name = size_bytes, name
        self.ranks, self.all = trace.ngpus, (1 << trace.ngpus) - 1
        self.nodes: list[Node] = [node for nodes in trace.ranks for node in nodes]
        self.rank: list[int] = np.repeat(np.arange(self.ranks), np.diff(replay.starts)).tolist()
        self.at = [0] * len(self.nodes)
        for place, node in enumerate(replay.order):
            self.at[node] = place
        self.counted = all(self.nodes[node].grains for pair in replay.messages for node in pair)
        self.adds: set[int] = set()  # ways whose end is added to what the rank has
        # In the order of the nodes of each rank, which decides between sends that are ready together.
        place = np.concatenate([np.arange(len(nodes)) for nodes in trace.ranks]).tolist()
        self.ways = sorted(self._ways(), key=lambda way: (place[way.send], way.send))
        self.way_of = {node: number for number, way in enumerate(self.ways) for node in (way.send, way.receive)}

    def schedule(self, rule: "Callable[[_TraceReader], list[list[int]]]") -> tuple[Instance, StepSchedule]:
        """Return the verified schedule; the rule groups transfers of the same data."""
        empty = next((self.nodes[way.send] for way in self.ways if not self.nodes[way.send].size_bytes), None)
        if empty is not None:
            raise InputError(f"node {empty.id} sends 0 B; expected messages with data")
        if self.kind is Collective.POINT_TO_POINT:
            chunks = [[self._part([number])] for number in range(len(self.ways))]
        else:
            parts = [self._part(numbers) for numbers in rule(self)]
            merges = rule is not _stated_ways and self.kind in _FOR_ALL
            chunks = self._merge_parts(parts) if merges else [[part] for part in parts]
        ends = [self._ends(chunk) for chunk in chunks]
        instance, unit = self._instance([chunk[0].units for chunk in chunks], ends)
        columns = self._columns(chunks, ends, unit)
        chunk_of = {number: chunk for chunk, some in enumerate(chunks) for part in some for number in part.ways}
        messages = [
            Message(chunk_of[number], way.ranks, number in self.adds, self.at[way.send], self.at[way.receive], 0)
            for number, way in enumerate(self.ways)
        ]
        if self.kind is Collective.POINT_TO_POINT:
            step = self._levels()
        else:
            step = steps_of_sums(messages) if self.kind in SUMS else steps_of_copies(messages, columns)
        schedule = schedule_messages(instance, columns, messages, step)
        report = verify(instance, schedule)
        if not report.ok:
            raise InputError(f"does no {self.kind.name}: {report.violations[0]}")
        return instance, schedule

    def _ways(self) -> Iterator[_Way]:
        """Messages, with those that only pass on what came put together."""
        receiver = dict(self.replay.messages)
        onward: dict[int, int] = {}
        for send, _ in self.replay.messages:
            start, place = self.replay.starts[self.rank[send]], self.places[self.rank[send]]
            # Directly: through the node that holds it back, a send also waits for what an earlier one passes on.
            for before in (start + place[number] for number in self.nodes[send].after):
                node = self.nodes[before]
                if node.type == RECV and node.use == PASSED and node.data == self.nodes[send].data >= 0:
                    onward[before] = send
        passing = set(onward.values())
        for first, end in self.replay.messages:
            if first in passing:
                continue
            ranks, last = [self.rank[first], self.rank[end]], end
            while last in onward:
                last = receiver[onward[last]]
                ranks.append(self.rank[last])
            node = self.nodes[first]
            units = node.grains if self.counted else node.size_bytes
            yield _Way(tuple(ranks), first, last, units, node.data, self.nodes[last].use)

    def before(self, node: int) -> Iterator[int]:
        """Yield the sends and receives that a node waits for, directly or through other work."""
        start, place = self.replay.starts[self.rank[node]], self.places[self.rank[node]]
        stack, ancestors = list(self.nodes[node].after), set[int]()
        while stack:
            before = start + place[stack.pop()]
            if before in ancestors:
                continue
            ancestors.add(before)
            if self.nodes[before].type in (SEND, RECV):
                yield before
            else:
                stack += self.nodes[before].after

    @cached_property
    def places(self) -> list[dict[int, int]]:
        """Position of each rank's nodes, by their numbers."""
        return [{node.id: place for place, node in enumerate(nodes)} for nodes in self.trace.ranks]

    def _part(self, numbers: list[int]) -> _Part:
        part = _Part(self.ways[numbers[0]].units, numbers)
        for number in numbers:
            if self.ways[number].units != part.units:
                here, there = (self._node_text(self.ways[one].send) for one in (numbers[0], number))
                text = f"{there} seems to send the data of {here}, but its size is another"
                raise InputError(f"{text}; expected messages that carry whole chunks")
        carried: dict[int, int] = {}
        ends = (node for one in numbers for node in (self.ways[one].send, self.ways[one].receive))
        for node in sorted(ends, key=self.at.__getitem__):
            rank, number = self.rank[node], self.way_of[node]
            own = part.sums.get(rank, 1 << rank)
            if self.nodes[node].type == SEND:
                carried[number] = own
                (part.passing if rank in part.receivers else part.origins).add(rank)
                continue
            came = carried.pop(number)
            part.receivers.add(rank)
            if self.kind in SUMS:
                self._sum(part, number, own, came)
        return part

    def _sum(self, part: _Part, number: int, own: int, came: int) -> None:
        way = self.ways[number]
        adds = way.use == ADDED if way.data >= 0 else not came & own
        if adds:
            self.adds.add(number)
        elif way.data < 0 and came | own != came:
            raise InputError(f"{self._node_text(way.receive)} takes a sum that has a part of its own sum")
        part.sums[way.ranks[-1]] = came | own if adds else came

    def _node_text(self, node: int) -> str:
        return f"rank {self.rank[node]}, node {self.nodes[node].id}"

    def _merge_parts(self, parts: list[_Part]) -> list[list[_Part]]:
        """Parts that together are one chunk: of one size and origin, each for ranks of its own."""
        chunks: list[list[_Part]] = []
        open_: dict[object, list[int]] = defaultdict(list)
        for part in parts:
            key = part.units if self.kind in SUMS else (part.units, min(part.origins))
            for chunk in open_[key]:
                if all(part.receivers.isdisjoint(other.receivers) for other in chunks[chunk]):
                    break
            else:
                chunk = len(chunks)
                chunks.append([])
                open_[key].append(chunk)
            chunks[chunk].append(part)
            if len({rank for one in chunks[chunk] for rank in one.receivers}) == self.ranks:
                open_[key].remove(chunk)
        return chunks

    def _ends(self, chunk: list[_Part]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the ranks that hold a chunk at first, and those that need it."""
        everyone = tuple(range(self.ranks))
        if self.kind in SUMS:
            full = sorted(rank for part in chunk for rank, value in part.sums.items() if value == self.all)
            if self.kind is Collective.ALL_REDUCE:
                return everyone, everyone
            return everyone, tuple(full[:1]) or (0,)
        origins = {rank for part in chunk for rank in part.origins}
        if len(origins) != 1:
            names = " and ".join(f"rank {rank}" for rank in sorted(origins)[:2])
            raise InputError(f"one message seems to carry data of {names}; only sums are of several ranks")
        if self.kind in (Collective.ALL_GATHER, Collective.BROADCAST):
            return (min(origins),), everyone
        last = sorted({rank for part in chunk for rank in part.receivers - part.passing})
        if len(last) != 1:
            raise InputError(f"data of rank {min(origins)} ends at {len(last)} ranks; expected one")
        return (min(origins),), (last[0],)

    def _instance(
        self, units: list[int], ends: list[tuple[tuple[int, ...], tuple[int, ...]]]
    ) -> tuple[Instance, Fraction]:
        unit = self._unit(sum(units))
        if self.kind is Collective.POINT_TO_POINT:
            counts = group_by_key(zip((holders + receivers for holders, receivers in ends), units, strict=True))
            demands = [Demand(self.kind, sum(some) * unit, 1, pair) for pair, some in counts.items()]
            return Instance(self.name, self.topology, demands[0], also=tuple(demands[1:])), unit
        ranks = None
        if self.kind in ROOTED:
            side = 0 if self.kind in (Collective.BROADCAST, Collective.SCATTER) else 1
            roots = {end[side] for end in ends}
            if len(roots) != 1:
                raise InputError(f"{len(roots)} ranks seem to be the root of a {self.kind.name}")
            ((root,),) = roots
            ranks = None if root == 0 else (root, *(rank for rank in range(self.ranks) if rank != root))
        return Instance(self.name, self.topology, Demand(self.kind, sum(units) * unit * self._whole, 1, ranks)), unit

    @property
    def _whole(self) -> Fraction:
        """The full buffer over the data that is sent."""
        n = self.ranks
        if self.kind in (Collective.GATHER, Collective.SCATTER):
            return Fraction(n, n - 1)
        return Fraction(1, n - 1) if self.kind is Collective.ALL_TO_ALL else Fraction(1)

    def _unit(self, total: int) -> Fraction:
        sizes = {(way.units, self.nodes[way.send].size_bytes) for way in self.ways}
        if self.size_bytes is not None:
            unit = self.size_bytes / (total * self._whole)
            wrong = next((size for count, size in sorted(sizes) if max(1, ceil(count * unit)) != size), None)
            if wrong is not None:
                text = f"a message has {wrong:,} B, which is no part of {float(self.size_bytes):,.15g} B"
                raise InputError(f"{text}; expected the size of the trace's collective", source="--size")
            return unit
        ratios = {Fraction(size, count) for count, size in sizes}
        if len(ratios) > 1:
            raise InputError("sizes of messages are rounded; expected the size of the collective", source="--size")
        return ratios.pop()

    def _columns(
        self, chunks: list[list[_Part]], ends: list[tuple[tuple[int, ...], tuple[int, ...]]], unit: Fraction
    ) -> Chunks:
        units = [chunk[0].units for chunk in chunks]
        common = gcd(*units)
        groups = list(dict.fromkeys(group for pair in ends for group in pair))
        place = {group: index for index, group in enumerate(groups)}
        return Chunks(
            np.array([count // common for count in units], dtype=np.int64),
            unit * common,
            tuple(groups),
            np.array([place[holders] for holders, _ in ends], dtype=np.int64),
            np.array([place[receivers] for _, receivers in ends], dtype=np.int64),
            np.full(len(units), self.kind in SUMS),
        )

    def _levels(self) -> list[int]:
        """Return the step of each message, after all messages that it waits for."""
        level = [0] * len(self.nodes)
        send_of = {receive: send for send, receive in self.replay.messages}
        for node in self.replay.order:
            start, place = self.replay.starts[self.rank[node]], self.places[self.rank[node]]
            before = [start + place[one] for one in self.nodes[node].after]
            if node in send_of:
                before.append(send_of[node])
            level[node] = max((level[one] + (self.nodes[one].type == RECV) for one in before), default=0)
        return [level[way.send] for way in self.ways]


def _stated_ways(reading: _TraceReader) -> list[list[int]]:
    """Group transfers by the chunks that the trace names."""
    return list(group_by_key((way.data, number) for number, way in enumerate(reading.ways)).values())


def _alike(reading: _TraceReader, types: tuple[int, ...]) -> list[list[int]]:
    """Ways that are joined by nodes of some types that wait for receives."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = [
        (number, reading.way_of[before])
        for node, number in reading.way_of.items()
        if reading.nodes[node].type in types
        for before in reading.before(node)
        if reading.nodes[before].type == RECV
    ]
    ends, count = np.array(pairs, dtype=np.int64).reshape(-1, 2), len(reading.ways)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count))
    _, label = connected_components(graph, directed=False)
    order = np.argsort(label, kind="stable")
    return [some.tolist() for some in np.split(order, np.flatnonzero(np.diff(label[order])) + 1)]
