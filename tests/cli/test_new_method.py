"""``cwb new-method``: a folder that works at once."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import cwb as package
import pytest
from command_line import cwb
from cwb.cli.formulate import FILES, TEMPLATE
from cwb.harness.registry import PLUGINS

ROOT = Path(package.__file__).parent


def test_the_folder_is_the_template_under_its_name(tmp_path, monkeypatch):
    """Files and their texts have the new name and nothing of the template's; the example is what its own name gives."""
    monkeypatch.delitem(sys.modules, "my_flow", raising=False)  # which pages of the documentation load
    monkeypatch.chdir(tmp_path)
    assert cwb("new-method", "two-words") == 0
    written = {path.name: path.read_text() for path in (tmp_path / "two-words").iterdir()}
    assert set(written) == {name.replace("my_flow", "two_words") for name in FILES}
    assert not [name for name, text in written.items() if "my_flow" in text or "my-flow" in text]
    points = tomllib.loads(written["pyproject.toml"])["project"]["entry-points"]["cwb.models"]
    assert points == {"two-words": "two_words:METHOD", "two-words-lp": "two_words:FORMULATION"}
    assert cwb("new-method", TEMPLATE, tmp_path / "again") == 0
    for name in FILES:
        assert (tmp_path / "again" / name).read_text() == (ROOT / "examples" / "my_flow" / name).read_text()


def test_all_files_of_the_example_are_copied_and_packed():
    """The template's list is its folder, and the wheel holds it."""
    there = {path.name for path in (ROOT / "examples" / "my_flow").iterdir()}
    assert {name for name in there if not name.startswith((".", "__"))} == set(FILES)
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["cwb"]
    assert "examples/my_flow/*.*" in data


@pytest.mark.slow
def test_the_folder_works_at_once(tmp_path, monkeypatch, capfd):
    """Its own tests pass, the linter finds nothing, and its formulation is solved, under the longest of names."""
    name = "a-name-as-long-as-names-of-methods-are-x"
    module = name.replace("-", "_")
    assert len(name) == 40
    assert cwb("new-method", name, tmp_path / "mine") == 0
    environment = {**os.environ, "NO_COLOR": "1", PLUGINS: ""}

    def run(*words: str) -> str:
        command = [sys.executable, "-m", *words]
        done = subprocess.run(
            command, cwd=tmp_path / "mine", env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "7 passed" in run("pytest", "-q", "-p", "no:cacheprovider")
    run("ruff", "check", ".")
    run("ruff", "format", "--check", ".")
    monkeypatch.setenv(PLUGINS, "")
    monkeypatch.chdir(tmp_path / "mine")
    assert cwb("solve", "--plugin", f"{module}.py", "--formulation", f"{name}/lp", "sites.json", "--quiet") == 0
    assert "optimal (attested)" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Flow", "'Flow' is no name for a method; expected at most 40 lowercase letters"),
        ("1-flow", "is no name"),
        ("my_flow", "is no name"),
        ("a--b", "is no name"),
        ("class", "is no name"),
        ("f" * 41, "is no name"),
        ("../up", "is no name"),
        ("ring", "'ring' is the name of another method"),
        ("random", "'random' is the name of a Python module"),
        ("numpy", "'numpy' is the name of a Python module"),
    ],
)
def test_names_that_cannot_be_used_are_refused(name, reason, tmp_path, monkeypatch, capsys):
    """A bad name is one line and exit status 2, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert cwb("new-method", name) == 2
    told = capsys.readouterr().err
    assert reason in told
    assert told.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_what_exists_is_left_alone(tmp_path, capsys):
    """A folder or file that exists, and one without a folder around it, are refused in one line."""
    assert cwb("new-method", "mine", tmp_path) == 2
    assert "it already exists" in capsys.readouterr().err
    assert cwb("new-method", "mine", tmp_path / "no" / "mine") == 2
    assert "its folder does not exist" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
