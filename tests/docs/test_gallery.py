"""The gallery and the front page: what they show is there, and their commands are commands."""

from __future__ import annotations

import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest
from cwb.cli.main import GROUPS
from cwb.cli.main import cwb as program
from cwb.reports.plots import PLOTS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """Run the script that makes the gallery, without making it."""
    return runpy.run_path(str(DOCS / "gallery.py"))


def test_the_pages_are_what_the_script_writes(script: dict[str, Any]) -> None:
    """The gallery, and the front page's sentences with their numbers, are what the script writes today."""
    assert script["PAGE"].read_text(encoding="utf-8") == script["page"](), "run python docs/gallery.py"
    front = script["FRONT"].read_text(encoding="utf-8")
    assert script["fill_front"](front) == front, "run python docs/gallery.py hero"


def test_every_picture_is_there(script: dict[str, Any]) -> None:
    """Every entry has its picture, no picture is left over, and every plot of records is shown."""
    pictures = [each for group in script["GROUPS"].values() for each in group]
    files = {path.name for path in script["PICTURES"].iterdir()}
    assert {each.file for each in pictures} | {"hero.svg", "hero.json"} == files
    assert set(PLOTS) <= {each.name for each in pictures}


def test_every_command_can_be_read(script: dict[str, Any]) -> None:
    """Each command of the gallery parses with its own parser, and makes the file that is shown or needed."""
    pictures = [each for group in script["GROUPS"].values() for each in group]
    for line in (*script["BEFORE"].values(), *(each.command for each in pictures), script["HERO"]):
        _, name, *arguments = shlex.split(line)
        command = program.get_command(None, name)
        command.make_context(name, arguments)
    for name, line in script["BEFORE"].items():
        assert shlex.split(line)[-1] == name


def test_the_command_line_groups_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """Every command stands in one group, in the help and on a page of the reference."""
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == len(set(names))
    program.main(["--help"], prog_name="cwb", standalone_mode=False)
    sections = capsys.readouterr().out.split("\n\n")
    for title, group in GROUPS.items():
        (section,) = [text for text in sections if text.startswith(f"{title}:\n")]
        assert [line.split()[0] for line in section.splitlines()[1:]] == list(group)
        page = (DOCS / "cli" / f"{title.lower()}.md").read_text(encoding="utf-8")
        assert [line.split()[-1] for line in page.splitlines() if ":prog:" in line] == list(group)
