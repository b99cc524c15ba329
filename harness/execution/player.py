"""Playing of a program: messages begin when what they wait for is done, in the order of each connection."""

import struct
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.budget import report_progress
from ...core.grouping import group_by_key
from .program import Operation, Program
from .values import Mismatch, compare, fill

_REPORT_S = 1.0  #: Seconds between two reports of progress.
_NUMBER = struct.Struct("I")  #: Number of a message where connections do not keep the order of the schedule.


class Transport(Protocol):
    """Connections of a process to others; on each, at most one message is on its way in either direction."""

    def send(self, peer: int, data: memoryview) -> None:
        """Begin to send a message, whose bytes stay as they are until its end is reported."""

    def receive(self, peer: int, into: memoryview) -> None:
        """Begin to receive the next message of a process."""

    def wait(self) -> list[tuple[int, bool]]:
        """Return messages that have ended, at least one: the other process, and whether it was received."""
        ...

    def start(self) -> float:
        """Wait until all processes may begin; return the instant by this process's clock."""
        ...


@dataclass(frozen=True)
class Job:
    """Options of an execution that all processes share."""

    dtype: str  #: Type of the elements, one of :data:`.values.DTYPES`.
    repeat: int
    warmup: int
    #: Whether a connection takes messages as their data comes, and not in the order of the schedule.
    first_come: bool = False


@dataclass(frozen=True)
class Report:
    """Result of one process: seconds of every repetition, and wrong data of the first wrong one."""

    seconds: list[float]
    wrong: list[Mismatch]


def repetitions(job: Job) -> Iterator[int]:
    """Yield the numbers of all repetitions, and report progress at most once a second."""
    total, report_s = job.warmup + job.repeat, time.perf_counter()
    for number in range(total):
        if time.perf_counter() - report_s >= _REPORT_S:
            report_progress(f"{number:,} of {total:,} repetitions")
            report_s = time.perf_counter()
        yield number


def perform(program: Program, job: Job, transport: Transport) -> Report:
    """Play a program as often as a job asks for, and check the data each time."""
    memory = np.empty(program.elements, dtype=job.dtype)
    player = (FirstComePlayer if job.first_come else Player)(program, memory, transport)
    seconds: list[float] = []
    wrong: list[Mismatch] = []
    for _ in repetitions(job):
        fill(memory, program.before)
        begin = transport.start()
        player.begin()
        while player.pending:
            player.advance(transport.wait())
        seconds.append(time.perf_counter() - begin)
        wrong = wrong or compare(memory, program.after)
    return Report(seconds[job.warmup :], wrong)


