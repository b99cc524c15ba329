"""Methods on links and methods on dimensions, side by side on the same networks."""

from __future__ import annotations

import pytest
from cwb.harness.plan import Cell
from cwb.harness.request import Request
from cwb.harness.task import run_cell


@pytest.mark.parametrize("model", ["ring", "blueconnect", "themis"])
def test_both_views_of_a_network_are_one(model):
    """Every method answers on links and on the fabric that they are, verified and in the same time."""
    records = [run_cell(Cell(text, Request(model), "all_reduce", "1 MiB", 2)) for text in ("torus(4,5)", "RI(4)_RI(5)")]
    assert [(record.status, record.verified) for record in records] == [("feasible", True)] * 2
    assert records[0].objective == records[1].objective


def test_changes_of_a_cell():
    """A cell with changes is run on the changed network, and its record is named after them."""
    edits = (("--ranks", "0-3"), ("--link", "0:1=25GB/s"))
    record = run_cell(Cell("torus(4,4)", Request("ring"), "all_reduce", "1 MiB", edits=edits))
    assert record.instance == "torus(4,4) --link 0:1=25GB/s --ranks 0-3"
    assert record.verified
    wrong = run_cell(Cell("torus(4,4)", Request("ring"), "all_reduce", "1 MiB", edits=(("--ranks", "0-99"),)))
    assert wrong.status == "error"
    assert "--ranks: '0-99' is out of range; expected ranks from 0 to 15" in wrong.message
