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
from .operations import CHANNEL, COPY, KINDS, RCS, RECEIVE, RRCS, RRS, SEND, Operation, Operations, connection_end
from .program import BUFFERS, Block, Gpu, Step


@dataclass
class DraftBlock:
    """A thread block in the making: connection in and connection out, each a GPU and a channel, and its steps."""

    taken: tuple[int, int] | None
    given: tuple[int, int] | None
    steps: list[Operation]
    waits: list[list[Operation]]  #: Operations of other thread blocks that each step waits for.


class Drafts:
    """Distribution of the operations of a GPU over thread blocks, by the numbers of these and as columns.

    Beyond ``most`` thread blocks, those that receive and those that send are put together; beyond ``steps`` of one,
    copies are spread.
    """

    def __init__(self, made: Operations, most: int, steps: int, *, joined: bool) -> None:
        self.made = made
        pairs = _match_connections(made) if joined else {}
        used = {*pairs.values()}
        loose_in = [end for end in dict.fromkeys(made.taken.tolist()) if end >= 0 and end not in pairs]
        loose_out = [end for end in dict.fromkeys(made.given.tolist()) if end >= 0 and end not in used]
        if len(pairs) + len(loose_in) + len(loose_out) + 1 > most:
            for end in list(loose_in):
                other = next((one for one in loose_out if (one ^ end) % (1 << CHANNEL) == 0), None)
                if other is not None:
                    pairs[end] = other
                    loose_in.remove(end)
                    loose_out.remove(other)
        ends = [*pairs.items(), *((end, -1) for end in loose_in), *((-1, end) for end in loose_out)]
        into, out = ({end[side]: number for number, end in enumerate(ends)} for side in (0, 1))
        alone = (made.kind == COPY) & (made.home < 0)
        block = len(ends) + (np.cumsum(alone) - 1) // max(steps - 8, 1)
        for column, numbers in ((np.maximum(made.taken, made.home), into), (made.given, out)):
            having = np.flatnonzero(column >= 0)
            block[having] = [numbers[end] for end in column[having].tolist()]
        ordered = dict.fromkeys(number for end in ends for number in (into[end[0]], out[end[1]]))
        order = [*ordered, *range(len(ends), block.max(initial=-1) + 1)]
        there = np.bincount(block, minlength=len(order)) > 0
        found = [number for number in order if there[number]]
        number = np.zeros(len(order), dtype=np.int64)
        number[found] = np.arange(len(found))
        self.ends = [ends[one] if one < len(ends) else (-1, -1) for one in found]  #: Connections of thread blocks.
        self.block = number[block]  #: Thread block of every operation, and its place there.
        self._set_order(np.argsort(self.block, kind="stable"))
        if joined:
            self._fuse()
        self._find_waits()

    def _set_order(self, order: Ints) -> None:
        """Set the operations that are done, by thread block and place."""
        self.order = order
        self.begin = np.searchsorted(self.block[order], np.arange(len(self.ends) + 1))
        self.place = np.full(len(self.made.kind), -1)
        self.place[order] = np.arange(len(order)) - self.begin[self.block[order]]

    def _fuse(self) -> None:
        """Make one step of what is received and sent on, where that keeps the order of what is sent."""
        made, block, place = self.made, self.block, self.place
        sends = made.given >= 0
        last = np.full(len(made.kind), -1)  # place after which it can be sent
        pairs = np.flatnonzero(sends[made.later] & (block[made.later] == block[made.after]))
        np.maximum.at(last, made.later[pairs], place[made.after[pairs]])
        until = np.maximum.accumulate((block * (len(made.kind) + 1) + last + 1)[self.order]) - 1  # of those before, too
        until -= block[self.order] * (len(made.kind) + 1)
        before = np.append(-1, until)[:-1]
        before[self.begin[:-1]] = -1
        latest, earlier = np.empty_like(last), np.empty_like(last)
        latest[self.order], earlier[self.order] = until, before
        single = sends & (np.diff(made.after_begin) == 1)
        source = np.append(made.after, -1)[made.after_begin[:-1]]
        fused = np.flatnonzero(single & (made.taken[source] >= 0) & (last > earlier))
        source = source[fused]
        made.performer[fused], made.given[source] = source, made.given[fused]
        sums = np.where((made.readers[source] == 1) & ~made.kept[source], RRS, RRCS)
        made.kind[source] = np.where(made.kind[source] == RECEIVE, RCS, sums)
        sends[fused] = False
        alone = made.kind == SEND
        order = np.lexsort((np.where(alone, place, -1), np.where(alone, latest, place), block))
        self._set_order(order[made.performer[order] == order])

    def _find_waits(self) -> None:
        """Find the steps that others must wait for, but for waits that earlier ones imply."""
        made, performer, blocks = self.made, self.made.performer, range(len(self.ends))
        self.waits: dict[int, list[int]] = {}  #: Operations that some must wait for.
        self.waited: list[set[int]] = [set() for _ in blocks]  #: Places of these in thread blocks.
        apart = (performer[made.later] == made.later) & (self.block[performer[made.after]] != self.block[made.later])
        known: list[tuple[list[int], list[list[int]]]] = [([-1], [[0] * len(self.ends)]) for _ in blocks]
        for one in np.unique(made.later[apart]).tolist():
            index = int(self.block[one])
            others = performer[made.after[made.after_begin[one] : made.after_begin[one + 1]]]
            needed = {*zip(self.block[others].tolist(), self.place[others].tolist(), strict=True)}
            certain = known[index][1][-1]
            for block, step in sorted(needed, key=lambda where: -where[1]):
                if block == index or certain[block] > step:
                    continue
                other = int(self.order[self.begin[block] + step])
                self.waits.setdefault(one, []).append(other)
                self.waited[block].add(step)
                numbers, states = known[block]
                more = states[bisect_right(numbers, other) - 1]
                certain = [max(pair) for pair in zip(certain, more, strict=True)]
                certain[block] = step + 1
            known[index][0].append(one)
            known[index][1].append(certain)

    def ends_of_steps(self) -> Ints:
        """Return buffers and offsets of what steps read, and then of what they write; each has at least one."""
        kind, source = self.made.kind[self.order], self.made.sources[:, self.order]
        target = self.made.targets[:, self.order]
        source = np.where(np.isin(kind, (RECEIVE, RCS)), target, source)
        return np.append(source, np.where(np.isin(kind, (SEND, RRS)), source, target), axis=1)

    def scratch(self) -> "Scratch":
        """Return what steps use of scratch memory."""
        buffers, offsets = self.ends_of_steps()
        inside = buffers == BUFFERS.index("s")
        count = np.tile(self.made.count[self.order], 2)[inside]
        return Scratch(zip(offsets[inside].tolist(), count.tolist(), strict=True))

    def objects(self) -> list[DraftBlock]:
        """Return the thread blocks one by one, with their operations."""
        found = self.made.objects()
        for one, block, place in zip(found, self.block.tolist(), self.place.tolist(), strict=True):
            one.place = block, place
        drafts: list[DraftBlock] = []
        for (taken, given), (low, high) in zip(self.ends, pairwise(self.begin.tolist()), strict=True):
            steps = self.order[low:high].tolist()
            waits = [[found[other] for other in self.waits.get(one, ())] for one in steps]
            drafts.append(
                DraftBlock(connection_end(taken), connection_end(given), [found[one] for one in steps], waits)
            )
        return drafts


