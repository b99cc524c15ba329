"""The page on training shows what the command prints."""

from __future__ import annotations

import json

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
