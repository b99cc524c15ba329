"""The commands from suites to tables and plots: outputs, exit statuses, one line an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import cwb
from cwb.core.record import RunRecord, read_records

pytestmark = pytest.mark.slow  # a suite is run, and plots are drawn


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a small suite, once for all tests of this file."""
    from cwb.harness.suite import Settings, run_suite

    folder = tmp_path_factory.mktemp("results")
    suite = folder / "suite.toml"
    suite.write_text(
        '[[grid]]\ninstances = ["gpt-3-4d", "no-such-4d", "torus(2,2)"]\nmodels = ["libra"]\n'
        '[grid.options]\nobjective = ["perf", "perf-per-cost"]\ntotal_bandwidth = ["100 GB/s", "500 GB/s"]\n'
    )
    run_suite(suite, folder, settings=Settings(jobs=1))
    return folder


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record one run that no table or plot of LIBRA is made from."""
    from cwb.harness.plan import Cell
    from cwb.harness.run import Request
    from cwb.harness.suite import run_cells

    ledger = tmp_path_factory.mktemp("equal") / "records.jsonl"
    run_cells([Cell("gpt-3-3d", Request("libra-equal"))], ledger)
    return ledger


def the_error(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr; stdout is empty and there is no traceback."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cwb: error: ")
    assert err.count("\n") == 1
    return err


def test_table_on_stdout(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without -o the LaTeX table is on stdout, alone, with a row a budget; what failed has its mark."""
    assert cwb("table", "libra-perf", results) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("\\begin{table}\n")
    assert out.endswith("\\end{table}\n")
    assert "\\caption{LIBRA over EqualBW: speedup and performance per cost}\\label{tab:libra-perf}" in out
    # Speedups of the reference solution, 1.301015 and 1.163852.
    row = next(line for line in out.splitlines() if line.startswith("{GPT-3} & {4D} & 100 &"))
    assert "\\bfseries 1.301 & 1.91 & 4.7" in row
    assert "& 1.164 & \\bfseries 1.16 & \\bfseries 6.929 &" in row
    assert any(line.startswith("{no-such}") and "{err.}" in line for line in out.splitlines())
    assert any(line.startswith("{torus(2,2)}") and "{n/a}" in line for line in out.splitlines())


def test_table_on_a_terminal(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A terminal is shown text; -f latex asks for LaTeX there too."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert cwb("table", "libra-perf", results) == 0
    assert capsys.readouterr().out.startswith("LIBRA over EqualBW: speedup and performance per cost\n\n")
    assert cwb("table", "libra-perf", results, "-f", "latex") == 0
    assert capsys.readouterr().out.startswith("\\begin{table}\n")


def test_a_part_of_the_records(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Records are chosen by conditions and methods, columns by their names, and a label is spread over columns."""
    chosen = ("--where", "instance=gpt*", "--only", "lib*", "--columns", "objective", "--pivot", "method×instance")
    assert cwb("table", "summary", results, *chosen, "-f", "md") == 0
    out, err = capsys.readouterr()
    heading, _, *rows = [line for line in out.splitlines() if line.startswith("|")]
    assert (len(rows), err) == (2, "")
    assert heading.count("gpt-3-4d (objective=p") == 4  # of two objectives and two budgets
    assert "no-such" not in out


def test_default_folder(results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without RECORDS they are looked for in ./results."""
    monkeypatch.chdir(results.parent)
    (results.parent / "results").symlink_to(results)
    assert cwb("table", "libra-perf", "--format", "csv") == 0
    assert capsys.readouterr().out.startswith('"workload","network"')


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("t.tex", "\\begin{table}"),
        ("t.MD", "**LIBRA"),
        ("t.csv", '"workload"'),
        ("t.txt", "LIBRA over"),
        ("t.html", "<!DOCTYPE html>"),
    ],
)
def test_format_by_suffix(name: str, start: str, results: Path, tmp_path: Path) -> None:
    """The suffix of the output tells the format, and a second time gives the same bytes."""
    assert cwb("table", "libra-perf", results, "-o", tmp_path / name) == 0
    content = (tmp_path / name).read_bytes()
    assert content.decode().startswith(start)
    assert cwb("table", "libra-perf", results, "-o", tmp_path / name) == 0
    assert (tmp_path / name).read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_format_goes_before_suffix(results: Path, tmp_path: Path) -> None:
    """A format that is asked for is written whatever the file is called."""
    assert cwb("table", "libra-perf", results, "--format", "csv", "-o", tmp_path / "x.dat") == 0
    assert (tmp_path / "x.dat").read_text().startswith('"workload"')


