"""The page on training shows what the command prints."""

from __future__ import annotations

import json
import re
import shlex

from click.testing import CliRunner
from cwb.cli.train import train


def run(*arguments):
    """Output of a call."""
    runner = CliRunner()
    with runner.isolation() as (out, _, _):
        assert train.main([*arguments, "--quiet"], standalone_mode=False) == 0
        return out.getvalue().decode()


def test_every_field_of_the_json_is_documented(pages):
    """The page has a row for every field."""
    out = run("torus(4,4)", "-w", "resnet-50-layers", "-m", "20 us + 11 GB/s", "--json")
    table = pages["docs/training.md"].partition("`--json` prints")[2].partition("\n## ")[0]
    found = json.loads(out)
    for name in {*found, *found["collectives"][0]} - {"schema"}:
        assert f"`{name}`" in table, name


def test_what_the_page_shows_is_printed(pages, monkeypatch):
    """The lines under the page's first command are those that it prints."""
    monkeypatch.setenv("COLUMNS", "100")
    (block,) = re.findall(r"```console\n(\$ cwb train [^`]*│[^`]*)```", pages["docs/training.md"])
    command, *lines = block.splitlines()
    out = run(*shlex.split(command)[3:])
    printed = [line.rstrip() for line in out.splitlines()]
    assert [line for line in lines if line not in printed] == []
    assert len(lines) > 10
