"""The state of a run: connections, thread blocks, and what each is certain of.

Every thread block knows of every other one of its GPU how far it is certain to be (a vector clock): from the blocks
that it has waited for, and from what those have waited for. Clocks are shared until they change, which they do at waits
alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from heapq import heappop, heappush

from .dialects import MAX_COUNT
from .program import RECEIVES, SENDS, Block

#: Places of an instruction: one for each of its chunks.
UNITS = MAX_COUNT


class Connection:
    """Chunks in flight from one GPU to another over a channel, in order.

    Parameters
    ----------
    slots : int
        Number of chunks that fit in.
    """

    __slots__ = ("items", "receiver", "sender", "sent_by", "slots", "taken", "takers", "users")

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.items: deque[tuple[tuple[int, ...], int, int]] = deque()  # values, count of the step, first
        self.sender: RunningBlock | None = None  # waits for room
        self.receiver: RunningBlock | None = None  # waits for a chunk
        self.sent_by: list[tuple[RunningBlock, int]] = []  # of each chunk, the place that its sender has passed with it
        self.taken = 0
        self.users: list[RunningBlock] = []
        self.takers: list[RunningBlock] = []


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

    @property
    def sends(self) -> bool:
        """True if any step sends."""
        return any(instruction.step.type in SENDS for instruction in self.instructions)

    @property
    def receives(self) -> bool:
        """True if any step receives."""
        return any(instruction.step.type in RECEIVES for instruction in self.instructions)

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
