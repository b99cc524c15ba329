"""``cwb polish`` from the outside: exit status, what is printed and what is written."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner
from cwb.cli.schedules import polish
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError, OutOfTime
from cwb.core.schedule import StepSchedule
from cwb.instances import load
from cwb.models.ten.method import METHOD
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.verify import verify


def run(*arguments):
    """(exit status, output, errors) of a call; errors come out as they are."""
    runner = CliRunner()
    with runner.isolation() as (out, err, _):
        status = polish.main([str(a) for a in arguments], standalone_mode=False)
        return status, out.getvalue().decode(), err.getvalue().decode()


@pytest.fixture(scope="module")
def first_schedule():
    """An all-gather on a mesh, as the first schedule has it, and its instance and certificate."""
    demand = Demand(Collective.ALL_GATHER, Fraction(9 * 10**5))
    options = METHOD.options()
    instance = METHOD.pose(load("mesh(3,3)").with_changes(demand=demand), options)
    budget = Budget()
    budget.stop.set()
    outcome = METHOD.run(instance, None, budget, options)
    return instance, outcome.answer, outcome.certificate


def test_idle_time_is_taken_out(first_schedule, tmp_path):
    """A schedule that waits as long as it sends becomes shorter, stays right, and keeps its certificate."""
    instance, schedule, certificate = first_schedule
    took = schedule.end_s - schedule.start_s
    late = replace(schedule, start_s=2 * schedule.start_s, end_s=2 * schedule.start_s + took)
    write_schedule(tmp_path / "s.json", instance, late, certificate, {"model": "by hand"})
    status, out, _ = run(tmp_path / "s.json", "-o", tmp_path / "t.json.gz")
    assert status == 0
    read = read_schedule(tmp_path / "t.json.gz")
    assert out == f"{tmp_path / 't.json.gz'}: {read.answer.end_s.max():.9g} s, before {late.end_s.max():.9g} s\n"
    assert read.answer.end_s.max() <= schedule.end_s.max() * (1 + 1e-9)
    assert verify(read.instance, read.answer).ok
    assert (read.certificate, dict(read.extra)) == (certificate, {"model": "by hand"})


def test_a_short_schedule_stays_as_it_is(first_schedule, tmp_path):
    """If nothing is gained, the file holds the same schedule, and the output says so."""
    write_schedule(tmp_path / "s.json", *first_schedule)
    status, out, _ = run(tmp_path / "s.json", "-o", tmp_path / "t.json")
    assert status == 0
    assert out.endswith("s, as before\n")
    assert (tmp_path / "t.json").read_text() == (tmp_path / "s.json").read_text()


def test_a_wrong_schedule_is_not_polished(first_schedule, tmp_path):
    """Status 5, the first violation in one line, and no file."""
    instance, schedule, _ = first_schedule
    took = schedule.end_s - schedule.start_s
    write_schedule(tmp_path / "s.json", instance, replace(schedule, start_s=np.zeros_like(took), end_s=took))
    status, out, err = run(tmp_path / "s.json", "-o", tmp_path / "t.json")
    assert (status, out) == (5, "")
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "t.json").exists()


def test_without_time_the_schedule_stays(first_schedule, tmp_path, monkeypatch):
    """A file that cannot be read in time is refused; one that cannot be polished is written unchanged."""
    write_schedule(tmp_path / "s.json", *first_schedule)
    with pytest.raises(OutOfTime):
        run(tmp_path / "s.json", "-o", tmp_path / "t.json", "--time-limit", "1 ns")
    monkeypatch.setattr("cwb.core.budget.SEND_S", 1e9)
    status, out, err = run(tmp_path / "s.json", "-o", tmp_path / "t.json", "--time-limit", "1 h")
    assert status == 0
    assert out.endswith("s, as before\n")
    assert err.endswith(" are left; the schedule stays as it is\n")
    assert (tmp_path / "t.json").read_text() == (tmp_path / "s.json").read_text()


def test_other_schedules_are_refused(first_schedule, tmp_path):
    """Steps have no times, and without timing nobody says how long a link is held."""
    instance, schedule, _ = first_schedule
    steps = StepSchedule(instance.sha256, schedule.chunks, schedule.sends, np.arange(len(schedule.sends)))
    bare = instance.with_changes(timing=None)
    for given in ((instance, steps), (bare, replace(schedule, instance_sha256=bare.sha256))):
        write_schedule(tmp_path / "s.json", *given)
        with pytest.raises(InputError, match="expected a schedule in time with timing circuit"):
            run(tmp_path / "s.json", "-o", tmp_path / "t.json")
