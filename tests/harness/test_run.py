"""One run: how its bound is known, and what the record says where claims and answers do not agree."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import nan
from types import SimpleNamespace
from typing import Any

import pytest
from cwb.core.answers import BoundOnly
from cwb.core.bounds import Certificate, CutCertificate, SolverBound
from cwb.core.budget import Budget, Incumbent
from cwb.core.collective import Collective, Demand
from cwb.core.formulation import resolve_function
from cwb.core.instance import Instance
from cwb.core.method import Method
from cwb.core.outcome import Outcome, Status
from cwb.core.record import RunRecord, to_line
from cwb.harness import Request, registry, run, run_one
from cwb.harness.clock import WallClock
from cwb.harness.request import MOST_REPORTS, Listener, extend_history, report_of
from cwb.harness.run import BOUNDING, _has_frozen_objects, _limits_after_stop, spare_older_objects
from cwb.instances import load
from cwb.instances.demand import with_demand


def gathering() -> Instance:
    """Make an all-gather of three gigabytes on a ring of three ranks with 1 GB/s in either direction: it takes a
    second."""
    demand = Demand(Collective.ALL_GATHER, Fraction(3 * 10**9))
    return load("ring(3, bandwidth='1 GB/s', latency='0 s')").with_changes(demand=demand)


@pytest.mark.parametrize("place", [place for place, _ in BOUNDING.values()])
def test_functions_that_bound_after_the_answer_exist(place: str) -> None:
    """The places of the functions that prove bounds for other methods lead to functions."""
    assert callable(resolve_function(place))


def test_a_history_is_bounded() -> None:
    """A record keeps what improves an objective or a bound, completed by what the same origin said before; of too many
    reports it keeps the first and the last, and every other one between."""
    history: list[dict[str, Any]] = []
    for seconds, incumbent in enumerate((Incumbent(bound=1.0), Incumbent(2.0), Incumbent(2.0), Incumbent(nan, 1.5))):
        extend_history(history, report_of(incumbent, float(seconds)))
    assert [(each["objective"], each["bound"], each["seconds"]) for each in history] == [
        (None, 1.0, 0.0),
        (2.0, 1.0, 1.0),
        (2.0, 1.5, 3.0),
    ]
    for seconds in range(4, 1000):
        extend_history(history, report_of(Incumbent(1 / seconds, of_solver=True), float(seconds)))
    assert MOST_REPORTS // 2 <= len(history) <= MOST_REPORTS
    assert (history[0]["seconds"], history[-1]["seconds"]) == (0.0, 999.0)


def test_searches_record_their_reports() -> None:
    """The record of a search has its better answers in order, and ends with its objective."""
    record = run_one(with_demand(load("torus(3,3)"), "all_gather", "1 MiB", None), Request("ten-ilp"))
    own = [each["objective"] for each in record.history if each["of"] == "method" and each["objective"]]
    assert own == sorted(own, reverse=True)
    assert own[-1] == record.objective
    seconds = [each["seconds"] for each in record.history]
    assert seconds == sorted(seconds)


def run_claiming(monkeypatch: pytest.MonkeyPatch, outcome: Outcome, model: str = "direct") -> RunRecord:
    """Run a method that claims an outcome."""
    method: Method = replace(registry.get(model), solve=lambda *_: outcome, needs_solver=False)
    monkeypatch.setattr(registry, "get", lambda _: method)
    return run_one(gathering(), Request(model))


def direct(certificate: Certificate | None, bound: float | None, status: Status = Status.OPTIMAL) -> Outcome:
    """Claim the right answer of ``direct`` with some certificate and bound."""
    instance = gathering()
    method = registry.get("direct")

    none: Any = None
    found = method.run(instance, none, Budget(), method.options())
    return replace(found, certificate=certificate, bound=bound, status=status)


def test_a_recomputed_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that the verifier computes from a certificate is recomputed, and makes an optimum plainly optimal."""
    record = run_claiming(monkeypatch, direct(CutCertificate((0,)), 0.5, Status.FEASIBLE))
    assert (record.proof, record.bound, record.verified) == ("recomputed", 0.5, True)
    assert record.objective == 1
    record = run_claiming(monkeypatch, direct(CutCertificate((0, 1)), 1.0))
    assert (record.proof, record.bound, record.shown_status, record.exit_status) == ("recomputed", 1, "optimal", 0)


