"""Pages of numbers say by which command, when, at which commit and on which machine their numbers were made."""

from __future__ import annotations

import re
import runpy
from datetime import date
from typing import Any

import pytest


@pytest.fixture(scope="module")
def script(root) -> dict[str, Any]:
    """Run the script that has the list of runs, without running a command."""
    return runpy.run_path(str(root / "docs" / "runs.py"))


def test_every_result_has_a_run(script, root):
    """Every file of results is in the list, with a command whose scripts exist, a date, a commit and a machine."""
    rows = script["runs"]()
    names = [(row["page"], row["numbers"]) for row in rows]
    assert len(names) == len(set(names))
    files = {path.stem for path in (root / "docs" / "benchmarks").glob("*.csv")} - {"runs"}
    assert files <= {name for _, name in names}
    for row in rows:
        assert date.fromisoformat(row["date"]), row
        assert re.fullmatch(r"[0-9a-f]{8}\+?", row["commit"]) and row["machine"] and row["command"], row
        for file in re.findall(r"\S+\.py", row["command"]):
            assert (root / file).is_file(), row


def test_every_page_of_numbers_says_when(script, pages):
    """Every page of the list has its runs in a block, and pages that link to results are in the list."""
    listed = {f"docs/{row['page']}.md" for row in script["runs"]()}
    assert {name for name in pages if "<!-- measured: " in pages[name]} == listed
    assert {name for name in pages if "](benchmarks/" in pages[name] and ".csv)" in pages[name]} <= listed


def test_old_numbers_are_named(script, monkeypatch):
    """Numbers that are older than the release stand in a sentence of their own; none do before the release."""
    header = script["header"]
    assert "Older" not in header("emulation")
    monkeypatch.setitem(header.__globals__, "release_date", lambda: "2999-01-01")
    assert "\nOlder than this release: emulation.\n" in header("emulation")
