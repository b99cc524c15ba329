"""The library of best known schedules: its files prove what the index says, and submitted schedules are compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import cwb
import pytest
from click.testing import CliRunner
from cwb.cli.main import cwb as program
from cwb.core.errors import InputError
from cwb.schedules.collective import exact_bound
from cwb.schedules.file_parts import read_certificate
from cwb.schedules.strict import Fields
from cwb.studies import best_known
from cwb.studies.best_known import FOLDER, digest_of

NAME = "ring-8-all-gather-1mib"
PROBLEMS = {problem["name"]: problem for problem in cwb.library_list()}


@pytest.mark.parametrize("name", PROBLEMS)
def test_files_prove_the_index(name):
    """Every file has its checksum, is valid and takes the time of the index; every certificate proves its bound."""
    problem = PROBLEMS[name]
    instance = cwb.load(problem["network"], collective=problem["collective"], size=problem["size"])
    read = cwb.library_get(name)
    assert digest_of(read.instance) == digest_of(instance) == problem["problem_sha256"]
    found = cwb.library_submit(FOLDER / f"{name}.json.gz").data
    assert (found["verified"], found["new_best"]) == (True, False)
    assert found["completion_time_s"] == pytest.approx(problem["time_s"], rel=1e-9)
    bound = exact_bound(instance, read_certificate(Fields(problem["certificate"])))
    assert bound is not None
    assert float(bound) == pytest.approx(problem["bound_s"], rel=1e-12)
    assert problem["gap"] == pytest.approx(1 - problem["bound_s"] / problem["time_s"], abs=1e-9)
    assert problem["gap"] >= 0


def test_the_index_has_all_files():
    """The index is versioned, no file lacks an entry, and no two problems are the same."""
    index = json.loads((FOLDER / "index.json").read_text())
    assert (index["schema"], index["version"]) == ("cwb-best-known/1", 2)
    files = {"index.json", *(f"{name}.json.gz" for name in PROBLEMS)}
    assert {path.name for path in FOLDER.iterdir()} == files | {"models"}
    assert len({problem["problem_sha256"] for problem in PROBLEMS.values()}) == len(PROBLEMS) >= 20


def change_index(monkeypatch: pytest.MonkeyPatch, **values: Any) -> None:
    """Give the problem other values in the index."""
    problems = [{**problem, **(values if name == NAME else {})} for name, problem in PROBLEMS.items()]
    monkeypatch.setattr(best_known, "library_list", lambda: problems)


def test_a_slower_schedule_is_no_new_best(tmp_path):
    """A valid schedule that takes longer is told with its factor."""
    cwb.solve("ring(8)", "direct", collective="all_gather", size="1 MiB", output=tmp_path / "s.json")
    found = cwb.library_submit(tmp_path / "s.json")
    assert (found.ok, found.data["new_best"]) == (True, False)
    assert "NEW BEST" not in found.text()


def test_a_faster_schedule_is_a_new_best(tmp_path, monkeypatch):
    """A schedule below the best known time is a new best, also in other chunks than the library's."""
    change_index(monkeypatch, time_s=1.0, bound_s=1e-9)
    cwb.solve("ring(8)", "ring", collective="all_gather", size="1 MiB", chunks=4, output=tmp_path / "s.json")
    found = cwb.library_submit(tmp_path / "s.json")
    assert (found.ok, found.data["new_best"]) == (True, True)
    assert f"{NAME}: NEW BEST" in found.text()


def test_a_time_below_the_bound_is_a_contradiction(monkeypatch):
    """A schedule that beats the library's bound is invalid: one of the two is wrong."""
    change_index(monkeypatch, time_s=1.0, bound_s=0.5)
    found = cwb.library_submit(FOLDER / f"{NAME}.json.gz")
    assert (found.ok, found.data["new_best"], found.data["verified"]) == (False, False, False)
    assert "contradiction" in found.text()


@pytest.fixture
def command() -> Callable[..., Any]:
    """The command line, in this process."""
    return lambda *words: CliRunner().invoke(program, ["library", *map(str, words)], standalone_mode=False)


def test_an_invalid_schedule_is_no_new_best(tmp_path, command):
    """A schedule without its last send ends earlier, but is wrong: the exit status is 5."""
    cwb.solve("ring(8)", "ring", collective="all_gather", size="1 MiB", output=tmp_path / "s.json")
    data = json.loads((tmp_path / "s.json").read_text())
    for name in ("chunk", "source", "target", "reduce", "hops", "step"):
        data["sends"][name].pop()
    data["sends"]["path_links"] = data["sends"]["path_links"][: sum(data["sends"]["hops"])]
    (tmp_path / "s.json").write_text(json.dumps(data))
    told = command("submit", tmp_path / "s.json", "--json")
    assert told.return_value == 5
    assert not json.loads(told.output)["new_best"]


def test_other_problems_and_names_are_rejected(tmp_path, command):
    """A problem that is not in the library, and an unknown name or collective, are errors that say what is expected."""
    cwb.solve("ring(3)", "ring", collective="all_gather", size="1 MiB", output=tmp_path / "s.json")
    with pytest.raises(InputError, match=r"instance: is not in the library; expected a problem of 'cwb library list'"):
        cwb.library_submit(tmp_path / "s.json")
    assert "is unknown" in str(command("get", "ring-9", "-o", tmp_path / "b.json").exception)
    assert "--collective: 'gather' is unknown" in str(command("list", "--collective", "gather").exception)


def test_a_damaged_file_is_named(tmp_path, monkeypatch):
    """A file of the library with another checksum is not passed on."""
    change_index(monkeypatch, file_sha256="0" * 64)
    with pytest.raises(InputError, match="SHA-256"):
        cwb.library_get(NAME)


def test_the_command_writes_and_compares(tmp_path, command):
    """``submit`` finds a file that ``get`` writes as good as the best known one; ``list`` prints the index."""
    path = tmp_path / "best.npz"
    command("get", NAME, "-o", path)
    told = json.loads(command("submit", path, "--json").output)
    assert (told["best_known"]["name"], told["verified"], told["new_best"]) == (NAME, True, False)
    assert NAME in command("submit", path).output
    assert json.loads(command("list", "--json").output) == list(PROBLEMS.values())
    assert command("list").output.startswith("name ")


def test_the_digest_keeps_what_times_depend_on():
    """Another size, latency or routing is another problem; chunks are not."""
    base = cwb.load("ring(8)", collective="all_gather", size="1 MiB")
    assert digest_of(cwb.load("ring(8)", collective="all_gather", size="1 MiB", chunks=4)) == digest_of(base)
    for other in (
        cwb.load("ring(8)", collective="all_gather", size="2 MiB"),
        cwb.load("ring(8, latency='1 us')", collective="all_gather", size="1 MiB"),
        cwb.load("ring(8)", collective="all_reduce", size="1 MiB"),
    ):
        assert digest_of(other) != digest_of(base)
