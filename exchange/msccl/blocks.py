"""Thread blocks of a GPU: assignment of operations, fusion, and waits (docs/exchange/msccl.md, "Out").

Connections whose data is forwarded are put together. Every thread block keeps the order of the schedule.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...core.schedule import Ints
from .operations import CHANNEL, COPY, RCS, RECEIVE, RRCS, RRS, SEND, Operation, Operations, connection_end
from .program import BUFFERS, NAMES, Block, Gpu, Steps


@dataclass
class DraftBlock:
    """A thread block in the making: connection in and connection out, each a GPU and a channel, and its steps."""

    into: tuple[int, int] | None
    out: tuple[int, int] | None
    steps: list[Operation]
    waits: list[list[Operation]]  #: Operations of other thread blocks that each step waits for.


class Drafts:
    """Distribution of the operations of a GPU over thread blocks, by the numbers of these and as columns.

    Beyond ``most`` thread blocks, those that receive and those that send are put together; beyond ``steps`` of one,
    copies are spread.
    """

    def __init__(self, ops: Operations, most: int, steps: int, *, joined: bool) -> None:
        self.ops = ops
        pairs = _match_connections(ops) if joined else {}
        partners = {*pairs.values()}
        loose_in = [end for end in dict.fromkeys(ops.into.tolist()) if end >= 0 and end not in pairs]
        loose_out = [end for end in dict.fromkeys(ops.out.tolist()) if end >= 0 and end not in partners]
        if len(pairs) + len(loose_in) + len(loose_out) + 1 > most:
            for end in list(loose_in):
                other = next((one for one in loose_out if (one ^ end) % (1 << CHANNEL) == 0), None)
                if other is not None:
                    pairs[end] = other
                    loose_in.remove(end)
                    loose_out.remove(other)
        ends = [*pairs.items(), *((end, -1) for end in loose_in), *((-1, end) for end in loose_out)]
        into, out = ({end[side]: number for number, end in enumerate(ends)} for side in (0, 1))
        alone = (ops.kind == COPY) & (ops.home < 0)
        block = len(ends) + (np.cumsum(alone) - 1) // max(steps - 8, 1)
        for column, numbers in ((np.maximum(ops.into, ops.home), into), (ops.out, out)):
            having = np.flatnonzero(column >= 0)
            block[having] = [numbers[end] for end in column[having].tolist()]
        ordered = dict.fromkeys(number for end in ends for number in (into[end[0]], out[end[1]]))
        order = [*ordered, *range(len(ends), block.max(initial=-1) + 1)]
        there = np.bincount(block, minlength=len(order)) > 0
        live = [number for number in order if there[number]]
        number = np.zeros(len(order), dtype=np.int64)
        number[live] = np.arange(len(live))
        self.ends = [ends[one] if one < len(ends) else (-1, -1) for one in live]  #: Connections of thread blocks.
        self.block = number[block]  #: Thread block of every operation, and its place there.
        self._set_order(np.argsort(self.block, kind="stable"))
        if joined:
            self._fuse()
        self._find_waits()

    def _set_order(self, order: Ints) -> None:
        """Set the operations that are done, by thread block and place."""
        self.order = order
        self.begin = np.searchsorted(self.block[order], np.arange(len(self.ends) + 1))
        self.place = np.full(len(self.ops.kind), -1)
        self.place[order] = np.arange(len(order)) - self.begin[self.block[order]]

    def _fuse(self) -> None:
        """Make one step of what is received and sent on, where that keeps the order of what is sent."""
        ops, block, place = self.ops, self.block, self.place
        sends = ops.out >= 0
        last = np.full(len(ops.kind), -1)  # place after which it can be sent
        pairs = np.flatnonzero(sends[ops.later] & (block[ops.later] == block[ops.after]))
        np.maximum.at(last, ops.later[pairs], place[ops.after[pairs]])
        until = np.maximum.accumulate((block * (len(ops.kind) + 1) + last + 1)[self.order]) - 1  # of those before, too
        until -= block[self.order] * (len(ops.kind) + 1)
        before = np.append(-1, until)[:-1]
        before[self.begin[:-1]] = -1
        latest, earlier = np.empty_like(last), np.empty_like(last)
        latest[self.order], earlier[self.order] = until, before
        single = sends & (np.diff(ops.after_begin) == 1)
        source = np.append(ops.after, -1)[ops.after_begin[:-1]]
        fused = np.flatnonzero(single & (ops.into[source] >= 0) & (last > earlier))
        source = source[fused]
        ops.performer[fused], ops.out[source] = source, ops.out[fused]
        sums = np.where((ops.readers[source] == 1) & ~ops.keeps[source], RRS, RRCS)
        ops.kind[source] = np.where(ops.kind[source] == RECEIVE, RCS, sums)
        sends[fused] = False
        alone = ops.kind == SEND
        order = np.lexsort((np.where(alone, place, -1), np.where(alone, latest, place), block))
        self._set_order(order[ops.performer[order] == order])

    def _find_waits(self) -> None:
        """Find the steps that others must wait for, but for waits that earlier ones imply."""
        ops, performer, blocks = self.ops, self.ops.performer, range(len(self.ends))
        self.waits: dict[int, list[int]] = {}  #: Operations that some must wait for.
        self.waited: list[set[int]] = [set() for _ in blocks]  #: Places of these in thread blocks.
        apart = (performer[ops.later] == ops.later) & (self.block[performer[ops.after]] != self.block[ops.later])
        certainty: list[tuple[list[int], list[list[int]]]] = [([-1], [[0] * len(self.ends)]) for _ in blocks]
        for one in np.unique(ops.later[apart]).tolist():
            index = int(self.block[one])
            others = performer[ops.after[ops.after_begin[one] : ops.after_begin[one + 1]]]
            steps = {*zip(self.block[others].tolist(), self.place[others].tolist(), strict=True)}
            certain = certainty[index][1][-1]
            for block, step in sorted(steps, key=lambda where: -where[1]):
                if block == index or certain[block] > step:
                    continue
                other = int(self.order[self.begin[block] + step])
                self.waits.setdefault(one, []).append(other)
                self.waited[block].add(step)
                numbers, states = certainty[block]
                more = states[bisect_right(numbers, other) - 1]
                certain = [max(pair) for pair in zip(certain, more, strict=True)]
                certain[block] = step + 1
            certainty[index][0].append(one)
            certainty[index][1].append(certain)

    def ends_of_steps(self) -> Ints:
        """Return buffers and offsets of what steps read, and then of what they write; each has at least one."""
        kind, source = self.ops.kind[self.order], self.ops.sources[:, self.order]
        target = self.ops.targets[:, self.order]
        source = np.where(np.isin(kind, (RECEIVE, RCS)), target, source)
        return np.append(source, np.where(np.isin(kind, (SEND, RRS)), source, target), axis=1)

    def scratch(self) -> "Scratch":
        """Return what steps use of scratch memory."""
        buffers, offsets = self.ends_of_steps()
        inside = buffers == BUFFERS.index("s")
        count = np.tile(self.ops.count[self.order], 2)[inside]
        return Scratch(zip(offsets[inside].tolist(), count.tolist(), strict=True))

    def objects(self) -> list[DraftBlock]:
        """Return the thread blocks one by one, with their operations."""
        operations = self.ops.objects()
        for one, block, place in zip(operations, self.block.tolist(), self.place.tolist(), strict=True):
            one.place = block, place
        drafts: list[DraftBlock] = []
        for (into, out), (low, high) in zip(self.ends, pairwise(self.begin.tolist()), strict=True):
            steps = self.order[low:high].tolist()
            waits = [[operations[other] for other in self.waits.get(one, ())] for one in steps]
            ends = connection_end(into), connection_end(out)
            drafts.append(DraftBlock(*ends, [operations[one] for one in steps], waits))
        return drafts


def _match_connections(ops: Operations) -> dict[int, int]:
    source = np.append(ops.after, -1)[ops.after_begin[:-1]]
    into = ops.into[source]
    matches = (ops.out >= 0) & (np.diff(ops.after_begin) == 1) & (into >= 0)
    matches &= (into ^ ops.out) % (1 << CHANNEL) == 0
    pairs: dict[int, int] = {}
    partners: set[int] = set()
    counts = Counter(zip(into[matches].tolist(), ops.out[matches].tolist(), strict=True))
    for (end, out), _ in counts.most_common():
        if end not in pairs and out not in partners:
            pairs[end] = out
            partners.add(out)
    return pairs


def gpu_of(sizes: tuple[int, int], drafts: Drafts) -> Gpu:
    """Return the GPU with its thread blocks in file order: blocks that others wait for come first."""
    ops, active = drafts.ops, drafts.order
    order = sorted(range(len(drafts.ends)), key=lambda index: (not drafts.waited[index], index))
    name = {index: position for position, index in enumerate(order)}
    position = drafts.begin[drafts.block] + drafts.place
    times = np.ones(len(active), dtype=np.int64)
    for one, others in drafts.waits.items():
        times[position[one]] = len(others)
    end = np.cumsum(times)  # of the steps of every operation, the last of which does it
    begin = np.append(0, end)[drafts.begin]
    ends, scratch = drafts.ends_of_steps(), drafts.scratch()
    inside = np.flatnonzero(ends[0] == BUFFERS.index("s"))
    ends[1, inside] = [scratch.place[offset] for offset in ends[1, inside].tolist()]
    ((source_buffer, target_buffer), (source, target)), kind = (np.split(one, 2) for one in ends), ops.kind[active]
    steps = np.tile((0, NAMES.index("nop"), 0, -1, 0, -1, 0, -1, -1, 0), (begin[-1], 1))
    steps[:, 0] = np.arange(len(steps)) - np.repeat(begin[:-1], np.diff(begin))
    steps[end - 1, 1:7] = np.stack([kind, source_buffer, source, target_buffer, target, ops.count[active]], axis=1)
    for one, others in drafts.waits.items():
        here, ends_of_others = int(end[position[one]]), end[position[others]] - 1
        steps[here - len(others) : here, 7] = [name[block] for block in drafts.block[others].tolist()]
        steps[here - len(others) : here, 8] = steps[ends_of_others, 0]
        steps[ends_of_others, 9] = 1
    blocks: list[Block] = []
    for index in order:
        into, out = drafts.ends[index]  # -1 without
        channel = max(into if into >= 0 else out, 0) % (1 << CHANNEL)
        table = Steps(steps[slice(*begin[index : index + 2])])
        blocks.append(Block(name[index], out >> CHANNEL, into >> CHANNEL, channel, table))
    # a launch has a thread block
    return Gpu(ops.rank, *sizes, scratch.size, tuple(blocks) or (Block(0, -1, -1, 0, Steps.of([])),))


class Scratch:
    """Scratch memory: what is used of it, without holes."""

    def __init__(self, pieces: Iterable[tuple[int, int]]) -> None:
        counts: dict[int, int] = {}
        for offset, count in pieces:
            counts[offset] = max(count, counts.get(offset, 0))
        self.place: dict[int, int] = {}
        self.size = end = 0
        for offset in sorted(counts):
            self.size += max(offset + counts[offset] - max(end, offset), 0)
            end = max(end, offset + counts[offset])
            self.place[offset] = self.size - (end - offset)
