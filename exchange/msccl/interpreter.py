"""Interpreter of programs with symbolic data: final memory of every GPU, and all faults.

Connections are in order and hold as much as the protocol has room for at the largest size of the file's range. A wait
is over when the other block's flag is as high or higher. Where no two accesses to the same memory are unordered, every
run gives the same, so that one run is enough; unordered ones are reported as races. The work is proportional to the
instructions and the chunks that they move.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from .dialects import DEFAULT_MAX_BYTES, MAX_COUNT, SLOT_BYTES, SLOTS
from .findings import place_text
from .machine import Connection, Races, RunningBlock, check_hangs
from .meaning import meaning_of
from .outcome import Run
from .program import READS, RECEIVES, REDUCES, SENDS, WRITES, Algorithm, Gpu, Instruction, Step


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
    """Run a program.

    Parameters
    ----------
    algorithm : Algorithm
        The program; its GPUs and peers are numbers below ``ngpus``, see :func:`~.lint.lint`.
    inplace : bool
        Whether the input and the output of the call are the same memory, as NCCL defines it for the collective.
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


class _Machine:
    def __init__(self, algorithm: Algorithm, inplace: bool, tell: Callable[[Event], None] | None) -> None:
        self.run = Run(meaning_of(algorithm), inplace=inplace)
        self.tell, self.slots, self.at_once = tell, SLOTS.get(algorithm.proto, 2), chunks_at_once(algorithm)
        self.connections: dict[tuple[int, int, int], Connection] = {}
        self.blocks: list[dict[int, RunningBlock]] = [{} for _ in range(algorithm.ngpus)]
        self.races = Races(algorithm.ngpus)
        self.ready: deque[RunningBlock] = deque()
        for gpu in algorithm.gpus:
            self._add(gpu)

    def _add(self, gpu: Gpu) -> None:
        sizes = self.run.sizes[gpu.id]
        sizes["s"] = gpu.s_chunks
        if self.run.meaning.kind is None:
            sizes["i"], sizes["o"] = gpu.i_chunks, gpu.o_chunks
        for number, block in enumerate(gpu.blocks):
            running = RunningBlock(gpu.id, number, block, [0] * len(gpu.blocks))
            self.blocks[gpu.id][block.id] = running
            used = {instruction.step.type for instruction in block.instructions}
            if block.send >= 0 and used & SENDS:
                running.fifo_out = self._connection(gpu.id, block.send, block.chan)
                running.fifo_out.users.append(running)
            if block.recv >= 0 and used & RECEIVES:
                running.fifo_in = self._connection(block.recv, gpu.id, block.chan)
                running.fifo_in.takers.append(running)
            self._report_overlaps(running)
            self.ready.append(running)

    def _report_overlaps(self, block: RunningBlock) -> None:
        """Report steps that write some of their chunks where they read others: their threads are in no order."""
        bases = self.run.bases[block.gpu]
        for instruction in block.instructions:
            step = instruction.step
            if step.cnt < 2 or step.type not in _MOVES:
                continue
            target = bases[step.dstbuf] + step.dstoff
            if any(0 < abs(bases[step.srcbuf] + offset - target) < step.cnt for offset in instruction.sources):
                text = "writes chunks where it reads others, and its threads are in no order"
                self.run.findings.add("race", text, place_text(block.gpu, block.name, instruction.position))

    def _connection(self, source: int, target: int, channel: int) -> Connection:
        key = (source, target, channel)
        if key not in self.connections:
            self.connections[key] = Connection(self.slots)
        return self.connections[key]

    def go(self) -> None:
        """Run until nothing can go on."""
        while self.ready:
            block = self.ready.popleft()
            while block.done < len(block.instructions) and self._instruction(block):
                self.ready.extend(block.finish())

    def _instruction(self, block: RunningBlock) -> bool:
        """Go on with an instruction; whether it has come to its end."""
        instruction = block.instructions[block.done]
        if block.unit == 0:
            for name, count in instruction.waits:
                other = self.blocks[block.gpu].get(name)
                needed = None if other is None else other.instruction_reaching(count)
                if other is None or needed is None or block.waits_for(other, needed):
                    return False
        step = instruction.step
        while block.unit < step.cnt:
            done = self._chunks(block, instruction, step)
            if not done:
                return False
            block.unit += done
        return True

    def _chunks(self, block: RunningBlock, instruction: Instruction, step: Step) -> int:
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
        given = tuple(self._run_chunk(block, step, unit, value) for unit, value in enumerate(came, block.unit))
        if out is not None and kind in SENDS:
            self._give(block, out, (given, step.cnt, block.unit))
        return count

    def _run_chunk(self, block: RunningBlock, step: Step, unit: int, came: int) -> int:
        kind, value, source, target = step.type, came, None, None
        if kind == "s" or kind in REDUCES:
            source = self._address(block, step.srcbuf, step.srcoff + unit)
            local = self._load(block, unit, source)
            value = local if kind == "s" else self.run.values.sum(local, came)
        if kind not in ("s", "rrs"):
            target = self._address(block, step.dstbuf, step.dstoff + unit)
            self._store(block, unit, target, value)
        if self.tell is not None:
            if kind in RECEIVES:
                number = block.come[block.done] + unit
                self.tell(Event("take", block.gpu, number, came, source, target, block.peers[1], block.channel))
            if block.fifo_out is not None and kind in SENDS:
                number = len(block.fifo_out.sent_by) + unit - block.unit
                self.tell(Event("send", block.gpu, number, value, source, target, block.peers[0], block.channel))
        return value

    def _take(self, block: RunningBlock, into: Connection, step: Step, count: int) -> tuple[int, ...]:
        """Take chunks out of a connection, which makes room."""
        values, other, unit = into.items.popleft()
        block.come.setdefault(block.done, into.taken)
        into.taken += len(values)
        if (other, unit) != (step.cnt, block.unit):
            text = f"receives {step.cnt} chunks where a step of {other} sends: they do not match in size"
            self.run.findings.add("count", text, block.text())
            values = (values + (self.run.values.contribution(block.gpu, -1),) * count)[:count]
        if into.sender is not None:
            self.ready.append(into.sender)
            into.sender = None
        return values

    def _give(self, block: RunningBlock, out: Connection, item: tuple[tuple[int, ...], int, int]) -> None:
        out.items.append(item)
        out.sent_by.extend((block, block.place(unit) + 1) for unit in range(block.unit, block.unit + len(item[0])))
        if out.receiver is not None:
            self.ready.append(out.receiver)
            out.receiver = None

    def _local(self, block: RunningBlock, instruction: Instruction, step: Step, unit: int) -> None:
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

    def _address(self, block: RunningBlock, buffer: str, offset: int) -> int | None:
        """Return the address of a chunk; None outside of the buffer."""
        size = self.run.sizes[block.gpu].get(buffer, 0)
        if 0 <= offset < size:
            return self.run.bases[block.gpu][buffer] + offset
        text = f"uses chunk {offset} of buffer {buffer}, which has {size}"
        self.run.findings.add("bounds", text, block.text())
        return None

    def _load(self, block: RunningBlock, unit: int, address: int | None) -> int:
        values, gpu = self.run.values, block.gpu
        if address is None:
            return values.contribution(gpu, -1)
        self.races.reads(block, unit, address)
        found = self.run.memory[gpu].get(address)
        return self.run.first_read(gpu, address, gpu, block.text) if found is None else found

    def _store(self, block: RunningBlock, unit: int, address: int | None, value: int) -> None:
        if address is not None:
            self.races.writes(block, unit, address)
            self.run.memory[block.gpu][address] = value

    def check(self) -> None:
        """Report what has not come to its end, what is left over, and races."""
        self.run.ended = check_hangs(self.blocks, self.connections, self.run.findings)
        self.races.check(self.blocks, self.run.findings)


_LOCAL = frozenset({"cpy", "re", "ra"})

_MOVES = READS & WRITES  #: Types that read a chunk and write another one.
