"""Runs: clocks, sizes, ranks, own time, and best bounds, as records tell them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cwb.core.record import RunRecord
from cwb.reports.bounds import Bounds
from cwb.reports.objective_types import CLOCKS, RecordQuestion, explanation_lines, question_of, questions_of
from cwb.reports.runs import own_seconds, runs_of

Make = Callable[..., RunRecord]


@pytest.mark.parametrize("clock", sorted(CLOCKS.keys() - {"iteration", "load", "te-ccl-paid-switch"}))
def test_asked(clock: str, make_run: Make) -> None:
    """Clock and question are the verifier's, also where the answer is in a file of its own."""
    asked = question_of(make_run(clock=clock))
    assert asked.clock == clock
    assert asked.question
    assert question_of(make_run(clock=clock, answer={"path": "x.json", "sha256": "0"})) == asked


@pytest.mark.slow
def test_records_that_were_made_tell_their_question() -> None:
    """Methods of every kind of answer tell the question that they answer."""
    for model, clock in {"ring": "simulated", "forestcoll": "flow", "teccl": "te-ccl", "tacos": "circuit"}.items():
        asked = question_of(_solve(model))
        assert (asked.clock, bool(asked.question)) == (clock, True), model
    assert question_of(_solve("libra-equal", "gpt-3-3d", None)).clock == "iteration"
    assert question_of(_solve("all-to-all-mcf", collective="all_to_all")).clock == "bound"


def _solve(model: str, instance: str = "ring(4)", collective: str | None = "all_gather") -> RunRecord:
    from cwb import load
    from cwb.harness.run import Request, run_one
    from cwb.instances.demand import with_demand

    return run_one(with_demand(load(instance), collective, None, None), Request(model))


def test_a_failed_run_has_the_question_of_its_method(make_run: Make) -> None:
    """Without an answer the question is that of the method's other runs of the problem, else of all of them, where they
    agree."""
    records = [make_run("ring"), make_run("ring", None), make_run("x", None), make_run("forestcoll", clock="flow")]
    assert [asked.clock for asked in questions_of(records)] == ["simulated", "simulated", None, "flow"]
    mixed = [
        make_run("a"),
        make_run("a", clock="te-ccl", bytes_=1e9),
        make_run("a", None),
        make_run("a", None, bytes_=7),
    ]
    assert [asked.clock for asked in questions_of(mixed)] == ["simulated", "te-ccl", "simulated", None]


def test_foreign_clocks_are_not_believed(make_run: Make) -> None:
    """A clock that nobody knows is none, and a question that is no text neither."""
    assert question_of(make_run(metrics={"clock": "<b>"})) == RecordQuestion()
    assert question_of(make_run(metrics={"clock": 3})) == RecordQuestion()
    assert question_of(make_run(metrics={"question": 3})) == RecordQuestion("simulated")


def test_clocks_are_explained() -> None:
    """Every clock that occurs is told, and that objectives are not compared if there are several questions."""
    assert explanation_lines([None]) == []
    (text,) = explanation_lines(["flow", "te-ccl", None])
    assert CLOCKS["flow"].meaning in text
    assert "not ranked against one another" in text
    assert "not ranked against" not in explanation_lines(["flow"], ["flow"])[0]
    assert "not ranked against" in explanation_lines(["te-ccl"], ["epochs of 1 us", "epochs of 2 us"])[0]


def test_size_and_ranks(make_run: Make) -> None:
    """Size and ranks follow from the two bandwidths, and a failed run has those of its instance."""
    records = [make_run(instance="torus(3,3)", bytes_=size) for size in (1024.0, 1e9)]
    records.append(make_run("bfb", None, instance="torus(3,3)", bytes_=1e9))
    runs = runs_of(records)
    told = {(run.record.model, run.size_bytes, run.ranks) for run in runs}
    assert told == {("ring", 1024.0, 9), ("ring", 1e9, 9), ("bfb", 1e9, 9)}


