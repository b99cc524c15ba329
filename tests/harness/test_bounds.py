"""Bounds of other methods that an answer is compared with: whose they are, what they cost, and what they show."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from importlib import import_module

import cwb
import pytest
from cwb.cli.main import run as command
from cwb.core.bounds import CutCertificate
from cwb.core.budget import Budget
from cwb.core.errors import InputError
from cwb.core.outcome import Outcome, Status, Verdict
from cwb.core.record import RECOMPUTED
from cwb.harness.clock import WallClock
from cwb.harness.request import Request
from cwb.schedules import verdict_of
from cwb.schedules.files import read_schedule

RUN = import_module("cwb.harness.run")  # the package has a function of this name


def solve(level, instance="mi300x(boxes=2)", model="direct", collective="all_to_all", **more):
    """Solve an all-to-all by direct sends."""
    return cwb.solve(instance, model, collective=collective, size="1 GiB", bounds=level, **more)


def asked_of(monkeypatch, prove, usual_s=0.0):
    """Let one function bound instances, in the name of ``hierarchical``."""
    monkeypatch.setattr(RUN, "resolve_function", lambda _: prove)
    monkeypatch.setattr(RUN, "BOUNDING", {"hierarchical": ("module:prove", usual_s)})


def test_a_cheap_bound_of_boxes_is_that_of_the_other_method_with_its_certificate(tmp_path):
    """``direct`` bounds single ranks; the cut of a box proves ten times as much, and the file proves it again."""
    alone, file = solve("none"), tmp_path / "s.json"
    cheap = solve("cheap", output=file)
    assert (alone.bound_of, cheap.bound_of) == ("direct", "hierarchical")
    assert cheap.proof == RECOMPUTED
    assert cheap.bound > 2 * alone.bound
    assert cheap.metrics["lower_bound_s"] == cheap.bound
    read = read_schedule(file)
    assert verdict_of(read.instance, read.answer, read.certificate).bound == cheap.bound


def test_all_bounds_have_those_of_linear_programs():
    """Without levels only the program of flows proves more than distances do."""
    cheap, everything = (solve(level, "mesh(2,6)") for level in ("cheap", "all"))
    assert everything.bound_of == "all-to-all-mcf"
    assert everything.bound > cheap.bound


def test_a_bound_is_what_its_certificate_proves_and_not_what_is_said(monkeypatch):
    """A method that claims a thousand seconds for a cut raises the bound to the cut's seconds only."""
    asked_of(monkeypatch, lambda *_: (Fraction(1000), CutCertificate(tuple(range(8)))))
    assert solve("cheap").bound < 1


def test_bounds_that_do_not_end_are_broken_off(monkeypatch):
    """The answer and the method's own bound stay, and the seconds are known."""

    def endless(*_):
        while True:
            time.sleep(0.01)

    asked_of(monkeypatch, endless)
    monkeypatch.setattr(RUN, "LEAST_S", 0.2)
    record = solve("cheap")
    assert (record.bound_of, record.verified) == ("direct", True)
    assert record.seconds["bounds"] >= 0.2


@pytest.mark.parametrize(("level", "usual_s"), [("none", 0.0), ("cheap", 1e6)])
def test_nothing_is_asked_that_is_not_wanted_or_takes_too_long(monkeypatch, level, usual_s):
    """No method is asked at all."""
    asked_of(monkeypatch, lambda *_: pytest.fail("was asked"), usual_s)
    assert solve(level).bound_of == "direct"


def test_an_optimal_answer_asks_for_no_bound(monkeypatch):
    """Nothing can be gained where bound and answer have met."""
    asked_of(monkeypatch, lambda *_: pytest.fail("was asked"))
    assert solve("all", "torus(3,3)", "forestcoll", "all_gather").status == "optimal"


def test_an_answer_below_another_bound_is_a_contradiction(monkeypatch):
    """It fails verification, as with a certificate of the method's own."""
    run = solve("none")
    outcome, verdict = Outcome(Status.FEASIBLE, run.schedule), Verdict(objective=1e-6)
    _, wrong, whose = RUN._improve_bound(
        run.problem, outcome, verdict, Request("direct", bounds="cheap"), Budget(), WallClock()
    )
    assert whose == "hierarchical"
    assert wrong.violations[0].startswith("contradiction")


def test_a_run_whose_time_is_up_asks_for_no_bound(monkeypatch):
    """The time limit of a run holds for bounds of other methods, too."""
    asked_of(monkeypatch, lambda *_: pytest.fail("was asked"))
    run = solve("none")
    outcome, verdict = Outcome(Status.FEASIBLE, run.schedule), Verdict(objective=1.0)
    _, same, whose = RUN._improve_bound(
        run.problem, outcome, verdict, Request("direct", bounds="all"), Budget(), WallClock(0.0)
    )
    assert (same, whose) == (verdict, None)


def test_the_command_prints_whose_bound_it_is(capsys):
    """The row of the bound names the method, and the record has the field."""
    asked = ("solve", "--model", "direct", "mi300x(boxes=2)", "--collective", "all_to_all", "--quiet")
    for more in ((), ("--json", "--bounds", "none")):
        with pytest.raises(SystemExit, match="0"):
            command([*asked, *more])
    printed, _, record = capsys.readouterr().out.partition("{")
    assert "proved bound of hierarchical" in printed
    assert json.loads("{" + record)["bound_of"] == "direct"


def test_a_wrong_level_is_told():
    """Verbs name the levels."""
    with pytest.raises(InputError, match="expected one of cheap, all, none"):
        solve("some")
