"""Runs in a program: the record with its schedule, and what can be done with it."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from inspect import signature

import cwb
import pytest
from cwb.core.answers import BandwidthPlan
from cwb.core.errors import InputError
from cwb.core.record import RunRecord, append_record, read_records
from cwb.core.schedule import StepSchedule
from cwb.harness import registry
from cwb.schedules.files import ScheduleFile


@pytest.fixture(scope="module")
def run() -> cwb.Run:
    """A ring."""
    return cwb.solve("torus(2,2)", "ring", collective="all_gather", size="1 MiB", chunks=4)


def test_the_record_has_its_schedule(run):
    """The schedule is the object, for the problem as it was posed, and can be verified and simulated again."""
    assert isinstance(run.schedule, StepSchedule)
    assert run.schedule.instance_sha256 == run.problem.sha256 == run.instance_sha256
    verdict = cwb.verify(run)
    assert (verdict.ok, verdict.objective, verdict.bound) == (True, run.objective, run.bound)
    assert cwb.verify(run.problem, run.schedule).bound is None
    assert cwb.simulate(run).completion_s == run.objective
    assert cwb.simulate(run, mode="alpha-beta").completion_s <= run.objective
    file = ScheduleFile(run.problem, run.schedule, run.proved_by, {})
    assert cwb.verify(file) == verdict
    assert cwb.simulate(file).completion_s == run.objective


def test_a_ledger_has_the_record_alone(run, tmp_path):
    """The schedule is no part of the record that is written, and one that is read says so."""
    append_record(tmp_path / "r.jsonl", run)
    (read,) = read_records(tmp_path / "r.jsonl")
    assert json.dumps(read.to_json()) == json.dumps(run.to_json())
    assert type(read) is RunRecord
    with pytest.raises(InputError, match="schedule: there is no answer, optimal: a record that is read has none"):
        _ = replace(run).schedule
    assert pickle.loads(pickle.dumps(run)).schedule.steps == run.schedule.steps  # noqa: S301 (it is ours)


def test_a_run_without_answer_says_why():
    """The schedule of a method that does not support the instance raises an error with the reason."""
    run = cwb.solve("4d", "ring")
    with pytest.raises(InputError, match="schedule: there is no answer, unsupported: ring: "):
        _ = run.schedule


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: cwb.simulate(run, mode="alphabeta"), "mode: 'alphabeta' is unknown; .* did you mean 'alpha-beta'"),
        (lambda run: cwb.verify("torus(2,2)"), "answer: expected the result of cwb.solve, or an answer with str"),
        (lambda run: cwb.solve("torus(2,2)", "rng"), "model: unknown model 'rng'"),
        (lambda run: cwb.solve("torus(2,2)", "ring", way=1), "options: way: unknown field"),
        (lambda run: cwb.solve("torus(2,2)", "ring", seed="x"), "^seed: 'x'; expected a whole number from 0"),
        (lambda run: cwb.solve("torus(2,2)", "ring", threads=0), "^threads: 0; expected a whole number from 1"),
        (lambda run: cwb.solve("torus(2,2)", "ring", time_limit_s="5"), "^time_limit_s: '5'; expected a number of at"),
        (lambda run: cwb.solve("torus(2,2)", "ring", gap=float("nan")), "^gap: nan; expected a number of at least 0"),
        (lambda run: cwb.sends(run.schedule, "ring(3)"), "^instance: the schedule uses 4 nodes, 'ring.3.' has 3;"),
        (lambda run: cwb.links(run.schedule, "line(4)"), "^instance: the schedule uses 8 links, 'line.4.' has 6;"),
        (lambda run: cwb.solve("4d", "libra", solver="higs"), "solver: unknown solver 'higs'"),
        (lambda run: run.plot("gant"), "kind: there is no 'gant' of it; .* did you mean 'gantt'"),
        (lambda run: run.plot("trees").save("a.svg"), "it has no trees; expected a tree-packing, or another kind="),
        (lambda run: run.plot().save("a.txt"), "a.txt: unknown suffix"),
        (lambda run: run.plot("gantt", mode="x"), "mode: 'x' is unknown"),
    ],
)
def test_wrong_usage(call, message, run):
    """Wrong names are one line with the keyword, the value and what was expected."""
    with pytest.raises(InputError, match=message):
        call(run)


def test_keywords_are_the_option_where_there_is_one():
    """`chunks` and `start` are those of all methods, and of a method with an option of this name the option."""
    record = cwb.solve("torus(2,2)", "tacos", collective="all_gather", size="1 MiB", chunks=2)
    assert record.options == {"chunks": 2}
    record = cwb.solve("ring(3)", "teccl-milp", collective="all_gather", size="3 KiB", start="none")
    assert record.options == {"start": "none"}
    keywords = set(signature(cwb.solve).parameters)
    taken = {name: keywords & set(registry.get(name).options.model_fields) for name in registry.names()}
    assert set().union(*taken.values()) == {"chunks", "gap", "start"}


def test_pictures(run, tmp_path):
    """A notebook shows the plot, and it is saved in the format of its name."""
    plot = run.plot()
    assert plot._repr_svg_().lstrip().startswith("<?xml")
    assert plot.save(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert run.plot("gantt", mode="cut-through").save(str(tmp_path / "a.pdf")).read_bytes().startswith(b"%PDF")


def test_a_plan_of_bandwidths_is_drawn_too():
    """Of a design, the plot is that of its record."""
    run = cwb.solve("4d", "libra")
    assert isinstance(run.schedule, BandwidthPlan)
    assert "<svg" in run.plot()._repr_svg_()


def test_a_study_that_fails_warns(monkeypatch):
    """The run is returned although its study raised, and a warning has the error."""

    def fails(*_):
        raise KeyError("inside")

    monkeypatch.setattr("cwb.studies.sensitivity.sensitivity", fails)
    with pytest.warns(UserWarning, match="a study failed: KeyError"):
        run = cwb.solve("ring(4)", "ring", collective="all_gather", size="1 MiB", sensitivity=True)
    assert run.schedule is not None
    assert run.sensitivity is None


def test_the_solution_of_a_formulation_is_tables_by_variable_and_constraint():
    """Values of whole chunks are the sends; dual values of a linear program meet complementary slackness."""
    run = cwb.solve("ring(3)", "teccl/milp", collective="all_gather")
    values = run.model_values()
    assert values["F"]["value"].sum() == len(run.schedule.sends)
    assert values["buffers"].index.names == ["q", "n", "k"]
    assert "dual" not in values["buffers"]
    assert run.model_values() is values
    values = cwb.solve("ring(4)", "forestcoll/optimum", collective="all_gather").model_values()
    assert values["rate"]["value"].item() == pytest.approx(2 / 3)
    for table in values.values():
        assert (table["value"] >= table["lower"] - 1e-7).all()
        assert (table["value"] <= table["upper"] + 1e-7).all()
    dual = values["arrival"]["dual"]
    assert dual.abs().sum() > 0
    slack = values["arrival"]["upper"] - values["arrival"]["value"]
    assert (slack * dual).abs().max() < 1e-9


def test_a_run_without_a_solved_formulation_has_no_values(run):
    """A method, a model without a solution and a run that was pickled say that there are none."""
    infeasible = cwb.solve("ring(5)", "sccl/rounds", collective="all_gather", steps=1)
    solved = pickle.loads(pickle.dumps(cwb.solve("ring(3)", "teccl/milp", collective="all_gather")))  # noqa: S301
    assert solved.status == "optimal"
    for each in (run, infeasible, solved):
        with pytest.raises(InputError, match="no solved formulation"):
            each.model_values()