@pytest.mark.parametrize("value", [0, -1, 1e308, float("nan"), float("inf"), "x", None, [], True])
def test_foreign_measures(value: Any, make_run: Make) -> None:
    """Bandwidths, objectives and times that are no measurement leave size, ranks and own time open, and stop
    nothing."""
    measures = [{"metrics": {name: value}} for name in ("algbw_GBps", "busbw_GBps", "network_bound_s")]
    for change in (*measures, {"objective": value}, {"certificate": {"certificate": {"of": value}}}):
        (run,) = runs_of([make_run(bound=1e-6, **change)])
        assert run.ranks is None or run.ranks >= 1
        Bounds([run]).gap(run)
    seconds = own_seconds(make_run(seconds={"solve": value, "total": value}))
    assert seconds is None or 0 <= seconds < 1e30


def test_own_seconds(make_run: Make) -> None:
    """Own time is without the verifier and without compilation; without phases there is none."""
    assert own_seconds(make_run(seconds={"compile": 5, "pack": 1, "split": 2, "verify": 9, "total": 20})) == 3
    assert own_seconds(make_run(seconds={"verify": 0.25, "simulate": 0.25, "total": 1.0})) is None
    assert own_seconds(make_run(seconds={})) is None


def test_names(make_run: Make) -> None:
    """Options that state the problem are told with the instance, others with the method; namesakes get their
    digests."""
    (run,) = runs_of([make_run("themis", options={"bandwidth": ["1 GB/s"], "intra": "scf"})])
    assert (run.method, run.problem_name) == ("themis (intra=scf)", 'torus(3,3) (bandwidth=["1 GB/s"])')
    (run,) = runs_of([make_run("libra", options={"objective": "perf", "gap": "0.1"})])
    assert (run.method, run.problem_name) == ("libra (gap=0.1)", "torus(3,3) (objective=perf)")
    runs = runs_of([make_run(instance_sha256="aaaaaaaa"), make_run(instance_sha256="bbbbbbbb")])
    assert [run.instance for run in runs] == ["torus(3,3) #aaaaaa", "torus(3,3) #bbbbbb"]


def test_a_run_that_was_made_again_counts_once(make_run: Make) -> None:
    """Of records of the same run the latest counts, whatever the versions."""
    old, new = make_run(time_s=3e-5), make_run(time_s=2e-5, started_at="2027-01-01T00:00:00+00:00", cwb_version="9")
    (run,) = runs_of([new, old])
    assert run.record is new


def test_bounds_hold_where_they_were_proved(make_run: Make) -> None:
    """A cut of the flow model bounds a simulated schedule; a bound on epochs bounds its own grid alone; no bound of an
    answer that failed."""
    epochs = {"certificate": "epoch-distance"}
    simulated, flow = make_run(bound=1e-6), make_run("forestcoll", clock="flow", bound=1.5e-5)
    grid = make_run("teccl", 4e-5, clock="te-ccl", bound=3e-5, certificate=epochs)
    other = make_run("teccl-milp", 5e-5, clock="te-ccl", bound=1e-6, certificate=epochs)
    wrong = make_run("multitree", bound=1.9e-5, verified=False)
    runs = {run.record.model: run for run in runs_of([simulated, flow, grid, other, wrong])}
    bounds = Bounds(list(runs.values()))
    assert bounds.best(runs["ring"]) == 1.5e-5
    assert bounds.gap(runs["ring"]) == pytest.approx(0.25)
    assert bounds.best(runs["forestcoll"]) == 1.5e-5
    assert bounds.best(runs["teccl-milp"]) == 3e-5
    assert bounds.gap(runs["multitree"]) is None


