"""Lowering of schedules to the programs of processes: which bytes each sends, receives, copies and adds.

Which nodes are processes, and what a send waits for: docs/run.md, "What is executed". Each process has a memory of
cells, one for every chunk that it has, gets or needs, and one for every message that it only forwards.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ...core.collective import Condition, conditions
from ...core.errors import InputError, OutOfTime, Unsupported
from ...core.grouping import group_by_key
from ...core.instance import Instance
from ...core.schedule import Bools, Ints, offsets, ranges
from ...core.topology import NodeKind, Topology
from ...core.trees import TreePacking
from ...schedules.lowering import OrderedSends, normalize_condition, order_sends
from ...schedules.verify.answers import Whole
from ...schedules.verify.network import broken_paths, network_of
from .values import Region

MOST_MESSAGES = 4_000_000  #: Messages of the largest execution; each takes some 50 microseconds.

#: Elements of the largest execution: addresses of all messages, each of all elements, have 64 bits.
MOST_ELEMENTS = 2**40

_LAST = 2**20  #: Comes after all that forwards a message.


class Operation(NamedTuple):
    """A message that a process sends or receives."""

    address: int
    length: int
    cell: int
    #: ``writes`` and ``reads``: writes and reads of the cell that come before; a send waits for writes alone.
    writes: int
    reads: int
    adds: bool


@dataclass(frozen=True, eq=False)
class Program:
    """Work of one process."""

    name: str
    elements: int
    cells: int
    #: ``sends`` and ``receives``: messages to and from every other process, in the order in which they are sent.
    sends: dict[int, list[Operation]]
    receives: dict[int, list[Operation]]
    before: list[Region]
    after: list[Region]


_Queues = dict[int, list[Operation]]  #: Messages by the other process.


class _Cells(NamedTuple):
    """Cells of all processes, one process after the other."""

    #: Process times ``stride``, plus the place of the chunk, or the number of chunks plus that of the forwarding hop.
    codes: Ints
    stride: int
    #: ``sizes``, ``address`` and ``number``: elements, first element and number of each cell in the memory of its
    #: process.
    sizes: Ints
    address: Ints
    number: Ints
    #: ``reads`` and ``writes``: cells that the sender of every hop reads and its receiver writes.
    reads: Ints
    writes: Ints
    elements: list[int]
    counts: list[int]


class _Kind(NamedTuple):
    """Data of one condition: bytes, elements, number of the first element, and ranks that need it."""

    size: Fraction
    elements: int
    first: int
    receivers: tuple[int, ...]


def lower(
    instance: Instance, answer: Whole, itemsize: int, pieces: int = 1, *, hop_by_hop: bool = False
) -> list[Program]:
    """Lower a schedule to one program for every process: the ranks, then the switches that store data.

    Sizes of chunks are rounded to whole elements of ``itemsize`` bytes, such that their sum is kept; the data of every
    tree is cut into ``pieces``. With ``hop_by_hop`` every node of a path is a process that forwards, switches included.
    """
    topology = instance.network
    if not isinstance(topology, Topology) or instance.demand is None:
        raise InputError("expected a network of nodes and links, and a collective", place="instance")
    require_few_messages(answer, pieces)
    schedule = order_sends(topology, instance, answer, pieces)
    return _Lowering(instance, topology, schedule, itemsize, hop_by_hop=hop_by_hop).programs()


def require_few_messages(answer: Whole, pieces: int) -> None:
    """Reject a schedule with too many messages, before they are made."""
    parts = answer.passes if isinstance(answer, TreePacking) else [answer.sends]
    messages = pieces * sum(len(part.path_links) for part in parts)
    if messages > MOST_MESSAGES:
        most = f"at most {MOST_MESSAGES:,} are executed"
        raise Unsupported(f"{messages:,} messages; {most}. Fewer chunks or --pieces would fit")


class _Lowering:
    """Columns over nodes, chunks, hops and cells on the way to programs."""

    def __init__(
        self, instance: Instance, topology: Topology, schedule: OrderedSends, itemsize: int, *, hop_by_hop: bool
    ) -> None:
        self.topology, self.schedule = topology, schedule
        compute = np.array([node.kind is NodeKind.COMPUTE for node in topology.nodes])
        self._check_sends(instance)
        stops = compute.copy()
        stops[schedule.sends.source] = stops[schedule.sends.target] = True
        if hop_by_hop:
            stops[[node for ends in topology.link_ends for node in ends]] = True
        others = np.flatnonzero(stops & ~compute)
        self.nodes = np.concatenate([np.array(topology.rank_nodes, dtype=np.int64), others])
        self.process = np.full(len(compute), -1, dtype=np.int64)
        self.process[self.nodes] = np.arange(len(self.nodes))
        self.kinds = _kinds(instance, itemsize)
        self.chunk_kind = group_by_key((condition, chunk) for chunk, condition in enumerate(schedule.conditions))
        self._require_all()
        self._place_chunks()
        self._find_hops(self.process >= 0 if hop_by_hop else compute)

    def _check_sends(self, instance: Instance) -> None:
        """Reject nodes, links and chunks that do not exist, and paths that do not lead from source to target."""
        sends, nodes, links = self.schedule.sends, len(self.topology.nodes), len(self.topology.links)
        columns = (sends.source, nodes), (sends.target, nodes), (sends.path_links, links)
        for column, limit in (*columns, (sends.chunk, len(self.schedule.conditions))):
            if len(column) and (column.min() < 0 or column.max() >= limit):
                raise InputError("names a node, link or chunk that does not exist", place="sends")
        network = network_of(instance)
        is_broken, _ = broken_paths(network, sends.source, sends.target, sends.path_offset, sends.path_links)
        for send in np.flatnonzero(is_broken)[:1].tolist():
            ends = (self.topology.nodes[int(column[send])].name for column in (sends.source, sends.target))
            raise InputError(f"send {send}: its path does not lead from {' to '.join(ends)}", place="sends")

    def _require_all(self) -> None:
        """Reject a schedule whose chunks are not exactly the data, and ranks with too many chunks for any memory."""
        cells = 0
        for condition, kind in self.kinds.items():
            chunks = self.chunk_kind.get(condition, [])
            size = sum(self.schedule.units[chunk] for chunk in chunks) * self.schedule.unit_bytes
            if size != kind.size:
                rank = min(kind.receivers or condition[0])
                text = f"chunks have {float(size):,.10g} of the {float(kind.size):,.10g} bytes for rank {rank}"
                raise InputError(text, place="chunks")
            cells += len({*condition[0], *kind.receivers}) * len(chunks)
        if cells > 2 * MOST_MESSAGES:
            raise Unsupported(f"ranks have {cells:,} chunks in all; at most {2 * MOST_MESSAGES:,} are executed")

    def _place_chunks(self) -> None:
        """Give every chunk its place among the chunks of its kind, and whole elements; none to what nobody lacks."""
        count = len(self.schedule.conditions)
        self.place = np.zeros(count, dtype=np.int64)
        self.elements = np.zeros(count, dtype=np.int64)
        place = 0
        for condition, chunks in self.chunk_kind.items():
            kind = self.kinds.get(condition)
            units = [self.schedule.units[chunk] for chunk in chunks]
            rate = self.schedule.unit_bytes * kind.elements / kind.size if kind else Fraction(0)
            total = begin = 0
            for chunk, size in zip(chunks, units, strict=True):
                total += size
                end = min(total * rate.numerator // rate.denominator, kind.elements if kind else 0)
                self.place[chunk], place = place, place + 1
                self.elements[chunk], begin = end - begin, end

    def _find_hops(self, stores: Bools) -> None:
        """Divide paths into messages between processes; chunks without a whole element are not sent."""
        sends = self.schedule.sends
        ends = np.array(self.topology.link_ends, dtype=np.int64).reshape(-1, 2)[:, 1]
        lengths = sends.hops + 1
        first = offsets(lengths)[:-1]
        node = np.empty(int(lengths.sum()), dtype=np.int64)
        node[ranges(first + 1, sends.hops)] = ends[sends.path_links]
        last = first + lengths - 1
        node[first], node[last] = sends.source, sends.target
        stop = stores[node]
        stop[first] = stop[last] = True
        stop &= np.repeat(self.elements[sends.chunk] > 0, lengths)
        send, node = np.repeat(np.arange(len(sends)), lengths)[stop], node[stop]
        hop = np.flatnonzero((send[1:] == send[:-1]) & (node[1:] != node[:-1]))
        self.hop_send = send[hop]
        self.hop_from, self.hop_to = self.process[node[hop]], self.process[node[hop + 1]]
        begins = np.ones(len(hop), dtype=np.bool_)
        begins[1:] = self.hop_send[1:] != self.hop_send[:-1]
        self.hop_first, self.hop_last = begins, np.append(begins[1:], True)[: len(hop)]
        self.hop_number = np.arange(len(hop)) - np.maximum.accumulate(np.where(begins, np.arange(len(hop)), 0))

    def programs(self) -> list[Program]:
        """Return the programs of all processes."""
        cells = self._cells()
        before, after, initial = self._regions(cells)
        sends, receives = self._operations(cells, initial)
        columns = (self.nodes.tolist(), cells.elements, cells.counts, sends, receives, before, after)
        return [Program(self.topology.nodes[node].name, *program) for node, *program in zip(*columns, strict=True)]

    def _conditions_of_ranks(self) -> Iterator[tuple[int, int, int, Condition]]:
        """Yield rank, first place, number of chunks and condition of all data that ranks have or need."""
        for condition, kind in self.kinds.items():
            if chunks := self.chunk_kind.get(condition):
                for rank in sorted({*condition[0], *kind.receivers}):
                    yield rank, int(self.place[chunks[0]]), len(chunks), condition

    def _cells(self) -> _Cells:
        """Find the cells of all processes: chunks by their places, then what is only forwarded."""
        chunks, hops = len(self.place), len(self.hop_send)
        stride, index = max(chunks + hops, 1), np.arange(hops)
        chunk = self.schedule.sends.chunk[self.hop_send]
        reads = self.hop_from * stride + np.where(self.hop_first, self.place[chunk], chunks + index)
        writes = self.hop_to * stride + np.where(self.hop_last, self.place[chunk], chunks + index + 1)
        at_ends = [rank * stride + place + np.arange(count) for rank, place, count, _ in self._conditions_of_ranks()]
        codes = np.unique(np.concatenate([reads, writes, *at_ends]))
        by_place = np.empty(chunks, dtype=np.int64)
        by_place[self.place] = self.elements
        sizes = np.concatenate([by_place, self.elements[chunk]])[codes % stride]
        begin = np.searchsorted(codes, np.arange(len(self.nodes) + 1) * stride)
        ends = offsets(sizes)
        owner = codes // stride
        return _Cells(
            codes,
            stride,
            sizes,
            ends[:-1] - ends[begin][owner],
            np.arange(len(codes)) - begin[owner],
            np.searchsorted(codes, reads),
            np.searchsorted(codes, writes),
            np.diff(ends[begin]).tolist(),
            np.diff(begin).tolist(),
        )

    def _regions(self, cells: _Cells) -> tuple[list[list[Region]], list[list[Region]], Bools]:
        """Return the data of every process before and after, and the cells that have some before."""
        initial = np.zeros(len(cells.codes), dtype=np.bool_)
        before: list[list[Region]] = [[] for _ in self.nodes]
        after: list[list[Region]] = [[] for _ in self.nodes]
        for rank, place, count, condition in self._conditions_of_ranks():
            holders, _, reduced = condition
            kind = self.kinds[condition]
            start = int(np.searchsorted(cells.codes, rank * cells.stride + place))
            where = kind.first, int(cells.address[start]), int(cells.sizes[start : start + count].sum())
            if rank in holders:
                initial[start : start + count] = True
                before[rank].append(Region(*where, (rank,) if reduced else ()))
            if rank in kind.receivers:
                after[rank].append(Region(*where, holders if reduced else ()))
        return before, after, initial

    def _operations(self, cells: _Cells, initial: Bools) -> tuple[list[_Queues], list[_Queues]]:
        """Return the sends and receives of every process, by the other one, in the order of the sends."""
        hops = len(self.hop_send)
        position, writes, reads = self._count(cells.reads, cells.writes)
        sums = self.schedule.sends.reduce[self.hop_send] & self.hop_last & (initial[cells.writes] | (writes[hops:] > 0))
        where = np.concatenate([cells.reads, cells.writes])
        adds = np.concatenate([np.zeros(hops, dtype=np.bool_), sums])
        columns = (cells.address[where], cells.sizes[where], cells.number[where], writes, reads, adds)
        rows = [Operation(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
        sends: list[_Queues] = [{} for _ in self.nodes]
        receives: list[_Queues] = [{} for _ in self.nodes]
        ends = self.hop_from.tolist(), self.hop_to.tolist()
        for hop in np.argsort(position[:hops], kind="stable").tolist():
            source, target = ends[0][hop], ends[1][hop]
            sends[source].setdefault(target, []).append(rows[hop])
            receives[target].setdefault(source, []).append(rows[hops + hop])
        return sends, receives

    def _count(self, cell_from: Ints, cell_to: Ints) -> tuple[Ints, Ints, Ints]:
        """Order all reads and writes, and count those of the same cell that come before each.

        Return positions, writes and reads, each of the sends of all hops, then of their receives; shape (2 hops,).
        """
        hops = len(self.hop_send)
        read, write = self.schedule.read[self.hop_send], self.schedule.write[self.hop_send]
        time = np.concatenate([read, np.where(self.hop_last, np.maximum(read, write), read)])
        within = np.concatenate([2 * self.hop_number, np.where(self.hop_last, _LAST, 2 * self.hop_number + 1)])
        order = np.lexsort((np.tile(self.hop_send, 2), within, time))
        position = np.argsort(order)
        cell = np.concatenate([cell_from, cell_to])
        writes = np.repeat(np.array([0, 1]), hops)
        by_cell = np.lexsort((position, cell))
        counts = []
        for flag in (writes, 1 - writes):
            total = np.cumsum(flag[by_cell]) - flag[by_cell]
            starts = np.ones(2 * hops, dtype=np.bool_)
            starts[1:] = cell[by_cell][1:] != cell[by_cell][:-1]
            group = np.cumsum(starts) - 1
            count = np.empty(2 * hops, dtype=np.int64)
            count[by_cell] = total - total[starts][group] if hops else total
            counts.append(count)
        return position, counts[0], counts[1]


def _kinds(instance: Instance, itemsize: int) -> dict[Condition, _Kind]:
    """Return the data that an instance demands, in whole elements, with all who need it."""
    of_demands = (conditions(demand, instance.npus).bytes_of.items() for demand in instance.demands)
    parts = group_by_key((normalize_condition(*kind), (kind[1], size)) for one in of_demands for kind, size in one)
    kinds: dict[Condition, _Kind] = {}
    first = 0
    for key, some in parts.items():
        part = sum((size for _, size in some), Fraction(0))
        elements = max(1, round(part / itemsize))
        kinds[key] = _Kind(part, elements, first, tuple(sorted({rank for ranks, _ in some for rank in ranks})))
        first += elements
    if first > MOST_ELEMENTS:
        raise OutOfTime(f"{first:,} elements; at most {MOST_ELEMENTS:,} are executed; a smaller --size would fit")
    return kinds
