"""The page on MSCCL: its commands, run as they stand."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # runs processes

PAGE = Path(__file__).parents[3] / "docs" / "exchange" / "msccl.md"


def test_the_commands_of_the_page_run(tmp_path):
    """From a topology to a file, its check, and back: every command ends with 0, and the files that pass are right."""
    commands = re.findall(r"^\$ cwb (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    assert len(commands) > 6
    for command in commands:
        arguments = [sys.executable, "-m", "cwb", *shlex.split(command)]
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if command.startswith("check"):
            assert ": right, " in done.stdout
