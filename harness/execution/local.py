"""Execution by local processes, which are connected by Unix-domain sockets in a folder of this user alone."""

import os
import pickle
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from typing import IO, NoReturn

from ...core.errors import CwbError, OutOfTime, Unsupported
from ...core.units import SIZES, amount
from ..environment import spare_bytes
from ..process import kill_group
from .children import Assignment
from .player import Job, Report, repetitions
from .program import Program
from .sockets import Address

_PROCESS_BYTES = 30 * 2**20  #: Memory of a process without data.
_TIMES = 2  #: Data of a program, what is kept aside, and buffers of sockets, in multiples of its memory.

#: Seconds between the decision to begin and the common instant, and how often a waiting parent looks around.
_LEAD_S, _TICK_S = 0.002, 0.2

_END_S = 0.2  #: Seconds that processes have to end when nobody needs them any more.


def memory_shortage(programs: list[Program], itemsize: int) -> str:
    """Return the reason if programs need more memory than this machine has left; empty if they do not."""
    count = len(programs)
    need = sum(program.elements for program in programs) * itemsize * _TIMES + count * _PROCESS_BYTES
    if need <= (spare := spare_bytes()):
        return ""
    text = f"{count:,} processes take some {amount(need, SIZES)} of memory, and {amount(spare, SIZES)} are left"
    return f"{text}; a smaller --size would fit"


def execute_locally(programs: list[Program], job: Job, itemsize: int) -> list[Report]:
    """Execute programs in processes of this machine, which have all ended on return."""
    if not hasattr(os, "fork"):
        raise Unsupported("this system cannot fork processes; mpirun starts them, with --processes mpi")
    if why := memory_shortage(programs, itemsize):
        raise OutOfTime(why)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="cwb-"))
        own: dict[int, Address] = {number: str(number) for number in range(len(programs))}
        assignments = [
            Assignment(number, program, job, [own[number]], {peer: own[peer] for peer in program.sends})
            for number, program in enumerate(programs)
        ]
        return Processes(stack, folder, assignments).reports()


class Processes:
    """Local processes, which end with the stack that they are entered in."""

    def __init__(self, stack: ExitStack, folder: str, assignments: list[Assignment]) -> None:
        self._assignments = assignments
        self._stderr: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - it is read until the stack ends
        self._ends: list[socket.socket] = []
        theirs: list[socket.socket] = []
        try:
            for _ in assignments:
                mine, other = socket.socketpair()
                self._ends.append(stack.enter_context(mine))
                theirs.append(other)
            numbers = [other.fileno() for other in theirs]
            self._forker = subprocess.Popen(
                [sys.executable, "-P", "-m", f"{__package__}.children", folder, *map(str, numbers)],
                stdin=subprocess.DEVNULL,
                stdout=self._stderr,
                stderr=self._stderr,
                pass_fds=numbers,
                start_new_session=True,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            )
            stack.callback(self._end)
        except OSError as error:
            raise OutOfTime(f"{len(assignments):,} processes cannot be started: {error.strerror}") from None
        finally:
            for other in theirs:
                other.close()
        self._selector = stack.enter_context(selectors.DefaultSelector())
        for number, mine in enumerate(self._ends):
            self._selector.register(mine, selectors.EVENT_READ, number)

    def reports(self) -> list[Report]:
        """Give the processes their work, begin every repetition, and return their reports."""
        for mine, assignment in zip(self._ends, self._assignments, strict=True):
            self._send(mine, pickle.dumps(assignment))
        self._wait_for_all()
        for mine in self._ends:
            self._send(mine, b"c")
        for _ in repetitions(self._assignments[0].job):
            self._wait_for_all()
            instant = struct.pack("d", time.perf_counter() + _LEAD_S)
            for mine in self._ends:
                self._send(mine, instant)
        return [pickle.loads(data) for data in self._collect_reports()]  # noqa: S301 - of own processes

    def _send(self, end: socket.socket, data: bytes) -> None:
        try:
            end.sendall(data)
        except OSError:
            self._fail()

    def _receive(self, number: int, most: int) -> bytes:
        """Return bytes of a process; none if it has ended."""
        with suppress(ConnectionError):
            return self._ends[number].recv(most)
        return b""

    def _wait_for_all(self) -> None:
        silent = set(range(len(self._ends)))
        while silent:
            if self._forker.poll() is not None:  # it ends after its children, unless it is killed
                self._fail()
            for key, _ in self._selector.select(_TICK_S):
                if key.data not in silent or not self._receive(key.data, 1):  # nobody says anything twice
                    self._fail()
                silent.discard(key.data)

    def _collect_reports(self) -> list[bytes]:
        """Return the reports of the processes, each sent before its end."""
        reports = [b""] * len(self._ends)
        open_ = set(range(len(self._ends)))
        while open_:
            for key, _ in self._selector.select(_TICK_S):
                part = self._receive(key.data, 2**16)
                reports[key.data] += part
                if not part:
                    self._selector.unregister(key.fileobj)
                    open_.discard(key.data)
                    if not reports[key.data]:
                        self._fail()
        return reports

    def _fail(self) -> NoReturn:
        """Raise the error of the process that failed first."""
        self._end()
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        raise CwbError(f"a process ended early: {lines[-1] if lines else 'without a message'}")

    def _end(self) -> None:
        """Close the connections, at which processes end, and kill those that do not."""
        for mine in self._ends:
            mine.close()
        with suppress(subprocess.TimeoutExpired):
            if self._forker.wait(_END_S) == 0:  # otherwise it was killed, and its children may go on
                return
        kill_group(self._forker.pid)
        self._forker.wait()
