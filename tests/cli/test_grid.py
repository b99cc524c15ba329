"""Suites that are written as options of ``cwb compare``."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import cwb
from cwb.harness.plan import cells
from cwb.studies.grid import GridOptions, sizes, split, suite_of


def test_names_between_commas() -> None:
    """Commas in brackets and quotation marks belong to a name."""
    text = 'torus(4,4), my.json,libra(workload=gpt-3, dims="RI(4),x"),RI(4)_FC(8),'
    assert split(text) == ["torus(4,4)", "my.json", 'libra(workload=gpt-3, dims="RI(4),x")', "RI(4)_FC(8)"]


def test_sizes_are_listed_or_ranges() -> None:
    """A range has a factor of 4 unless it says another one."""
    assert sizes("1MiB, 2 GiB") == ["1MiB", "2 GiB"]
    assert sizes("1KiB..1GiB") == {"from": "1KiB", "to": "1GiB", "factor": 4}
    assert sizes("1 KiB .. 1 GiB * 32") == {"from": "1 KiB", "to": "1 GiB", "factor": 32}


def test_the_plan_is_that_of_a_file() -> None:
    """Every combination is a run; instances that ask for nothing are asked for an all-reduce, which is told."""
    asked = GridOptions("ring,bfb", "torus(3,3),a100x2", None, "1KiB..1MiB*1024", None, {"x": "1"})
    told: list[str] = []
    plan = cells(suite_of(None, asked, told.append))
    assert [(c.request.model, c.instance, c.collective, c.size) for c in plan[:4]] == [
        ("ring", "torus(3,3)", "all_reduce", "1 KiB"),
        ("ring", "torus(3,3)", "all_reduce", "1 MiB"),
        ("bfb", "torus(3,3)", "all_reduce", "1 KiB"),
        ("bfb", "torus(3,3)", "all_reduce", "1 MiB"),
    ]
    assert [c.collective for c in plan[4:]] == [None] * 4
    assert all(c.request.options == {"x": "1"} for c in plan)
    assert told == ["--collectives: all_reduce on torus(3,3), by default"]


def test_a_dry_run_says_what_would_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files are opened, options and support are checked, and nothing is written; what is wrong is exit status 2."""
    grid = ("compare", "--models", "rhd", "--collectives", "all_gather", "-o", tmp_path / "results", "--dry-run")
    assert cwb(*grid, "--instances", "ring(4),ring(5)") == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "rhd highs ring(4) all_gather",
        "rhd highs ring(5) all_gather  [unsupported: rhd: 5 ranks are not a power of two]",
    ]
    assert err == "2 runs planned, 1 of them unsupported\n"
    assert cwb(*grid, "--instances", "nothing.json") == 2
    assert capsys.readouterr().out.endswith("[error: nothing.json: no such file or directory]\n")
    assert cwb(*grid, "--instances", "ring(4)", "-O", "speed=3") == 2
    assert "[error: -O: speed: unknown field" in capsys.readouterr().out
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--models", "rng", "--instances", "ring(4)"), "--models: unknown 'rng'; expected one of libra, "),
        (("--models", "rng", "--instances", "ring(4)"), "did you mean 'ring'?"),
        (("--models", "ring"), "--instances: missing or empty; expected names between commas"),
        (("--models", "ring", "--instances", ","), "--instances: "),
        (("smoke", "--sizes", "1KiB"), "--sizes: not allowed with a suite, 'smoke'; expected one of the two"),
        ((), "expected SUITE, or --models and --instances"),
        (("--models", "ring", "--instances", "ring(4)", "--sizes", "5"), "--sizes: '5' has no unit"),
        (("--models", "ring", "--instances", "ring(4)", "--sizes", "1KiB..2"), "--sizes: '2' has no unit"),
        (("--models", "ring", "--instances", "ring(4)", "--sizes", "1KiB..1GiB*x"), "'x' is not a factor"),
        (("--models", "ring", "--instances", "ring(4)", "--sizes", "1GiB..1KiB"), "a range that goes up"),
        (
            ("--models", "ring", "--instances", "ring(4)", "--collectives", "allreduce"),
            "--collectives: 'allreduce' is unknown; expected one of all_gather",
        ),
        (
            ("--models", "ring", "--instances", "ring(4)", "--solvers", "hihgs"),
            "did you mean 'highs'?",
        ),
    ],
)
def test_errors(words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Wrong input gives one line with the option, the value and the expectation, and nothing is written."""
    assert cwb("compare", *words, "-o", tmp_path / "results") == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert problem in err
    assert not (tmp_path / "results").exists()
