"""The method ``teccl`` on demands that copy: published rows, options, limits, refusals."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cwb.algorithms.epochs.state import empty_state
from cwb.core.collective import Collective, Demand, collective_named
from cwb.core.errors import Unsupported
from cwb.harness import Request, registry, run_one
from cwb.instances import load
from cwb.schedules.epoch_bounds import recomputed_epochs
from grids import network, on_grid

#: Of 99 published rows those of three sizes; ``benchmarks/teccl.py`` solves all.
ROWS = [
    row
    for row in csv.DictReader((Path(__file__).parents[2] / "reference" / "teccl-allgather.csv").open())
    if row["size"] in ("64KB", "1MB", "1GB")
]
NETWORKS = {
    ("NDv2", "2"): ("ndv2(chassis=2, variant=repo)", 16),
    ("NDv2", "4"): ("ndv2(chassis=4)", 32),
    ("DGX2", "2"): ("dgx2(chassis=2)", 32),
}
METHOD = registry.get("teccl")


def solve_instance(instance, seed=0, limit=None, **options):
    return run_one(instance, Request("teccl", options=options, seed=seed, time_limit_s=limit))


def gather(spec, size, kind="all_gather", chunks=1, ranks=None):
    return load(spec).with_changes(demand=Demand(collective_named(kind), Fraction(size), chunks, ranks))


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: "-".join((row["topology"], row["chassis"], row["epoch_type"], row["size"]))
)
def test_published_rows_are_reached_and_proved(row):
    """Every published all-gather takes no more epochs than published, verified, with a bound that meets it."""
    spec, gpus = NETWORKS[row["topology"], row["chassis"]]
    if row["topology"] == "DGX2" and row["epoch_type"] == "Fast_Early_Stop":
        gpus = 16  # the published inputs have eight GPUs a chassis there, and so chunks of twice the size
    chunk = Fraction(row["output_bytes"]) / gpus
    record = solve_instance(
        gather(spec, chunk * int(row["gpus_in_model"])),
        chunk_size=f"{float(chunk):.12g} B",
        epoch_duration=f"{row['epoch_duration_s']} s",
    )
    assert record.verified
    assert record.status == "optimal"
    assert record.metrics["lower_bound_epochs"] == record.metrics["epochs"] <= int(row["epochs"])


def test_ndv2_with_four_chassis_takes_99_epochs():
    """1 GB takes 99 epochs of 0.625 ms, 61.875 ms, where 106 are published."""
    record = solve_instance(gather("ndv2(chassis=4)", 10**9), epoch="fast", timing="te-ccl")
    assert (record.metrics["epochs"], record.metrics["lower_bound_epochs"]) == (99, 99)
    assert record.metrics["epoch_duration_s"] == 0.000625
    assert record.objective == 0.061875


def test_paid_switches_take_four_epochs_more():
    """Switches that pay for what they hand over add the same to bound and schedule, here four epochs."""
    record = solve_instance(gather("ndv2(chassis=4)", 10**9), timing="te-ccl-paid-switch")
    assert (record.status, record.metrics["epochs"]) == ("optimal", 103)


@pytest.mark.parametrize(("chunks", "epochs"), [(1, 35), (2, 67), (4, 131), (8, 259)])
def test_more_chunks_are_proved_as_well(chunks, epochs):
    """NDv2 with two chassis as published, 1, 2, 4 and 8 chunks for each GPU."""
    chunk = Fraction(10**9, 16) / chunks
    instance = gather("ndv2(chassis=2, variant=repo)", chunk * chunks * 15, chunks=chunks)
    record = solve_instance(instance)
    assert (record.status, record.metrics["epochs"]) == ("optimal", epochs)


@pytest.mark.parametrize("kind", ["broadcast", "scatter", "gather"])
@pytest.mark.parametrize("ranks", [None, (3, 9, 4, 12)])
def test_other_collectives_and_groups(kind, ranks):
    """Collectives in which not everybody needs everything are served, at the bound or one epoch beside it."""
    record = solve_instance(gather("torus(4,4)", 10**6, kind, 2, ranks), epoch="slow", effort=2, model_columns=0)
    assert record.verified
    assert record.status == "optimal" or record.metrics["epochs"] == record.metrics["lower_bound_epochs"] + 1


@pytest.mark.parametrize(("method", "options"), [("teccl", {"effort": 1}), ("teccl-milp", {})])
def test_a_model_that_is_too_large_loses_no_schedule(monkeypatch, method, options):
    """If bound and constructions do not meet, and no machine can build the model, the schedule remains."""

    def refuse(*_):
        raise Unsupported("too many columns")

    monkeypatch.setattr("cwb.models.teccl.solve_milp.require_buildable", refuse)
    instance = gather("torus(4,4)", 10**6, "scatter", 2)
    record = run_one(instance, Request(method, options={"epoch": "slow", **options}))
    assert (record.status, record.verified) == ("feasible", True)
    assert record.metrics["epochs"] > 8  # the bound


def test_a_solver_without_integers_is_named():
    """If the solver cannot solve the last model, the schedule remains, and the message says why no model was solved."""
    instance = gather("torus(4,4)", 10**6, "scatter", 2)
    record = run_one(instance, Request("teccl", solver="highs-pdlp", options={"epoch": "slow", "effort": 1}))
    assert (record.status, record.verified) == ("feasible", True)
    assert "proved to be needed; HiGHS PDLP supports no integer variables" in record.message


def test_several_collectives_at_once():
    """Two groups gather at the same time."""
    parts = [Demand(Collective.ALL_GATHER, Fraction(10**6), 1, ranks) for ranks in ((0, 1, 2, 3), (2, 3, 6, 7))]
    record = solve_instance(load("torus(4,4)").with_changes(demand=parts[0], also=(parts[1],)))
    assert record.verified
    assert record.status == "optimal"


def test_the_same_seed_gives_the_same_schedule():
    """Two runs with a search in them agree in every metric and every send."""
    instance = gather("dgx2(chassis=2)", 10**6)
    one, two = (solve_instance(instance, seed=3, effort=2, model_columns=0) for _ in range(2))
    assert one.metrics == two.metrics
    assert one.answer == two.answer


def test_no_time_keeps_the_first_schedule():
    """A time limit of next to nothing ends with a schedule and both numbers, or says that there is none."""
    record = solve_instance(gather("dgx2(chassis=2)", 10**6), limit=0.001)
    assert record.status in {"feasible", "optimal", "limit"}
    assert record.exit_status in {0, 4}
    if record.status == "feasible":
        assert "proved to be needed" in record.message


@pytest.mark.parametrize("buffer", [Fraction(0), None])
@pytest.mark.parametrize("multicast", [True, False])
def test_switches_that_store_or_do_not_copy(buffer, multicast):
    """Switches with no or unlimited room, with and without copies, are used as they allow."""
    links = [(a, 4, 1, 1) for a in range(4)] + [(4, a, 1, 1) for a in range(4)]
    instance = on_grid(network(4, links, (4,), multicast=multicast, buffer=buffer))
    record = solve_instance(instance.with_changes(timing=None), epoch_duration="1 us")
    assert record.verified
    assert record.status in {"optimal", "feasible"}


def test_limited_buffers_are_refused():
    """A switch that can store one chunk is left to the declarative model, with exit status 7."""
    links = [(a, 3, 1, 1) for a in range(3)] + [(3, a, 1, 1) for a in range(3)]
    instance = on_grid(network(3, links, (3,), buffer=Fraction(1000))).with_changes(timing=None)
    record = solve_instance(instance, epoch_duration="1 us")
    assert (record.status, record.exit_status) == ("unsupported", 7)
    assert "teccl-milp" in record.message


def test_what_is_not_taken_is_said():
    """Sums, an all-to-all beside others, and varying bandwidths get a reason."""
    assert "sum" in str(METHOD.supports(gather("torus(4,4)", 1, "all_reduce")))
    both = gather("torus(4,4)", 1, "all_to_all").with_changes(also=(Demand(Collective.ALL_GATHER, Fraction(1)),))
    assert "only a single all_to_all" in str(METHOD.supports(both))
    assert METHOD.supports(load("torus(4,4)")) is not None
    assert METHOD.supports(gather("torus(4,4)", 1, "all_to_all")) is None


@pytest.mark.slow
def test_the_verifier_recomputes_what_is_claimed():
    """The certificate of a record, read by the verifier, proves as many epochs as are claimed."""
    from cwb import solvers
    from cwb.core.bounds import SolverBound
    from cwb.core.budget import Budget

    for spec, size in (
        ("ndv2(chassis=2)", 10**6),
        ("dgx2(chassis=2)", 10**6),
        ("dgx1()", 10**5),
        ("torus(3,3)", 10**3),
    ):
        options = METHOD.options.model_validate({})
        posed = METHOD.pose(gather(spec, size), options)
        outcome = METHOD.run(posed, solvers.get("highs"), Budget(), options)
        if not isinstance(outcome.certificate, SolverBound):
            assert recomputed_epochs(posed, outcome.certificate) == outcome.metrics["lower_bound_epochs"]


@pytest.mark.parametrize(("kind", "third"), [("all_gather", 2), ("broadcast", 6)])
def test_a_link_that_takes_more_chunks_than_can_be_counted(kind, third):
    """Beside a link of 1 kB/s, in epochs of its chunk, one of 3 TB/s takes 3 billion of them: proved, and no table is
    as wide as that."""
    links = [(0, 1, 3000, 0), (1, 0, 3000, 0), (1, 2, Fraction(1, 10**6), 0), (2, 1, Fraction(1, 10**6), 0)]
    instance = on_grid(network(3, links), kind).with_changes(
        timing=None, demand=Demand(collective_named(kind), Fraction(10**6))
    )
    record = solve_instance(instance, epoch="slow")
    assert (record.status, record.verified) == ("optimal", True)
    assert record.objective == pytest.approx(third * 1000 / 3)


def test_tables_that_are_too_large_are_refused():
    """More links and epochs than can be kept account of are told, before memory is taken."""
    with pytest.raises(Unsupported, match="4 links for 1,000,000,000 epochs"):
        empty_state(np.ones((1, 2), dtype=np.bool_), 4, 4, 10**9, 1)
