"""Keys: what makes two runs the same."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from cwb.harness import registry
from cwb.harness import task as module
from cwb.harness.plan import Cell
from cwb.harness.request import Request
from cwb.harness.supervise import supervise
from cwb.harness.task import Limits, run_task, tasks

CELL = Cell("ring(4)", Request("ring", time_limit_s=5.0), "all_reduce", "1 MiB", 2, 2**30)


def key(cell: Cell, limits: Limits | None = None) -> str:
    return tasks([cell], limits)[0].key


@pytest.mark.parametrize(
    "other",
    [
        replace(CELL, instance="ring(5)"),
        replace(CELL, size="2 MiB"),
        replace(CELL, chunks=1),
        replace(CELL, collective="all_gather"),
        replace(CELL, memory_bytes=None),
        *(
            replace(CELL, request=replace(CELL.request, **change))
            for change in (
                {"model": "direct"},
                {"options": {"ways": "one-way"}},
                {"seed": 1},
                {"threads": 2},
                {"time_limit_s": 6.0},
                {"gap": 0.1},
            )
        ),
    ],
)
def test_what_is_asked_is_in_the_key(other: Cell) -> None:
    """Whatever of a run is asked otherwise gives it another key."""
    assert key(other) != key(CELL)


def test_versions_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of cwb or of the solver is another run; the solver of a method that calls none is not."""
    bfb = Cell("ring(4)", Request("bfb-lp"), "all_gather", "1 MiB")
    before = key(CELL), key(bfb)
    assert key(replace(CELL, request=replace(CELL.request, solver="scip"))) == before[0]
    assert key(replace(bfb, request=replace(bfb.request, solver="scip"))) != before[1]
    monkeypatch.setattr(module, "_solver_version", lambda _: "99")
    assert key(bfb) != before[1]
    monkeypatch.setattr(module, "cwb_version", lambda: "99")
    assert key(CELL) != before[0]


def test_the_same_in_other_words() -> None:
    """Sizes in other units, defaults written out, and cells given twice are the same run."""
    same = [
        CELL,
        replace(CELL, size="1024 KiB"),
        replace(CELL, request=replace(CELL.request, options={"ways": "auto"})),
    ]
    assert len(tasks(same)) == 1


def test_limits_replace_those_of_the_suite() -> None:
    """Limits that are asked for count, in the key too; the grace is in no key."""
    (task,) = tasks([CELL], Limits(7.0, 2**20, 3.0))
    assert task.facts["limits"] == {"time_limit_s": 7.0, "memory_bytes": 2**20}
    assert task.grace_s == 3.0
    assert task.key != key(CELL)
    assert key(CELL, Limits(grace_s=1.0)) == key(CELL)


def test_pickled() -> None:
    """A task can be pickled."""
    (task,) = tasks([CELL])
    assert pickle.loads(pickle.dumps(task)) == task  # noqa: S301


def test_files_are_named_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An instance file is found wherever the run is made."""
    (tmp_path / "mine.json").write_text('{"network": "RI(4)"}')
    monkeypatch.chdir(tmp_path)
    (task,) = tasks([Cell("mine.json", Request("ring"))])
    assert task.cell.instance == str(tmp_path / "mine.json")
    assert task.facts["instance"] == "mine"


def test_planning_keeps_the_limits_of_the_runs() -> None:
    """An instance that cannot be loaded within the limit of its run has no digest in the plan, and its run is a record
    with status limit."""
    cell = Cell("torus(300,300)", Request("ring", time_limit_s=1e-9), collective="all_gather")
    lines: list[str] = []
    (task,) = tasks([cell], progress=lines.append)
    assert (task.facts["instance"], task.facts["instance_sha256"]) == ("torus(300,300)", "")
    record = run_task(task)
    assert (record.status, record.exit_status, record.key) == ("limit", 4, task.key)
    assert "while loading the instance" in record.message
    (longer,) = tasks([cell], Limits(time_limit_s=3600.0))
    assert longer.facts["instance_sha256"]


@pytest.mark.parametrize(
    ("cell", "status"),
    [
        (replace(CELL, request=Request("rhd"), instance="ring(5)"), "unsupported"),
        (replace(CELL, request=Request("libra", options={"objective": "perf"})), "unsupported"),
        (replace(CELL, instance="no-such-instance"), "error"),
        (replace(CELL, request=Request("ring", options={"speed": 3})), "error"),
    ],
)
def test_what_is_not_supported_or_wrong_needs_no_run(cell: Cell, status: str) -> None:
    """The plan has the record that a run would leave, but for its time and memory; other cells have none yet."""
    (task,) = tasks([cell])
    assert task.record is not None
    planned = task.record
    made = run_task(task)
    assert planned.status == made.status == status
    same = {"seconds": {}, "started_at": "", "peak_rss_bytes": None}
    assert replace(planned, **same) == replace(made, **same)
    assert supervise(task) == task.record
    assert tasks([CELL])[0].record is None


def test_what_only_a_run_can_tell_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that makes a mistake where it says what it supports is found out by its run."""
    method = registry.get("ring")
    monkeypatch.setattr(registry, "get", lambda name: replace(method, supports=lambda instance: 1 / 0))
    (task,) = tasks([CELL])
    assert task.record is None
    assert "ZeroDivisionError" in run_task(task).message