def test_latency_bounds_no_flow(make_run: Make) -> None:
    """A bound from a distance holds for simulated schedules, not in the flow model, which has no latency."""
    far = make_run(bound=1.8e-5, certificate={"certificate": "distance"})
    runs = {r.record.model: r for r in runs_of([far, make_run("forestcoll", clock="flow", bound=1e-6)])}
    bounds = Bounds(list(runs.values()))
    assert bounds.best(runs["ring"]) == 1.8e-5
    assert bounds.best(runs["forestcoll"]) == 1e-6


def test_bounds_of_other_grids_and_problems_do_not_count(make_run: Make) -> None:
    """Longer epochs, chunks that may be split, another size: each is another question."""
    at: dict[str, Any] = {"clock": "te-ccl", "certificate": {"certificate": "epoch-distance"}}
    fluid = {"question": "epochs of 1 us (te-ccl), chunks may be split"}
    records = [
        make_run("teccl", 4e-5, bound=1e-6, **at),
        make_run("teccl-milp", 4e-5, bound=2e-5, metrics={"epoch_duration_s": 2e-6}, **at),
        make_run("teccl-lp", 4e-5, bound=2e-5, metrics=fluid, **at),
        make_run("teccl-astar", 4e-5, bytes_=2.0**30, bound=2e-5, **at),
    ]
    runs = runs_of(records)
    (first,) = (run for run in runs if run.record.model == "teccl")
    assert Bounds(runs).best(first) == 1e-6


def test_a_solvers_word_holds_for_what_it_was_asked(make_run: Make) -> None:
    """A bound that nobody can recompute, of few trees, does not bound many; without options of the method it bounds the
    question."""
    word: dict[str, Any] = {"clock": "flow", "certificate": {"certificate": "solver"}}
    few = make_run("mtree", 3e-5, bound=2.5e-5, options={"trees": 2}, **word)
    again = make_run("mtree", 3.5e-5, bound=1e-6, options={"trees": 2}, seed=1, **word)
    many = make_run("gost", 2e-5, bound=None, certificate=None, clock="flow")
    runs = {(run.record.model, run.record.seed): run for run in runs_of([few, again, many])}
    bounds = Bounds(list(runs.values()))
    assert bounds.best(runs["mtree", 1]) == 2.5e-5
    assert bounds.best(runs["gost", 0]) is None
    plain = runs_of([make_run("mtree", 3e-5, bound=1.5e-5, **word), many])
    assert [Bounds(plain).best(run) for run in plain] == [1.5e-5, 1.5e-5]


def test_what_is_maximized_has_its_bound_above(make_run: Make) -> None:
    """Of bounds on what is maximized the least is the best, and the gap is what is missing."""
    records = [make_run("a", 8.0, sense="maximize", bound=10.0), make_run("b", 5.0, sense="maximize", bound=12.0)]
    runs = runs_of(records)
    bounds = Bounds(runs)
    assert [bounds.gap(run) for run in runs] == [pytest.approx(0.25), pytest.approx(1.0)]


def test_the_gaps_of_equal_times_are_equal(make_run: Make) -> None:
    """Two methods of one time have one time gap, whatever their own objectives and proofs; it ranks by time."""
    grid = {"clock": "circuit", "certificate": {"certificate": "epoch-cut"}}
    tacos = make_run("tacos", 2e-5, bound=2e-5, status="optimal", **grid)
    pccl = make_run("pccl", 2e-5, bound=1.5e-5)
    flow = make_run("forestcoll", 2.4e-5, clock="flow", bound=1.6e-5)
    other = make_run("dbt", 4e-5, bytes_=2.0**30, bound=1e-5)
    runs = {run.record.model: run for run in runs_of([tacos, pccl, flow, other])}
    bounds = Bounds(list(runs.values()))
    assert bounds.gap(runs["tacos"]) == 0
    assert bounds.gap(runs["tacos"], timed=True) == bounds.gap(runs["pccl"], timed=True) == pytest.approx(0.2)
    assert bounds.gap(runs["forestcoll"], timed=True) == pytest.approx(1 - 1.6 / 3)
    assert bounds.gap(runs["dbt"], timed=True) == pytest.approx(0.75)
