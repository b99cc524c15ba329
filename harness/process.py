"""The process of a run as its parent sees it: what it tells, what it holds, and its end."""

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
from .task import Task

#: Seconds in which a process that has reported its record must end.
END_S = 5.0

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Child:
    """The process of a run, and what it tells."""

    def __init__(self, task: Task, folder: Path, *, judge: bool = False) -> None:
        threads = dict.fromkeys(_THREADS, str(task.cell.request.threads))
        self._stderr = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - read when the process has ended
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cwb.harness.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, **threads},
            start_new_session=True,
        )
        self.events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.peak_bytes: int | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        line = json.dumps({"task": task.to_json(), "spool": str(folder / "answer.json"), "judge": judge})
        with suppress(BrokenPipeError):  # if it died already, the end of its stdout tells it
            stdin = _open(self.process.stdin)
            stdin.write(f"{os.getpid()} {line}\n".encode())
            stdin.flush()

    def _read(self) -> None:
        for line in _open(self.process.stdout):
            try:
                self.events.put(json.loads(line))
            except ValueError:
                break  # cut short by its death
        self.events.put(None)

    def held_bytes(self) -> int:
        """Memory that the process holds."""
        held = memory_bytes(self.process.pid) or 0
        self.peak_bytes = max(held, self.peak_bytes or 0) or None
        return held

    def end(self, within_s: float = 0.0) -> int:
        """Wait for the process, kill it and what it started if it does not end, and give its exit status."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(within_s)
        with suppress(ProcessLookupError, PermissionError):  # where it, and all that it started, have ended
            if sys.platform == "win32":
                self.process.kill()
            else:
                os.killpg(self.process.pid, signal.SIGKILL)
        status = self.process.wait()
        self._reader.join(END_S)
        _open(self.process.stdin).close()
        return status

    def last_words(self) -> str:
        """The last line of its stderr."""
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - 2000))
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """End the process if it still runs, and free everything."""
        self.end()
        _open(self.process.stdout).close()
        self._stderr.close()


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    """A requested pipe."""
    if pipe is None:
        raise RuntimeError("the pipe was asked for")
    return pipe