def _match_connections(made: Operations) -> dict[int, int]:
    source = np.append(made.after, -1)[made.after_begin[:-1]]
    taken = made.taken[source]
    matches = (made.given >= 0) & (np.diff(made.after_begin) == 1) & (taken >= 0)
    matches &= (taken ^ made.given) % (1 << CHANNEL) == 0
    found: dict[int, int] = {}
    used: set[int] = set()
    for (end, given), _ in Counter(
        zip(taken[matches].tolist(), made.given[matches].tolist(), strict=True)
    ).most_common():
        if end not in found and given not in used:
            found[end] = given
            used.add(given)
    return found


def gpu_of(sizes: tuple[int, int], drafts: Drafts) -> Gpu:
    """Return the GPU with its thread blocks in file order: blocks that others wait for come first."""
    made, done, begin = drafts.made, drafts.order, drafts.begin.tolist()
    order = sorted(range(len(drafts.ends)), key=lambda index: (not drafts.waited[index], index))
    name = {index: position for position, index in enumerate(order)}
    position = drafts.begin[drafts.block] + drafts.place
    times = np.ones(len(done), dtype=np.int64)
    for one, others in drafts.waits.items():
        times[position[one]] = len(others)
    total = np.cumsum(times)
    number = total - 1 - np.append(0, total)[drafts.begin[drafts.block[done]]]
    waits, nops, flags = np.full((2, len(done)), -1), dict[int, list[Step]](), np.zeros(len(done), dtype=np.int64)
    for one, others in drafts.waits.items():
        here = int(position[one])
        pairs = [(name[int(drafts.block[other])], int(number[position[other]])) for other in others]
        first = int(number[here]) - len(pairs) + 1
        nops[here] = [Step(first + s, "nop", "i", -1, "i", -1, 0, *pair, 0) for s, pair in enumerate(pairs[:-1])]
        waits[:, here] = pairs[-1]
    for low, places in zip(begin, drafts.waited, strict=False):
        flags[[low + place for place in places]] = 1
    kind, ends, scratch = made.kind[done], drafts.ends_of_steps(), drafts.scratch()
    inside = np.flatnonzero(ends[0] == BUFFERS.index("s"))
    ends[1, inside] = [scratch.place[offset] for offset in ends[1, inside].tolist()]
    buffers, (source, target) = [BUFFERS[one] for one in ends[0].tolist()], np.split(ends[1], 2)
    columns = source.tolist(), buffers[len(done) :], target.tolist(), made.count[done].tolist(), *waits.tolist()
    kinds = [KINDS[one] for one in kind.tolist()]
    rows = list(map(Step._make, zip(number.tolist(), kinds, buffers, *columns, flags.tolist(), strict=False)))
    blocks: list[Block] = []
    for index in order:
        taken, given = map(connection_end, drafts.ends[index])
        steps = [step for place in range(*begin[index : index + 2]) for step in (*nops.get(place, ()), rows[place])]
        send, recv = (-1 if end is None else end[0] for end in (given, taken))
        end = taken or given
        blocks.append(Block(name[index], send, recv, 0 if end is None else end[1], tuple(steps)))
    # a launch has a thread block
    return Gpu(made.rank, *sizes, scratch.size, tuple(blocks) or (Block(0, -1, -1, 0, ()),))


class Scratch:
    """Scratch memory: what is used of it, without holes."""

    def __init__(self, pieces: Iterable[tuple[int, int]]) -> None:
        used: dict[int, int] = {}
        for offset, count in pieces:
            used[offset] = max(count, used.get(offset, 0))
        self.place: dict[int, int] = {}
        self.size = end = 0
        for offset in sorted(used):
            self.size += max(offset + used[offset] - max(end, offset), 0)
            end = max(end, offset + used[offset])
            self.place[offset] = self.size - (end - offset)
