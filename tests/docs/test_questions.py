"""The page of questions: complete, and with a table that is made of it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """Run the script that writes outputs and the table, without writing."""
    return runpy.run_path(str(DOCS / "console_outputs.py"))


@pytest.fixture(scope="module")
def page() -> str:
    """Text of the page."""
    return (DOCS / "questions.md").read_text(encoding="utf-8")


def test_the_table_is_made_of_the_page(script: dict[str, Any], page: str) -> None:
    """The table of verdicts at the top is the one that the script makes of the questions below."""
    assert script["verdicts"](page) in page, "run python docs/console_outputs.py docs/questions.md"


def test_every_question_has_a_thread_a_command_and_a_verdict(script: dict[str, Any], page: str) -> None:
    """Each of thirty questions has a link, a command and a verdict, and at least 25 answers agree with the threads."""
    found = list(script["questions"](page))
    assert len(found) == len(re.findall(r"^## .*\?$", page, re.M)) == 30
    assert all(commands for _, commands, _ in found)
    assert {verdict for _, _, verdict in found} == {"Agrees", "Differs", "Cannot answer"}
    assert sum(verdict == "Agrees" for _, _, verdict in found) >= 25
    assert all(
        "https://github.com/" in part.split("```")[0] for part in re.split(r"^## (?=.*\?$)", page, flags=re.M)[1:]
    )


def test_a_shown_line_takes_the_place_of_the_printed_one(script: dict[str, Any]) -> None:
    """A row is found by its first cell, another line by its words without numbers; a line that is not printed ends."""
    printed = ["5 ms expected, 4 ms to 7 ms in nine", "│ busbw  │   2.5 GB/s │", "400 GB/s bus bandwidth, as measured"]
    assert script["pick_line"]("│ busbw │ 1 GB/s │", printed) == "│ busbw │ 2.5 GB/s │"
    assert script["pick_line"]("0 us expected, 0 us to 0 us in nine", printed) == printed[0]
    assert script["pick_line"]("0 GB/s bus bandwidth", printed) == printed[2]
    with pytest.raises(SystemExit, match="is not in"):
        script["pick_line"]("other", printed)
