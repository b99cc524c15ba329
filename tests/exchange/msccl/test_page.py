"""The page on MSCCL: its commands, run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_line import cwb

pytestmark = pytest.mark.slow  # solves

PAGE = Path(__file__).parents[3] / "docs" / "exchange" / "msccl.md"


def test_the_commands_of_the_page_run(tmp_path, monkeypatch, capsys):
    """From a topology to a file, its check, and back: every command ends with 0, and the files that pass are right."""
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\$ cwb (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    assert len(commands) > 6
    for command in commands:
        capsys.readouterr()
        assert cwb(*shlex.split(command)) == 0, command
        if command.startswith("check"):
            assert ": right, " in capsys.readouterr().out
