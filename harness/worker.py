"""The process of one run: reads a task from stdin, and writes events to stdout as JSON lines.

If the system permits, it is a fork of a process that has the libraries imported (:mod:`~cwb.harness.fork_server`),
otherwise a separate interpreter. It ends with its parent, so that no orphan is left.
"""

import contextlib
import ctypes
import importlib
import json
import os
import pickle
import pkgutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from .. import instances, schedules
from ..core.answers import Answer
from ..core.budget import Incumbent
from ..core.errors import CwbError
from ..core.instance import Instance
from . import registry
from .clock import ALLOWANCE
from .environment import environment
from .request import Listener, report_of
from .run import skip_scipy_statistics
from .task import Task, run_task

_SPOOL_SHARE = 0.05  #: Of the time of a run, at most this part goes into writing down answers that may never be needed.
PROCESS_NAME = b"cwb-run"  #: What the system lists the process of a run as.
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15  #: Of Linux's prctl.

Send = Callable[[Mapping[str, Any]], None]


def main() -> None:
    """Run the task on stdin in a separate interpreter; stdin stays open while the parent lives."""
    request = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the parent

    def wait() -> None:
        while sys.stdin.buffer.read(1):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    end_process(lambda: perform_task(*request))


def die_with_parent(parent: int) -> None:
    """Tie this process to its parent's life, and name it in process lists (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        libc.prctl(_PR_SET_NAME, PROCESS_NAME)
    if os.getppid() != parent:
        os._exit(1)


def end_process(work: Callable[[], None]) -> NoReturn:
    """Do the work and exit immediately, without waiting for threads or releasing memory in pieces."""
    status = 1
    try:
        work()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


def perform_task(task: Task, spool: Path, verify: bool) -> None:
    """Run a task, or verify a stopped run's answer; stdout is for events only."""
    out, lock = os.fdopen(os.dup(1), "wb"), threading.Lock()
    os.dup2(2, 1)  # prints of libraries go to stderr

    def send(event: Mapping[str, Any]) -> None:
        line = json.dumps(event, allow_nan=False).encode() + b"\n"
        with lock:
            out.write(line)
            out.flush()

    if verify:
        verify_spooled(task.cell.request.model, spool, send)
    else:
        run_reporting(task, spool, send)


def run_reporting(task: Task, spool: Path, send: Send) -> None:
    """Run a task; report its start, its incumbents, the start of its verification, and its record."""
    solver: str | None = None
    with contextlib.suppress(Exception):
        solver = task.cell.request.solver if registry.get(task.cell.request.model).needs_solver else None
    import_libraries(solver)  # in advance, outside the time of the run
    ALLOWANCE.left_s = 0.0  # what one run of a comparison compiles, all others load
    send({"event": "started"})
    record = run_task(task, listener=ProgressReporter(spool, send).listener())
    try:
        send({"event": "record", "record": record.to_json()})
    except (TypeError, ValueError) as error:
        send({"event": "record", "record": record.as_failure(error).to_json()})


def import_libraries(solver: str | None) -> None:
    """Import the libraries of runs, with a solver if one is named; leave import errors to the runs."""
    libraries = ["numpy", "scipy.sparse.csgraph", "numba"]  # of most runs, at the cost of a second
    if solver is not None:
        skip_scipy_statistics()
        libraries.append("pyomo.environ")
        with contextlib.suppress(Exception):
            libraries.append(registry.solver(solver).package)
    for package in (instances, schedules):
        libraries += [each.name for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    for name in libraries:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    environment()  # what it finds out is kept


class ProgressReporter:
    """Reporter of a run's incumbents, which writes their answers from time to time."""

    def __init__(self, spool: Path, send: Send) -> None:
        self._spool, self._send = spool, send
        self._start = time.perf_counter()
        self._writing_s = 0.0
        self._problem: Instance | None = None

    def listener(self) -> Listener:
        """Return the listener that reports a run."""
        return Listener(
            tell=self.tell,
            on_problem=partial(setattr, self, "_problem"),
            answered=lambda: self._send({"event": "answered"}),
            compiling=lambda begins: self._send({"event": "compiling" if begins else "compiled"}),
        )

    def tell(self, incumbent: Incumbent) -> None:
        """Send an incumbent, and write its answer if there is time."""
        seconds = time.perf_counter() - self._start
        spooled = False
        if incumbent.answer is not None and self._writing_s <= _SPOOL_SHARE * seconds:
            spooled = self._write(incumbent.answer())
            self._writing_s += time.perf_counter() - self._start - seconds
        self._send({"event": "incumbent", **report_of(incumbent, seconds), "spooled": spooled})

    def _write(self, answer: Answer | None) -> bool:
        """Write a schedule; for answers that a schedule file cannot hold, only numbers are reported."""
        from ..core.schedule import Schedule, StepSchedule
        from ..core.trees import TreePacking
        from ..schedules.files import write_schedule

        if self._problem is None or not isinstance(answer, StepSchedule | Schedule | TreePacking):
            return False
        try:
            write_schedule(self._spool, self._problem, answer)
        except CwbError:
            return False
        return True


def verify_spooled(model: str, spool: Path, send: Send) -> None:
    """Verify the last answer of a stopped run."""
    from ..schedules import verdict_of
    from ..schedules.files import read_schedule

    send({"event": "started"})
    file = read_schedule(spool)
    verdict, unit = verdict_of(file.instance, file.answer), registry.get(model).objective_unit(file.instance)
    fields = {"objective": verdict.objective, "objective_unit": unit, "violations": list(verdict.violations)[:20]}
    send({"event": "verified", **fields, "metrics": dict(verdict.metrics), "answer": file.answer.to_json()})


if __name__ == "__main__":
    main()
