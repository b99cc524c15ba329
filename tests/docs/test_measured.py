"""The page on measured times, and the benchmark that makes its numbers."""

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
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
        ("allreduce", "recursive_doubling_over", "rhd whole"),
        ("allgather", "default-bruck", "bruck"),
        ("bcast", "default-binomial", "knomial"),
        ("scatter", "linear_nb_ompi", "direct"),
        ("allreduce", "BINE-B_CONT-UTOFU-0-1", "bine"),
        ("allgather", "default-linear", None),
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


def row_of(collective: str, algorithm: str, method: str, size: int, sides: tuple[int, ...] = ()):
    return MEASURED.Row("Fugaku", 8, collective, algorithm, method, size, 1.0, 1.0, 1.0, "", sides)


MACHINE = MEASURED.Machine(Fraction(10**9), Fraction(2, 10**6), Fraction(4 * 10**9))


@pytest.mark.parametrize(
    ("row", "seconds"),
    [
        # Three steps: overhead at both ends, latency, buffer over the bandwidth, and over the adding rate; one copy.
        (row_of("all_reduce", "", "rhd whole", 10**6), 3 * (1e-6 + 2e-6 + 1e-3 + 0.25e-3) + 0.25e-3),
        # A rank spends the overhead on seven messages that it sends, and on as many that it receives.
        (row_of("all_to_all", "", "direct", 8), 14 * 0.5e-6 + 2e-6 + 1e-9),
        # Seven messages pass the root's one port.
        (row_of("gather", "default-basic-linear", "direct", 8 * 10**6), 7e-3 + 3e-6),
        # They use several ports, and on the torus the last dimension brings four of them over one link.
        (row_of("gather", "default-simple", "direct", 8 * 10**6, (2, 2, 2)), 4e-3 + 3e-6),
        # One more message brings every block to its owner.
        (row_of("all_gather", "BINE-VEC_DOUBLING_CONT_SEND-UTOFU-0-1", "bine", 8), 4 * 3e-6 + 8e-9),
    ],
)
def test_closed_forms(row, seconds):
    """Predictions are sums of overheads, latencies, bytes over a bandwidth and over the rate of memory."""
    assert MEASURED.predict_s(row, MACHINE) == pytest.approx(seconds, rel=1e-5)


@pytest.mark.parametrize("sides", [(2, 2, 2), (4, 4), (3, 5), (8,)])
def test_paths_on_a_torus_are_shortest(sides):
    """Links of a path follow one another from the source to the target, with as many hops as the torus has."""
    count = math.prod(sides)
    pairs = np.array([(i, j) for i in range(count) for j in range(count) if i != j])
    ones = np.ones(len(pairs), dtype=np.int64)
    messages = MEASURED.Messages(ones, pairs[:, 0], pairs[:, 1], ones == 0, ones)
    wiring = MEASURED.Wiring(MEASURED.Shape(count, sides, "all_to_all", "direct"), messages)
    for (source, target), path in zip(pairs.tolist(), wiring.paths.tolist(), strict=True):
        ends = [wiring.ends[link] for link in path if link >= 0]
        assert ends[0][0] == f"r{source}"
        assert ends[-1][1] == f"r{target}"
        assert all(one[1] == two[0] for one, two in itertools.pairwise(ends))
        at, to = (np.unravel_index(rank, sides) for rank in (source, target))
        least = sum(min((a - b) % side, (b - a) % side) for a, b, side in zip(at, to, sides, strict=True))
        assert len(ends) == least + 6


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
