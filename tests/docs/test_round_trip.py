"""The page from nvidia-smi to XML: its commands, run in order, print what it shows."""

from __future__ import annotations

import shlex

import pytest
from cwb.cli.main import run

pytestmark = pytest.mark.slow  # solves, exports and checks four machines

PAGE = "docs/exchange/round-trip.md"


def test_the_round_trip_is_as_shown(blocks, tmp_path, monkeypatch, capfd):
    """Files that the page shows are written, every command runs, and the lines under it are printed by it."""
    monkeypatch.chdir(tmp_path)
    commands = 0
    for text in [text for page, text in blocks("console") if page == PAGE]:
        for part in text.removeprefix("$ ").split("\n$ "):
            command, _, shown = part.partition("\n")
            words = shlex.split(command)
            if words[0] == "cat":
                (tmp_path / words[1]).write_text(shown)
            elif words[0] == "mkdir":
                (tmp_path / words[1]).mkdir()
            else:
                with pytest.raises(SystemExit) as ended:
                    run(words[1:])
                captured = capfd.readouterr()
                printed = {line.strip() for line in (captured.out + captured.err).splitlines()}
                assert ended.value.code == (2 if shown.startswith("cwb: error") else 0), (command, captured.err)
                assert {line.strip() for line in shown.splitlines() if line.strip()} <= printed, command
                commands += 1
    assert commands > 20
