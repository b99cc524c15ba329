"""The parent's view of a run's process: its events, its memory and its end.

Runs with the same environment, number of threads and solver are forked by the same server
(:mod:`~cwb.harness.fork_server`), which stays for the next one. So no run holds the memory of libraries that only
others import.
"""

import atexit
import json
import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any

from .environment import memory_bytes
from .task import Task

KILLED = -int(getattr(signal, "SIGKILL", signal.SIGTERM))  #: Status of a killed process; Windows has no SIGKILL.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def environment_of(task: Task) -> dict[str, str]:
    """Return the environment of a run, which limits the threads that libraries start."""
    return {**os.environ, **dict.fromkeys(_THREADS, str(task.cell.request.threads))}


def kill_group(leader: int) -> None:
    """Kill the process group of a leader (on Windows the process alone), if it still runs."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(leader, signal.SIGTERM)
        else:
            os.killpg(leader, signal.SIGKILL)


class ForkServer:
    """A fork server, which ends when it is closed, or with this process; it may import a solver, too."""

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
        """Request a run; if the server has died, the run's pipes end at once."""
        with suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._control, [model.encode(errors="replace")], descriptors)

    def output(self) -> str:
        """Return the server's printed output."""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def close(self) -> None:
        """End the server process."""
        self._control.close()
        self.process.kill()
        self.process.wait()
        self._output.close()


#: By environment and solver, the one that was made last at the end; so many may stay without a run.
_servers: dict[tuple[frozenset[tuple[str, str]], str | None], ForkServer] = {}
_lock = threading.Lock()
_MOST_IDLE = 6


def start_servers(tasks: Iterable[Task], most: int) -> None:
    """Start the servers that runs need first, at most ``most``, so that their imports overlap."""
    first_tasks = {_key(task): task for task in tasks if task.record is None}
    for task in islice(first_tasks.values(), most):
        _give_back(_borrow(task))


def _key(task: Task) -> tuple[frozenset[tuple[str, str]], str | None]:
    return frozenset(environment_of(task).items()), task.facts.get("solver")


def _borrow(task: Task) -> ForkServer:
    """Return a server for a run; :func:`_give_back` returns it."""
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
            server = _servers[key] = ForkServer(environment_of(task), task.facts.get("solver"))
        server.runs += 1
    return server


def _give_back(server: ForkServer) -> None:
    with _lock:
        server.runs -= 1
        if server not in _servers.values():
            _release(server)


def _release(server: ForkServer) -> None:
    """End an unlisted server when its last run has given it back."""
    if server.runs == 0:
        server.close()


def close_servers() -> None:
    """End all servers without a current run."""
    with _lock:
        for key in [key for key, server in _servers.items() if server.runs == 0]:
            _servers.pop(key).close()


atexit.register(close_servers)


class ForkedRun:
    """A forked run."""

    pid: int | None = None  #: The run reports it when it begins.

    def __init__(self, task: Task, request: bytes, stderr: IO[bytes]) -> None:
        self._server = _borrow(task)
        self._events, writing = socket.socketpair()
        self.stdout = self._events.makefile("rb")
        with tempfile.TemporaryFile() as stdin, writing:
            stdin.write(request)
            stdin.seek(0)
            self._server.fork(task.cell.request.model, [stdin.fileno(), writing.fileno(), stderr.fileno()])

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status of the server, with which all its forks end; None if it continues."""
        with suppress(subprocess.TimeoutExpired):
            return self._server.process.wait(timeout_s)
        return None

    def give_up(self) -> None:
        """End a run that has not begun as soon as it reports its start."""
        with suppress(OSError):  # the server has died
            self._events.shutdown(socket.SHUT_RD)

    def last_words(self) -> str:
        """Return the server's output, if it died before it could fork the run."""
        return self._server.output()

    def close(self) -> None:
        """Release all resources."""
        self.stdout.close()
        self._events.close()
        _give_back(self._server)


END_S = 5.0  #: Seconds in which a process that has reported its record must end.

#: Whether processes of runs are forks; macOS and Windows have libraries that do not outlive one.
FORKS = sys.platform == "linux"


class SpawnedRun:
    """A run in a separate interpreter."""

    def __init__(self, task: Task, request: bytes, stderr: IO[bytes]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cwb.harness.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment_of(task),
            start_new_session=True,
        )
        self.pid: int | None = self._process.pid
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101 (both are pipes)
        self._stdin, self.stdout = self._process.stdin, self._process.stdout
        with suppress(BrokenPipeError):  # if it died already, the end of its stdout tells it
            self._stdin.write(request)
            self._stdin.flush()

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status; None if it has not ended within the timeout."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def give_up(self) -> None:
        """Do nothing, since the run has begun."""

    def last_words(self) -> str:
        """Return an empty text, since all output is on stderr."""
        return ""

    def close(self) -> None:
        """Release all resources."""
        with suppress(BrokenPipeError):
            self._stdin.close()
        self.stdout.close()


class Child:
    """The process of a run, and its events."""

    def __init__(self, task: Task, folder: Path, *, verify: bool = False) -> None:
        request = pickle.dumps((task, folder / "answer.json", verify))
        self._stderr = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - read when the process has ended
        begin = ForkedRun if FORKS else SpawnedRun
        self._process: ForkedRun | SpawnedRun = begin(task, request, self._stderr)
        self.events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.peak_bytes: int | None = None
        self._pid = self._process.pid
        self._status: int | None = None
        self._is_over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # cut short by its death
            match event["event"]:
                case "begun":
                    self._pid = event["pid"]
                case "ended":
                    self._status = event["status"]
                    break
                case _:
                    self.events.put(event)
        self.events.put(None)

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next event, an empty one if there is none within the timeout; None after the last."""
        with suppress(queue.Empty):
            return self.events.get(timeout=timeout_s)
        return {}

    def held_bytes(self) -> int:
        """Return the resident memory of the process."""
        size = 0 if self._pid is None else memory_bytes(self._pid) or 0
        self.peak_bytes = max(size, self.peak_bytes or 0) or None
        return size

    def end(self, within_s: float = 0.0) -> int:
        """Wait for the process, kill it and its descendants after a timeout, and return its exit status."""
        self._reader.join(within_s)
        if not self._is_over:
            self._is_over = True
            has_closed = not self._reader.is_alive()
            if self._pid is None and not has_closed:
                self._process.give_up()
                self._reader.join(END_S)
            if self._pid is not None:
                kill_group(self._pid)
                self._reader.join(END_S)
            if self._status is None:
                self._status = self._process.wait(END_S if has_closed or self._pid is not None else 0.0)
        return KILLED if self._status is None else self._status

    def last_words(self) -> str:
        """Return the last line of its stderr."""
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - 2000))
        text = self._stderr.read().decode(errors="replace").strip()
        if not text and self._pid is None:
            text = self._process.last_words().strip()
        return text.splitlines()[-1] if text else ""

    def close(self) -> None:
        """End the process if it still runs, and release all resources."""
        self.end()
        self._process.close()
        self._stderr.close()