class Player:
    """State of a program while it is played.

    A connection has one message at a time, in the order of the schedule. A message that has come before its place may
    be written is kept aside, so that no connection waits for another one, and no order of messages blocks for ever.
    """

    def __init__(self, program: Program, memory: NDArray[Any], transport: Transport) -> None:
        self.program, self.memory, self.transport = program, memory, transport
        self.bytes = memory.data.cast("B") if len(memory) else memoryview(b"")
        self.itemsize = memory.itemsize

    def begin(self) -> None:
        """Begin all messages that wait for nothing; receives come first."""
        program = self.program
        self.writes, self.reads = [0] * program.cells, [0] * program.cells
        self.send_index, self.receive_index = dict.fromkeys(program.sends, 0), dict.fromkeys(program.receives, 0)
        self.pending = sum(map(len, program.sends.values())) + sum(map(len, program.receives.values()))
        self.waiting: dict[int, list[int]] = {}  # cell to processes whose next send reads it
        self.aside: dict[int, list[tuple[Operation, NDArray[Any]]]] = {}  # cell to messages that it waits for
        self.into: dict[int, NDArray[Any] | None] = {}
        for peer in program.receives:
            self._receive(peer)
        for peer in program.sends:
            self._send(peer)

    def advance(self, events: list[tuple[int, bool]]) -> None:
        """Go on after messages that have ended."""
        for peer, incoming in events:
            if incoming:
                self._end_receive(peer)
            else:
                operation = self._end_send(peer)
                self.pending -= 1
                self.reads[operation.cell] += 1
                self._wake(operation.cell)
                self._send(peer)

    def _send(self, peer: int) -> None:
        """Begin the next send to a process, unless there is none or its data is not there yet."""
        queue, index = self.program.sends[peer], self.send_index[peer]
        if index == len(queue):
            return
        operation = queue[index]
        if self.writes[operation.cell] < operation.writes:
            self.waiting.setdefault(operation.cell, []).append(peer)
            return
        self.transport.send(peer, self._view(operation))

    def _end_send(self, peer: int) -> Operation:
        self.send_index[peer] += 1
        return self.program.sends[peer][self.send_index[peer] - 1]

    def _receive(self, peer: int) -> None:
        queue, index = self.program.receives[peer], self.receive_index[peer]
        if index < len(queue):
            self._begin_receive(peer, queue[index])

    def _begin_receive(self, peer: int, operation: Operation) -> None:
        """Begin to receive in place, or into a buffer if anything else needs the place."""
        if not operation.adds and self._may_write(operation):
            self.into[peer] = None
            self.transport.receive(peer, self._view(operation))
            return
        self.into[peer] = buffer = np.empty(operation.length, dtype=self.memory.dtype)
        self.transport.receive(peer, buffer.data.cast("B"))

    def _end_receive(self, peer: int) -> None:
        self._keep(peer, self.program.receives[peer][self.receive_index[peer]])

    def _keep(self, peer: int, operation: Operation) -> None:
        """Write what has come if its place may be written, keep it aside if not, and receive the next."""
        buffer = self.into[peer]
        self.receive_index[peer] += 1
        if buffer is not None and not self._may_write(operation):
            self.aside.setdefault(operation.cell, []).append((operation, buffer))
        else:
            self._write(operation, buffer)
            self._wake(operation.cell)
        self._receive(peer)

    def _may_write(self, operation: Operation) -> bool:
        return self.writes[operation.cell] == operation.writes and self.reads[operation.cell] == operation.reads

    def _write(self, operation: Operation, buffer: NDArray[Any] | None) -> None:
        if buffer is not None:
            place = self.memory[operation.address : operation.address + operation.length]
            if operation.adds:
                place += buffer
            else:
                place[:] = buffer
        self.writes[operation.cell] += 1
        self.pending -= 1

    def _wake(self, cell: int) -> None:
        """Write what was kept aside for a cell, then begin sends that wait for it."""
        messages = self.aside.get(cell, [])
        while (index := next((i for i, (each, _) in enumerate(messages) if self._may_write(each)), None)) is not None:
            self._write(*messages.pop(index))
        self._wake_sends(cell)

    def _wake_sends(self, cell: int) -> None:
        for peer in self.waiting.pop(cell, ()):
            self._send(peer)

    def _view(self, operation: Operation) -> memoryview:
        begin = operation.address * self.itemsize
        return self.bytes[begin : begin + operation.length * self.itemsize]


class FirstComePlayer(Player):
    """A player whose connections take messages as their data comes, as links of simulations do.

    A message that waits for data delays no other one. Every message begins with its number in the schedule.
    """

    def begin(self) -> None:
        """Begin all messages that wait for nothing; receives come first."""
        sends = self.program.sends
        self.ready = {
            peer: deque(number for number, operation in enumerate(queue) if not operation.writes)
            for peer, queue in sends.items()
        }
        every = ((peer, number, one) for peer, queue in sends.items() for number, one in enumerate(queue))
        self.later = group_by_key((one.cell, (peer, number)) for peer, number, one in every if one.writes)
        self.sending: dict[int, int] = {}
        self.head: dict[int, bytearray] = {}
        self.coming: dict[int, Operation] = {}
        super().begin()

    def _send(self, peer: int) -> None:
        if self.ready[peer] and peer not in self.sending:
            number = self.sending[peer] = self.ready[peer].popleft()
            data = self._view(self.program.sends[peer][number])
            self.transport.send(peer, memoryview(b"".join((_NUMBER.pack(number), data))))

    def _end_send(self, peer: int) -> Operation:
        return self.program.sends[peer][self.sending.pop(peer)]

    def _wake_sends(self, cell: int) -> None:
        waiting = self.later.pop(cell, [])
        for peer, number in waiting:
            if self.writes[cell] >= self.program.sends[peer][number].writes:
                self.ready[peer].append(number)
                self._send(peer)
            else:
                self.later[cell].append((peer, number))

    def _receive(self, peer: int) -> None:
        if self.receive_index[peer] < len(self.program.receives[peer]):
            self.head[peer] = head = bytearray(_NUMBER.size)
            self.transport.receive(peer, memoryview(head))

    def _end_receive(self, peer: int) -> None:
        if peer in self.coming:
            self._keep(peer, self.coming.pop(peer))
        else:
            (number,) = _NUMBER.unpack(self.head[peer])
            self.coming[peer] = operation = self.program.receives[peer][number]
            self._begin_receive(peer, operation)
