"""The page on measured times, and the benchmark that makes its numbers."""

from __future__ import annotations

import importlib.util
import sys
from fractions import Fraction
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load_benchmark():
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("measured_times", ROOT / "benchmarks" / "measured.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their types
    spec.loader.exec_module(module)
    return module


MEASURED = load_benchmark()


@pytest.mark.parametrize(
    ("collective", "algorithm", "method"),
    [
        ("allreduce", "ring_ompi", "ring"),
        ("allreduce", "rabenseifner_ompi", "rhd"),
        ("allreduce", "recursive_doubling_over", MEASURED.DOUBLING),
        ("allgather", "default-bruck", "bruck"),
        ("bcast", "default-binomial", "knomial"),
        ("scatter", "linear_nb_ompi", "direct"),
        ("allreduce", "BINE-B_CONT-UTOFU-0-1", "bine"),
        ("allreduce", "BINE-B_CONT-UTOFU-0-6", None),
        ("allreduce", "default_ompi", None),
        ("allreduce", "bine_bdw_remap_segmented_over", None),
    ],
)
def test_named_algorithms_have_methods(collective, algorithm, method):
    """Names of the series mean methods with the same messages; several ports, segments and defaults have none."""
    assert MEASURED.method_of(collective, algorithm) == method


def test_half_of_the_sizes_is_fitted():
    """Of the ten sizes of the series, every second one is fitted, from the smallest on."""
    rows = [MEASURED.Row("", 2, "", "", "", 4 * 8**k, 1.0, 1.0, 1.0, "") for k in range(10)]
    assert [row.is_fitted for row in rows] == [True, False] * 5


def test_closed_forms():
    """Doubling of a buffer S costs log n steps: overhead, latency, S over the bandwidth, S over the adding rate."""
    machine = MEASURED.Machine(Fraction(10**9), Fraction(2, 10**6), Fraction(4 * 10**9))
    row = MEASURED.Row("", 8, "all_reduce", "", MEASURED.DOUBLING, 10**6, 1.0, 1.0, 1.0, "")
    assert MEASURED.predict_s(row, machine) == pytest.approx(3 * (0.5e-6 + 2e-6 + 1e-3 + 0.25e-3), rel=1e-9)


def test_a_fit_predicts_times_that_it_has_not_seen():
    """Fitted on half of twelve measured all-reduces, the others are predicted within a factor of 2.5, and in order."""
    rows, total = MEASURED.read_rows(ROOT / "tests" / "reference" / "pico.csv")
    assert total == len(rows) == 12
    machine = MEASURED.fit([row for row in rows if row.is_fitted])
    found = [MEASURED.Prediction(row, MEASURED.predict_s(row, machine) * 1e6) for row in rows if not row.is_fitted]
    assert all(1 / 2.5 < 1 + each.error < 2.5 for each in found)
    right, wrong, equal = MEASURED.count_ordered_pairs(found)
    assert right > 0
    assert wrong <= 1
    assert equal == 0


def test_the_page_has_the_numbers_of_the_results():
    """Errors in the file of results follow from its times, and the page has their summary line by line."""
    found = MEASURED.read(ROOT / "docs" / "benchmarks" / "measured.csv")
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    for line in MEASURED.summary(found):
        assert line in page
