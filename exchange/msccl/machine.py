"""The state of a run: connections, thread blocks and what each is certain of, and races and hangs that follow.

Every thread block knows of every other one of its GPU how far it is certain to be (a vector clock): from the blocks
that it has waited for, and from what those have waited for. Clocks are shared until they change, which they do at waits
alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush

from .dialects import MAX_COUNT
from .findings import Findings, place_text
from .program import RECEIVES, SENDS, Block

UNITS = MAX_COUNT  #: Places of an instruction: one for each of its chunks.
SEARCHED = 64  #: Instructions that all searches for an order together may look at, for each instruction of the program.


@dataclass(eq=False, slots=True)
class Connection:
    """Chunks in flight from one GPU to another over a channel, in order."""

    slots: int
    items: deque[tuple[tuple[int, ...], int, int]] = field(default_factory=deque)  # values, count of the step, first
    sender: RunningBlock | None = None  # waits for room
    receiver: RunningBlock | None = None  # waits for a chunk
    sent_by: list[Access] = field(default_factory=list)  # of each chunk, the place that its sender has passed with it
    taken: int = 0
    users: list[RunningBlock] = field(default_factory=list)
    takers: list[RunningBlock] = field(default_factory=list)


class RunningBlock:
    """A thread block while it runs."""

    __slots__ = (
        "channel", "clock", "come", "counts", "done", "fifo_in", "fifo_out", "flags", "gpu", "instructions", "name",
        "number", "peers", "seen", "unit", "waiting",
    )  # fmt: skip

    def __init__(self, gpu: int, number: int, block: Block, clock: list[int]) -> None:
        self.gpu, self.number, self.name, self.clock = gpu, number, block.id, clock
        self.peers, self.channel = (block.send, block.recv), block.chan
        self.instructions = block.instructions
        self.flags = [i for i, instruction in enumerate(self.instructions) if instruction.step.hasdep]
        self.counts = [self.instructions[i].flag for i in self.flags]
        self.seen: dict[int, list[int]] = {}
        self.come: dict[int, int] = {}  # the first chunk that each instruction has taken, counted over the connection
        self.done = self.unit = 0
        self.fifo_in: Connection | None = None
        self.fifo_out: Connection | None = None
        self.waiting: list[tuple[int, int, RunningBlock]] = []

    @property
    def is_finished(self) -> bool:
        """True if nothing is left to do."""
        return self.done == len(self.instructions)

    def text(self, instruction: int | None = None) -> str:
        """Format the place of an instruction, by default of the current one."""
        place = self.instructions[self.done if instruction is None else instruction].position
        return place_text(self.gpu, self.name, place)

    def place(self, unit: int) -> int:
        """Return the current instruction and a chunk of it as one number, which never decreases."""
        return self.done * UNITS + unit

    def instruction_reaching(self, count: int) -> int | None:
        """Return the first instruction that sets the flag to the count or more; None if none does."""
        place = bisect_left(self.counts, count)
        return self.flags[place] if place < len(self.flags) else None

    def finish(self) -> list[RunningBlock]:
        """End an instruction; give the blocks that waited for it."""
        ended = self.done
        self.done, self.unit = ended + 1, 0
        if self.instructions[ended].step.hasdep:
            self.seen[ended] = self.clock
        woken = []
        while self.waiting and self.waiting[0][0] <= ended:
            woken.append(heappop(self.waiting)[2])
        return woken

    def waits_for(self, other: RunningBlock, instruction: int) -> bool:
        """Return whether another block's instruction has yet to end; then this one is woken at its end."""
        if other is self or self.clock[other.number] > instruction:
            return other.done <= instruction
        if other.done <= instruction:
            heappush(other.waiting, (instruction, self.number, self))
            return True
        known = other.seen[instruction]
        self.clock = [a if a > b else b for a, b in zip(self.clock, known, strict=True)]
        self.clock[other.number] = instruction + 1
        return False


Access = tuple[RunningBlock, int]  #: An access: thread block and place in it, see :meth:`RunningBlock.place`.


