"""``cwb train`` from the outside: what is printed, drawn and refused."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner
from cwb.cli.train import train
from cwb.core.errors import InputError

LINES = ["torus(4,4)", "-w", "resnet-50-layers", "-m", "20 us + 11 GB/s"]


def run(*arguments):
    """(exit status, output) of a call; errors come out as they are."""
    runner = CliRunner()
    with runner.isolation() as (out, _, _):
        status = train.main([*arguments, "--quiet"], standalone_mode=False)
        return status, out.getvalue().decode()


def test_the_parts_sum_to_the_iteration():
    """The JSON has the time, its parts, and a bound; the smallest of several buckets' times is taken."""
    status, out = run(*LINES, "--bucket", "1MB", "--bucket", "100MB", "--json")
    found = json.loads(out)
    assert status == 0
    assert found["schema"] == "cwb-training/1"
    assert sum(found["spent_s"].values()) == pytest.approx(found["iteration_s"])
    assert found["lower_bound_s"] <= found["iteration_s"] == min(found["tried_s"].values())
    assert found["loop"] == "ddp"
    assert {each["group"] for each in found["collectives"]} == {"dp"}


def test_tables_say_stages_and_buckets():
    """Stages, micro-batches, the size of the bucket and how many were tried are told, and long lists are cut."""
    pipeline = ["ring(64)", "-w", "gpt-3-pipeline", "-m", "20 us + 11 GB/s", "--loop", "ddp", "--microbatches", "4"]
    _, out = run(*pipeline)
    assert re.search(r"stages, micro-batches +│ +8, 4 │ +1f1b", out)
    _, out = run(*LINES, "--loop", "ddp", "--bucket", "1B", "--bucket", "1GB")
    assert re.search(r"bucket +│ +1 B │ +best of 2", out)


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_timeline(tmp_path, suffix):
    """The same plot is drawn every time, and a file of no plot is refused."""
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        run(*LINES, "--bucket", "25MiB", "--timeline", str(file))
    first, second = (file.read_bytes() for file in files)
    assert first == second
    assert len(first) > 1000
    with pytest.raises(InputError, match="unknown suffix"):
        run(*LINES, "--timeline", str(tmp_path / "a.txt"))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--bucket", "1MB", "--loop", "no-overlap"], "--bucket: given in the loop no-overlap; expected --loop ddp"),
        (["--bucket", "1"], "--bucket: '1' has no unit"),
        (["--group", "tp"], "--group: 'tp' is no pair; expected name=value"),
        (["-g", "tp=2", "-g", "tp=2"], "--group: 'tp' is given twice"),
        (["-m", "ring"], "--method: 'all' is given twice"),
        (["-O", "queue=fifo"], "-O: 'queue=fifo' names no method; expected such as themis.queue=fifo"),
        (["--bandwidth", "1 GB/s,x"], "--bandwidth: 'x' is not a quantity"),
    ],
)
def test_bad_input(arguments, reason):
    """One line with the option, the value and what was expected."""
    with pytest.raises(InputError) as caught:
        run(*LINES, *arguments)
    assert reason in str(caught.value)
