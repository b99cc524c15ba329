"""Results of nccl-tests: tables of several versions, files of -J, and what is wrong with others."""

from __future__ import annotations

import json

import pytest
from cwb.core.collective import Collective
from cwb.core.errors import InputError
from cwb.exchange.nccl import read_measured
from nccl_tests_files import json_text, reference, table_text

ROWS = reference("h100-2x8-all_reduce")


def read(folder, text):
    path = folder / "results.txt"
    path.write_text(text)
    return read_measured(path)


def triples(found):
    times = {}
    for sample in found.samples:
        times.setdefault(sample.size, []).append(round(sample.seconds * 1e6, 2))
    return [(size, *some) for size, some in times.items()]


def test_text_and_json_have_the_same_times(tmp_path):
    """The table and the file of -J give the same samples, collective and number of ranks."""
    text, data = read(tmp_path, table_text(ROWS, ranks=16)), read(tmp_path, json_text(ROWS, ranks=16))
    assert triples(text) == triples(data) == ROWS
    assert text.collective is data.collective is Collective.ALL_REDUCE
    assert (text.ranks, data.ranks, data.version) == (16, 16, "2.29.7")


def test_tables_of_old_versions(tmp_path):
    """Older tables have no root, and large times no decimals; a line may have a time stamp before it."""
    rows = reference("2080ti-2")
    found = read(tmp_path, table_text(rows, old=True))
    assert triples(found) == rows
    stamped = "\n".join(f"Thu Jul 18 15:41:05 2024<stdout>:{line}" for line in table_text(ROWS).splitlines())
    assert triples(read(tmp_path, stamped)) == ROWS
    assert triples(read(tmp_path, "  1024  256  float  sum  12646  0.08  0.1  0e+00  12650  0.08  0.1  0e+00")) == [
        (1024, 12646.0, 12650.0)
    ]


def test_lines_in_part(tmp_path):
    """A line that was measured out of place alone has one time, and lines of no bytes or another kind none."""
    text = (
        "0 0 float sum -1 5.1 0.0 0.0 0 5.2 0.0 0.0 0\n64 16 float none -1 7.5 0.1 0.1 N/A\n"
        "NCCL version 2.19.3+cuda12\n# Rank 0 Pid 1"
    )
    found = read(tmp_path, text)
    assert triples(found) == [(64, 7.5)]
    assert (found.collective, found.ranks, found.version) == (None, 1, "2.19.3")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nothing", "no line with a size and times"),
        ("nccl-library=" + "9" * 5000, "no line with a size and times"),
        ("{", "not JSON"),
        ("{}", "results: None"),
        ('{"results": [1]}', r"results\[0\]: expected an object"),
        ('{"results": [{"size": 8, "in_place": {"time": "nan"}}]}', r"results\[0\].in_place.time: 'nan'"),
        (json.dumps({"results": [{"size": 8, "in_place": None}]}), "no line with"),
        (json.dumps({"ranks": [{"rank": []}], "results": []}), "no line with"),
        (json.dumps({"results": [{"size": 10**99, "in_place": {"time": 5}}]}), r"results\[0\].in_place: 1000.*2\^60"),
        ("8 2 float sum -1 5 1 1 0\n8 2 float sum -1 1e999 1 1 0", "line 2: inf us; expected a time from 0.001 to"),
        ("8 2 float sum -1 1e-320 1 1 0", "line 1: 9.99.*us; expected a time from 0.001 to"),
        (f"{'9' * 400} 2 float sum -1 5 1 1 0", r"line 1: 9999.*; expected a size of at most 2\^60 bytes"),
    ],
)
def test_wrong_files(tmp_path, text, told):
    """Files without results, and wrong ones, are refused with their place."""
    with pytest.raises(InputError, match=told):
        read(tmp_path, text)
