"""Suites: what a file may say, the cells that it plans, and the records that running them leaves."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest
from cwb.core.errors import CwbError, InputError
from cwb.core.record import RunRecord, read_records
from cwb.harness import suite, task
from cwb.harness.ledger import Claims, Ledger
from cwb.harness.plan import Cell, cells
from cwb.harness.run import Request
from cwb.harness.suite import ComparisonProgress, Settings, plan_of, run_cells, run_suite
from cwb.harness.suite_file import load_suite, shipped_suites, with_seeds
from cwb.harness.task import run_cell, run_task
from cwb.instances import load
from cwb.instances.demand import with_demand

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


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make runs in threads of this process: quick, and open to what a test changes."""
    monkeypatch.setattr(suite, "supervise", run_task)


@pytest.mark.parametrize("name", shipped_suites())
def test_shipped_suites(name: str) -> None:
    """Every shipped suite is valid, and its cells name instances, models and options that exist."""
    from cwb.harness import registry

    plan = cells(load_suite(name))
    assert plan
    for spec in {cell.instance for cell in plan}:
        load(spec)
    for cell in plan:
        registry.get(cell.request.model).options.model_validate(dict(cell.request.options))


def test_smoke_has_every_method() -> None:
    """Every method of the registry has a run in the smoke suite that it supports, and every program two solvers."""
    from cwb.harness import registry

    supported: dict[str, set[str]] = {}
    for cell in cells(load_suite("smoke")):
        method = registry.get(cell.request.model)
        if method.supports(with_demand(load(cell.instance), cell.collective, cell.size, cell.chunks)) is None:
            supported.setdefault(cell.request.model, set()).add(cell.request.solver)
    assert set(supported) == set(registry.names())
    assert sum(len(solvers) > 1 for solvers in supported.values()) >= 10


def test_formulations_of_a_grid(write: Write) -> None:
    """Formulations are named, or matched by a pattern with a slash; other patterns mean methods alone."""
    grid = '[[grid]]\ninstances = ["ring(4)"]\ncollectives = ["all_gather"]\n'

    def models(names: str) -> list[str]:
        return [cell.request.model for cell in cells(load_suite(write(f"{grid}models = {names}\n")))]

    assert models('["mcf/flow", "bfb/*", "!bfb/lp"]') == ["mcf/flow", "bfb/chunked", "bfb/heterogeneous"]
    assert not [name for name in models('["*"]') if "/" in name]
    with pytest.raises(InputError, match=r"unknown 'mcf/flaw'; expected one of .*mcf/flow"):
        models('["mcf/flaw"]')


def test_seeds_instead_of_the_suite_s(write: Write) -> None:
    """A suite may be planned with a number of seeds, which replace its own in every grid."""
    suite = load_suite(write(GRID + "seeds = [7]\n" + GRID))
    assert [cell.request.seed for cell in cells(suite)] == [7, 0]
    assert [cell.request.seed for cell in cells(with_seeds(suite, 3))] == [0, 1, 2]
    assert with_seeds(suite, None) is suite


def test_collectives_of_a_grid(write: Write) -> None:
    """Collectives, sizes and chunks of a grid replace those of its instances, in all combinations; wrong ones name
    their place."""
    grid = '[[grid]]\ninstances = ["ring(4)"]\nmodels = ["ring"]\n'
    plan = cells(
        load_suite(write(grid + 'collectives = ["all_gather", "all_reduce"]\nsizes = ["1 KiB", "1 MiB"]\nchunks = 2\n'))
    )
    assert [(cell.collective, cell.size, cell.chunks) for cell in plan] == [
        (collective, size, 2) for collective in ("all_gather", "all_reduce") for size in ("1 KiB", "1 MiB")
    ]
    record = run_cell(plan[1])
    assert (record.status, record.collective) == ("optimal", "all_gather")
    with pytest.raises(InputError, match=r"grid\[0\].collectives\[0\].*'gather_all' is unknown"):
        load_suite(write(grid + 'collectives = ["gather_all"]\n'))
    with pytest.raises(InputError, match=r"grid\[0\].sizes\[0\]"):
        load_suite(write(grid + 'sizes = ["1 GB/s"]\n'))


