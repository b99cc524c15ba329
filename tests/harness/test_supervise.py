"""Runs in processes of their own: limits that are kept, incumbents that are not lost, no orphans."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cwb.core.budget import Incumbent
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.harness.plan import Cell
from cwb.harness.request import Listener, Request
from cwb.harness.run import run
from cwb.harness.supervise import supervise
from cwb.harness.task import Task, tasks
from cwb.instances import load
from cwb.schedules import verdict_of

GATHER = Demand(Collective.ALL_GATHER, Fraction(200_000))

pytestmark = [pytest.mark.usefixtures("faults"), pytest.mark.slow]  # processes of their own


def task(model: str, time_limit_s: float | None = None, memory_bytes: int | None = None, **request: Any) -> Task:
    cell = Cell(
        "ring(4)", Request(model, time_limit_s=time_limit_s, **request), "all_reduce", "1 MiB", None, memory_bytes
    )
    (made,) = tasks([cell])
    return Task(made.cell, made.key, made.facts, grace_s=1.0)


def supervise_task(asked: Task) -> dict[str, Any]:
    return supervise(asked).to_json()


def test_a_run() -> None:
    """A run that behaves leaves the record that it has in one process, with its key, limits, memory and
    surroundings."""
    asked = task("ring", 60.0, 2**32)
    record = supervise_task(asked)
    assert (record["status"], record["verified"], record["stopped"], record["incumbent"]) == (
        "feasible",
        True,
        None,
        None,
    )
    assert record["key"] == asked.key
    assert record["limits"] == {"time_limit_s": 60.0, "memory_bytes": 2**32}
    assert {name: record[name] for name in ("instance", "instance_sha256", "collective", "kind")} == {
        name: asked.facts[name] for name in ("instance", "instance_sha256", "collective", "kind")
    }
    assert record["peak_rss_bytes"] > 2**20
    assert record["environment"]["packages"]["pyomo"]


def test_what_hangs_is_stopped_and_its_answer_verified() -> None:
    """A method that waits in C with the interpreter locked is stopped; the answer that it had told is verified and
    kept."""
    record = supervise_task(task("fault-hang", 2.0))
    assert (record["status"], record["stopped"], record["exit_status"]) == ("feasible", "time", 0)
    assert (record["verified"], record["objective_unit"]) == (True, "s")
    assert record["objective"] == supervise_task(task("ring"))["objective"]
    assert record["incumbent"].keys() == {"objective", "bound", "of", "seconds"}
    assert record["message"] == "it did not end after 2 s and 1 s of grace: stopped"


def test_what_ignores_its_limit_is_stopped() -> None:
    """A method that never looks at the clock leaves its last incumbent; a solver's numbers do not replace the
    method's."""
    record = supervise_task(task("fault-deaf", 2.0))
    assert (record["status"], record["stopped"], record["exit_status"]) == ("limit", "time", 4)
    assert (record["incumbent"]["objective"], record["incumbent"]["bound"], record["incumbent"]["of"]) == (
        2.0,
        1.0,
        "method",
    )
    assert record["objective"] is None


def test_what_eats_memory_is_stopped() -> None:
    """A run that holds more than it may is stopped before it has taken the machine."""
    record = supervise_task(task("fault-eat", memory_bytes=400 * 2**20))
    assert (record["status"], record["stopped"]) == ("limit", "memory")
    assert record["peak_rss_bytes"] > 400 * 2**20
    assert "more than its 400 MiB: stopped" in record["message"]


def test_what_crashes_is_told() -> None:
    """The death of a run's process is an error that names the signal, and what it had told is there."""
    record = supervise_task(task("fault-crash"))
    assert (record["status"], record["stopped"], record["exit_status"]) == ("error", "crash", 1)
    assert record["message"].startswith("the run's process was killed by SIGSEGV")
    assert record["incumbent"]["objective"] == 3.0
    assert record["history"] == [record["incumbent"]]


def test_a_process_that_cannot_begin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A process that dies before its run is an error with its last words."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys; sys.stderr.write('no licence\\n'); sys.stderr.flush(); os._exit(3)"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    record = supervise_task(task("ring"))
    assert record["message"] == "the run's process ended with status 3: no licence"


def test_bad_cells_are_records() -> None:
    """A cell that cannot run is a record with the reason, as in one process."""
    (bad,) = tasks([Cell("no-such-instance", Request("ring"))])
    assert "no such file" in supervise_task(bad)["message"]
    assert "speed: unknown field" in supervise_task(task("ring", options={"speed": 3}))["message"]


@pytest.mark.parametrize(("model", "of_solver"), [("teccl", False), ("mtree", False), ("ten-ilp", True)])
def test_incumbents_are_told(model: str, of_solver: bool) -> None:
    """Searches tell better and better answers, which the verifier takes as they are; solvers tell their numbers."""
    told: list[Incumbent] = []
    posed: list[Instance] = []
    instance = load("gscale") if model == "mtree" else load("dgx1()").with_changes(demand=GATHER)
    options = {"trees": 2} if model == "mtree" else {}
    record = run(
        instance, Request(model, options=options), listener=Listener(tell=told.append, on_problem=posed.append)
    ).record
    of_kind = [one for one in told if one.of_solver == of_solver and one.objective is not None]
    assert of_kind
    if not of_solver:
        best = [one.objective for one in of_kind]
        assert best == sorted(best, reverse=True)
        last = of_kind[-1]
        assert last.answer is not None
        answer = last.answer()
        assert answer is not None
        verdict = verdict_of(posed[0], answer)
        assert not verdict.violations
        assert verdict.objective == pytest.approx(last.objective)
        assert record.objective <= last.objective


def test_stop_ends_a_run() -> None:
    """A run is ended without a record when it is cancelled."""
    stop = threading.Event()
    stop.set()
    with pytest.raises(CancelledError):
        supervise(task("fault-deaf"), stop)


@pytest.mark.parametrize("model", ["fault-hang", "fault-deaf"])
def test_no_orphans(model: str, workers: Callable[[int], None]) -> None:
    """If a comparison is killed, its runs end too, even one that blocks all Python threads.

    ``workers`` waits for the number of processes or fails.
    """
    code = "import pickle, sys; from cwb.harness.supervise import supervise"
    code += "; supervise(pickle.loads(bytes.fromhex(sys.argv[1])))"
    with subprocess.Popen([sys.executable, "-c", code, pickle.dumps(task(model)).hex()]) as process:
        workers(1)
        os.kill(process.pid, signal.SIGKILL)
    workers(0)
