"""Commands that pages show with their output print what is shown."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cwb.cli.main import run
from cwb.core import collective
from cwb.core.errors import ExitStatus
from cwb.harness.registry import PLUGINS
from draws import NIGHTLY
from pages import ROOT, fenced_blocks, page_texts, same

#: Pages of which every command is run, also those that are shown without output, since others need their files.
WHOLE = {"docs/own-models.md", "docs/exchange/round-trip.md", "docs/questions.md"}

#: What the pages' commands need that is not part of every installation.
NEEDS = {"docs/own-models.md": ("scip", "gurobi", "pyomo:cbc", "pyomo:glpk")}


#: Commands that take half a minute, of the nightly run.
LONG = ("cwb export mscclpp less.json", "cwb check less.plan.json") if not NIGHTLY else ()


def steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """Every command of a block, with the lines that are shown below it."""
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield command, [line for line in shown if line.strip() and line.strip() != "..."]


def pages_with_output() -> dict[str, list[str]]:
    """Console blocks by page: those with output, or all of a page in ``WHOLE``."""
    found: dict[str, list[str]] = {}
    for page, text in page_texts().items():
        for block in fenced_blocks(text, "console"):
            if page in WHOLE or any(shown for _, shown in steps(block)):
                found.setdefault(page, []).append(block)
    return found


PAGES = pages_with_output()


@pytest.fixture
def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Run a command in a folder of the page's own, and compare what it prints."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "instances").symlink_to(ROOT / "instances")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv(PLUGINS, "")  # what pages plug in is forgotten afterwards
    monkeypatch.setattr(collective, "_registry", dict(collective._registry))
    examples = str(ROOT / "examples")
    monkeypatch.setattr(sys, "path", [path for path in sys.path if not path.startswith(examples)])

    def step(command: str, shown: list[str]) -> None:
        words = shlex.split(command)
        if words[0] == "cat":
            (tmp_path / words[1]).write_text("\n".join(shown) + "\n")
        elif words[0] == "mkdir":
            (tmp_path / words[1]).mkdir()
        elif words[0] == "python":
            printed = subprocess.run([sys.executable, *words[1:]], check=True, capture_output=True, text=True).stdout
            assert printed.splitlines() == shown
        elif words[0] == "cwb" and not command.startswith(LONG):
            with pytest.raises(SystemExit) as ended:
                run(words[1:])
            captured = capfd.readouterr()
            printed = (captured.out + captured.err).splitlines()
            assert ended.value.code == expected_status(shown), (command, captured.err)
            missing = [line for line in shown if not any(same(line, other) for other in printed)]
            assert not missing, f"{command}: {missing} not in\n" + "\n".join(printed)

    return step


def expected_status(shown: list[str]) -> int:
    """The exit status that goes with the lines that are shown."""
    if any(line.startswith("cwb: error: ") for line in shown):
        return ExitStatus.BAD_INPUT
    return ExitStatus.UNSUPPORTED if any(line.startswith("cwb: unsupported: ") for line in shown) else 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.programs) if page in NEEDS else page for page in PAGES]
)
def test_commands_print_what_their_page_shows(page, execute, request):
    """Every command that a page shows with output runs, in order, with the exit status and the lines that are shown."""
    if page == "docs/own-models.md":
        pytest.importorskip("clarabel")
    for name in NEEDS.get(page, ()):
        request.getfixturevalue("require_solver")(name)
    for block in PAGES[page]:
        for command, shown in steps(block):
            execute(command, shown)


def test_pages_show_output():
    """The guide shows what its commands print."""
    assert {"README.md", "docs/getting-started.md", *WHOLE} <= set(PAGES)