def test_paper_libra() -> None:
    """The paper's suite has every workload, network, objective and budget, and the constrained instances at their
    own."""
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
    """Cells are all combinations in the order of the file; a list in a list is one value; limits come from the grid or
    the suite."""
    path = write(
        'time_limit = "5 s"\n'
        '[[grid]]\ninstances = ["gpt-3-?d", "torus(2,2)"]\nmodels = ["libra", "libra-equal"]\n'
        'solvers = ["highs", "scip"]\n'
        "seeds = [0, 3]\nthreads = 2\n"
        '[grid.options]\ntensor_parallel = [[8, 16], [32]]\nloop = "no-overlap"\n'
        '[[grid]]\ninstances = ["4d"]\nmodels = ["libra"]\ntime_limit = "1 min"\ngap = 0.01\n'
    )
    plan = cells(load_suite(path))
    assert [cell.instance for cell in plan[::12]] == ["gpt-3-3d", "gpt-3-4d", "torus(2,2)", "4d"]
    first = plan[0]
    options = {"tensor_parallel": [8, 16], "loop": "no-overlap"}
    assert first.request == Request("libra", "highs", options, 0, 2, 5.0, bounds="cheap")
    assert [cell.request.options["tensor_parallel"] for cell in plan[:4]] == [[8, 16], [32], [8, 16], [32]]
    assert [cell.request.seed for cell in plan[:4]] == [0, 0, 3, 3]
    # A method that calls no solver runs once, not once for each.
    assert [cell.request.solver for cell in plan[:12]] == ["highs"] * 4 + ["scip"] * 4 + ["highs"] * 4
    assert (plan[-1].request.time_limit_s, plan[-1].request.gap) == (60.0, 0.01)


def test_ranges(write: Write) -> None:
    """Ranges of numbers and sizes are written out; every name stands for the same number in one expression."""
    path = write(
        '[[grid]]\ninstances = ["torus({n},{n})", "mesh({n},{m})", "ring(5)"]\nmodels = ["ring"]\n'
        'collectives = ["all_reduce"]\nsizes = {from = "1 KiB", to = "5 MiB", factor = 1024}\n'
        "[grid.over]\nn = {from = 2, to = 8, factor = 2}\nm = {from = 3, to = 8, step = 4}\n"
    )
    plan = cells(load_suite(path))
    assert [cell.instance for cell in plan[::2]] == [
        *("torus(2,2)", "torus(4,4)", "torus(8,8)"),
        *("mesh(2,3)", "mesh(2,7)", "mesh(4,3)", "mesh(4,7)", "mesh(8,3)", "mesh(8,7)"),
        "ring(5)",
    ]
    assert [cell.size for cell in plan[:2]] == ["1 KiB", "1 MiB"]


def test_patterns_of_files(write: Write, tmp_path: Path) -> None:
    """A pattern that no shipped name matches means the files beside the suite, in order; none is an error."""
    for name in ("b", "a", "deep/c"):
        path = tmp_path / "nets[1]" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    for pattern, names in (("nets?1?/*.json", "ab"), ("nets?1?/**/*.json", "abc"), (f"{tmp_path}/*/a.js?n", "a")):
        plan = cells(load_suite(write(GRID.replace("gpt-3-3d", pattern))))
        assert [Path(cell.instance).stem for cell in plan] == list(names)
    with pytest.raises(InputError, match="matches no file"):
        cells(load_suite(write(GRID.replace("gpt-3-3d", "nots/*.json"))))


def test_patterns_of_models_and_solvers(write: Write) -> None:
    """Patterns, kinds and exclusions choose models; a pattern of solvers means those that are installed."""
    from cwb import solvers
    from cwb.harness import registry

    grid = '[[grid]]\ninstances = ["ring(4)"]\nsolvers = ["*"]\nmodels = '
    plan = cells(load_suite(write(grid + '["teccl*", "!teccl-lp", "!teccl"]')))
    assert {cell.request.model for cell in plan} == {"teccl-milp", "teccl-astar", "teccl-all-to-all"}
    installed = [name for name in solvers.names() if solvers.get(name).installation().ok]
    assert [cell.request.solver for cell in plan if cell.request.model == "teccl-milp"] == installed
    exact = {cell.request.model for cell in cells(load_suite(write(grid + '["kind=exact"]')))}
    assert exact == {name for name in registry.names() if registry.get(name).kind.value == "exact"}
    assert {cell.request.model for cell in cells(load_suite(write(grid + '["*"]')))} == set(registry.names())


