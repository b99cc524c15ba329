"""Suites: what a file may say, the cells that it plans, and the records that running them leaves."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cwb.bench import suite as suites
from cwb.bench.plan import Cell, cells, load_suite, shipped_suites
from cwb.bench.run import Request
from cwb.bench.suite import run_cell, run_cells, run_suite
from cwb.core.errors import InputError
from cwb.core.record import RunRecord, read_records
from cwb.instances import load

Write = Callable[[str], Path]

GRID = '[[grid]]\ninstances = ["gpt-3-3d"]\nmodels = ["libra-equal"]\n'


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a suite file."""

    def to_file(text: str) -> Path:
        path = tmp_path / "suite.toml"
        path.write_text(text)
        return path

    return to_file


@pytest.mark.parametrize("name", shipped_suites())
def test_shipped_suites(name: str) -> None:
    """Every shipped suite is valid, and its cells name instances, models and options that exist."""
    from cwb.models import registry

    plan = cells(load_suite(name))
    assert plan
    for spec in {cell.instance for cell in plan}:
        load(spec)
    for cell in plan:
        registry.get(cell.request.model).options.model_validate(dict(cell.request.options))


def test_collectives_of_a_grid(write: Write) -> None:
    """Collectives, sizes and chunks of a grid replace those of its instances, in all combinations; wrong ones name their place."""
    grid = '[[grid]]\ninstances = ["ring(4)"]\nmodels = ["ring"]\n'
    plan = cells(
        load_suite(write(grid + 'collectives = ["all_gather", "all_reduce"]\nsizes = ["1 KiB", "1 MiB"]\nchunks = 2\n'))
    )
    assert [(cell.collective, cell.size, cell.chunks) for cell in plan] == [
        (collective, size, 2) for collective in ("all_gather", "all_reduce") for size in ("1 KiB", "1 MiB")
    ]
    record = run_cell(plan[1])
    assert (record.status, record.collective) == ("feasible", "all_gather")
    with pytest.raises(InputError, match=r"grid\[0\].collectives\[0\].*'gather_all' is unknown"):
        load_suite(write(grid + 'collectives = ["gather_all"]\n'))
    with pytest.raises(InputError, match=r"grid\[0\].sizes\[0\]"):
        load_suite(write(grid + 'sizes = ["1 GB/s"]\n'))


def test_paper_libra() -> None:
    """The paper's suite has every workload, network, objective and budget, and the constrained instances at their own."""
    plan = cells(load_suite("paper-libra"))
    assert len(plan) == len(set(map(str, plan))) == 5 * 2 * 2 * 4 + 5 * 2
    assert {cell.request.solver for cell in plan} == {"highs"}
    own = [cell for cell in plan if "total_bandwidth" not in cell.request.options]
    assert {cell.instance.removesuffix("-4d-multiple") for cell in own} == {
        "gpt-3",
        "msft-1t",
        "turing-nlg",
        "resnet-50",
        "dlrm",
    }


