"""The page of times over emulated networks, and the benchmark that makes its numbers."""

from __future__ import annotations

import csv
import importlib.util
import sys
from pathlib import Path

from cwb.studies.reproduce import load_paper, order_of_methods

ROOT = Path(__file__).parents[2]


def load_benchmark():
    """Import the benchmark, which is no module of the package."""
    spec = importlib.util.spec_from_file_location("emulation_times", ROOT / "benchmarks" / "emulation.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


EMULATION = load_benchmark()
ROWS = EMULATION.read(ROOT / "docs" / "benchmarks" / "emulation.csv")


def test_the_page_has_the_numbers_of_the_results():
    """The page has the summary of the file of results line by line, and all data was right."""
    page = (ROOT / "docs" / "emulation.md").read_text(encoding="utf-8")
    for line in EMULATION.summary(ROWS):
        assert line in page
    assert {row.right for row in ROWS} == {"yes"}
    assert len(ROWS) >= 40


def test_the_page_has_measured_times_of_mtree():
    """The page has the times of every method of the measured figure, and the number of pairs in order."""
    page = (ROOT / "docs" / "mtree-figures.md").read_text(encoding="utf-8")
    with (ROOT / "docs" / "benchmarks" / "mtree-emulated.csv").open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    times = ("predicted_s", "predicted_with_headers_s", "median_s")
    for method in load_paper("mtree").emulated.runs:
        cells = [f"{float(row[time]):.2f}" for row in rows if row["method"] == method for time in times]
        assert f"| {method} | {' | '.join(cells)} |" in page
    numbers = [{"instance": row["instance"], **{time: float(row[time]) for time in times}} for row in rows]
    right, _, total = order_of_methods(numbers).split()[:3]
    assert f"{right} of {total} are predicted in the measured order" in page
    assert {row["status"] for row in rows} == {"right"}


def test_pairs_are_of_one_task_and_differ():
    """Only methods for one task whose measured times differ by more than 5 % are pairs."""
    one = ROWS[0]._replace(predicted_s=1.0, measured_s=1.0)
    slower = one._replace(predicted_s=1.1, measured_s=1.2)
    rows = [one, slower, one._replace(measured_s=1.04), slower._replace(network="other")]
    assert EMULATION.count_ordered_pairs(rows) == (2, 2)
    assert EMULATION.count_ordered_pairs([one, slower._replace(predicted_s=0.9)]) == (0, 1)
