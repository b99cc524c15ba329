"""One completion time in every place, and what it is: ``solve``, ``simulate``, ``check``, tables and plots."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.equal_steps import TranslatedTrees
from cwb.core.timing import BandwidthChange, Semantics, Timing
from cwb.harness import Request, registry, run
from cwb.instances import load
from cwb.reports.bounds import Bounds
from cwb.reports.plots.ledger import _COMPLETION, _values
from cwb.reports.runs import runs_of
from cwb.reports.table import build
from cwb.reports.tables import get
from cwb.schedules import verdict_of
from cwb.schedules.completion import completion_of
from cwb.schedules.files import read_schedule
from cwb.schedules.simulate import simulate
from cwb.schedules.verify.answers import write_out

PLACES = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "one_clock.py"))
K = Collective


def make_instance(spec: str, kind: Collective, size: int = 2**20, chunks: int = 1):
    return load(spec).with_changes(demand=Demand(kind, Fraction(size), chunks))


def solve_instance(model: str, spec: str, kind: Collective = K.ALL_GATHER, size: int = 2**20, **options: object):
    done = run(make_instance(spec, kind, size), Request(model, options=options))
    assert done.record.verified is True, (done.record.status, done.record.message, done.record.violations)
    return done


@pytest.mark.parametrize("size", PLACES["SIZES"])
@pytest.mark.parametrize("method", PLACES["METHODS"])
def test_every_place_says_the_same(method, size, tmp_path):
    """Of every family of methods and at every size, all commands give the same completion time without any option."""
    found = PLACES["times"](method, size, tmp_path)
    assert set(found) == set(PLACES["PLACES"])
    assert PLACES["agree"](found), found


def test_a_small_message_is_not_as_fast_as_a_flow():
    """1 KiB through an NVSwitch takes its latency: busbw is 0.9 GB/s, and the 450 GB/s of the flow are told apart."""
    metrics = solve_instance("forestcoll", "h100(nvls=false)", size=1024).record.metrics
    assert metrics["completion_time_s"] == pytest.approx(1e-6 + 2 * 7 * 128 / 450e9)
    assert metrics["busbw_GBps"] == pytest.approx(0.8924, rel=1e-3)
    assert metrics["flow_busbw_GBps"] == pytest.approx(450)
    assert metrics["question"] == "flow, latency left out"


def test_bfb_is_ahead_of_tacos_on_a_torus():
    """On torus(3,4) an all-gather of 1 MiB is faster by bfb than by tacos, in a plot and in bold in a table,
    whatever their objectives count."""
    records = [solve_instance(model, "torus(3,4)").record for model in ("bfb", "tacos", "multitree")]
    (values,) = _values(runs_of(records), False, _COMPLETION).values()
    assert min(values, key=values.get) == "bfb"
    assert values["bfb"] < values["tacos"] < values["multitree"]
    table = build(get("bfb"), records)
    place = [column.name for column in table.spec.columns].index("completion_time_s")
    assert [row.labels[3] for row in table.rows if row.cells[0][place].best] == ["bfb"]


def test_pieces_are_those_of_the_file(tmp_path):
    """A number of pieces that somebody chose is in the file and is taken; a file without one is measured with the
    number that the rule gives."""
    done = solve_instance("forestcoll", "ring(4)")
    path, chosen = tmp_path / "s.json", done.record.metrics["pieces"]
    PLACES["run"]("solve", "ring(4)", "-m", "forestcoll", "--collective", "all_gather", "--size", "1 MiB", "-o", path)
    data = json.loads(path.read_text())
    assert data["pieces"] == chosen > 1
    assert read_schedule(path).pieces == chosen
    for pieces in (1, None):
        data["pieces"] = pieces
        path.write_text(json.dumps(data))
        expected = completion_of(done.instance, done.answer, pieces)
        assert expected.pieces == (pieces or chosen)
        for command in ("simulate", "check"):
            found = json.loads(PLACES["run"](command, path, "--json"))
            assert (found["completion_time_s"], found["pieces"]) == (expected.seconds, expected.pieces)


@pytest.mark.parametrize("kind", [K.ALL_GATHER, K.REDUCE_SCATTER, K.ALL_REDUCE])
@pytest.mark.parametrize(
    "spec", ["torus(3,4)", "ring(5)", "hypercube(3)", "complete(5)", "circulant(9, [1,2])", "torus(2,3,4)"]
)
def test_one_tree_takes_what_all_sends_take(spec, kind):
    """The time of trees that are moved to all ranks, found by those of one rank, is that of the simulation of all
    sends, links busy alike."""
    done = solve_instance("tacos", spec, kind, answer="trees")
    assert isinstance(done.answer, TranslatedTrees)
    whole = write_out(done.answer, done.instance)
    trace = simulate(done.instance, whole)
    found = completion_of(done.instance, done.answer)
    assert found.seconds == pytest.approx(trace.completion_s, rel=1e-12)
    assert found.busy_s == pytest.approx(trace.link_busy_s, rel=1e-12)
    assert found.sends == len(trace.start_s)


def test_a_grid_is_timed_as_everybody_is():
    """Free latency of a grid is paid in the completion time, and the epochs keep their own number and bandwidths."""
    done = solve_instance("teccl", "line(4, bandwidth='1 GB/s', latency='40 us')", K.BROADCAST, 10**6, epoch="fast")
    metrics = done.record.metrics
    assert done.record.objective == pytest.approx(3e-3)
    assert metrics["completion_time_s"] == pytest.approx(3e-3 + 3 * 40e-6)
    assert metrics["algbw_GBps"] == pytest.approx(1e-3 / metrics["completion_time_s"])
    assert metrics["epochs_algbw_GBps"] == pytest.approx(1e-3 / done.record.objective)
    assert metrics["question"] == "epochs of 1 ms (te-ccl), whole chunks, c = 1"


def test_bandwidth_that_varies_is_played():
    """A link that is down for two epochs and at half its rate for two more carries what takes a second otherwise in
    four seconds."""
    done = solve_instance("direct", "line(2, bandwidth='1 GB/s', latency='0 s')", K.BROADCAST, 10**9)
    link = done.instance.network.link_ends.index((0, 1))
    changes = (BandwidthChange(link, 0, 2, Fraction(0)), BandwidthChange(link, 2, 4, Fraction(1, 2)))
    varies = replace(done.instance, timing=Timing(Semantics.STORE_AND_FORWARD, Fraction(1), changes=changes))
    answer = replace(done.answer, instance_sha256=varies.sha256)
    assert completion_of(varies, answer).seconds == pytest.approx(4.0)
    longer = Timing(Semantics.STORE_AND_FORWARD, Fraction(1, 4), changes=changes)
    slow = replace(done.instance, timing=longer)
    assert completion_of(slow, replace(done.answer, instance_sha256=slow.sha256)).seconds == pytest.approx(1.75)


def test_a_bound_has_no_completion_time():
    """A bound without a schedule has no completion time or bandwidth; its flow is reported as flow."""
    record = solve_instance("all-to-all-mcf", "mesh(2,3)", K.ALL_TO_ALL).record
    assert record.metrics["completion_time_s"] is record.metrics["algbw_GBps"] is record.metrics["busbw_GBps"] is None
    assert record.metrics["flow_time_s"] == record.objective


def test_a_solver_is_named_where_one_ran():
    """A method that could call a solver and did not names none; one that did names it."""
    assert registry.get("pccl").needs_solver
    assert solve_instance("pccl", "ring(4)", steps=50).record.solver is None
    assert solve_instance("bfb-lp", "ring(4)").record.solver == "highs"


def test_what_cannot_be_played_is_null_with_a_reason():
    """Trees on links whose bandwidth varies have no completion time, and the reason is a metric."""
    done = solve_instance("forestcoll", "ring(3)")
    changes = (BandwidthChange(0, 0, 1, Fraction(1, 2)),)
    varies = replace(done.instance, timing=Timing(Semantics.STORE_AND_FORWARD, Fraction(1), changes=changes))
    metrics = verdict_of(varies, replace(done.answer, instance_sha256=varies.sha256)).metrics
    assert metrics["completion_time_s"] is metrics["algbw_GBps"] is metrics["busbw_GBps"] is None
    assert "constant bandwidth" in metrics["no_completion_time"]


def test_bounds_in_whole_ticks_stay_on_the_grid():
    """A bound that is rounded up to whole ticks is none of forests and steps, which may end between two; beside it
    stands what holds for them."""
    network = "torus(2,3,bandwidth='1 GB/s',latency='0 s')"
    records = [solve_instance(model, network, size=6 * 10**9).record for model in ("pccl", "forestcoll", "bfb")]
    runs = runs_of(records)
    bounds = Bounds(runs)
    best = {run.record.model: bounds.best(run) for run in runs}
    assert best == pytest.approx({"pccl": 2, "forestcoll": 5 / 3, "bfb": 5 / 3})
    assert [bounds.gap(run) for run in runs] == pytest.approx([0, 0, 0])
    assert records[0].metrics["network_bound_s"] == pytest.approx(5 / 3)


def test_bounds_of_epochs_are_not_said_to_hold_off_the_grid():
    """One chunk over one of two links takes 2 s, proved by epochs; in finer chunks both links need 1 s."""
    network = "parallel(path(2, bandwidth='1 GB/s', latency='0 s'), 2)"
    whole, finer = (
        solve_instance(model, network, K.BROADCAST, 2 * 10**9).record.metrics for model in ("ten-ilp", "forestcoll")
    )
    assert (whole["lower_bound_s"], finer["lower_bound_s"]) == (2, 1)
    assert "network_bound_s" not in whole
