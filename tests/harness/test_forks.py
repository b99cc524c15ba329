"""Fork servers: they stay for the next run, which has nothing of the one before, and are replaced when they die."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from cwb.harness import process
from cwb.harness.plan import Cell
from cwb.harness.process import Child
from cwb.harness.request import Request
from cwb.harness.supervise import supervise
from cwb.harness.task import Task, tasks

pytestmark = [
    pytest.mark.usefixtures("faults"),
    pytest.mark.slow,  # processes of their own
    pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux"),
]


@pytest.fixture
def no_servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin and end without servers; those of other tests stay for them."""
    monkeypatch.setattr(process, "_servers", {})
    yield
    process.close_servers()


def task(model: str, memory_bytes: int | None = None, **request: Any) -> Task:
    cell = Cell("ring(4)", Request(model, **request), "all_reduce", "1 MiB", None, memory_bytes)
    (made,) = tasks([cell])
    return replace(made, record=None, facts={**made.facts, "solver": None})  # this process has no faults


def supervise_task(asked: Task) -> dict[str, Any]:
    return supervise(asked).to_json()


def server_of(asked: Task) -> process.ForkServer:
    return process._servers[process._key(asked)]


def test_a_run_has_nothing_of_the_one_before() -> None:
    """After a run that was killed for its memory and one that crashed, the same server forks one whose peak is its
    own."""
    peaks = [supervise_task(task("ring"))["peak_rss_bytes"]]
    first = server_of(task("ring"))
    assert supervise_task(task("fault-eat", 600 * 2**20))["stopped"] == "memory"
    assert supervise_task(task("fault-crash"))["stopped"] == "crash"
    record = supervise_task(task("ring"))
    peaks.append(record["peak_rss_bytes"])
    assert all(server_of(task(model)) is first for model in ("ring", "fault-eat", "fault-crash"))
    assert record["status"] == "feasible"
    assert abs(peaks[1] - peaks[0]) < 20 * 2**20


def test_a_server_that_dies_is_replaced() -> None:
    """A server that was killed costs no run; threads and solvers have servers of their own."""
    assert supervise_task(task("ring"))["status"] == "feasible"
    first = server_of(task("ring"))
    first.process.kill()
    first.process.wait()
    assert supervise_task(task("ring"))["status"] == "feasible"
    second = server_of(task("ring"))
    assert second is not first
    assert supervise_task(task("ring", threads=2))["status"] == "feasible"
    assert server_of(task("ring", threads=2)) is not second is server_of(task("ring"))


@pytest.mark.usefixtures("no_servers")
def test_the_first_servers_are_started_at_once() -> None:
    """As many servers as are asked for begin before any run, those that are needed first, and runs use them."""
    known = replace(task("ring", threads=3), record=task("ring").failure("known", ""))
    process.start_servers([known, task("ring"), task("direct"), task("ring", threads=2), task("ring", threads=4)], 2)
    first = list(process._servers.values())
    assert len(first) == 2
    assert supervise_task(task("ring", threads=2))["status"] == supervise_task(task("direct"))["status"] == "feasible"
    assert list(process._servers.values()) == first


def test_a_server_that_dies_with_its_runs(tmp_path: Any) -> None:
    """If a server is killed, its runs end too, and this is reported as their death."""
    child = Child(task("fault-deaf"), tmp_path)
    while (event := child.events.get(timeout=60)) is not None and event["event"] != "started":
        pass
    os.kill(server_of(task("fault-deaf")).process.pid, signal.SIGKILL)
    while child.events.get(timeout=60) is not None:
        pass
    assert child.end(5.0) == -signal.SIGKILL
    child.close()


def test_a_run_that_is_given_up_never_begins(tmp_path: Any) -> None:
    """A run that is ended before its server has forked it is no process then, and the server stays."""
    child = Child(task("fault-deaf"), tmp_path)
    child.close()
    server = server_of(task("ring"))
    assert supervise_task(task("ring"))["status"] == "feasible"
    assert server_of(task("ring")) is server


def test_where_there_are_no_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter for each run leaves the same records."""
    forked = supervise_task(task("ring"))
    monkeypatch.setattr(process, "FORKS", False)
    spawned, crashed = supervise_task(task("ring")), supervise_task(task("fault-crash"))
    for name in ("seconds", "history", "started_at", "peak_rss_bytes"):
        del forked[name], spawned[name]
    assert forked == spawned
    assert crashed["message"].startswith("the run's process was killed by SIGSEGV")
