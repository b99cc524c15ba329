"""``cwb run``."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from command_line import cwb
from cwb.schedules.files import read_schedule, write_schedule

pytestmark = pytest.mark.slow  # processes are started


@pytest.fixture(scope="module")
def schedule(tmp_path_factory):
    """File of a ring's all-reduce."""
    path = tmp_path_factory.mktemp("run") / "s.json"
    assert cwb("solve", "--model", "ring", "ring(3)", "--collective", "all_reduce", "--size", "48 KiB", "-o", path) == 0
    return path


def test_result_and_times_are_printed(schedule, capsys):
    """The table names the collective, the processes, the median, its interval if it has one, and the result."""
    capsys.readouterr()
    assert cwb("run", schedule, "--repeat", "2") == 0
    printed = capsys.readouterr().out
    for text in (
        "all_reduce of 48 KiB on 3 local processes",
        "median of 2",
        "predicted on its network",
        "equal to the",
    ):
        assert text in printed
    assert "50.0% interval" in printed
    assert cwb("run", schedule, "--repeat", "1") == 0
    assert "interval" not in capsys.readouterr().out  # one repetition says nothing about others


def test_json_is_one_object_and_the_file_has_the_same(schedule, tmp_path, capsys):
    """``--json`` prints the object that ``-o`` writes, and options are in it."""
    capsys.readouterr()
    path, options = tmp_path / "run.json", ("--repeat", "3", "--warmup", "0", "--dtype", "float32", "--size", "12 KiB")
    assert cwb("run", schedule, "--json", "-o", path, *options) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(path.read_text())
    assert (found["schema"], found["right"], found["dtype"]) == ("cwb-execution/1", True, "float32")
    assert (found["size_bytes"], found["repeat"], len(found["seconds"])) == (12 * 1024, 3, 3)
    assert found["interval_s"][0] <= found["median_s"] <= found["interval_s"][1]


def test_wrong_data_is_status_5(schedule, tmp_path, capsys):
    """A schedule without its last send is executed, and what is wrong is told."""
    read, path = read_schedule(schedule), tmp_path / "wrong.json"
    keep = np.arange(len(read.answer.sends) - 1)
    wrong = replace(read.answer, sends=read.answer.sends.take(keep), step=read.answer.step[keep])
    write_schedule(path, read.instance, wrong)
    capsys.readouterr()
    assert cwb("run", path, "--repeat", "1") == 5
    printed = capsys.readouterr().out
    assert "WRONG" in printed
    assert "wrong elements; the first is element" in printed


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("--size", "1 PiB"), 4, "a smaller --size would fit"),
        (("--pieces", "2"), 2, "--pieces: only trees are divided into pieces"),
        (("--size", "five"), 2, "--size"),
        (("--repeat", "1000000", "--time-limit", "1"), 4, "the time limit of 1 s ran out"),
    ],
)
def test_what_cannot_be_done_is_one_line(schedule, words, status, told, capsys):
    """Too much data, options that do not apply, and the time limit are one line and the documented status."""
    capsys.readouterr()
    assert cwb("run", schedule, *words, "--quiet") == status
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


def test_what_is_no_schedule_is_told(tmp_path, capsys):
    """A file that is no schedule is named."""
    path = tmp_path / "no.json"
    path.write_text("{}")
    assert cwb("run", path) == 2
    assert "no.json" in capsys.readouterr().err


def test_every_field_is_documented(schedule, capsys):
    """The page has a row for every field of the object."""
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "run.md").read_text()
    capsys.readouterr()
    assert cwb("run", schedule, "--json", "--repeat", "1") == 0
    assert [key for key in json.loads(capsys.readouterr().out) if f"`{key}`" not in page] == []


def test_progress_is_on_stderr(schedule, capsys):
    """Repetitions are counted on stderr, until the limit, and nothing is on stdout."""
    capsys.readouterr()
    assert cwb("run", schedule, "--repeat", "1000000", "--time-limit", "2", "--json") == 4
    out, err = capsys.readouterr()
    *counts, last = err.splitlines()
    assert out == ""
    assert "the time limit of 2 s ran out" in last
    assert all(line.endswith(" of 1,000,001 repetitions") for line in counts)
