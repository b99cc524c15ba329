"""The parent's view of a run's process: its events, its memory and its end."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from .environment import memory_bytes
from .forks import ForkedRun, environment_of, kill_group
from .task import Task

#: Seconds in which a process that has reported its record must end.
END_S = 5.0

#: Whether processes of runs are forks; macOS and Windows have libraries that do not outlive one.
FORKS = sys.platform == "linux"


class SpawnedRun:
    """A run in a separate interpreter."""

    def __init__(self, task: Task, line: bytes, stderr: IO[bytes]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cwb.harness.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment_of(task),
            start_new_session=True,
        )
        self.pid: int | None = self._process.pid
        self._stdin, self.stdout = _open(self._process.stdin), _open(self._process.stdout)
        with suppress(BrokenPipeError):  # if it died already, the end of its stdout tells it
            self._stdin.write(line)
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
        asked = {"task": task.to_json(), "spool": str(folder / "answer.json"), "verify": verify}
        self._stderr = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - read when the process has ended
        begin = ForkedRun if FORKS else SpawnedRun
        self._process: ForkedRun | SpawnedRun = begin(task, f"{json.dumps(asked)}\n".encode(), self._stderr)
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

    def held_bytes(self) -> int:
        """Return the resident memory of the process."""
        held = 0 if self._pid is None else memory_bytes(self._pid) or 0
        self.peak_bytes = max(held, self.peak_bytes or 0) or None
        return held

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
        return -signal.SIGKILL if self._status is None else self._status

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


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    """Return a pipe that was requested."""
    if pipe is None:
        raise RuntimeError("the pipe was asked for")
    return pipe