def test_limits_of_a_suite(write: Write) -> None:
    """Memory, as the time limit, is the suite's unless a grid has its own."""
    plan = cells(load_suite(write('memory = "1 GiB"\n' + GRID + GRID.replace("3d", "4d") + 'memory = "2 MB"')))
    assert [cell.memory_bytes for cell in plan] == [2**30, 2_000_000]


def test_equal_cells_are_one(write: Write) -> None:
    """Cells that two grids share run once."""
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
        (GRID + "over = {n = [4]}", r"grid\[0\].over.n: no instance has \{n\} in it"),
        (GRID.replace("gpt-3-3d", "ring({n})"), r"grid\[0\].instances\[0\]: \{n\} is not defined in 'over'"),
        (GRID + "over = {n = {from = 2}}", r"grid\[0\].over.n: .* is no range"),
        (GRID + "over = {n = {from = 2, to = 4, step = 1, factor = 2}}", r"grid\[0\].over.n: .* is no range"),
        (GRID + "over = {n = {from = 2, to = 4, factor = 1}}", r"grid\[0\].over.n: .* is no range"),
        (GRID + "over = {n = {from = 4, to = 2}}", r"grid\[0\].over.n: .* is empty; expected a range that goes up"),
        (GRID + "over = {n = {from = 1, to = 1000000}}", r"grid\[0\].over.n: "),
        (GRID + 'sizes = {from = "1 KiB", to = "1 MiB"}', r"grid\[0\].sizes: .* is no range"),
        (GRID + 'sizes = {from = "1 s", to = "1 MiB", factor = 2}', r"grid\[0\].sizes: .*unknown unit"),
        (GRID + 'sizes = {from = "1 MiB", to = "1 KiB", factor = 2}', r"grid\[0\].sizes: .* is empty; expected"),
        (GRID + 'memory = "much"', r"grid\[0\].memory: "),
        (GRID.replace("libra-equal", "kind=slow"), r"grid\[0\].models\[0\]: .*expected one of kind=exact"),
        (GRID.replace('"libra-equal"', '"ring", "!ri*"'), r"grid\[0\].models: every model is excluded"),
        (GRID + 'solvers = ["cplex"]', r"grid\[0\].solvers\[0\]: unknown 'cplex'; expected one of highs"),
        (GRID.replace("libra-equal", "lira"), r"grid\[0\].models\[0\]: unknown 'lira'; expected one of libra"),
        (GRID.replace("gpt-3-3d", "gpt-9-*"), r"grid\[0\].instances\[0\]: 'gpt-9-\*' matches no file and no"),
        (GRID + "options.loop = []", r"grid\[0\].options.loop: an empty list"),
        (GRID + "options.loop = 1979-05-27", r"grid\[0\].options.loop: .* is no value of an option"),
        (GRID + "options.loop = [inf]", r"grid\[0\].options.loop: inf is no value of an option"),
        (GRID + "options.loop = {a = 1}", r"grid\[0\].options.loop: .* is no value of an option"),
        ("[[grid]", "not TOML: .*line 1"),
        ("a = 1\na = 2", "not TOML: .*end of document"),
        (f"a = {'[' * 100_000}", "not TOML"),
        (GRID + f"seeds = {list(range(400))}\noptions.a = {list(range(400))}", r"grid\[0\]: more than 100,000 cells"),
        (" " * (2**20 + 1), "1,048,577 bytes; expected at most 1,048,576"),
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
        with pytest.raises(InputError, match=r"no such file; the suites of cwb are declared, .*paper-libra, .*smoke"):
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

    def raise_mistake(*_: object, **__: object) -> RunRecord:
        raise ZeroDivisionError("a mistake\nin two lines")

    monkeypatch.setattr(task, "run", raise_mistake)
    record = run_cell(cell())
    assert (record.status, record.exit_status) == ("error", 1)
    assert record.message == "internal error: ZeroDivisionError: a mistake in two lines"
    assert record.instance == "gpt-3-3d"
    assert len(record.instance_sha256) == len(record.key) == 64


