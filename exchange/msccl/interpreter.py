"""Interpreter of programs with symbolic data: final memory of every GPU, and all faults.

Connections, waits and races: docs/exchange/msccl.md, "Checks". Where no two accesses to the same memory are unordered,
every run gives the same, so that one run is enough. For the order of accesses, an event of a thread block is one chunk
of an instruction; chunks are apart from one another, since a message may be cut between any two.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from .dialects import DEFAULT_MAX_BYTES, MAX_COUNT, SLOT_BYTES, SLOTS
from .findings import place_text
from .order import Access, Order, Races, Source
from .outcome import Run, meaning_of
from .program import READS, RECEIVES, REDUCES, SENDS, WRITES, Algorithm, Block, Gpu, Instruction, Step

UNITS = MAX_COUNT  #: Events of an instruction: one for each of its chunks.


@dataclass(frozen=True)
class Event:
    """An event of one chunk, in the order of the run."""

    kind: str  #: ``send`` and ``take`` of a message, ``add`` and ``copy`` in the memory of a GPU.
    gpu: int
    message: int
    value: int  #: Value that is sent, taken or written; of a taken chunk that is reduced, the received one.
    source: int | None
    target: int | None
    peer: int = -1
    channel: int = -1


def execute(algorithm: Algorithm, *, inplace: bool, tell: Callable[[Event], None] | None = None) -> Run:
    """Run a program whose GPUs and peers are numbers below ``ngpus``, see :func:`~.lint.lint`.

    ``inplace`` is whether the call's input and output are the same memory, as NCCL defines it for the collective.
    """
    machine = _Machine(algorithm, inplace, tell)
    machine.go()
    machine.check()
    return machine.run


def chunks_at_once(algorithm: Algorithm) -> int:
    """Return the chunks of a step that fit one slot of a connection, at the largest size."""
    largest = DEFAULT_MAX_BYTES if algorithm.max_bytes is None else algorithm.max_bytes
    if largest <= 0 or algorithm.nchunksperloop <= 0:
        return 1
    chunk = -(-largest // algorithm.nchunksperloop)
    return min(max(SLOT_BYTES.get(algorithm.proto, 1) // chunk, 1), MAX_COUNT - 1)


@dataclass(eq=False, slots=True)
class _Connection:
    """Chunks in flight from one GPU to another over a channel, in order."""

    slots: int
    #: Values, chunks of the sending step, the first of these, and the access of the sender with the first value.
    items: deque[tuple[tuple[int, ...], int, int, Access]] = field(default_factory=deque)
    sent: int = 0
    taken: int = 0
    sender: _RunningBlock | None = None  # waits for room
    receiver: _RunningBlock | None = None  # waits for a chunk
    users: list[_RunningBlock] = field(default_factory=list)
    takers: list[_RunningBlock] = field(default_factory=list)


class _RunningBlock:
    """A thread block while it runs."""

    __slots__ = (
        "actor", "block", "come", "counts", "done", "fifo_in", "fifo_out", "flags", "gpu", "instructions", "passed",
        "unit", "waiting",
    )  # fmt: skip

    def __init__(self, actor: int, gpu: int, block: Block) -> None:
        self.actor, self.gpu, self.block, self.instructions = actor, gpu, block, block.instructions
        self.flags = [i for i, instruction in enumerate(self.instructions) if instruction.step.hasdep]
        self.counts = [self.instructions[i].flag for i in self.flags]
        self.done = self.unit = self.passed = 0  # instructions, and of the present one its chunks and its waits
        self.come = 0  # the number, on its connection, of the first chunk that the present instruction takes
        self.fifo_in: _Connection | None = None
        self.fifo_out: _Connection | None = None
        self.waiting: list[tuple[int, int, _RunningBlock]] = []

    @property
    def is_finished(self) -> bool:
        return self.done == len(self.instructions)

    def text(self, instruction: int | None = None) -> str:
        """Format the place of an instruction, by default of the current one."""
        place = self.instructions[self.done if instruction is None else instruction].position
        return place_text(self.gpu, self.block.id, place)

    def instruction_reaching(self, count: int) -> int | None:
        """Return the first instruction that sets the flag to the count or more; None if none does."""
        place = bisect_left(self.counts, count)
        return self.flags[place] if place < len(self.flags) else None


class _Machine:
    def __init__(self, algorithm: Algorithm, inplace: bool, tell: Callable[[Event], None] | None) -> None:
        self.run = Run(meaning_of(algorithm), inplace=inplace)
        self.tell, self.slots, self.at_once = tell, SLOTS.get(algorithm.proto, 2), chunks_at_once(algorithm)
        self.connections: dict[tuple[int, int, int], _Connection] = {}
        self.blocks: list[dict[int, _RunningBlock]] = [{} for _ in range(algorithm.ngpus)]
        self.all: list[_RunningBlock] = []
        self.order = Order(sum(len(gpu.blocks) for gpu in algorithm.gpus))
        self.races = Races(algorithm.ngpus, self.order, self.run.findings, self._access_text, lambda _: 0)
        self.ready: deque[_RunningBlock] = deque()
        for gpu in algorithm.gpus:
            self._add(gpu)

    def _add(self, gpu: Gpu) -> None:
        sizes = self.run.sizes[gpu.id]
        sizes["s"] = gpu.s_chunks
        if self.run.meaning.kind is None:
            sizes["i"], sizes["o"] = gpu.i_chunks, gpu.o_chunks
        for block in gpu.blocks:
            running = _RunningBlock(len(self.all), gpu.id, block)
            self.all.append(running)
            self.blocks[gpu.id][block.id] = running
            used = {instruction.step.type for instruction in block.instructions}
            if block.send >= 0 and used & SENDS:
                link = gpu.id, block.send, block.chan
                running.fifo_out = self.connections.setdefault(link, _Connection(self.slots))
                running.fifo_out.users.append(running)
            if block.recv >= 0 and used & RECEIVES:
                link = block.recv, gpu.id, block.chan
                running.fifo_in = self.connections.setdefault(link, _Connection(self.slots))
                running.fifo_in.takers.append(running)
            self._report_overlaps(running)
            self.ready.append(running)

    def _report_overlaps(self, block: _RunningBlock) -> None:
        """Report steps that write some of their chunks where they read others: their threads are in no order."""
        bases = self.run.bases[block.gpu]
        for instruction in block.instructions:
            step = instruction.step
            if step.cnt < 2 or step.type not in _MOVES:
                continue
            target = bases[step.dstbuf] + step.dstoff
            if any(0 < abs(bases[step.srcbuf] + offset - target) < step.cnt for offset in instruction.sources):
                text = "writes chunks where it reads others, and its threads are in no order"
                self.run.findings.add("race", text, place_text(block.gpu, block.block.id, instruction.position))

    def go(self) -> None:
        while self.ready:
            block = self.ready.popleft()
            while block.done < len(block.instructions) and self._instruction(block):
                block.done, block.unit, block.passed = block.done + 1, 0, 0
                while block.waiting and block.waiting[0][0] < block.done:
                    self.ready.append(heappop(block.waiting)[2])

    def _instruction(self, block: _RunningBlock) -> bool:
        """Go on with an instruction; whether it has come to its end."""
        instruction = block.instructions[block.done]
        for name, count in instruction.waits[block.passed :]:
            other = self.blocks[block.gpu].get(name)
            needed = None if other is None else other.instruction_reaching(count)
            if other is None or needed is None:
                return False
            if other.done <= needed:
                if other is not block:
                    heappush(other.waiting, (needed, block.actor, block))
                return False
            block.passed += 1
            if other is not block:
                self.order.add(block.actor, block.done * UNITS, Source(other.actor, (needed + 1) * UNITS))
        step = instruction.step
        while block.unit < step.cnt:
            done = self._chunks(block, instruction, step)
            if not done:
                return False
            block.unit += done
        return True

    def _chunks(self, block: _RunningBlock, instruction: Instruction, step: Step) -> int:
        """Execute an instruction for its next chunks, and return their number, 0 if it must wait."""
        kind, count = step.type, min(self.at_once, step.cnt - block.unit)
        if kind in _LOCAL:
            for unit in range(block.unit, block.unit + count):
                self._local(block, instruction, step, unit)
            return 0 if kind == "ra" else count
        into, out = block.fifo_in, block.fifo_out
        if kind in RECEIVES and (into is None or not into.items):
            if into is not None:
                into.receiver = block
            return 0
        if kind in SENDS and (out is None or len(out.items) >= out.slots):
            if out is not None:
                out.sender = block
            return 0
        came = self._take(block, into, step, count) if into is not None and kind in RECEIVES else (-1,) * count
        given = tuple([self._run_chunk(block, step, unit, value) for unit, value in enumerate(came, block.unit)])
        if out is not None and kind in SENDS:
            out.items.append((given, step.cnt, block.unit, Access(block.actor, block.done * UNITS + block.unit, 0)))
            out.sent += count
            if out.receiver is not None:
                self.ready.append(out.receiver)
                out.receiver = None
        return count

    def _run_chunk(self, block: _RunningBlock, step: Step, unit: int, came: int) -> int:
        kind, value, source, target = step.type, came, None, None
        if kind == "s" or kind in REDUCES:
            source = self._address(block, step.srcbuf, step.srcoff + unit)
            local = self._load(block, unit, source)
            value = local if kind == "s" else self.run.values.sum(local, came)
        if kind not in ("s", "rrs"):
            target = self._address(block, step.dstbuf, step.dstoff + unit)
            self._store(block, unit, target, value)
        if self.tell is not None:
            send, recv, channel = block.block.send, block.block.recv, block.block.chan
            if kind in RECEIVES:
                self.tell(Event("take", block.gpu, block.come + unit, came, source, target, recv, channel))
            if block.fifo_out is not None and kind in SENDS:
                number = block.fifo_out.sent + unit - block.unit
                self.tell(Event("send", block.gpu, number, value, source, target, send, channel))
        return value

    def _take(self, block: _RunningBlock, into: _Connection, step: Step, count: int) -> tuple[int, ...]:
        """Take chunks out of a connection, which makes room."""
        values, other, unit, (sender, place, _) = into.items.popleft()
        block.come = into.taken - block.unit
        into.taken += len(values)
        for chunk in range(count):
            passed = Source(sender, place + min(chunk + 1, len(values)))
            self.order.add(block.actor, block.done * UNITS + block.unit + chunk, passed)
        if (other, unit) != (step.cnt, block.unit):
            text = f"receives {step.cnt} chunks where a step of {other} sends: they do not match in size"
            self.run.findings.add("count", text, block.text())
            values = (values + (self.run.values.contribution(block.gpu, -1),) * count)[:count]
        if into.sender is not None:
            self.ready.append(into.sender)
            into.sender = None
        return values

    def _local(self, block: _RunningBlock, instruction: Instruction, step: Step, unit: int) -> None:
        target = self._address(block, step.dstbuf, step.dstoff + unit)
        if step.type == "cpy":
            source = self._address(block, step.srcbuf, step.srcoff + unit)
            if source is not None and source == target:
                return  # the same memory, in place
            value = self._load(block, unit, source)
            self._store(block, unit, target, value)
            if self.tell is not None:
                self.tell(Event("copy", block.gpu, -1, value, source, target))
            return
        total = self._load(block, unit, target)
        for offset in instruction.sources:
            source = self._address(block, step.srcbuf, offset + unit)
            total = self.run.values.sum(total, self._load(block, unit, source))
            if self.tell is not None:
                self.tell(Event("add", block.gpu, -1, total, source, target))
        self._store(block, unit, target, total)

    def _address(self, block: _RunningBlock, buffer: str, offset: int) -> int | None:
        """Return the address of a chunk; None outside of the buffer."""
        size = self.run.sizes[block.gpu].get(buffer, 0)
        if 0 <= offset < size:
            return self.run.bases[block.gpu][buffer] + offset
        text = f"uses chunk {offset} of buffer {buffer}, which has {size}"
        self.run.findings.add("bounds", text, block.text())
        return None

    def _load(self, block: _RunningBlock, unit: int, address: int | None) -> int:
        values, gpu = self.run.values, block.gpu
        if address is None:
            return values.contribution(gpu, -1)
        place = block.done * UNITS + unit
        self.races.note_read(gpu, address, Access(block.actor, place, 0), place + 1)
        found = self.run.memory[gpu].get(address)
        return self.run.first_read(gpu, address, gpu, block.text) if found is None else found

    def _store(self, block: _RunningBlock, unit: int, address: int | None, value: int) -> None:
        if address is not None:
            place = block.done * UNITS + unit
            self.races.note_write(block.gpu, address, Access(block.actor, place, 0), place + 1)
            self.run.memory[block.gpu][address] = value

    def _access_text(self, access: Access) -> str:
        return self.all[access.actor].text(access.event // UNITS)

    def check(self) -> None:
        """Report what hangs, and what is sent and never received."""
        told: set[_RunningBlock] = set()
        for block in self.all:
            if not block.is_finished and block not in told:
                self._follow(block, told)
        self.run.ended = not told
        for (_, target, channel), one in self.connections.items() if self.run.ended else ():
            if one.items:
                text = f"sends to gpu {target} over channel {channel} what is never received: {len(one.items)} left"
                self.run.findings.add("unmatched", text, self._access_text(one.items[0][3]))

    def _follow(self, block: _RunningBlock, told: set[_RunningBlock]) -> None:
        """Follow blocked blocks to the cause, or around a cycle, and report it."""
        way: list[_RunningBlock] = []
        here: _RunningBlock | None = block
        kind = reason = ""
        while here is not None and here not in told:
            told.add(here)
            way.append(here)
            kind, reason, here = self._reason(here)
        if here is not None and here not in way:
            return  # leads to what has been reported
        if here is not None:
            names = " -> ".join(one.text() for one in (*way[way.index(here) :][:6], here))
            kind, reason = "hang", f"each waits for the next one: {names}"
        self.run.findings.add(kind, reason, way[-1].text())

    def _reason(self, block: _RunningBlock) -> tuple[str, str, _RunningBlock | None]:
        """Return the finding of a stuck block, its reason in words, and the block it waits for."""
        instruction, into, out = block.instructions[block.done], block.fifo_in, block.fifo_out
        for name, count in instruction.waits[block.passed :][:1]:
            other = self.blocks[block.gpu].get(name)
            if other is None or other.instruction_reaching(count) is None:
                what = "which there is not" if other is None else "which sets no flag as high (hasdep)"
                return "hang", f"waits for step {count} of tb {name}, {what}", None
            return "hang", f"waits for step {count} of tb {name}", None if other is block else other
        step = instruction.step.type
        if step in RECEIVES and (into is None or not into.items):
            more = [one for one in (into.users if into else ()) if not one.is_finished]
            text = f"receives from gpu {block.block.recv} what is never sent"
            return "unmatched", text, more[0] if more else None
        if step in SENDS:
            more = [one for one in (out.takers if out else ()) if not one.is_finished]
            text = f"sends to gpu {block.block.send} what is never received"
            return "unmatched", text, more[0] if more else None
        return "hang", f"{step} has no branch in the interpreter: the thread block ends here", None


_LOCAL = frozenset({"cpy", "re", "ra"})
_MOVES = READS & WRITES  #: Types that read a chunk and write another one.
