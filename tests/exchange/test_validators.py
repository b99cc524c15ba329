"""Stored times of other simulators: the exports that gave them are still the same, and so are the times of cwb."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load_benchmark():
    """The benchmark as a module."""
    path = ROOT / "benchmarks" / "validators" / "compare.py"
    spec = importlib.util.spec_from_file_location("compare_validators", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their types
    spec.loader.exec_module(module)
    return module


COMPARE = load_benchmark()
RESULTS = ROOT / "docs" / "benchmarks" / "validators.csv"

#: Schedules of every form, small enough to be made again.
STORED = [
    row
    for row in COMPARE.read(RESULTS)
    if (row.size, row.collective) == ("1 MB", "all_gather") and row.network.startswith("switch(8")
]


@pytest.mark.parametrize("row", STORED, ids=lambda row: f"{row.simulator}-{row.method}")
def test_stored_times_are_those_of_todays_files(row, tmp_path):
    """The same schedule gives the same exported files and the same time; a change asks for a new run of the program."""
    one = COMPARE.SIMULATORS[row.simulator]
    export, cwb_ns = COMPARE.solve(one, row.network, row.collective, row.method, row.size, tmp_path)
    assert row.commit == one.commit
    assert cwb_ns == pytest.approx(row.cwb_ns, rel=1e-9)
    assert export == row.export, "the export is another one than the simulator ran"


def test_every_difference_has_a_cause():
    """Times that differ by over 1 % have a named cause, and without it they agree, but for a simulator of packets."""
    far = [row for row in COMPARE.read(RESULTS) if abs(row.error) > COMPARE.NEAR]
    assert far
    for row in far:
        assert row.cause == COMPARE.PACKETS or (row.cause and row.is_explained), row


def test_the_cause_is_found_without_a_simulator(tmp_path):
    """A time that cwb has if the ports of a switch serve what comes first is explained so; an impossible one is not."""
    one = COMPARE.SIMULATORS["loggopsim"]
    network, *rest = one.networks[2], "reduce_scatter", "60 KiB", "tacos"
    export, cwb_ns = COMPARE.solve(one, network, rest[0], rest[2], rest[1], tmp_path)
    for simulated_ns, cause in ((65_436, COMPARE.PORTS), (10_000, "")):
        row = COMPARE.Row("loggopsim", one.commit, network, *rest, export, simulated_ns, cwb_ns)
        found = COMPARE.explain(one, tmp_path, row, tmp_path)
        assert (found.cause, found.is_explained) == (cause, bool(cause))


def test_the_page_has_the_table_of_the_results():
    """The tables and the total of the page are those of the file."""
    rows = COMPARE.read(RESULTS)
    page = (ROOT / "docs" / "validators.md").read_text(encoding="utf-8")
    assert "\n".join(COMPARE.table(rows)) in page
    assert "\n".join(COMPARE.causes(rows)) in page
    near = sum(abs(row.error) <= 0.01 for row in rows)
    assert f"{near:,} of {len(rows):,} ({near / len(rows):.1%})" in page


def test_times_are_read_from_what_simulators_print():
    """The latest time of all ranks counts, and none is an error."""
    assert COMPARE.latest(r"Host \d+: (\d+)", "Host 0: 5\nHost 1: 12\n") == 12
    with pytest.raises(ValueError, match="no time in: nothing"):
        COMPARE.latest(r"Host \d+: (\d+)", "nothing")


def test_absent_programs_are_left_out(tmp_path, monkeypatch, capsys):
    """A program that is not there is one line, and the results are empty."""
    made = tmp_path / "out.csv"
    monkeypatch.setattr(sys, "argv", ["compare.py", "--loggopsim", str(tmp_path / "none"), "-o", str(made)])
    COMPARE.main()
    assert capsys.readouterr().err.count("is left out") == len(COMPARE.SIMULATORS)
    assert len(made.read_text().splitlines()) == 1