@pytest.mark.parametrize("certificate", [SolverBound("highs", "1"), None])
def test_an_attested_bound(monkeypatch: pytest.MonkeyPatch, certificate: Certificate | None) -> None:
    """The word of a solver or of the method is told as such; the answer is verified none the less."""
    record = run_claiming(monkeypatch, direct(certificate, 1.0))
    assert (record.proof, record.bound, record.verified, record.exit_status) == ("attested", 1, True, 0)
    assert record.shown_status == "optimal (attested)"


def test_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a bound there is no proof."""
    record = run_claiming(monkeypatch, direct(None, None, Status.FEASIBLE))
    assert (record.proof, record.bound, record.verified) == ("none", None, True)


@pytest.mark.parametrize("bound", [1.1, float("inf"), float("nan")])
def test_an_attested_bound_above_the_answer_is_told(monkeypatch: pytest.MonkeyPatch, bound: float) -> None:
    """A word that the answer disproves, or that is no number, fails the verification, with both numbers."""
    record = run_claiming(monkeypatch, direct(SolverBound("highs", "1"), bound))
    assert (record.verified, record.exit_status) == (False, 5)
    assert record.violations == (f"contradiction: attested bound {bound!r}, but the answer has 1.0",)


def test_a_bound_alone_that_a_solver_attests_is_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to verify in it: neither yes nor no, and the exit status is 0."""
    outcome = Outcome(Status.OPTIMAL, BoundOnly(), objective=0.9, bound=0.9, certificate=SolverBound("highs", "1"))
    record = run_claiming(monkeypatch, outcome)
    assert (record.verified, record.violations, record.exit_status) == (None, (), 0)
    assert (record.objective, record.bound, record.gap, record.proof) == (0.9, 0.9, 0, "attested")
    assert record.shown_status == "optimal (attested)"


def test_a_bound_alone_may_not_contradict_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attested bound above the objective that is claimed with it is told as well."""
    outcome = Outcome(Status.OPTIMAL, BoundOnly(), objective=0.5, bound=0.9, certificate=SolverBound("highs", "1"))
    record = run_claiming(monkeypatch, outcome)
    assert (record.verified, record.exit_status) == (False, 5)
    assert record.violations == ("contradiction: attested bound 0.9, but the answer has 0.5",)


def test_a_heuristic_at_the_bound_is_optimal() -> None:
    """An objective equal to the recomputed bound makes an answer optimal."""
    direct, ring = (
        run_one(with_demand(load(spec), "all_gather", "1 MiB", None), Request(name))
        for name, spec in (("direct", "complete(4)"), ("ring", "ring(6)"))
    )
    assert (direct.status, direct.proof, direct.gap) == ("optimal", "recomputed", 0)
    assert ring.status == "feasible"
    assert ring.gap > 0


@pytest.mark.parametrize(
    ("certificate", "proof", "bound"),
    [(CutCertificate((0, 1)), "recomputed", 1), (CutCertificate((0, 7)), "attested", 0.9), (None, "attested", 0.9)],
)
def test_the_bound_of_a_run_without_an_answer_is_recomputed(
    monkeypatch: pytest.MonkeyPatch, certificate: Certificate | None, proof: str, bound: float
) -> None:
    """The bound of a run ended by a limit is that of its certificate; an invalid certificate leaves the claim."""
    record = run_claiming(monkeypatch, Outcome(Status.LIMIT, None, bound=0.9, certificate=certificate))
    assert (record.proof, record.bound, record.verified, record.exit_status) == (proof, bound, None, 4)


def test_a_bound_that_is_no_number_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that JSON cannot represent is reported as a violation, and the record can be written."""
    record = run_claiming(monkeypatch, direct(SolverBound("highs", "1"), float("nan")))
    assert (record.bound, record.proof, record.gap) == (None, "none", None)
    assert to_line(record)


@pytest.mark.parametrize("status", [Status.UNSUPPORTED, Status.ERROR, Status.LIMIT])
def test_a_refusal_names_the_solver_that_was_refused(monkeypatch: pytest.MonkeyPatch, status: Status) -> None:
    """A refusal or failure before solving names the requested solver; other ends name one only if it ran."""
    refused = replace(registry.get("sccl"), solve=lambda *_: Outcome(status))
    monkeypatch.setattr(registry, "get", lambda _: refused)
    record = run_one(gathering(), Request("sccl", solver="highs"))
    assert (record.status, record.solver) == (status.value, None if status is Status.LIMIT else "highs")


