"""The process of a run as its parent sees it: what it tells, what it holds, and its end."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from .environment import memory_bytes
from .forks import Forked, environment_of, kill_group
from .task import Task

#: Seconds in which a process that has reported its record must end.
END_S = 5.0

#: Whether processes of runs are forks; macOS and Windows have libraries that do not outlive one.
FORKS = sys.platform == "linux"


class Spawned:
    """A run in an interpreter of its own."""

    def __init__(self, task: Task, line: bytes, stderr: IO[bytes]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cwb.harness.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment_of(task),
            start_new_session=True,
        )
        self._stdin, self.stdout = _open(self._process.stdin), _open(self._process.stdout)
        with suppress(BrokenPipeError):  # if it died already, the end of its stdout tells it
            self._stdin.write(line)
            self._stdin.flush()

    @property
    def pid(self) -> int | None:
        """Number of the process."""
        return self._process.pid

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Exit status; None if it has not ended within the timeout."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def kill(self) -> int:
        """Kill it and what it started, and give its exit status."""
        if sys.platform == "win32":
            self._process.kill()
        else:
            kill_group(self._process.pid)
        return self._process.wait()

    def last_words(self) -> str:
        """What it said elsewhere than on its stderr."""
        return ""

    def close(self) -> None:
        """Free everything."""
        with suppress(BrokenPipeError):
            self._stdin.close()
        self.stdout.close()


class Child:
    """The process of a run, and what it tells."""

    def __init__(self, task: Task, folder: Path, *, verify: bool = False) -> None:
        asked = {"task": task.to_json(), "spool": str(folder / "answer.json"), "verify": verify}
        self._stderr = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - read when the process has ended
        begin = Forked if FORKS else Spawned
        self._process: Forked | Spawned = begin(task, f"{json.dumps(asked)}\n".encode(), self._stderr)
        self.events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.peak_bytes: int | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout:
            try:
                self.events.put(json.loads(line))
            except ValueError:
                break  # cut short by its death
        self.events.put(None)

    def held_bytes(self) -> int:
        """Memory that the process holds."""
        pid = self._process.pid
        held = 0 if pid is None else memory_bytes(pid) or 0
        self.peak_bytes = max(held, self.peak_bytes or 0) or None
        return held

    def end(self, within_s: float = 0.0) -> int:
        """Wait for the process, kill it and what it started if it does not end, and give its exit status."""
        status = self._process.wait(within_s)
        killed = self._process.kill()
        self._reader.join(END_S)
        return killed if status is None else status

    def last_words(self) -> str:
        """The last line of its stderr."""
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - 2000))
        text = self._stderr.read().decode(errors="replace").strip() or self._process.last_words().strip()
        return text.splitlines()[-1] if text else ""

    def close(self) -> None:
        """End the process if it still runs, and free everything."""
        self.end()
        self._process.close()
        self._stderr.close()


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    """A requested pipe."""
    if pipe is None:
        raise RuntimeError("the pipe was asked for")
    return pipe
