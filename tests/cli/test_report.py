"""``cwb report``: one page from records, errors in one line, and nothing heavy before it is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import cwb

pytestmark = pytest.mark.slow  # a suite is run, and plots are drawn


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the records of a small suite, one of which fails."""
    from cwb.core.record import append_record
    from cwb.harness.run import Request, run_one
    from cwb.instances import load
    from cwb.instances.demand import with_demand

    folder = tmp_path_factory.mktemp("results")
    for name, collective in (("torus(2,2)", "all_gather"), ("torus(2,3)", "all_gather")):
        instance = with_demand(load(name), collective, "1 MiB", None)
        for model in ("ring", "rhd", "forestcoll"):
            append_record(folder / "records.jsonl", run_one(instance, Request(model)))
    return folder


def test_report(ledger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page is written whole, named on stdout, the same a second time, with the failure's reason and the title."""
    target = tmp_path / "page.html"
    assert cwb("report", ledger, "-o", target, "--title", "Tori & trees") == 0
    assert capsys.readouterr() == (f"{target}\n", "")
    content = target.read_text()
    assert "<title>Tori &amp; trees</title>" in content
    assert "6 ranks are not a power of two" in content
    assert 'id="plot-performance-profile"' in content
    assert 'id="table-forestcoll"' in content
    assert cwb("report", ledger / "records.jsonl", "-o", target, "--title", "Tori & trees") == 0
    assert target.read_text() == content
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("name", ["forestcoll", "sizes", "exact-heuristic", "summary"])
def test_tables_of_the_ledger(name: str, ledger: Path, tmp_path: Path) -> None:
    """Tables are made from records of runs in every format."""
    for suffix in ("tex", "md", "csv", "txt", "html"):
        assert cwb("table", name, ledger, "-o", tmp_path / f"x.{suffix}") == 0
        assert (tmp_path / f"x.{suffix}").stat().st_size > 200


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("report", "{tmp}/none"), "none: no such file or folder of records"),
        (("report", "{tmp}"), "no *.jsonl file in this folder"),
        (
            ("report", "{ledger}", "-o", "{tmp}/x.pdf"),
            "x.pdf: a report is an HTML page; expected a name that ends in .html",
        ),
        (("report", "{ledger}", "-o", "{tmp}/no/x.html"), "x.html: its folder does not exist"),
    ],
)
def test_errors(
    arguments: tuple[str, ...], problem: str, ledger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Missing records and unwritable outputs are one line and exit status 2, and leave nothing behind."""
    places = {"tmp": tmp_path, "ledger": ledger}
    assert cwb(*(argument.format(**places) for argument in arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cwb: error: ")
    assert problem in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_lone_surrogates_are_refused(tmp_path: Path, make_name: Callable[[str], Path]) -> None:
    """A ledger with a name that no file can hold as UTF-8 is refused, and nothing is written."""
    ledger = make_name("torus \\ud800")
    assert cwb("table", "summary", ledger, "-o", tmp_path / "x.tex") == 2
    assert cwb("report", ledger, "-o", tmp_path / "report.html") == 2
    assert not (tmp_path / "x.tex").exists()
    assert not (tmp_path / "report.html").exists()


@pytest.fixture
def make_name(ledger: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Write a ledger of an instance of some name, given as JSON text."""

    def make(name: str) -> Path:
        target = tmp_path / "named.jsonl"
        text = (ledger / "records.jsonl").read_text().replace('"instance": "torus(2,2)"', f'"instance": "{name}"')
        assert name in text
        target.write_text(text)
        return target

    return make


def test_it_works_without_solvers(ledger: Path, tmp_path: Path) -> None:
    """Tables and the report are produced even if neither Pyomo nor a solver can be imported."""
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('pyomo', 'highspy', 'gurobipy', 'pyscipopt', 'numba'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from cwb.cli.main import run\n"
        f"run(['report', {str(ledger)!r}, '-o', {str(tmp_path / 'r.html')!r}])\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120)
    assert (tmp_path / "r.html").is_file()


def test_the_command_is_light() -> None:
    """Importing the command imports neither matplotlib nor Pyomo nor a report."""
    code = (
        "import sys; from cwb.cli import records; "
        "print([m for m in sys.modules if m.split('.')[0] in ('matplotlib', 'pyomo', 'numpy') "
        "or m.startswith('cwb.reports')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_kept_schedules_are_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report frames the player of the fastest answer that was kept, names what is too large, and passes over
    schedules of other instances and of other runs."""
    from cwb.api import report as module

    grid = ("--models", "ring,rhd", "--instances", "ring(4)", "--collectives", "all_gather", "--sizes", "1MiB,2MiB")
    assert cwb("compare", *grid, "--schedules", "-o", tmp_path, "-q") == 0
    kept = sorted((tmp_path / "schedules").iterdir())
    assert len(kept) == 4
    page, players = tmp_path / "report.html", '<iframe sandbox="allow-scripts"'
    assert cwb("report", tmp_path, "-o", page) == 0
    assert page.read_text().count(players) == 2
    monkeypatch.setattr("cwb.reports.report.cards", lambda records, facets: "")  # the plots, which stay the same
    assert cwb("report", tmp_path / "records.jsonl", "-o", page) == 0
    assert page.read_text().count(players) == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_PLAYER_BYTES", 1000)
        assert cwb("report", tmp_path, "-o", page) == 0
    assert players not in page.read_text()
    assert f"cwb view {tmp_path / 'schedules'}" in page.read_text()
    sizes = {file: int(record["size_bytes"]) for file in kept for record in records_of(tmp_path, file.stem)}
    small = [file for file, size in sizes.items() if size == 2**20]
    for file, size in sizes.items():
        if size == 2**21:
            file.write_bytes(small[0].read_bytes())
    assert cwb("report", tmp_path, "-o", page) == 0
    assert page.read_text().count(players) == 1
    assert "is for another instance" in page.read_text()
    one, other = (file.read_bytes() for file in small)
    for file, content in zip(small, (other, one), strict=True):
        file.write_bytes(content)
    assert cwb("report", tmp_path, "-o", page) == 0
    assert players not in page.read_text() and "is of another run" in page.read_text()
    for file in kept:
        file.unlink()
    assert cwb("report", tmp_path, "-o", page) == 0
    assert "Schedules" not in page.read_text()


def records_of(folder: Path, key: str) -> list[dict[str, Any]]:
    """Read the records of a key."""
    lines = (folder / "records.jsonl").read_text().splitlines()
    return [record for line in lines if (record := json.loads(line))["key"] == key]
