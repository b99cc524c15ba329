"""``cwb compare``: what it prints, exit statuses, resuming, Ctrl-C, one line an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import cwb
from cwb.cli.compare import duration
from cwb.core.record import read_records

pytestmark = pytest.mark.slow  # processes of their own

GRID = (
    '[[grid]]\ninstances = ["ring({n})"]\nover = {n = [4, 5]}\ncollectives = ["all_reduce"]\nmodels = ["ring", "dbt"]\n'
)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of four quick runs."""
    path = tmp_path / "suite.toml"
    path.write_text(GRID)
    return path


def test_compare(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A suite runs, tells its progress on stderr and its counts on stdout; a second time there is nothing to do."""
    results = tmp_path / "results"
    assert cwb("compare", suite, "-o", results, "-j", "2") == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == ["4 of 4 runs: 4 feasible", f"records: {results / 'records.jsonl'}"]
    assert err.splitlines()[-1].startswith("4/4 feasible in ")
    assert err.splitlines()[-1].endswith("[0 running, about 0 s left]")
    assert all(record.verified for record in read_records(results))
    assert cwb("compare", suite, "-o", results) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:2] == ["0 of 4 runs: none", "4 were recorded before"]
    assert err == ""


def test_compare_tells_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs that fail are counted with their reasons; where nothing could be run the exit status is the shared one."""
    suite = tmp_path / "suite.toml"
    suite.write_text('[[grid]]\ninstances = ["torus(2,2)", "torus(3,3)"]\nmodels = ["libra"]\n')
    assert cwb("compare", suite, "-o", tmp_path, "-q") == 7
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "2 of 2 runs: 2 unsupported"
    assert out.splitlines()[1].startswith("2 x unsupported: libra: ")
    assert err == ""
    with suite.open("a") as stream:
        stream.write('[[grid]]\ninstances = ["nothing", "torus(2,3)"]\nmodels = ["libra"]\n')
    assert cwb("compare", suite, "-o", tmp_path, "-q") == 1
    with suite.open("a") as stream:
        stream.write('[[grid]]\ninstances = ["gpt-3-3d"]\nmodels = ["libra-equal"]\n')
    assert cwb("compare", suite, "-o", tmp_path, "-q") == 0
    capsys.readouterr()
    assert cwb("compare", suite, "-o", tmp_path, "-q", "--retry", "failed") == 2
    assert capsys.readouterr().out.startswith("1 of 5 runs: 1 error\n4 were recorded before\n1 x error: nothing: ")


def test_seeds(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every run of the suite is planned with as many seeds as are asked for, from 0."""
    assert cwb("compare", suite, "-o", tmp_path, "--dry-run", "--seeds", "3") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12
    assert [line.split()[-1] for line in lines if line.startswith("ring")][1:3] == ["seed=1", "seed=2"]
    assert cwb("compare", suite, "-o", tmp_path, "--seeds", "0") == 2


def test_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run prints a line a run and writes nothing."""
    assert cwb("compare", "paper-libra", "-o", tmp_path / "results", "--dry-run") == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 90
    assert out.splitlines()[0] == "libra highs gpt-3-3d objective=perf total_bandwidth=100 GB/s"
    assert err == "90 runs planned\n"
    assert not (tmp_path / "results").exists()


def test_dry_run_of_what_is_recorded(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run marks what would be skipped; limits that are asked for make other runs."""
    text = suite.read_text()
    suite.write_text(text.replace("[4, 5]", "[4]"))
    assert cwb("compare", suite, "-o", tmp_path, "-q") == 0
    suite.write_text(text)
    capsys.readouterr()
    assert cwb("compare", suite, "-o", tmp_path, "--dry-run") == 0
    out, err = capsys.readouterr()
    assert [line.endswith("  [recorded]") for line in out.splitlines()] == [True, True, False, False]
    assert err == "4 runs planned, 2 of them recorded\n"
    for limits in (("--time-limit", "5 min"), ("--memory", "4 GiB"), ("--retry", "all")):
        assert cwb("compare", suite, "-o", tmp_path, "--dry-run", *limits) == 0
        assert "[recorded]" not in capsys.readouterr().out
    assert cwb("compare", suite, "-o", tmp_path, "--dry-run", "--grace", "1 s", "--retry", "limit") == 0
    assert capsys.readouterr().out.count("[recorded]") == 2


def test_a_broken_ledger(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line that was cut is moved aside, which is told, and its run made again."""
    assert cwb("compare", suite, "-o", tmp_path, "-q") == 0
    path = tmp_path / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-100])
    capsys.readouterr()
    assert cwb("compare", suite, "-o", tmp_path, "-q") == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "1 of 4 runs: 1 feasible",
        "3 were recorded before",
        "broken lines of the ledger: 1, moved to records.jsonl.broken",
    ]


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--memory", "4"), "--memory: '4' has no unit"),
        (("--memory", "0 B"), "--memory: '0 B' must be greater than zero"),
        (("--time-limit", "soon"), "--time-limit: 'soon' is not a quantity"),
        (("--grace", "1 GiB"), "--grace: '1 GiB' has an unknown unit"),
        (("--executor", "cloud"), "--executor: 'cloud' is unknown; expected local, dask://HOST:PORT"),
        (("--retry", "some"), "--retry: 'some' is unknown; expected one of failed, limit, all"),
        (("--jobs", "0"), "--jobs: 0 is wrong; expected a whole number of at least 1"),
    ],
)
def test_errors(
    more: tuple[str, ...], problem: str, suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong input gives one line with the option, the value and the expectation, and nothing is written."""
    assert cwb("compare", suite, "-o", tmp_path / "results", *more) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert problem in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("results/*"))


def test_ctrl_c(tmp_path: Path) -> None:
    """Ctrl-C ends a comparison with a summary, whole records and exit status 130; it goes on where it was."""
    suite = tmp_path / "suite.toml"
    suite.write_text(GRID.replace("[4, 5]", "{from = 4, to = 60}"))
    command = [sys.executable, "-m", "cwb", "compare", str(suite), "-o", str(tmp_path), "-j", "2"]
    for _ in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            for _ in range(2):
                process.stderr.readline()
            os.kill(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "Traceback" not in err
        kept = len(list(read_records(tmp_path)))
        assert (
            f"interrupted: {kept} records are kept; runs in progress have none, and the same command makes them" in out
        )
    records = list(read_records(tmp_path))
    assert len({record.key for record in records}) == len(records) >= 4
    assert f"{len(records) - int(out.split()[0])} were recorded before" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["records.jsonl", "suite.toml"]


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (61, "1 min 1 s"), (7322, "2 h 2 min")])
def test_durations(seconds: float, text: str) -> None:
    """Seconds are written as people do."""
    assert duration(seconds) == text


def test_a_terminal_has_a_bar(suite: Path, tmp_path: Path) -> None:
    """On a terminal a bar is drawn on stderr, and stdout has the summary alone."""
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "cwb", "compare", str(suite), "-o", str(tmp_path / "results"), "-j", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower, text=True) as process:
        os.close(follower)
        seen = b""
        while True:
            try:
                read = os.read(leader, 65536)
            except OSError:  # the other side is closed
                break
            seen += read
            if not read:
                break
        out, _ = process.communicate(timeout=60)
    os.close(leader)
    assert out.startswith("4 of 4 runs: 4 feasible\n")
    assert "━".encode() in seen
    assert b"running" in seen
