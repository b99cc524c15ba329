"""The method over the time-expanded network: optima by trying everything, bounds, sums run backwards, and what does not
fit."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from cwb import solvers
from cwb.core.bounds import EpochCut, SolverBound
from cwb.core.budget import Budget
from cwb.core.collective import Demand, collective_named, collectives
from cwb.core.errors import InputError
from cwb.core.instance import Instance
from cwb.core.outcome import Status
from cwb.core.timing import Semantics, Timing
from cwb.core.topology import Link, Node, Topology
from cwb.instances import load
from cwb.models.ten import solve
from cwb.models.ten.method import METHOD
from cwb.models.ten.problem import expand_time
from cwb.models.ten.solve import finish, first_schedule
from cwb.schedules import verdict_of
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from ten_oracle import fewest_ticks


def make_problem(network, kind="all_gather", size=1, chunks=1, ranks=None, **options):
    base = load(network) if isinstance(network, str) else Instance("by hand", network)
    demand = Demand(collective_named(kind), Fraction(size), chunks, ranks)
    return METHOD.pose(base.with_changes(demand=demand), METHOD.options.model_validate(options))


def run(instance, **options):
    budget = options.pop("budget", None) or Budget()
    return METHOD.run(instance, solvers.get("highs"), budget, METHOD.options.model_validate(options))


def network(links, ticks):
    """A network whose chunks of one byte take so many seconds over each link."""
    count = 1 + max(n for link in links for n in link)
    wires = [Link(str(a), str(b), Fraction(1, t)) for (a, b), t in zip(links, ticks, strict=True)]
    return Topology(tuple(Node(str(n)) for n in range(count)), tuple(wires))


@st.composite
def networks(draw, nodes, slowest):
    """A ring of a random order, one way, and some links more."""
    order = draw(st.permutations(range(nodes)))
    ring = [*pairwise(order), (order[-1], order[0])]
    every = [(a, b) for a in range(nodes) for b in range(nodes) if a != b and (a, b) not in ring]
    links = ring + draw(st.lists(st.sampled_from(every), max_size=3, unique=True))
    return links, [draw(st.integers(1, slowest)) for _ in links]


@settings(max_examples=draws(25), deadline=None)
@given(networks(3, 2), st.sampled_from(["all_gather", "all_to_all", "broadcast", "gather"]), st.integers(1, 2))
def test_optimum_on_three_ranks(drawn, kind, chunks):
    """On networks of three ranks with slow and fast links, the method proves what trying everything finds, and the
    verifier agrees."""
    links, ticks = drawn
    if kind == "all_gather":
        chunks = 1
    elif kind == "all_to_all":
        chunks, ticks = 1, [1] * len(links)  # or trying everything takes seconds
    pairs = {
        "all_gather": [(s, [t for t in range(3) if t != s]) for s in range(3)],
        "all_to_all": [(s, [t]) for s in range(3) for t in range(3) if t != s],
        "broadcast": [(0, [1, 2])] * chunks,
        "gather": [(1, [0]), (2, [0])] * chunks,
    }[kind]
    size = {"all_gather": 3, "all_to_all": 3, "broadcast": chunks, "gather": 3 * chunks}[kind]
    instance = make_problem(network(links, ticks), kind, size, chunks)
    outcome = run(instance)
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert not verdict.violations
    assert outcome.status is Status.OPTIMAL
    assert verdict.objective == pytest.approx(outcome.objective)
    assert outcome.objective == pytest.approx(fewest_ticks(links, ticks, pairs))


@settings(max_examples=draws(15), deadline=None)
@given(networks(4, 1))
def test_optimum_of_an_all_gather_on_four_ranks(drawn):
    """On networks of four ranks with equal links, the method proves what trying everything finds, forwards and
    backwards."""
    links, ticks = drawn
    pairs = [(s, [t for t in range(4) if t != s]) for s in range(4)]
    gather = run(make_problem(network(links, ticks), "all_gather", 4))
    assert gather.status is Status.OPTIMAL
    assert gather.objective == pytest.approx(fewest_ticks(links, ticks, pairs))
    back = make_problem(network([(b, a) for a, b in links], ticks), "reduce_scatter", 4)
    outcome = run(back)
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == pytest.approx(gather.objective)
    assert not verdict_of(back, outcome.answer, outcome.certificate).violations


@settings(max_examples=30, deadline=None)
@given(networks(5, 3), st.sampled_from(["all_gather", "all_to_all", "scatter"]), st.integers(1, 3))
def test_the_first_schedule_is_right(drawn, kind, chunks):
    """If no model is solved, the first schedule is the answer, and the verifier confirms its bound of epochs."""
    instance = make_problem(network(*drawn), kind, 15, chunks)
    problem = expand_time(instance)
    outcome = run(instance, budget=_spent_budget())
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert not verdict.violations
    assert verdict.objective == pytest.approx(outcome.objective)
    assert verdict.bound == pytest.approx(outcome.bound)
    assert outcome.objective == pytest.approx(float(finish(problem, first_schedule(problem)) * instance.timing.epoch_s))
    assert (outcome.status is Status.OPTIMAL) == (outcome.bound == outcome.objective)


def _spent_budget():
    budget = Budget()
    budget.stop.set()
    return budget


@pytest.mark.parametrize("kind", sorted({kind.name for kind in collectives()} - {"late_all_reduce", "point_to_point"}))
def test_every_collective_is_scheduled(kind):
    """On a mesh of 2 x 3 every collective supported has a schedule that the verifier agrees with, proved the best one
    but of an all-reduce."""
    instance = make_problem("mesh(2,3)", kind, 6 * 10**5)
    outcome = run(instance)
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert not verdict.violations
    assert verdict.objective == pytest.approx(outcome.objective)
    assert (outcome.status is Status.OPTIMAL) == (kind != "all_reduce")
    assert outcome.bound <= outcome.objective


@settings(max_examples=25, deadline=None)
@given(networks(4, 3), st.sampled_from(["reduce_scatter", "all_reduce", "reduce"]))
def test_bounds_of_sums_are_those_of_the_verifier(drawn, kind):
    """The verifier computes the same bound from the certificate as the method claims, and every schedule of sums is
    right."""
    instance = make_problem(network(*drawn), kind, 12)
    outcome = run(instance, budget=_spent_budget())
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert not verdict.violations
    assert verdict.bound == pytest.approx(outcome.bound)
    assert outcome.bound <= outcome.objective


def test_dgx1_takes_the_steps_of_sccl():
    """An all-gather of 25 KB a rank on a DGX-1 takes 3.4 us, as in TE-CCL's table 3; the certificate proves that none
    is faster."""
    outcome = run(make_problem("dgx1()", size=200_000))
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == pytest.approx(3.4e-6)
    assert isinstance(outcome.certificate, EpochCut)


def test_what_certificates_do_not_prove_the_solver_does():
    """Of an all-to-all on a ring of five, two ticks are refuted by the solver alone."""
    instance = make_problem("ring(5)", "all_to_all", 5 * 10**4)
    outcome = run(instance)
    assert outcome.status is Status.OPTIMAL
    assert outcome.metrics["ticks"] == 3
    assert isinstance(outcome.certificate, SolverBound)
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations


def test_process_groups_use_ranks_outside():
    """Two ranks at the ends of a line of three talk through the one between."""
    instance = make_problem("line(3)", "all_to_all", 4, 1, (0, 2))
    outcome = run(instance)
    assert outcome.status is Status.OPTIMAL
    assert outcome.metrics["ticks"] == 2
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations


def test_through_a_switch_the_optimum_is_that_of_the_model():
    """Ways over a switch take turns on its links; slower circuits at once are beyond the model, so that nothing is
    claimed to be optimal."""
    instance = make_problem("star(4)", size=4 * 10**5)
    outcome = run(instance)
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert not verdict.violations
    assert outcome.status is Status.FEASIBLE
    assert outcome.metrics["ticks"] == outcome.metrics["model_bound_ticks"] == 3
    assert verdict.objective == pytest.approx(outcome.objective)


def test_a_horizon_makes_one_model():
    """With a horizon there is one solve of at most so many ticks, whose result is the optimum all the same where it
    fits."""
    instance = make_problem("torus(3,3)", size=9 * 10**4)
    outcome = run(instance, horizon=4)
    assert outcome.metrics["models"] == 1
    assert outcome.metrics["ticks"] == 2
    assert outcome.status is Status.OPTIMAL


def test_models_that_are_too_large_are_not_built(monkeypatch):
    """Then the first schedule is the answer, and the message says why."""
    monkeypatch.setattr(solve, "MAX_COLUMNS", 10)
    outcome = run(make_problem("torus(3,3)", size=9 * 10**4))
    assert outcome.status is Status.FEASIBLE
    assert "at most 10 are built" in outcome.message


def test_a_rank_that_cannot_be_reached_is_an_input_error():
    """A one-way link is no way back."""
    with pytest.raises(InputError, match="cannot be reached"):
        run(make_problem(network([(0, 1)], [1]), size=2))


def test_a_reason_is_given():
    """Several collectives, another count of time and networks without links do not fit."""
    instance = make_problem("ring(4)", size=4)
    assert METHOD.supports(instance) is None
    assert "several collectives" in str(METHOD.supports(instance.with_changes(also=(instance.demand,))))
    timing = Timing(Semantics.TE_CCL, Fraction(1))
    assert "not te-ccl" in str(METHOD.supports(instance.with_changes(timing=timing)))
    assert "no links" in str(METHOD.supports(load("RI(4)_SW(2)")))