@pytest.mark.slow
def test_an_optimum_among_fewer_answers_says_so() -> None:
    """The record of an exact method tells what its options ask of the answers; nothing where they ask nothing."""
    demand = Demand(Collective.ALL_REDUCE, Fraction(10**9))
    instance = load("gscale()").with_changes(demand=demand)
    for options, restriction in (
        ({"trees": "1"}, "at most 1 tree"),
        ({"trees": "2"}, "at most 2 trees"),
        (
            {"trees": "1", "height": "6", "min_rate": "8 b/s"},
            "at most 1 tree, height at most 6 links, rate of a tree at least 1 B/s",
        ),
    ):
        record = run_one(instance, Request("mtree", options=options))
        assert record.metrics["restricted_to"] == restriction
        assert record.metrics["question"] == "flow, latency left out"
    assert "restricted_to" not in run_one(instance, Request("gost")).metrics


def test_progress_says_the_seconds_of_the_run() -> None:
    """Each line that is shown ends with the seconds since the run began."""
    lines: list[str] = []
    instance = with_demand(load("ring(4)"), "all_gather", None, None)
    run(instance, Request("ten/ilp"), listener=Listener(lines.append))
    assert lines
    assert all(re.search(r", \d+\.\d s$", line) for line in lines)


@pytest.mark.parametrize(
    ("elapsed_s", "limit_s", "seconds"), [(1.0, None, 2.0), (1.0, 60.0, 2.0), (600.0, None, 60.0), (600.0, 30.0, 30.0)]
)
def test_the_verifier_has_two_seconds_or_a_tenth_of_the_run(monkeypatch, elapsed_s, limit_s, seconds):
    """After Ctrl-C the longer of both counts, within the limit; without it the limit stays."""
    clock = WallClock()
    monkeypatch.setattr(clock, "elapsed_s", lambda: elapsed_s)
    budget = Budget(limit_s)
    assert _limits_after_stop(budget, clock) is budget
    budget.stop.set()
    assert _limits_after_stop(budget, clock).time_limit_s == seconds


#: A run of a method that declares a model, and what it has imported.
PROGRAM = """
import sys, cwb
cwb.solve("4d", "libra")
print("scipy.stats" in sys.modules)
import pyomo.common.dependencies as dependencies
print(dependencies.scipy.stats.__name__)
"""


@pytest.mark.slow
def test_scipy_is_imported_without_its_statistics() -> None:
    """A method that declares a Pyomo model is run without scipy.stats, which Pyomo still finds when it is asked for."""
    shown = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "scipy.stats"]


@pytest.mark.parametrize("before", [0, 10**6])
def test_older_objects_are_spared_for_the_time_of_a_run(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects are frozen during a run, and afterwards only if some were before, which is looked up once."""
    calls: list[str] = []
    names = ("freeze", "unfreeze", "get_freeze_count")
    fake = SimpleNamespace(**{name: lambda name=name: calls.append(name) or before for name in names})
    module = sys.modules[spare_older_objects.__module__]
    monkeypatch.setattr(module, "gc", fake)
    monkeypatch.setattr(module, "_has_frozen_objects", cache(_has_frozen_objects.__wrapped__))
    for _ in range(2):
        with spare_older_objects():
            assert calls[-1] == "freeze"
    assert calls.count("get_freeze_count") == 1
    assert calls.count("unfreeze") == (0 if before else 2)


MANY_RUNS = """
import gc
from fractions import Fraction
from cwb.core.collective import Collective, Demand
from cwb.harness import Request, run_one
from cwb.instances import load

def count_objects(runs):
    for _ in range(runs):
        posed = load("torus(2,3)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(2**20)))
        for method in ("ring", "bfb", "forestcoll", "teccl-milp"):
            run_one(posed, Request(method, bounds="none"))
    gc.collect()
    return len(gc.get_objects()), gc.get_freeze_count()

count_objects(2)  # imports, and caches that are filled once
print(*count_objects(1), *count_objects(4), *count_objects(4))
"""


@pytest.mark.slow  # all that the methods use is imported
def test_many_runs_leave_no_objects() -> None:
    """Sixteen runs in one process leave no objects behind, and none that is spared from garbage collection.

    Something may be made once in one half, such as by a run that takes long enough to show its progress.
    """
    shown = subprocess.run([sys.executable, "-c", MANY_RUNS], capture_output=True, text=True, check=True).stdout
    before, frozen, between, between_frozen, after, still_frozen = map(int, shown.split())
    assert (frozen, between_frozen, still_frozen) == (0, 0, 0)
    assert min(between - before, after - between) < 12
