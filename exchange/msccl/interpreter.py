"""Interpreter of programs with symbolic data: final memory of every GPU, and all faults.

Connections, waits and races: docs/exchange/msccl.md, "Checks". Where no two accesses to the same memory are unordered,
every run gives the same, so that one run is enough. For the order of accesses, an event of a thread block is one chunk
of an instruction; chunks are apart from one another, since a message may be cut between any two.

The run itself is a compiled loop, which keeps what it does in a log. Faults are found in the log.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.kernel import interpreted_form, kernel, worth_compiling
from ...core.schedule import Bools, Ints, ranges
from .dialects import DEFAULT_MAX_BYTES, MAX_COUNT, SLOT_BYTES, SLOTS
from .findings import place_text
from .order import Access, Order, Races, Source
from .outcome import UNDEFINED, Run, meaning_of
from .program import BUFFERS, READS, RECEIVES, SENDS, WRITES, Algorithm, Block

_COUNT, _BOUNDS, _UNDEFINED, _RACE_WRITTEN, _RACE_READ = range(5)  #: Kinds of possible faults.
UNITS = MAX_COUNT  #: Events of an instruction: one for each of its chunks.
_LARGEST = 2**40  #: Chunks that no buffer has.
_GPU = 43  #: Bits of an address; a GPU's number is above them.
_AT_ONCE = 2**22  #: Chunks that the compiled loop moves before the run can be interrupted.


#: A chunk that a thread block sent, received, added or copied: type of the step, GPU, number of the event that sent it
#: (-1 if none was received), value that is received or else sent or written, addresses that are read, the one that is
#: written (or None), and the thread block.
Event = tuple[str, int, int, int, tuple[int, ...], int | None, Block]


def execute(algorithm: Algorithm, *, inplace: bool) -> Run:
    """Run a program whose GPUs and peers are numbers below ``ngpus``, see :func:`~.lint.lint`.

    ``inplace`` is whether the call's input and output are the same memory, as NCCL defines it for the collective.
    """
    return Machine(algorithm, inplace).run


def chunks_at_once(algorithm: Algorithm) -> int:
    """Return the chunks of a step that fit one slot of a connection, at the largest size."""
    largest = DEFAULT_MAX_BYTES if algorithm.max_bytes is None else algorithm.max_bytes
    if largest <= 0 or algorithm.nchunksperloop <= 0:
        return 1
    chunk = -(-largest // algorithm.nchunksperloop)
    return min(max(SLOT_BYTES.get(algorithm.proto, 1) // chunk, 1), MAX_COUNT - 1)


@kernel
def _play(program: Any, blocks: Any, links: Any, values: Any, log: Any, size: Any, most: int) -> None:
    """Run thread blocks in turn until none can go on, or the log has so many chunks."""
    begin, ends = program[0], program[3]
    ready, step, unit, wait, following = blocks
    while size[0] < size[1] and size[2] < most:
        block = ready[size[0] % len(ready)]
        size[0] += 1
        while step[block] < begin[block + 1] and _has_waited(block, program, blocks):
            if not _move_chunks(block, program, blocks, links, values, log, size):
                break
            step[block] += 1
            unit[block] = 0
            head = len(ready) + block
            while following[head] >= 0 and ends[wait[following[head]]] < step[block]:
                other = following[head]
                following[head] = following[other]
                _wake(other, ready, size)


@kernel
def _wake(block: int, ready: Any, size: Any) -> None:
    if block >= 0:
        ready[size[1] % len(ready)] = block
        size[1] += 1


@kernel
def _has_waited(block: int, program: Any, blocks: Any) -> bool:
    """Go on with the waits of an instruction; return whether they are over."""
    wait_begin, awaited, ends = program[1:4]
    ready, step, _, wait, following = blocks
    while wait[block] < wait_begin[step[block] + 1]:
        other, end = awaited[wait[block]], ends[wait[block]]
        if end >= 0 and step[other] > end:
            wait[block] += 1
            continue
        if end >= 0 and other != block:  # into the list of those that wait for the other, by what they wait for
            place = len(ready) + other
            while following[place] >= 0 and (ends[wait[following[place]]], following[place]) < (end, block):
                place = following[place]
            following[block] = following[place]
            following[place] = block
        return False
    return True


@kernel
def _move_chunks(block: int, program: Any, blocks: Any, links: Any, values: Any, log: Any, size: Any) -> bool:
    """Move chunks of an instruction, as many at once as fit a slot; return whether it has ended."""
    sources, targets, count, room = program[4:8]
    ready, step, unit = blocks[:3]
    first, load, items, sender, receiver = links
    here, slots = step[block], room[0]
    source, target = sources[here], targets[here]
    while unit[block] < count[here]:
        if source >= 0 and load[source] == 0:
            receiver[source] = block
            return False
        if target >= 0 and load[target] == slots:
            sender[target] = block
            return False
        some, came, length = min(room[1], count[here] - unit[block]), -1, 0
        if source >= 0:
            came = items[source * slots + first[source]]
            length = min(room[1], count[log[0][came]] - log[1][came])
            first[source], load[source] = (first[source] + 1) % slots, load[source] - 1
            _wake(sender[source], ready, size)
            sender[source] = -1
        if target >= 0:
            items[target * slots + (first[target] + load[target]) % slots] = size[2]
            load[target] += 1
            _wake(receiver[target], ready, size)
            receiver[target] = -1
        for place in range(some):
            _move_chunk(here, unit[block] + place, came, place, length, program, values, log, size)
        unit[block] += some
    return True


@kernel
def _move_chunk(
    here: int, unit: int, came: int, place: int, length: int, program: Any, values: Any, log: Any, size: Any
) -> None:
    """Move one chunk of an instruction, by its place in what came, and log it."""
    begin, writes, low, high, cells, outside = program[8:]
    memory, row, value, target = values[0], size[2], -1, outside[here]
    size[2] += 1
    for operand in range(begin[here], begin[here + 1]):
        cell = cells[operand] + unit if low[operand] <= unit < high[operand] else outside[here]
        if writes[operand]:
            target = cell
        else:
            value = _add(value, memory[cell], values, size)
    log[0][row], log[1][row], log[2][row] = here, unit, -1
    if length > 0:
        log[2][row] = came + min(place, length - 1)
        value = _add(value, log[3][came + place] if place < length else memory[outside[here]], values, size)
    log[3][row] = value
    if target != outside[here]:
        memory[target] = value


@kernel
def _add(value: int, other: int, values: Any, size: Any) -> int:
    """Return the number of a sum, which is the other value if there is no first one."""
    if value < 0:
        return other
    number: int = size[3]
    values[1][number], values[2][number] = value, other
    size[3] += 1
    return number


class Machine:
    """A program after its run; see :func:`execute`."""

    def __init__(self, algorithm: Algorithm, inplace: bool) -> None:
        self.columns = columns = algorithm.columns
        self.run = Run(meaning_of(algorithm), inplace=inplace)
        self.slots, self.at_once = SLOTS.get(algorithm.proto, 2), chunks_at_once(algorithm)
        for gpu in algorithm.gpus:
            self.run.sizes[gpu.id]["s"] = gpu.s_chunks
            if self.run.meaning.kind is None:
                self.run.sizes[gpu.id] |= {"i": gpu.i_chunks, "o": gpu.o_chunks}
        self.bases = np.array([[*one.values()] for one in self.run.bases])
        self.sizes = np.minimum([[*one.values()] for one in self.run.sizes], _LARGEST)
        self.gpu = np.array([gpu.id for gpu in algorithm.gpus])[columns.gpu]
        self.owner = columns.block[columns.step]  # thread block of every instruction
        self.count = np.maximum(columns.cnt[columns.step], 0)
        self._connect()
        self._find_operands()
        self._report_overlaps()
        self._play()
        self._check()

    def _is(self, *kinds: str) -> Bools:
        return np.asarray(self.columns.has_type(kinds)[self.columns.step])

    def _connect(self) -> None:
        """Find the connections of instructions, and the thread blocks at both ends of each."""
        columns, numbers = self.columns, dict[tuple[int, int, int], int]()
        self.senders, self.receivers = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        out, into = (np.full(len(columns.blocks), -1) for _ in range(2))
        counts = columns.blocks_with(SENDS), columns.blocks_with(RECEIVES)
        for place, (gpu, block, *uses) in enumerate(zip(self.gpu.tolist(), columns.blocks, *counts, strict=True)):
            ends = ((gpu, block.send), out, self.senders), ((block.recv, gpu), into, self.receivers)
            for count, (pair, links, users) in zip(uses, ends, strict=True):
                if count and min(pair) >= 0:
                    link = links[place] = numbers.setdefault((pair[0], pair[1], block.chan), len(numbers))
                    users[link].append(place)
        self.target, self.source = (
            np.where(self._is(*SENDS), out[self.owner], -1),
            np.where(self._is(*RECEIVES), into[self.owner], -1),
        )
        self.connections = list(numbers)

    def _find_operands(self) -> None:
        """Find the operands of instructions, first what is read, in order, and then what is written; and all memory."""
        columns, adds, writes = self.columns, self._is("re"), self._is(*WRITES)
        reads = np.where(self._is(*READS), np.diff(columns.source_begin), 0) + adds
        self.begin = np.concatenate([[0], np.cumsum(reads + writes)])
        owner = np.repeat(np.arange(len(reads)), reads + writes)
        place, last = np.arange(len(owner)) - self.begin[owner], columns.step[owner]
        self.writes = place == reads[owner]
        at_target = self.writes | (adds[owner] & (place == 0))  # an addition reads its target first
        source = np.where(at_target, 0, columns.source_begin[owner] + place - adds[owner])
        self.buffer = np.where(at_target, columns.dstbuf[last], columns.srcbuf[last])
        self.offset = np.where(at_target, columns.dstoff[last], columns.sources[source])
        gpu, offset = self.gpu[self.owner[owner]], np.clip(self.offset, -UNITS, _LARGEST)
        self.low = np.maximum(-offset, 0)
        self.high = np.minimum(self.count[owner], self.sizes[gpu, self.buffer] - offset)
        self.address = self.bases[gpu, self.buffer] + offset
        self.operand_owner = owner
        inside = np.flatnonzero(self.low < self.high)
        lengths = (self.high - self.low)[inside]
        begin = (gpu[inside] << _GPU) + (self.address + self.low)[inside]
        self.cells, _ = np.unique(ranges(begin, lengths), return_counts=True)  # by sorting
        self.cell = np.full(len(owner), -1)
        self.cell[inside] = np.searchsorted(self.cells, begin) - self.low[inside]

    def _report_overlaps(self) -> None:
        """Report steps that write some of their chunks where they read others: their threads are in no order."""
        owner = self.operand_owner
        apart = np.abs(self.address - self.address[self.begin[owner + 1] - 1])
        for instruction in np.unique(owner[(apart > 0) & (apart < self.count[owner])]).tolist():
            text = "writes chunks where it reads others, and its threads are in no order"
            self.run.findings.add("race", text, self._text(instruction))

    def _play(self) -> None:
        """Run the program; keep the log, and the values of memory."""
        columns, blocks, links = self.columns, len(self.columns.blocks), len(self.connections)
        cells, gpus = len(self.cells), len(self.bases)
        gpu, address = self.cells >> _GPU, self.cells % (1 << _GPU)
        grain = address - self.bases[gpu, 0]
        starts = (grain >= 0) & (grain < self.sizes[gpu, 0])  # as input; all other memory is undefined
        self.undefined, inputs = ~starts, int(starts.sum())
        memory = np.append(np.where(starts, np.cumsum(starts) - 1, inputs + gpu), inputs + np.arange(gpus))
        chunks = int(self.count.sum())
        most = inputs + gpus + chunks + int((self.count * np.diff(self.begin)).sum())
        column = partial(np.full, dtype=np.int64)
        left, right = column(most, 0), column(most, 0)
        left[: inputs + gpus] = ~np.append(gpu[starts], np.arange(gpus))
        right[: inputs + gpus] = np.append(grain[starts], column(gpus, -1))
        self.waits = columns.awaited[columns.live_waits], columns.ends[columns.live_waits]
        operands = self.begin, self.writes, self.low, self.high, self.cell, cells + self.gpu[self.owner]
        ends = self.source, self.target, self.count, np.array([self.slots, self.at_once])
        first = columns.instruction_begin[:-1].copy()
        turns = np.arange(blocks), first, column(blocks, 0), columns.wait_begin[first], column(2 * blocks, -1)
        queues = *(column(links * size, 0) for size in (1, 1, self.slots)), column(links, -1), column(links, -1)
        log = tuple(column(chunks, 0) for _ in range(4))
        program = columns.instruction_begin, columns.wait_begin, *self.waits, *ends, *operands
        state: Any = program, turns, queues, (memory, left, right), log
        play: Callable[..., None] = _play
        size: Any = np.array([0, blocks, 0, inputs + gpus])
        if not worth_compiling(chunks):
            play, size = interpreted_form(_play), size.tolist()
            state = tuple(tuple(each.tolist() for each in some) for some in state)
        while size[0] < size[1]:
            play(*state, size, size[2] + _AT_ONCE)
        _, (_, self.step, _, self.wait, _), (self.first, self.load, self.items, *_), values, log = state
        self.log = [np.asarray(each[: size[2]], dtype=np.int64) for each in log]
        self.run.values.extend(*(np.asarray(each[: size[3]]).tolist() for each in values[1:]))
        self._find_accesses()
        touched = np.flatnonzero(np.bincount(self.access_cell[self.access_cell >= 0], minlength=1))
        begin = np.searchsorted(gpu[touched], np.arange(gpus + 1)).tolist()
        items = list(zip(address[touched].tolist(), np.asarray(values[0])[touched].tolist(), strict=True))
        for one, (low, high) in zip(self.run.memory, pairwise(begin), strict=True):
            one.update(items[low:high])

    def _find_accesses(self) -> None:
        """Find accesses in order: row, operand, cell (-1 outside of a buffer, -2 in place)."""
        instruction, chunk = self.log[:2]
        lengths = np.diff(self.begin)[instruction]
        self.row = np.repeat(np.arange(len(instruction)), lengths)
        self.first_access = np.cumsum(lengths) - lengths
        self.operand = np.arange(len(self.row)) + (self.begin[instruction] - self.first_access)[self.row]
        unit, cell = chunk[self.row], self.cell[self.operand]
        cell = np.where((self.low[self.operand] <= unit) & (unit < self.high[self.operand]), cell + unit, -1)
        copied = self._is("cpy")[instruction] & (cell[self.first_access] == cell[self.first_access + lengths - 1])
        self.access_cell = np.where(copied[self.row] & (cell >= 0), -2, cell)

    def _check(self) -> None:
        """Report faults in the order of the run, then what hangs, and what is sent and never received."""
        self._report_faults()
        step, begin, visits = self.step, self.columns.instruction_begin.tolist(), set[int]()
        for block in range(len(step)):
            if step[block] < begin[block + 1] and block not in visits:
                self._follow(block, visits)
        self.run.ended = not visits
        for link in np.flatnonzero(self.load).tolist() if self.run.ended else ():
            _, target, channel = self.connections[link]
            text = f"sends to gpu {target} over channel {channel} what is never received: {self.load[link]} left"
            first = self.items[link * self.slots + self.first[link]]
            self.run.findings.add("unmatched", text, self._text(int(self.log[0][first])))

    def _order_events(self) -> Order:
        """Return the order of events, whose sources are waits, and chunks that came."""
        (other, ends), (instruction, chunk, sending, _) = self.waits, self.log
        waiting = np.repeat(np.arange(len(self.owner)), np.diff(self.columns.wait_begin))
        over = np.flatnonzero((ends >= 0) & (other != self.owner[waiting]))
        came = np.flatnonzero(sending >= 0)
        event, sender = instruction * UNITS + chunk, sending[came]
        actors = np.append(self.owner[waiting[over]], self.owner[instruction[came]])
        events = np.append(waiting[over] * UNITS, event[came])
        others = np.append(other[over], self.owner[instruction[sender]])
        counts = np.append((ends[over] + 1) * UNITS, event[sender] + 1)
        rows = np.stack([actors, events, others, counts], axis=1)[np.lexsort((events, actors))].tolist()
        order = Order(len(self.columns.blocks))
        for actor, here, other_actor, count in rows:
            order.add(actor, here, Source(other_actor, count))
        return order

    def _faults(self) -> Ints:
        """Return possible faults in order: kind, row of the log, and other row or operand."""
        (instruction, chunk, sending, _), cell = self.log, self.access_cell
        came = np.flatnonzero((sending >= 0) & (chunk % self.at_once == 0))
        sender, receiver = instruction[sending[came]], instruction[came]
        came = came[(self.count[sender] != self.count[receiver]) | (chunk[sending[came]] != chunk[came])]
        adds, copies = (self._is(kind)[instruction[self.row]] & self.writes[self.operand] for kind in ("re", "cpy"))
        beyond = np.flatnonzero((cell == -1) & ~adds)
        access = np.flatnonzero(cell >= 0)
        access = access[np.argsort(cell[access], kind="stable")]  # of every cell, in order
        here, row, writes = cell[access], self.row[access], self.writes[self.operand[access]]
        block, place = self.owner[instruction[row]], np.arange(len(access))
        start = np.maximum.accumulate(np.where(np.diff(here, prepend=-1) != 0, place, 0))
        fresh = (place == start) & ~writes & self.undefined[here]
        before = np.where(place > start, np.roll(np.maximum.accumulate(np.where(writes, place, -1)), 1), -1)
        later = np.flatnonzero((before >= start) & (block[before] != block))
        after = np.minimum.accumulate(np.where(writes, place, len(place))[::-1])[::-1]
        again = (np.roll(start, -1) == start) & ~np.roll(writes, -1) & (np.roll(block, -1) == block)
        read = np.flatnonzero(~writes & ~again & (after < len(place)))
        read = read[(start[after[read]] == start[read]) & (block[after[read]] != block[read])]
        columns = [
            (self.first_access[came], _COUNT, sending[came]),
            (beyond - copies[beyond], _BOUNDS, ~self.operand[beyond]),  # a copy's target comes first
            (access[fresh], _UNDEFINED, row[fresh]),
            (access[later], _RACE_WRITTEN, row[before[later]]),
            (access[after[read]], _RACE_READ, row[read]),
        ]
        at, kinds, others = np.concatenate([np.stack(np.broadcast_arrays(*one)) for one in columns], axis=1)
        return np.stack([kinds, self.row[at], others], axis=1)[np.lexsort((others, kinds, at))]

    def _report_faults(self) -> None:
        findings, owner, (instruction, chunk) = self.run.findings, self.owner, self.log[:2]
        faults, event = self._faults(), instruction * UNITS + chunk
        order = self._order_events() if (faults[:, 0] >= _RACE_WRITTEN).any() else Order(0)
        races = Races(len(self.bases), order, findings, lambda one: self._text(one.event // UNITS), lambda _: 0)
        for kind, row, other in faults.tolist():
            here = int(instruction[row])
            if kind == _BOUNDS:
                buffer = BUFFERS[self.buffer[~other]]
                size = self.run.sizes[self.gpu[owner[here]]][buffer]
                text = f"uses chunk {self.offset[~other] + chunk[row]} of buffer {buffer}, which has {size}"
                findings.add("bounds", text, self._text(here))
            elif kind == _COUNT:
                count = self.count[instruction[other]]
                text = f"receives {self.count[here]} chunks where a step of {count} sends: they do not match in size"
                findings.add("count", text, self._text(here))
            elif kind == _UNDEFINED:
                findings.add("undefined", UNDEFINED, self._text(here))
            else:
                first, second = (Access(int(owner[instruction[one]]), int(event[one]), 0) for one in (other, row))
                races.check_order(first, second.event + 1, second, writes=kind == _RACE_WRITTEN)

    def _text(self, instruction: int) -> str:
        """Format the place of an instruction."""
        return place_text(*self.columns.place(self.columns.step[instruction]))

    def events(self) -> Iterator[Event]:
        """Yield what every thread block did to chunks, in order."""
        columns, (*_, sending, value) = self.columns, self.log
        names, types = list(columns.names), columns.type[columns.step].tolist()
        begin, address, writes, owner = (each.tolist() for each in (self.begin, self.address, self.writes, self.owner))
        rows = *self.log[:3], np.where(sending < 0, value, value[sending])
        for here, unit, sender, result in zip(*(each.tolist() for each in rows), strict=True):
            kind, block, high = names[types[here]], owner[here], begin[here + 1]
            *addresses, target = (first + unit for first in address[begin[here] : high])
            if kind == "cpy" and addresses[0] == target:
                kind = "nop"  # in place
            sources = addresses[kind == "re" :] if writes[high - 1] else [*addresses, target]
            where = tuple(sources), target if writes[high - 1] else None
            yield kind, int(self.gpu[block]), sender, result, *where, columns.blocks[block]

    def _follow(self, block: int, visits: set[int]) -> None:
        """Follow blocked blocks to the cause, or around a cycle, and report it."""
        way: list[int] = []
        here: int | None = block
        kind = reason = ""
        while here is not None and here not in visits:
            visits.add(here)
            way.append(here)
            kind, reason, here = self._reason(here)
        if here is not None and here not in way:
            return  # leads to what has been reported
        if here is not None:
            names = " -> ".join(self._text(self.step[one]) for one in (*way[way.index(here) :][:6], here))
            kind, reason = "hang", f"each waits for the next one: {names}"
        self.run.findings.add(kind, reason, self._text(self.step[way[-1]]))

    def _reason(self, block: int) -> tuple[str, str, int | None]:
        """Return the finding of a stuck block, its reason in words, and the block it waits for."""
        columns, here, wait = self.columns, self.step[block], self.wait[block]
        if wait < columns.wait_begin[here + 1]:
            place = columns.live_waits[wait]
            other, ends, step = columns.awaited[place], columns.ends[place], columns.waits[place]
            text = f"waits for step {columns.deps[step]} of tb {columns.depid[step]}"
            if ends >= 0:
                return "hang", text, None if other == block else int(other)
            text += ", which there is not" if other < 0 else ", which sets no flag as high (hasdep)"
            return "hang", text, None
        one, source = columns.blocks[block], int(self.source[here])
        if source >= 0 and not self.load[source]:
            return "unmatched", f"receives from gpu {one.recv} what is never sent", self._stuck(self.senders[source])
        text = f"sends to gpu {one.send} what is never received"
        return "unmatched", text, self._stuck(self.receivers[int(self.target[here])])

    def _stuck(self, blocks: list[int]) -> int | None:
        return next((one for one in blocks if self.step[one] < self.columns.instruction_begin[one + 1]), None)
