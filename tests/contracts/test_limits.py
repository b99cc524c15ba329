"""Every method and formulation keeps a limit that is counted in calls of functions in place of seconds, wherever it
is."""

from __future__ import annotations

import _thread
import logging
import re
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any
from zlib import crc32

import cwb
import pytest
from cwb.core.budget import Budget, limited_by
from cwb.core.errors import OutOfTime
from cwb.core.instance import Instance
from cwb.core.record import RunRecord
from cwb.harness import Request, interrupt, registry, run
from cwb.harness.request import Listener
from formulation_exams import INSTANCES
from method_examples import EXAMPLES, example, request

#: Calls that a run may go on for after it was asked to stop, before it is broken off.
GRACE = 300

#: Calls after which a run is asked to stop are drawn for each name from so many.
LATEST = 6000

NAMES = [*EXAMPLES, *INSTANCES]

#: Formulations whose models have a column or two for a link, a dimension or a tree that is there already.
SMALL = {"forestcoll/max-flow", "libra/allocation", "mtree/restricted-master", "multirail/themis"}


#: Folders in which instances are read and solved.
PACKAGES = ("algorithms", "core", "exchange", "heuristics", "instances", "models", "schedules", "solvers", "studies")


class CountedInterrupt(interrupt.RunInterrupted):
    """The exception of an interrupt, counted."""

    raised = 0

    def __init__(self, *words: object) -> None:
        super().__init__(*words)
        CountedInterrupt.raised += 1


class CountedWatch(interrupt._Watch):
    """A watch that counts calls of functions; those of what must not be broken off are not counted after the end."""

    stop_at: int
    done = 0

    def start(self) -> None:
        """Count from here on, if anything is to be stopped."""
        if self.stop_at:
            sys.setprofile(self._count)

    def _count(self, frame: FrameType, event: str, argument: Any) -> None:
        self.done += event in ("call", "c_call")
        if self.done == self.stop_at:
            self._budget.stop.set()
        late = self.done - self.stop_at - GRACE
        # A profiler also sees how a generator is closed, where no signal is handled and an exception is lost.
        # An interrupt in here replaces the call, which must not be one that releases a lock.
        is_due = late >= 0 and late % 20 == 0 and event == "c_call" and argument.__name__ not in ("__exit__", "release")
        if is_due and not self.ended.is_set() and interrupt._is_interruptible(frame):
            self.due = True
            _thread.interrupt_main()

    def end(self) -> None:
        """Count no more."""
        sys.setprofile(None)
        super().end()


def make_request(name: str) -> tuple[Instance, Request]:
    """A small instance, and what is asked."""
    if name in INSTANCES:
        exam = INSTANCES[name][0]
        return exam.make_instance(), Request(name, options=exam.options)
    return example(name), request(name)


def stop_run(name: str, calls: int, monkeypatch: pytest.MonkeyPatch) -> tuple[RunRecord, int]:
    """Ask a run to stop after so many calls; its record, and how many interrupts were raised in it."""
    monkeypatch.setattr(CountedWatch, "stop_at", calls, raising=False)
    monkeypatch.setattr(CountedInterrupt, "raised", 0)
    monkeypatch.setattr(interrupt, "RunInterrupted", CountedInterrupt)
    monkeypatch.setattr(interrupt, "_Watch", CountedWatch)
    instance, asked = make_request(name)
    verifies = Listener(answered=lambda: monkeypatch.setattr(CountedWatch, "stop_at", 0))
    return run(instance, asked, stop=threading.Event(), listener=verifies).record, CountedInterrupt.raised


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_is_kept_wherever_a_method_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is asked to stop after some calls ends within a few hundred more, with what it had found, verified."""
    record, interrupts = stop_run(name, crc32(name.encode()) % LATEST, monkeypatch)
    assert interrupts <= 2  # in the method, and in the writing of its last answer
    assert record.status in ("optimal", "feasible", "limit", "unsupported")
    assert record.exit_status in (0, 4, 7)
    assert not record.violations
    assert record.verified is not False
    assert not interrupts or "stopped" in record.message  # nothing takes the exception
    other = threading.Thread(target=logging.getLogger, args=(name,), daemon=True)
    other.start()
    other.join(60)
    assert not other.is_alive()  # no lock is kept for ever


@pytest.mark.parametrize("name", sorted(INSTANCES.keys() - SMALL))
def test_no_model_is_built_for_which_there_is_no_time(name: str) -> None:
    """A model is refused by its size before it is built, in one line, where the time that is left will not do."""
    exam = INSTANCES[name][0]
    formulation = registry.formulation(name)
    with (
        limited_by(Budget(reserve_seconds=lambda _: 0.0)),
        pytest.raises(OutOfTime, match=r"columns, which take some .* to build"),
    ):
        formulation.build(formulation.index(*formulation.validate_and_pose(exam.make_instance(), exam.options)))


def test_no_graph_is_made_where_interrupts_are_lost() -> None:
    """No graph is constructed from edges: networkx's constructors take any exception, ``from_edgelist`` takes none."""
    lost = re.compile(r"\bnx\.(Multi)?(Di)?Graph\((?!name=|\))")
    files = [path for name in cwb.__path__ for folder in PACKAGES for path in (Path(name) / folder).rglob("*.py")]
    assert len(files) > 400
    assert [str(path) for path in files if lost.search(path.read_text(encoding="utf-8"))] == []