def test_every_format_is_offered() -> None:
    """The command offers the formats that there are."""
    from click import Choice
    from cwb.cli.records import table
    from cwb.reports.formats import FORMATS

    (option,) = [parameter for parameter in table.params if parameter.name == "form"]
    assert isinstance(option.type, Choice)
    assert list(option.type.choices) == list(FORMATS)


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        pytest.param(name, suffix, marks=() if suffix in often else pytest.mark.nightly)
        for name, often in (("libra-allocation", ("pdf", "png")), ("libra-speedup", ("svg",)))
        for suffix in ("svg", "pdf", "png")
    ],
)
def test_plot(name: str, suffix: str, results: Path, tmp_path: Path) -> None:
    """Every plot is written in the format of its suffix, and nothing is left beside it."""
    assert cwb("plot", name, results, "-o", tmp_path / f"x.{suffix}") == 0
    start = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[suffix]
    assert (tmp_path / f"x.{suffix}").read_bytes().startswith(start)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("table",), "NAME: missing; expected one of libra-perf"),
        (("table", "libra-pref", "{results}"), "unknown table 'libra-pref'; expected one of libra-perf"),
        (("table", "libra-perf", "{tmp}/none"), "none: no such file or folder of records"),
        (("table", "libra-perf", "{tmp}"), "no *.jsonl file in this folder"),
        (("table", "libra-perf", "{tmp}/../suite.toml"), "suite.toml: line 1: not JSON"),
        (
            ("table", "libra-perf", "{equal}"),
            "libra-perf: none of 1 records fits; expected records of the model 'libra'",
        ),
        (("table", "libra-perf", "{results}", "-o", "{tmp}/x.doc"), "x.doc: unknown suffix; expected .tex"),
        (("table", "libra-perf", "{results}", "-o", "{tmp}/no/x.md"), "its folder does not exist"),
        (("table", "libra-perf", "{results}", "-f", "odt"), "--format: 'odt' is unknown; expected one of latex"),
        (
            ("table", "libra-perf", "{results}", "-f", "md", "--standalone"),
            "--standalone: only LaTeX can be a complete document",
        ),
        (("table", "summary", "{results}", "--where", "modl=x"), "--where: no record has a field 'modl'"),
        (("table", "summary", "{results}", "--only", "ring"), "--only: none of 12 records is left"),
        (("table", "summary", "{results}", "--columns", "metod"), "did you mean 'method'?"),
        (("table", "summary", "{results}", "--pivot", "method"), "--pivot: 'method' is no pair of columns"),
        (("plot", "libra-speedup", "{results}", "-o", "x.svg", "--only", "ring"), "--only: none of 12 records is left"),
        (("plot", "schedule.json", "--only", "ring"), "--only: only for plots of records, not for a schedule"),
        (("plot",), "NAME: missing; expected one of libra-allocation, libra-speedup"),
        (("plot", "libra-alloc", "{results}", "-o", "x.svg"), "did you mean 'libra-allocation'"),
        (("plot", "libra-speedup", "{results}"), "-o: give the file to write"),
        (("plot", "libra-speedup", "{results}", "-o", "x.jpg"), "x.jpg: unknown suffix; expected .svg"),
        (("plot", "libra-speedup", "{results}", "-o", "svg"), "svg: unknown suffix"),
        (("plot", "libra-speedup", "{results}", "-o", "{tmp}/no/x.svg"), "its folder does not exist"),
        (("plot", "libra-speedup", "{equal}", "-o", "{tmp}/x.svg"), "libra-speedup: none of 1 records fits"),
        (("compare",), "expected SUITE, or --models and --instances"),
        (("compare", "no-such-suite"), "no-such-suite: no such file; the suites of cwb are"),
        (("compare", "smoke", "-o", "{results}/suite.toml/x"), "suite.toml/x: not a directory"),
    ],
)
def test_errors(
    arguments: tuple[str, ...],
    problem: str,
    results: Path,
    equal: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Wrong names, missing or unfit records and unwritable outputs are one line and exit status 2, and leave nothing
    behind."""
    (tmp_path / "suite.toml").write_text("no record\n")
    (tmp_path / "empty").mkdir()
    places = {"results": results, "tmp": tmp_path / "empty", "equal": equal}
    assert cwb(*(argument.format(**places) for argument in arguments)) == 2
    assert problem in the_error(capsys)
    assert list((tmp_path / "empty").iterdir()) == []


def test_an_output_that_is_a_folder(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An output that is a folder is an error, and the folder stays as it was."""
    (tmp_path / "x.svg").mkdir()
    assert cwb("plot", "libra-speedup", results, "-o", tmp_path / "x.svg") == 2
    assert "x.svg: is a directory" in the_error(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["x.svg"]


def test_a_record_from_solve_fits(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record that 'cwb solve --append' adds takes its place among those of a comparison."""
    ledger = tmp_path / "records.jsonl"
    ledger.write_bytes((results / "records.jsonl").read_bytes())
    assert cwb("solve", "--model", "libra", "4d", "--append", ledger, "-q") == 0
    capsys.readouterr()
    assert cwb("table", "libra-perf", ledger, "-f", "csv") == 0
    assert '"gpt-3","4d",1000.0,"highs","optimal",1.037' in capsys.readouterr().out


def test_commands_are_light() -> None:
    """Importing the commands imports neither matplotlib nor Pyomo nor a report."""
    code = (
        "import sys; from cwb.cli import compare, records; "
        "print([m for m in sys.modules if m.split('.')[0] in ('matplotlib', 'pyomo', 'numpy') "
        "or m.startswith('cwb.reports')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_records_of_the_suite(results: Path) -> None:
    """The suite that these tests use has what they need: optima, failures, and what is not supported."""
    statuses = sorted(record.status for record in _records(results))
    assert statuses == ["error"] * 4 + ["optimal"] * 4 + ["unsupported"] * 4


def _records(folder: Path) -> list[RunRecord]:
    return list(read_records(folder / "records.jsonl"))
