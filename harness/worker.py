"""The process of one run: reads what to do from its stdin, reports what happens on its stdout, one line of JSON each.

Its stdin stays open as long as its parent lives: when it ends, so does the run, and no orphan is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

from ..core.answers import Answer
from ..core.budget import Incumbent
from ..core.errors import CwbError
from ..core.instance import Instance
from . import registry
from .cell import run_task
from .compiling import ALLOWANCE
from .failure import not_json
from .pyomo_imports import leave_out_statistics
from .request import Listener
from .task import Task

#: Of the time of a run, at most this part goes into writing down answers that may never be needed.
_SPOOL_SHARE = 0.05

Send = Callable[[Mapping[str, Any]], None]


def main() -> None:
    """Run what stdin says."""
    out = _stdout_alone()
    parent, line = sys.stdin.buffer.readline().split(b" ", maxsplit=1)
    _end_with_parent(int(parent))
    data = json.loads(line)
    lock = threading.Lock()

    def send(event: Mapping[str, Any]) -> None:
        line = json.dumps(event, allow_nan=False).encode() + b"\n"
        with lock:
            out.write(line)
            out.flush()

    if data["judge"]:
        judge_spooled(data["task"]["cell"]["request"]["model"], Path(data["spool"]), send)
    else:
        run_told(Task.from_json(data["task"]), Path(data["spool"]), send)


def _stdout_alone() -> BinaryIO:
    """Reserve stdout for the messages of this module; what libraries print on it goes to stderr."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out


def _end_with_parent(parent: int) -> None:
    """End when the parent does: the kernel sees to it on Linux, a thread elsewhere (and where it was too late)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    def wait() -> None:
        while sys.stdin.buffer.read(1):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def run_told(task: Task, spool: Path, send: Send) -> None:
    """Run a task; report its start, its incumbents, the start of its verification, and its record."""
    warm_up(task)
    ALLOWANCE.left_s = 0.0  # what one run of a comparison compiles, all others load
    send({"event": "started"})
    record = run_task(task, listener=ProgressReporter(spool, send).listener())
    try:
        send({"event": "record", "record": record.to_json()})
    except (TypeError, ValueError) as error:
        send({"event": "record", "record": not_json(record, error).to_json()})


#: What most runs import, at the cost of a second that is not the method's.
_LIBRARIES = ("numpy", "scipy.sparse", "numba")


def warm_up(task: Task) -> None:
    """Import what the run will, so that its seconds are those of the method.

    What cannot be imported is reported by the run.
    """
    request, libraries = task.cell.request, list(_LIBRARIES)
    with contextlib.suppress(Exception):
        if registry.get(request.model).needs_solver:
            leave_out_statistics()
            solver = registry.solver(request.solver)
            libraries += ["pyomo.environ", solver.package]
    for name in libraries:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


class ProgressReporter:
    """Reports the incumbents of a run, and writes down their answers now and then.

    Parameters
    ----------
    spool : Path
        Where answers are written to; the last one stays.
    send : callable
        Takes an event.
    """

    def __init__(self, spool: Path, send: Send) -> None:
        self._spool, self._send = spool, send
        self._start = time.perf_counter()
        self._writing_s = 0.0
        self._posed: Instance | None = None

    def listener(self) -> Listener:
        """The one that a run reports."""
        return Listener(
            tell=self.tell,
            posed=self._pose,
            answered=lambda: self._send({"event": "answered"}),
            compiling=lambda begins: self._send({"event": "compiling" if begins else "compiled"}),
        )

    def _pose(self, instance: Instance) -> None:
        self._posed = instance

    def tell(self, incumbent: Incumbent) -> None:
        """Send an incumbent; numbers that JSON cannot hold are none."""
        seconds = time.perf_counter() - self._start
        spooled = incumbent.answer is not None and self._writing_s <= _SPOOL_SHARE * seconds
        if spooled and incumbent.answer is not None:
            spooled = self._write(incumbent.answer())
            self._writing_s += time.perf_counter() - self._start - seconds
        self._send(
            {
                "event": "incumbent",
                "objective": _number(incumbent.objective),
                "bound": _number(incumbent.bound),
                "of": "solver" if incumbent.of_solver else "method",
                "seconds": seconds,
                "spooled": spooled,
            }
        )

    def _write(self, answer: Answer | None) -> bool:
        """Write a schedule; of what a schedule file cannot hold only the numbers are reported."""
        from ..core.schedule import Schedule, StepSchedule
        from ..core.trees import TreePacking
        from ..schedules.files import write_schedule

        if self._posed is None or not isinstance(answer, StepSchedule | Schedule | TreePacking):
            return False
        try:
            write_schedule(self._spool, self._posed, answer)
        except CwbError:
            return False
        return True


def _number(value: Any) -> float | None:
    number = None if value is None else float(value)
    return number if number is not None and isfinite(number) else None


def judge_spooled(model: str, spool: Path, send: Send) -> None:
    """Verify the answer that a stopped run left behind."""
    from ..core.answers import to_json
    from ..schedules import judge
    from ..schedules.files import read_schedule

    send({"event": "started"})
    file = read_schedule(spool)
    verdict = judge(file.instance, file.answer)
    send(
        {
            "event": "judged",
            "objective": verdict.objective,
            "objective_unit": registry.get(model).objective_unit(file.instance),
            "violations": list(verdict.violations)[:20],
            "metrics": dict(verdict.metrics),
            "answer": to_json(file.answer),
        }
    )


if __name__ == "__main__":
    main()