@pytest.mark.usefixtures("here")
def test_records_are_appended_once(tmp_path: Path) -> None:
    """Every run is appended to the ledger as it ends, what needs none before, told as done of total, and not made
    again."""
    ledger = tmp_path / "new" / "folder" / "records.jsonl"
    plan = [cell(), cell("no-such-instance"), cell("gpt-3-4d"), cell()]
    said: list[str] = []
    tallies: list[ComparisonProgress] = []
    comparison = run_cells(plan, ledger, said.append, Settings(jobs=1), tallies.append)
    assert (comparison.planned, comparison.skipped, comparison.interrupted) == (3, 0, False)
    read = list(read_records(ledger))
    assert read == comparison.records
    assert [record.status for record in read] == ["error", "feasible", "feasible"]
    assert [line.split()[0] for line in said] == ["1/3", "2/3", "3/3"]
    assert (tallies[-1].total, tallies[-1].runs, tallies[-1].failed, tallies[-1].running) == (3, 3, 1, 0)
    assert tallies[-1].seconds_left == 0
    again = run_cells(plan, ledger)
    assert (again.planned, again.skipped, again.records) == (3, 3, [])
    assert [path.name for path in ledger.parent.iterdir()] == ["records.jsonl"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("retry", "again"), [((), []), (("failed",), ["error"]), (("all",), ["error", "feasible"])])
def test_retry(tmp_path: Path, retry: tuple[str, ...], again: list[str]) -> None:
    """Failed runs, or all, are repeated on request, and the plan announces it."""
    ledger, plan = tmp_path / "records.jsonl", [cell(), cell("no-such-instance")]
    run_cells(plan, ledger)
    everything, due = plan_of(plan, ledger, Settings(retry=retry))
    assert (len(everything), len(due)) == (2, len(again))
    comparison = run_cells(plan, ledger, settings=Settings(retry=retry))
    assert sorted(record.status for record in comparison.records) == again
    assert len(list(read_records(ledger))) == 2 + len(again)


@pytest.mark.usefixtures("here")
def test_the_folder_cannot_be_made(tmp_path: Path) -> None:
    """A ledger that cannot be written is one error that names it, before anything runs."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        run_cells([cell()], tmp_path / "file" / "records.jsonl")
    with pytest.raises(InputError, match="is a directory"):
        run_cells([cell()], tmp_path)


@pytest.mark.usefixtures("here")
def test_ctrl_c_between_runs(tmp_path: Path) -> None:
    """Ctrl-C keeps the record that was just written and starts no other run; signals are as they were then."""
    before = signal.getsignal(signal.SIGINT)
    plan = [cell(total_bandwidth=f"{n} GB/s") for n in (100, 200, 300)]
    ledger = tmp_path / "records.jsonl"
    comparison = run_cells(plan, ledger, lambda _: os.kill(os.getpid(), signal.SIGINT), Settings(jobs=1))
    assert (comparison.interrupted, len(comparison.records)) == (True, 1)
    assert signal.getsignal(signal.SIGINT) is before
    assert [path.name for path in tmp_path.iterdir()] == ["records.jsonl"]
    assert len(run_cells(plan, ledger).records) == 2


def test_ctrl_c_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while runs are at work ends them without a record."""
    ended: list[bool] = []

    def waiting(data: object, stop: threading.Event) -> dict[str, Any]:
        os.kill(os.getpid(), signal.SIGINT)
        ended.append(stop.wait(60))
        raise CancelledError

    monkeypatch.setattr(suite, "supervise", waiting)
    comparison = run_cells([cell()], tmp_path / "records.jsonl")
    assert ended == [True]
    assert (comparison.interrupted, comparison.records) == (True, [])


