"""The page on reproducing: its list of rows that cannot be checked is that of the papers' files."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from cwb.cli.main import run
from cwb.studies.reproduce import load_paper

DOCS = Path(__file__).parents[2] / "docs"


def test_the_list_of_unchecked_rows_is_what_the_script_writes() -> None:
    """Every row without a number of ours is on the page, under what it needs."""
    script = runpy.run_path(str(DOCS / "unchecked_rows.py"))
    page = script["PAGE"].read_text(encoding="utf-8")
    assert script["fill_page"](page) == page, "run python docs/unchecked_rows.py"


def test_unchecked_rows_are_printed_and_nothing_is_run(capsys) -> None:
    """Each is a line of its own, below what it needs."""
    with pytest.raises(SystemExit) as caught:
        run(["reproduce", "forestcoll", "--unchecked"])
    assert caught.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    missing = [row for row in load_paper("forestcoll").row if row.ours is None]
    assert sum(line.startswith("  ") for line in lines) == len(missing)
    assert {line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")} >= {missing[0].needs}
