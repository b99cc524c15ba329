"""Supervision of a task in its own process, which is stopped at its limits of time or memory.

:func:`supervise` can be called in a thread here or on a cluster worker; tasks and records can be pickled.
"""

import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import CancelledError
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.errors import ExitStatus
from ..core.record import RunRecord
from .environment import time_stamp
from .process import END_S, KILLED, Child
from .request import extend_history
from .task import Task

_TICK_S = 0.05 if sys.platform == "linux" else 0.5  #: How often a run is looked at.
_START_S = 300.0  #: Seconds in which a process must have begun its run.
_COMPILING_S = 300.0  #: Seconds that compiling a loop may take.


def supervise(task: Task, stop: threading.Event | None = None) -> RunRecord:
    """Run a task in its own process and return its record, even if it fails; CancelledError when ``stop`` is set."""
    if task.record is not None:
        return task.record
    with tempfile.TemporaryDirectory(prefix="cwb-") as folder:
        watch = _RunWatch(task, Path(folder), stop or threading.Event())
        with closing(Child(task, watch.folder)) as child:
            return watch.record(child)


class _RunWatch:
    """Supervisor of one run."""

    def __init__(self, task: Task, folder: Path, stop: threading.Event) -> None:
        self.task, self.folder, self.stop = task, folder, stop
        self.incumbent: dict[str, Any] | None = None
        self.history: list[dict[str, Any]] = []
        self.spooled = False
        self.phase = "starting"
        self.started_at = time_stamp()
        self.begun_s = time.perf_counter()
        self.deadline_s: float | None = self.begun_s + _START_S
        self.compiling_since: float | None = None

    def record(self, child: Child) -> RunRecord:
        """Follow the run to its end, or to the limit, and return the record."""
        while True:
            event = child.next_event(_TICK_S)
            if event is None:
                return self._died_record(child)
            if event.get("event") == "record":
                child.end(END_S)
                return RunRecord.from_json(event["record"], source="worker", place="record")
            self._take_in(event)
            if self.stop.is_set():
                raise CancelledError
            if reason := self._exceeded_limit(child):
                return self._stop_run(child, *reason)

    def _take_in(self, event: dict[str, Any]) -> None:
        """Process an event of the run; a new phase gets a new deadline."""
        limit_s = self.task.cell.request.time_limit_s
        match event.pop("event", None):
            case "incumbent":
                self.spooled = event.pop("spooled") or self.spooled
                extend_history(self.history, event)
                if self.incumbent is None or _rank(event) >= _rank(self.incumbent):
                    self.incumbent = event
            case "started" | "answered" as phase:
                self.phase = phase
                if phase == "answered":
                    limit_s = self.task.cell.request.verifier_limit_s
                now = time.perf_counter()
                self.deadline_s = None if limit_s is None else now + limit_s + self.task.grace_s
                if phase == "started":
                    self.begun_s = now
            case "compiling":
                self.compiling_since = time.perf_counter()
            case "compiled" if self.compiling_since is not None:
                if self.deadline_s is not None:
                    self.deadline_s += time.perf_counter() - self.compiling_since
                self.compiling_since = None

    def _exceeded_limit(self, child: Child) -> tuple[str, str] | None:
        most, resident = self.task.cell.memory_bytes, child.held_bytes()
        if most is not None and resident > most:
            return "memory", f"held {resident / 2**20:,.0f} MiB, more than its {most / 2**20:,.0f} MiB"
        since = self.compiling_since
        if since is not None and time.perf_counter() < since + _COMPILING_S:
            return None
        if self.deadline_s is None or time.perf_counter() < self.deadline_s:
            return None
        if self.phase == "starting":
            return "time", f"the process had not begun after {_START_S:.0f} s"
        who = "the verifier" if self.phase == "answered" else "it"
        request = self.task.cell.request
        limit_s = (request.verifier_limit_s if self.phase == "answered" else request.time_limit_s) or 0.0
        return "time", f"{who} did not end after {limit_s:g} s and {self.task.grace_s:g} s of grace"

    def _stop_run(self, child: Child, why: str, message: str) -> RunRecord:
        child.end()
        while (event := child.events.get()) is not None:
            if event.get("event") == "record":  # it ended just now
                return RunRecord.from_json(event["record"], source="worker", place="record")
            self._take_in(event)
        record = self.task.failure(f"{message}: stopped", self.started_at, ExitStatus.LIMIT)
        return self._verify_last_answer(replace(record, status="limit", **self._stopped_fields(child, why)))

    def _died_record(self, child: Child) -> RunRecord:
        status = child.end(END_S)
        how = f"ended with status {status}"
        if status < 0:
            how = f"was killed by {signal.Signals(-status).name}"
            how += " (is the machine out of memory?)" if status == KILLED else ""
        words = child.last_words()
        message = f"the run's process {how}{': ' if words else ''}{words}"
        return replace(self.task.failure(message, self.started_at), **self._stopped_fields(child, "crash"))

    def _stopped_fields(self, child: Child, why: str) -> dict[str, Any]:
        return {
            "stopped": why,
            "incumbent": self.incumbent,
            "history": self.history,
            "peak_rss_bytes": child.peak_bytes,
            "seconds": {"total": time.perf_counter() - self.begun_s},
        }

    def _verify_last_answer(self, record: RunRecord) -> RunRecord:
        """Verify the run's last written answer in another process, within the time of a run."""
        if not self.spooled:
            return record
        limit_s = self.task.cell.request.verifier_limit_s or _START_S
        with closing(Child(self.task, self.folder, verify=True)) as child:
            until_s = time.perf_counter() + _START_S
            while (left_s := until_s - time.perf_counter()) > 0 and not self.stop.is_set():
                event = child.next_event(min(left_s, 10 * _TICK_S))
                if event is None:
                    break
                if event.get("event") == "verified":
                    return _with_answer(record, event)
                if event:  # it has begun
                    until_s = time.perf_counter() + limit_s + self.task.grace_s
        return record


def _rank(incumbent: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return the rank of an incumbent, by objective, then source; of equal ones the later is kept."""
    return incumbent["objective"] is not None, incumbent["of"] == "method"


def _with_answer(record: RunRecord, answer: Mapping[str, Any]) -> RunRecord:
    """Return the record of a stopped run's last answer, with the verifier's objective."""
    verified = not answer["violations"]
    status = int(ExitStatus.OK if verified else ExitStatus.VERIFICATION_FAILED)
    fields = {name: answer[name] for name in ("objective", "objective_unit", "metrics", "answer")}
    violations = tuple(answer["violations"])
    return replace(record, status="feasible", verified=verified, violations=violations, exit_status=status, **fields)
