"""Executors of runs: local processes, a Dask cluster that loses a worker, and jobs by submitit."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cwb.core.errors import InputError
from cwb.core.record import RunRecord, read_records
from cwb.harness.executors import LocalExecutor, open_executor
from cwb.harness.plan import Cell
from cwb.harness.request import Request
from cwb.harness.suite import Settings, run_cells
from cwb.harness.supervise import supervise
from cwb.harness.task import Task, tasks
from draws import NIGHTLY

pytestmark = pytest.mark.slow  # clusters of processes

#: Processes of the Dask cluster.
WORKERS = 4 if NIGHTLY else 2


def plan(*models: str, n: int = 2) -> list[Cell]:
    return [Cell(f"ring({4 + i})", Request(model), "all_reduce", "1 MiB") for i in range(n) for model in models]


def same(records: list[RunRecord]) -> list[dict[str, Any]]:
    """Return the content that two equal runs share, in the order of their keys."""
    own = {"seconds": {}, "history": [], "started_at": "", "peak_rss_bytes": None}
    plain = [replace(record, **own).to_json() for record in records]
    return sorted(plain, key=lambda record: str(record["key"]))


def test_local_is_a_pool_of_threads_with_a_way_to_stop() -> None:
    """As many runs as jobs are at work at once; cancelling sets the event that each was given."""
    executor = LocalExecutor(2)
    assert executor.capacity() == 2
    both = threading.Barrier(3)

    def work(value: int, stop: threading.Event) -> int:
        both.wait(60)
        stop.wait(60)
        return value

    futures = [executor.submit(work, value) for value in range(3)]
    both.wait(60)
    executor.shutdown(cancel_futures=True)
    assert [future.result() for future in futures[:2]] == [0, 1]
    assert futures[2].cancelled()


def test_a_run_of_many_threads_takes_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs at work have no more threads than there are jobs, but one that wants more than all has them alone."""
    from cwb.harness import suite
    from cwb.harness.task import run_task

    now, most, lock = [0], [0], threading.Lock()

    def count_and_run(task: Task, stop: threading.Event) -> RunRecord:
        with lock:
            now[0] += task.cell.request.threads
            most.append(now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= task.cell.request.threads
        return run_task(task)

    monkeypatch.setattr(suite, "supervise", count_and_run)
    cells = [Cell("ring(4)", Request("ring", seed=i, threads=1 + i % 3), "all_reduce", "1 MiB") for i in range(9)]
    run_cells(cells, tmp_path / "records.jsonl", settings=Settings(jobs=4))
    assert 3 <= max(most) <= 4
    most.clear()
    run_cells(
        [replace(cells[0], request=Request("ring", threads=9))], tmp_path / "records.jsonl", settings=Settings(jobs=4)
    )
    assert most == [9]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("cloud", "'cloud' is unknown; expected local, dask://"),
        ("local:4", "'local:4' is unknown"),
        ("dask://", "'dask://' is unknown"),
        ("dask://nowhere.invalid", "dask://nowhere.invalid: no Dask scheduler: "),
        ("slurm:partition", "'partition' is wrong; expected NAME=VALUE"),
    ],
)
def test_executors_that_there_are_not(spec: str, problem: str, tmp_path: Path) -> None:
    """A wrong executor is one line that says what is expected."""
    with pytest.raises(InputError, match=problem) as caught:
        open_executor(spec, tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("spec", "package"), [("dask://localhost:1", "distributed"), ("slurm", "submitit")])
def test_extras_that_are_missing(spec: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is not installed is told with the command that installs it."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=r'pip install "cwb\[(dask|slurm)\]"'):
        open_executor(spec, tmp_path)


def test_slurm_where_there_is_none(tmp_path: Path) -> None:
    """Without Slurm's programs it is told that they are missing."""
    pytest.importorskip("submitit")
    if any(Path(folder, "srun").exists() for folder in os.environ["PATH"].split(os.pathsep)):
        pytest.skip("there is a Slurm here")
    with pytest.raises(InputError, match=r"--executor: .*slurm"):
        open_executor("slurm", tmp_path)


def test_submitit(tmp_path: Path) -> None:
    """Jobs leave the records that processes leave, and what cannot be run is a record as well."""
    pytest.importorskip("submitit")
    cells = [*plan("ring", n=2 if NIGHTLY else 1), Cell("no-such-instance", Request("ring"))]
    jobs = run_cells(cells, tmp_path / "jobs" / "records.jsonl", settings=Settings(executor="slurm-local", jobs=3))
    here = run_cells(cells, tmp_path / "here" / "records.jsonl")
    assert same(jobs.records) == same(here.records)


@pytest.mark.usefixtures("faults")
def test_submitit_ends_jobs(tmp_path: Path, workers: Callable[[int], None]) -> None:
    """Jobs that are cancelled are killed, and their runs with them.

    ``workers`` waits for the number of processes or fails.
    """
    pytest.importorskip("submitit")
    executor = open_executor("slurm-local", tmp_path, 2)
    executor.submit(supervise, deaf())
    workers(1)
    executor.shutdown(cancel_futures=True)
    workers(0)


def test_a_job_that_dies(tmp_path: Path) -> None:
    """The cause of a job's death is the error of its future."""
    pytest.importorskip("submitit")
    executor = open_executor("slurm-local", tmp_path)
    future = executor.submit(signal.raise_signal, deaf())
    assert future.exception(120) is not None
    executor.shutdown()


def deaf() -> Task:
    """A run that never ends by itself."""
    (task,) = tasks([Cell("ring(4)", Request("fault-deaf"), "all_reduce", "1 MiB")])
    return replace(task, record=None)  # this process has no faults


@pytest.fixture(scope="module")
def cluster(faults: None, workers: object) -> Iterator[Any]:
    """Some Dask workers, each a process of its own, in the environment of the other fixtures."""
    distributed = pytest.importorskip("distributed")
    before = set(os.environ)
    with distributed.LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster
    for name in set(os.environ) - before - {"PYTEST_CURRENT_TEST"}:  # Dask's, with which servers are not shared
        del os.environ[name]


def test_dask_loses_a_worker(cluster: Any, tmp_path: Path) -> None:
    """On several workers, one of which is killed at work, the records are those of processes here, each once."""
    ledger, killed = tmp_path / "dask" / "records.jsonl", []

    def kill_worker(_: str) -> None:
        if not killed:
            victim = next(iter(cluster.workers.values())).process.process.pid
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    cells = plan("ring", "direct", "dbt")
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    comparison = run_cells(cells, ledger, kill_worker, Settings(executor=address))
    assert killed
    assert len(list(read_records(ledger))) == len(comparison.records) == 6
    here = run_cells(cells, tmp_path / "here" / "records.jsonl")
    assert same(comparison.records) == same(here.records)


def test_dask_ends_runs(cluster: Any, tmp_path: Path, workers: Callable[[int], None]) -> None:
    """A run that is cancelled ends on its worker, which is free for the next one."""
    cluster.wait_for_workers(WORKERS)  # one may have been killed before
    executor = open_executor(cluster.scheduler_address.replace("tcp://", "dask://"), tmp_path)
    assert executor.capacity() == WORKERS
    future = executor.submit(supervise, deaf())
    workers(1)
    executor.shutdown(cancel_futures=True)
    workers(0)
    with pytest.raises(CancelledError):
        future.result(60)