@pytest.mark.parametrize(
    "spec", ["smoke", "smoke.toml", "suites/smoke.toml", "suites/smoke", "instances/suites/smoke.toml"]
)
def test_names(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shipped suite is found by its name anywhere, with or without folder and suffix."""
    monkeypatch.chdir(tmp_path)
    assert load_suite(spec).source == "smoke.toml"


def test_a_file_goes_before_a_name(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the same name as a shipped suite is the one that is meant."""
    path = write(GRID)
    path.rename(path.with_name("smoke.toml"))
    monkeypatch.chdir(path.parent)
    assert [str(cell) for cell in cells(load_suite("smoke.toml"))] == ["libra-equal highs gpt-3-3d"]


def test_the_grid(write: Write) -> None:
    """Cells are all combinations in the order of the file; a list in a list is one value; limits come from the grid or the suite."""
    path = write(
        'time_limit = "5 s"\n'
        '[[grid]]\ninstances = ["gpt-3-?d", "torus(2,2)"]\nmodels = ["libra", "libra-equal"]\nsolvers = ["highs", "scip"]\n'
        "seeds = [0, 3]\nthreads = 2\n"
        '[grid.options]\ntensor_parallel = [[8, 16], [32]]\nloop = "no-overlap"\n'
        '[[grid]]\ninstances = ["4d"]\nmodels = ["libra"]\ntime_limit = "1 min"\ngap = 0.01\n'
    )
    plan = cells(load_suite(path))
    assert [cell.instance for cell in plan[::12]] == ["gpt-3-3d", "gpt-3-4d", "torus(2,2)", "4d"]
    first = plan[0]
    assert first.request == Request("libra", "highs", {"tensor_parallel": [8, 16], "loop": "no-overlap"}, 0, 2, 5.0)
    assert [cell.request.options["tensor_parallel"] for cell in plan[:4]] == [[8, 16], [32], [8, 16], [32]]
    assert [cell.request.seed for cell in plan[:4]] == [0, 0, 3, 3]
    # A method that calls no solver runs once, not once for each.
    assert [cell.request.solver for cell in plan[:12]] == ["highs"] * 4 + ["scip"] * 4 + ["highs"] * 4
    assert (plan[-1].request.time_limit_s, plan[-1].request.gap) == (60.0, 0.01)


def test_equal_cells_are_one(write: Write) -> None:
    """What two grids have in common runs once."""
    assert len(cells(load_suite(write(GRID + GRID)))) == 1


def test_instances_beside_the_suite(write: Write, tmp_path: Path) -> None:
    """An instance file is found beside the suite that names it; a long expression is no file."""
    (tmp_path / "mine.json").write_text('{"network": "RI(4)"}')
    expression = f"torus({','.join(['2'] * 300)})"
    path = write(f'[[grid]]\ninstances = ["mine.json", "{expression}"]\nmodels = ["libra"]\n')
    assert [cell.instance for cell in cells(load_suite(path))] == [str(tmp_path / "mine.json"), expression]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "grid: missing, but required"),
        ("grid = []", "grid: "),
        ("[[grid]]\n", r"grid\[0\].instances: missing, but required"),
        (GRID + "speed = 3", r"grid\[0\].speed: unknown field"),
        (GRID + "seeds = [-1]", r"grid\[0\].seeds\[0\]: -1 is wrong"),
        (GRID + "seeds = [1.5]", r"grid\[0\].seeds\[0\]: 1.5 is wrong"),
        (GRID + "time_limit = 5", r"grid\[0\].time_limit: 5 has no unit"),
        (GRID + "gap = nan", r"grid\[0\].gap: nan is wrong"),
        (GRID + "solvers = []", r"grid\[0\].solvers: "),
        (GRID + 'solvers = ["cplex"]', r"grid\[0\].solvers\[0\]: unknown 'cplex'; expected one of highs"),
        (GRID.replace("libra-equal", "lira"), r"grid\[0\].models\[0\]: unknown 'lira'; expected one of libra"),
        (GRID.replace("gpt-3-3d", "gpt-9-*"), r"grid\[0\].instances\[0\]: 'gpt-9-\*' matches no shipped instance"),
        (GRID + "options.loop = []", r"grid\[0\].options.loop: an empty list"),
        (GRID + "options.loop = 1979-05-27", r"grid\[0\].options.loop: .* is no value of an option"),
        (GRID + "options.loop = [inf]", r"grid\[0\].options.loop: inf is no value of an option"),
        (GRID + "options.loop = {a = 1}", r"grid\[0\].options.loop: .* is no value of an option"),
        ("[[grid]", "not TOML: .*line 1"),
        ("a = 1\na = 2", "not TOML: .*end of document"),
        (f"a = {'[' * 100_000}", "not TOML"),
        (GRID + f"seeds = {list(range(400))}\noptions.a = {list(range(400))}", r"grid\[0\]: more than 100,000 cells"),
        (" " * (2**20 + 1), "more than 1,048,576 bytes"),
    ],
)
def test_bad_suites(text: str, problem: str, write: Write) -> None:
    """A wrong suite is one line that names the file, the place and what was expected."""
    path = write(text)
    with pytest.raises(InputError, match=problem) as caught:
        cells(load_suite(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_not_text(tmp_path: Path) -> None:
    """A file that is no text, and one that does not exist, are said to be."""
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8 text"):
        load_suite(tmp_path / "x.toml")
    for spec in (str(tmp_path), "no/smoke.toml", "x" * 5000):
        with pytest.raises(InputError, match="no such file; the suites of cwb are forestcoll, paper-libra, smoke"):
            load_suite(spec)
    with pytest.raises(InputError, match="did you mean 'smoke'"):
        load_suite("smok")


def cell(instance: str = "gpt-3-3d", model: str = "libra-equal", **options: Any) -> Cell:
    return Cell(instance, Request(model, options=options))


@pytest.mark.parametrize(
    ("bad", "status", "message"),
    [
        (cell("no-such-instance"), "error", "no such file"),
        (cell(total_bandwidth="500"), "error", "total_bandwidth: '500' has no unit"),
        (cell(speed=3), "error", "speed: unknown field"),
        (cell("torus(4,4)"), "unsupported", "libra-equal: "),
        (cell(model="no-such-model"), "error", "unknown model"),
        (cell(constraints="B1 >= 900 GB/s"), "infeasible", "does not meet"),
    ],
)
def test_failures_are_records(bad: Cell, status: str, message: str) -> None:
    """Whatever is wrong with a cell, it leaves a record that says so in one line."""
    record = run_cell(bad)
    assert (record.status, record.model, record.options) == (status, bad.request.model, bad.request.options)
    assert message in record.message
    assert "\n" not in record.message
    assert record.exit_status != 0
    assert record.started_at


def test_a_broken_method_is_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that nobody expected becomes the record of its cell, and names itself."""

    def broken(*_: object, **__: object) -> RunRecord:
        raise ZeroDivisionError("a mistake\nin two lines")

    monkeypatch.setattr(suites, "run_one", broken)
    record = run_cell(cell())
    assert (record.status, record.exit_status) == ("error", 1)
    assert record.message == "internal error: ZeroDivisionError: a mistake in two lines"
    assert record.instance == "gpt-3-3d"
    assert len(record.instance_sha256) == 64


def test_records_are_appended(tmp_path: Path) -> None:
    """Every run is appended to the ledger as it ends, and told as done of total."""
    ledger = tmp_path / "new" / "folder" / "records.jsonl"
    plan = [cell(), cell("no-such-instance"), cell("gpt-3-4d")]
    said: list[str] = []
    for _ in range(2):
        comparison = run_cells(plan, ledger, said.append)
        assert (comparison.planned, comparison.interrupted) == (3, False)
    read = list(read_records(ledger))
    assert [record.status for record in read] == ["feasible", "error", "feasible"] * 2
    assert read[3:] == comparison.records
    assert [line.split()[0] for line in said] == ["1/3", "2/3", "3/3"] * 2


def test_a_record_that_json_cannot_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method whose numbers are not JSON leaves a failure, and the ledger can be read."""
    from dataclasses import replace

    good = run_cell(cell())
    bad = [replace(good, metrics={"speedup": float("nan")}), replace(good, answer={"a": object()})]
    monkeypatch.setattr(suites, "run_cell", lambda *_: bad.pop())
    run_cells([cell(), cell()], tmp_path / "records.jsonl")
    for record in read_records(tmp_path / "records.jsonl"):
        assert (record.status, record.answer, record.metrics) == ("error", None, {})
        assert "not JSON" in record.message


def test_the_folder_cannot_be_made(tmp_path: Path) -> None:
    """A ledger that cannot be written is one error that names it, before anything runs."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        run_cells([cell()], tmp_path / "file" / "records.jsonl")
    with pytest.raises(InputError, match="is a directory"):
        run_cells([cell()], tmp_path)


def interrupting(monkeypatch: pytest.MonkeyPatch, at: int, times: int = 1) -> None:
    """Let Ctrl-C be pressed while a run has its own handler of it, in the run of the given number."""
    from cwb.bench.interrupt import stop_on_interrupt

    run_one, started = suites.run_one, iter(range(100))

    def pressed(*args: Any, stop: threading.Event) -> RunRecord:
        with stop_on_interrupt(stop):
            if next(started) == at:
                for _ in range(times):
                    os.kill(os.getpid(), signal.SIGINT)
        return run_one(*args, stop=stop)

    monkeypatch.setattr(suites, "run_one", pressed)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c(times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C, also one that the run takes for itself, ends the comparison with the records of the runs before it."""
    before = signal.getsignal(signal.SIGINT)
    interrupting(monkeypatch, at=2, times=times)
    comparison = run_cells([cell()] * 5, tmp_path / "records.jsonl")
    assert comparison.interrupted
    assert len(comparison.records) == len(list(read_records(tmp_path / "records.jsonl"))) == 2
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_in_a_real_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a method runs reaches the method as its request to stop, and ends the comparison."""
    from cwb.core.method import Outcome, Status
    from cwb.models.libra import equal

    asked: list[bool] = []

    def slow(instance: Any, solver: Any, budget: Any, options: Any) -> Outcome:
        os.kill(os.getpid(), signal.SIGINT)
        asked.append(budget.stop.wait(5))
        return Outcome(Status.LIMIT)

    monkeypatch.setattr(equal, "run", slow)
    comparison = run_cells([cell()] * 3, tmp_path / "records.jsonl")
    assert asked == [True]
    assert (comparison.interrupted, comparison.records) == (True, [])


def test_ctrl_c_between_runs(tmp_path: Path) -> None:
    """Ctrl-C between two runs keeps the record that was just written and starts no other."""
    comparison = run_cells([cell()] * 3, tmp_path / "r.jsonl", lambda _: os.kill(os.getpid(), signal.SIGINT))
    assert (comparison.interrupted, len(comparison.records)) == (True, 1)


def test_in_a_thread(tmp_path: Path) -> None:
    """A comparison runs outside the main thread as well, where signals cannot be handled."""
    thread = threading.Thread(target=run_cells, args=([cell()], tmp_path / "records.jsonl"))
    thread.start()
    thread.join()
    assert len(list(read_records(tmp_path / "records.jsonl"))) == 1


def test_run_suite(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way from a file to records; interrupted, it says so the way Python does."""
    path = write(GRID)
    assert [record.status for record in run_suite(path, tmp_path)] == ["feasible"]
    interrupting(monkeypatch, at=0)
    with pytest.raises(KeyboardInterrupt):
        run_suite(str(path), tmp_path)
    assert len(list(read_records(tmp_path / "records.jsonl"))) == 1
