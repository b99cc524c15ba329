"""Fork servers as their parent sees them, and the runs that they fork (:mod:`~cwb.harness.fork_server`).

Runs that have the same environment, number of threads and solver are forked by the same server, which stays for the next
one. Of two that import different libraries, neither holds the memory of the other's.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import IO

from .task import Task

#: Seconds in which a process that is killed is gone.
_KILLED_S = 5.0

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def environment_of(task: Task) -> dict[str, str]:
    """Environment of a run: libraries that start threads by themselves start as many as it may have."""
    return {**os.environ, **dict.fromkeys(_THREADS, str(task.cell.request.threads))}


def kill_group(leader: int) -> None:
    """Kill a process and all that it started, as far as they still run."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


class ForkServer:
    """A server, which ends when it is closed, or when this process ends.

    Parameters
    ----------
    environment : mapping of str to str
        Of the runs.
    solver : str or None
        What is imported beside what all runs need.

    Attributes
    ----------
    runs : int
        How many are using it.
    """

    def __init__(self, environment: Mapping[str, str], solver: str | None) -> None:
        self.runs = 0
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - read when the server has ended
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "cwb.harness.fork_server", solver or ""],
                stdin=theirs.fileno(),
                stdout=self._output,
                stderr=self._output,
                env=environment,
                start_new_session=True,
            )

    def fork(self, model: str, descriptors: list[int]) -> None:
        """Ask for a run; where the server has died, the ends of the run's pipes tell it."""
        with suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._control, [model.encode(errors="replace")], descriptors)

    def output(self) -> str:
        """What it has printed."""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def close(self) -> None:
        """End it."""
        self._control.close()
        self.process.kill()
        self.process.wait()
        self._output.close()


#: By environment and solver, the one that was made last at the end; so many may stay without a run.
_servers: dict[tuple[frozenset[tuple[str, str]], str | None], ForkServer] = {}
_lock = threading.Lock()
_MOST_IDLE = 6


def start_servers(tasks: Iterable[Task], most: int) -> None:
    """Let the servers that runs will need first, so many of them, import their libraries beside one another."""
    needed = {_key(task): task for task in tasks if task.record is None}
    for task in islice(needed.values(), most):
        _give_back(_borrow(task))


def _key(task: Task) -> tuple[frozenset[tuple[str, str]], str | None]:
    return frozenset(environment_of(task).items()), task.known.get("solver")


def _borrow(task: Task) -> ForkServer:
    """A server for a run, which is given back by :func:`_give_back`."""
    key = _key(task)
    with _lock:
        server = _servers.get(key)
        if server is not None and server.process.poll() is not None:
            _release(_servers.pop(key))
            server = None
        if server is None:
            idle = [key for key, other in _servers.items() if other.runs == 0]
            for other in idle[: max(0, len(idle) - _MOST_IDLE)]:
                _servers.pop(other).close()
            server = _servers[key] = ForkServer(environment_of(task), task.known.get("solver"))
        server.runs += 1
    return server


def _give_back(server: ForkServer) -> None:
    with _lock:
        server.runs -= 1
        if server not in _servers.values():
            _release(server)


def _release(server: ForkServer) -> None:
    """End a server that is none of the list any more, when its last run has given it back."""
    if server.runs == 0:
        server.close()


def close_servers() -> None:
    """End all servers that have no run at hand."""
    with _lock:
        for key in [key for key, server in _servers.items() if server.runs == 0]:
            _servers.pop(key).close()


atexit.register(close_servers)


class Forked:
    """A run that is forked.

    Parameters
    ----------
    task : Task
        What it runs, or verifies.
    line : bytes
        Its stdin.
    stderr : file
        Where its stderr goes.
    """

    def __init__(self, task: Task, line: bytes, stderr: IO[bytes]) -> None:
        self._server = _borrow(task)
        self._told, telling = socket.socketpair()
        self._text, self._over = b"", False
        self._events, writing = socket.socketpair()
        self.stdout = self._events.makefile("rb")
        with tempfile.TemporaryFile() as stdin, telling, writing:
            stdin.write(line)
            stdin.seek(0)
            descriptors = [stdin.fileno(), writing.fileno(), stderr.fileno(), telling.fileno()]
            self._server.fork(task.cell.request.model, descriptors)

    def _hear(self, timeout_s: float) -> list[int]:
        """What has been told: nothing, the number of the process, or that and its exit status.

        The timeout is that of each of the two.
        """
        poll = select.poll()
        poll.register(self._told, select.POLLIN)
        while not self._over and poll.poll(1000 * timeout_s):
            try:
                more = self._told.recv(64)
            except ConnectionResetError:
                more = b""
            self._text += more
            self._over = not more or self._text.count(b"\n") == 2
        return [int(number) for number in self._text.split()]

    @property
    def pid(self) -> int | None:
        """Number of the process; None as long as it has not begun."""
        return next(iter(self._hear(0.0)), None)

    def wait(self, timeout_s: float) -> int | None:
        """Exit status, the server's if that has died; None if neither has ended within the timeout."""
        told = self._hear(timeout_s)
        if len(told) == 2:
            return told[1]
        if self._over:
            with suppress(subprocess.TimeoutExpired):
                return self._server.process.wait(timeout_s)
        return None

    def kill(self) -> int:
        """Kill it and what it started, and give its exit status; what has not begun never will."""
        if self.pid is None:
            for ours in (self._told, self._events):
                with suppress(OSError):  # the server has died
                    ours.shutdown(socket.SHUT_RD)
        if (pid := self.pid) is not None:
            kill_group(pid)
        status = self.wait(_KILLED_S if pid is not None else 0.0)
        return -signal.SIGKILL if status is None else status

    def last_words(self) -> str:
        """What the server has said, where it died before it could fork the run."""
        return "" if self._text else self._server.output()

    def close(self) -> None:
        """Free everything."""
        self._told.close()
        self.stdout.close()
        self._events.close()
        _give_back(self._server)