def test_a_lost_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that the executor cannot make is a failure; if it gives up, the comparison ends without records."""

    def lose_run(data: object, stop: threading.Event) -> dict[str, Any]:
        raise raised

    monkeypatch.setattr(suite, "supervise", lose_run)
    raised: Exception = OSError("no process\ncan be made")
    (record,) = run_cells([cell()], tmp_path / "records.jsonl").records
    assert record.message == "the run was lost: OSError: no process can be made"
    raised = CancelledError()
    with pytest.raises(CwbError, match="the executor has ended with runs in progress"):
        run_cells([cell("gpt-3-4d")], tmp_path / "records.jsonl")
    assert len(list(read_records(tmp_path / "records.jsonl"))) == 1


@pytest.mark.usefixtures("here")
def test_what_another_comparison_is_at_is_left_to_it(tmp_path: Path) -> None:
    """A claimed run is waited for, and not made when the other has recorded it."""
    ledger = tmp_path / "records.jsonl"
    plan = [cell(), cell("gpt-3-4d")]
    other, (first, _) = Claims(tmp_path / ".records.jsonl.claims"), plan_of(plan, ledger)[1]
    assert other.take(first.key)

    def close_other(_: str) -> None:
        Ledger(ledger).append(run_task(first))
        other.close()

    comparison = run_cells(plan, ledger, close_other)
    assert ([record.instance for record in comparison.records], comparison.others) == (["gpt-3-4d"], 1)
    assert len(list(read_records(ledger))) == 2


@pytest.mark.usefixtures("here")
def test_in_a_thread(tmp_path: Path) -> None:
    """A comparison runs outside the main thread as well, where signals cannot be handled."""
    thread = threading.Thread(target=run_cells, args=([cell()], tmp_path / "records.jsonl"))
    thread.start()
    thread.join()
    assert len(list(read_records(tmp_path / "records.jsonl"))) == 1


@pytest.mark.usefixtures("here")
def test_run_suite(write: Write, tmp_path: Path) -> None:
    """The whole way from a file to records, which are also given when they were there; interrupted, it says so as
    Python does."""
    path = write(GRID.replace("gpt-3-3d", "gpt-3-?d"))
    records = run_suite(path, tmp_path)
    assert {record.status for record in records} == {"feasible"}
    assert run_suite(str(path), tmp_path) == records
    with pytest.raises(KeyboardInterrupt):
        run_suite(path, tmp_path / "new", lambda _: os.kill(os.getpid(), signal.SIGINT), Settings(jobs=1))
    assert len(list(read_records(tmp_path / "new"))) == 1


def test_options_of_solvers_are_tried_in_turn(write: Write) -> None:
    """Values of a solver's own options make runs of their own, for that solver and for methods that call one."""
    grid = '[[grid]]\ninstances = ["4d"]\nmodels = ["libra", "libra-equal"]\nsolvers = ["highs", "scip"]\n'
    plan = cells(load_suite(write(grid + 'solver_options.highs = { presolve = ["on", "off"] }\n')))
    asked = [(cell.request.model, cell.request.solver, dict(cell.request.solver_options)) for cell in plan]
    assert asked == [
        ("libra", "highs", {"presolve": "on"}),
        ("libra", "highs", {"presolve": "off"}),
        ("libra", "scip", {}),
        ("libra-equal", "highs", {}),
    ]
    keys = {task.key for task in plan_of(plan, Path("nowhere.jsonl"))[0]}
    assert len(keys) == len(plan)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("solver_options.highs = { presolv = 1 }", r'solver_options."highs": HiGHS has no option \'presolv\''),
        ("solver_options.gurobi = { Presolve = 0 }", r'"gurobi": no solver of the grid; expected one of highs'),
    ],
)
def test_wrong_options_of_solvers_are_refused_before_anything_runs(write: Write, text: str, problem: str) -> None:
    """A slip in an option, and options of a solver that is not asked for, are errors of the suite."""
    with pytest.raises(InputError, match=problem):
        cells(load_suite(write(GRID + text + "\n")))