class Races:
    """Detector of accesses to the same memory, one of which writes, that nothing puts in order.

    If the clocks of a GPU give no order, one over messages is searched for in the end.
    """

    def __init__(self, gpus: int) -> None:
        self.written: list[dict[int, Access]] = [{} for _ in range(gpus)]
        self.read: list[dict[int, list[Access]]] = [{} for _ in range(gpus)]
        self.unordered: dict[tuple[RunningBlock, RunningBlock], list[tuple[int, int, str]]] = {}

    def reads(self, block: RunningBlock, unit: int, address: int) -> None:
        """Note that the present instruction reads for one of its chunks."""
        place = block.place(unit)
        before = self.written[block.gpu].get(address)
        if before is not None:
            self._after(before, block, place, "is written")
        since = self.read[block.gpu].setdefault(address, [])
        if since and since[-1][0] is block:
            since[-1] = (block, place)
        else:
            since.append((block, place))

    def writes(self, block: RunningBlock, unit: int, address: int) -> None:
        """Note that the present instruction writes one of its chunks."""
        place = block.place(unit)
        written = self.written[block.gpu]
        before = written.get(address)
        if before is not None:
            self._after(before, block, place, "is written")
        for access in self.read[block.gpu].pop(address, ()):
            self._after(access, block, place, "is read")
        written[address] = (block, place)

    def _after(self, first: Access, block: RunningBlock, later: int, what: str) -> None:
        other, place = first
        if other is not block and block.clock[other.number] <= place // UNITS:
            self.unordered.setdefault((other, block), []).append((place, later, what))

    def check(self, blocks: list[dict[int, RunningBlock]], findings: Findings) -> None:
        """Report the accesses that no chain of waits and messages puts in order."""
        total = sum(len(block.instructions) for gpu in blocks for block in gpu.values())
        search = _Search(blocks, SEARCHED * total)
        for (first, second), pairs in self.unordered.items():
            known: tuple[int, int] | None = None  # an order that holds
            for earlier, later, what in sorted(pairs, key=lambda pair: (-pair[0], pair[1])):
                if known is not None and earlier <= known[0] and later >= known[1]:
                    continue
                ordered = search.before(first, earlier, second, later)
                if ordered:
                    known = (earlier, later)
                    continue
                there = first.instructions[earlier // UNITS].position
                text = f"uses memory that {what} by tb {first.name}, step {there}, and neither waits for the other"
                if ordered is None:
                    text += ", as far as was searched"
                findings.add("race", text, second.text(later // UNITS))


class _Search:
    """Finds orders over waits and messages, backward from an access.

    The chunks of a step are apart from one another, since a message may be cut between any two: what has come with the
    first of them says nothing of what its sender does with the others.
    """

    def __init__(self, blocks: list[dict[int, RunningBlock]], budget: int) -> None:
        self.blocks, self.budget = blocks, budget

    def before(self, first: RunningBlock, earlier: int, second: RunningBlock, later: int) -> bool | None:
        """Return whether a block has always passed a place when another one is at its own; None: undecided."""
        reached: dict[RunningBlock, int] = {second: later}
        rest = [(second, 0, later)]

        def reach(sources: list[Access]) -> None:
            for other, until in sources:
                since = reached.get(other, 0)
                if until > since:
                    reached[other] = until
                    rest.append((other, since, until))

        reach(self._sources(second, later // UNITS, later % UNITS + 1))
        while rest and reached.get(first, 0) <= earlier:
            block, since, until = rest.pop()
            begin, whole, part = since // UNITS, until // UNITS, until % UNITS
            self.budget -= whole - begin + 1
            if self.budget < 0:
                return None
            for index in range(begin, whole):
                reach(self._sources(block, index, max(block.instructions[index].step.cnt, 1)))
            if part:
                reach(self._sources(block, whole, part))
        return reached.get(first, 0) > earlier

    def _sources(self, block: RunningBlock, index: int, units: int) -> list[Access]:
        """Return the accesses passed for certain before so many chunks of an instruction are done."""
        found: list[Access] = []
        for name, count in block.instructions[index].waits:
            other = self.blocks[block.gpu].get(name)
            if other is not None and other is not block and (needed := other.instruction_reaching(count)) is not None:
                found.append((other, (needed + 1) * UNITS))
        if (chunk := block.come.get(index)) is not None and block.fifo_in is not None:
            sent = block.fifo_in.sent_by
            found.append(sent[min(chunk + units, len(sent)) - 1])
        return found


def check_hangs(
    blocks: list[dict[int, RunningBlock]], connections: dict[tuple[int, int, int], Connection], findings: Findings
) -> bool:
    """Report what hangs, and what is sent and never received; whether everything came to its end."""
    stuck = [block for gpu in blocks for block in gpu.values() if not block.is_finished]
    told: set[RunningBlock] = set()
    for block in stuck:
        if block not in told:
            _follow(block, blocks, told, findings)
    if stuck:
        return False
    for (_, target, channel), connection in connections.items():
        if connection.items:
            sender, place = connection.sent_by[connection.taken]
            text = f"sends to gpu {target} over channel {channel} what is never received: {len(connection.items)} left"
            findings.add("unmatched", text, sender.text((place - 1) // UNITS))
    return True


def _follow(
    block: RunningBlock, blocks: list[dict[int, RunningBlock]], told: set[RunningBlock], findings: Findings
) -> None:
    """Follow blocked blocks to the cause, or around a cycle, and report it."""
    way: list[RunningBlock] = []
    here: RunningBlock | None = block
    kind = reason = ""
    while here is not None and here not in told:
        told.add(here)
        way.append(here)
        kind, reason, here = _waits(here, blocks)
    if here is not None and here not in way:
        return  # leads to what has been reported
    if here is not None:
        names = " -> ".join(one.text() for one in (*way[way.index(here) :][:6], here))
        kind, reason = "hang", f"each waits for the next one: {names}"
    findings.add(kind, reason, way[-1].text())


def _waits(block: RunningBlock, blocks: list[dict[int, RunningBlock]]) -> tuple[str, str, RunningBlock | None]:
    """Return the finding of a stuck block, its reason in words, and the block it waits for."""
    instruction = block.instructions[block.done]
    for name, count in instruction.waits if block.unit == 0 else ():
        other = blocks[block.gpu].get(name)
        needed = None if other is None else other.instruction_reaching(count)
        if other is None or needed is None:
            what = "which there is not" if other is None else "which sets no flag as high (hasdep)"
            return "hang", f"waits for step {count} of tb {name}, {what}", None
        if other.done <= needed:
            return "hang", f"waits for step {count} of tb {name}", None if other is block else other
    step = instruction.step.type
    if step in RECEIVES and (block.fifo_in is None or not block.fifo_in.items):
        more = [one for one in (block.fifo_in.users if block.fifo_in else ()) if not one.is_finished]
        return "unmatched", f"receives from gpu {block.peers[1]} what is never sent", more[0] if more else None
    if step in SENDS:
        more = [one for one in (block.fifo_out.takers if block.fifo_out else ()) if not one.is_finished]
        return "unmatched", f"sends to gpu {block.peers[0]} what is never received", more[0] if more else None
    return "hang", f"{step} has no branch in the interpreter: the thread block ends here", None
