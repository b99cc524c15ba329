"""The first-order search for flows and lengths of links near the optimum."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from threading import Event

import pytest
from cwb import solvers
from cwb.algorithms.bounds.schedule_bounds import pairs_of
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.harness import Request, run_one
from cwb.instances import load
from cwb.models.mcf.first_order import find_approximate_flow
from cwb.models.mcf.problem import exchange_of
from cwb.models.mcf.solve import bound
from cwb.schedules.network_bounds import recomputed_length_bound
from hypothesis import given, settings
from hypothesis import strategies as st

ALL_TO_ALL = Demand(Collective.ALL_TO_ALL, Fraction(2**20))


def exchange(network, **changes):
    """An all-to-all of 1 MiB."""
    return load(network).with_changes(demand=ALL_TO_ALL, **changes)


@pytest.mark.parametrize(
    "network",
    ["ring(6)", "mesh(3,4)", "generalized_kautz(3,20)", "star(5)", "fat_tree(4)", "dgx_a100(boxes=2)", "ndv2()"],
)
def test_flow_and_bound_enclose_the_optimum(network):
    """With equal and unequal links and switches, bound and flow are on both sides of the program's optimum, within the
    gap."""
    instance, gap = exchange(network), 0.01
    optimum = float(bound(instance, solvers.get("highs"), Budget()).seconds)
    found = bound(instance, solvers.get("highs"), Budget(gap=gap), algorithm="first-order")
    flow_s = float(exchange_of(instance).unit_s) / found.rate
    assert float(found.seconds) <= optimum * (1 + 1e-7)
    assert flow_s >= optimum * (1 - 1e-7)
    assert flow_s <= float(found.seconds) * (1 + gap + 1e-6)
    assert not found.exact
    assert found.work == {"iterations": found.rounds}


@given(st.integers(6, 14), st.integers(3, 4), st.integers(0, 10**6), st.sampled_from([0.3, 0.05, 0.01]))
@settings(max_examples=15)
def test_any_search_proves_a_bound_that_its_flow_respects(nodes, degree, seed, gap):
    """On random networks the verifier recomputes the bound, flows are balanced and never faster than it."""
    instance = exchange(f"random_regular({nodes + nodes * degree % 2},{degree},seed={seed})")
    exchanged = exchange_of(instance)
    near = find_approximate_flow(exchanged, Budget(gap=gap))
    assert (near.flow >= -1e-9).all()
    found = bound(instance, solvers.get("highs"), Budget(gap=gap), algorithm="first-order")
    assert recomputed_length_bound(instance, found.certificate) == found.seconds
    assert float(found.seconds) <= float(exchanged.unit_s) / found.rate * (1 + 1e-9)


def test_the_search_ends_without_its_gap():
    """A gap of 0, which no search reaches, ends after so many rounds, near the optimum."""
    found = bound(exchange("mesh(2,3)"), solvers.get("highs"), Budget(gap=0), algorithm="first-order")
    assert found.rate == pytest.approx(float(exchange_of(exchange("mesh(2,3)")).unit_s / found.seconds), rel=1e-3)


@pytest.mark.parametrize("ratio", [10**6, 10**12, 10**18])
@pytest.mark.parametrize("rate", ["0:1", "0:x"])
def test_slow_links_keep_flows_and_bounds_finite(ratio, rate):
    """A slow link on a ring, or that alone leads to a rank, overflows no length and rounds no other one to zero."""
    fast = [(str(a % 5), str((a + way) % 5)) for a in range(5) for way in (1, -1)]
    slow = [tuple(rate.split(":")), tuple(rate.split(":")[::-1])]
    links = [Link(*ends, Fraction(10**12, ratio if ends in slow else 1), Fraction(0)) for ends in (*slow, *fast)]
    if rate == "0:1":  # beside fast ones
        links += [replace(link, bandwidth_Bps=Fraction(10**12)) for link in links[:2]]
    nodes = tuple(map(Node, sorted({link.source for link in links})))
    instance = Instance("by hand", Topology(nodes, tuple(links))).with_changes(demand=ALL_TO_ALL)
    optimum = float(bound(instance, solvers.get("highs"), Budget()).seconds)
    found = bound(instance, solvers.get("highs"), Budget(), algorithm="first-order")
    assert optimum / 1.02 <= float(found.seconds) <= optimum * (1 + 1e-6)
    assert float(exchange_of(instance).unit_s) / found.rate <= float(found.seconds) * 1.02


def test_many_cold_rounds_overflow_no_length():
    """Rounds at a gap of 0 cool until loads above the largest one are far too many temperatures; all have a path."""
    rates = "4-8:415 8-1:28 1-5:178 5-7:14 7-2:63 2-0:530 0-3:72 3-9:894 9-6:22 6-4:55 3-5:105 5-3:85 6-7:518 6-7:329"
    parts = [rate.replace("-", ":").split(":") for rate in rates.split()]
    links = tuple(Link(a, b, Fraction(int(rate) * 10**6), Fraction(0)) for a, b, rate in parts)
    nodes = tuple(Node(str(index), NodeKind.SWITCH if index > 7 else NodeKind.COMPUTE) for index in range(10))
    instance = Instance("by hand", Topology(nodes, links)).with_changes(demand=ALL_TO_ALL)
    optimum = float(bound(instance, solvers.get("highs"), Budget()).seconds)
    found = bound(instance, solvers.get("highs"), Budget(gap=0), algorithm="first-order")
    assert float(found.seconds) == pytest.approx(optimum, rel=1e-6)
    assert float(exchange_of(instance).unit_s) / found.rate == pytest.approx(optimum, rel=1e-6)


def test_a_stopped_search_keeps_its_bound():
    """After Ctrl-C the lengths that are known prove a bound, and incomplete flows are not used."""
    stop = Event()
    stop.set()
    found = bound(exchange("ring(6)"), solvers.get("highs"), Budget(stop=stop), algorithm="first-order")
    assert (found.flows, found.rate, found.message) == (None, None, "the time is over before all ranks have a flow")
    assert found.seconds == bound(exchange("ring(6)"), solvers.get("highs"), Budget()).seconds


def test_a_stop_between_rounds_keeps_the_flow():
    """Ctrl-C after the first round leaves a whole flow and a bound."""
    stop = Event()
    budget = Budget(stop=stop, gap=0, progress=lambda _: stop.set())
    found = bound(exchange("mesh(3,3)"), solvers.get("highs"), budget, algorithm="first-order")
    assert found.rounds == 1
    assert found.rate > 0


def test_large_programs_are_searched():
    """Beyond the number of classes that is allowed, auto searches, and program solves the program all the same."""
    instance = exchange("mesh(2,3)")
    searched = bound(instance, solvers.get("highs"), Budget(), most=1, algorithm="auto")
    assert (searched.report, bound(instance, solvers.get("highs"), Budget(), most=1).exact) == (None, True)


def test_a_rank_without_a_path_is_bad_input():
    """The error is the one of the linear program."""
    instance = exchange("ring(4)")
    apart = replace(instance.network, links=instance.network.links[:2])
    with pytest.raises(InputError, match="no path"):
        bound(instance.with_changes(network=apart), solvers.get("highs"), Budget(), algorithm="first-order")
    assert len(pairs_of(instance)[0]) == 12


@pytest.mark.parametrize("model", ["all-to-all-mcf", "all-to-all-schedule"])
def test_runs_are_verified(model):
    """Both methods have the search as an option; the bound is recomputed, and a schedule along its flow is valid."""
    record = run_one(exchange("generalized_kautz(3,15)"), Request(model, options={"algorithm": "first-order"}))
    assert (record.status, record.exit_status, record.verified, record.proof) == (
        "feasible",
        0,
        True,
        "recomputed",
    )
    assert record.metrics["rate_reached"] <= record.metrics["rate"] <= record.metrics["rate_reached"] * 1.0101
    assert "longer than the bound" in record.message


def test_a_limit_too_short_for_the_exact_bound_is_said_at_once():
    """The run ends with the status limit before any search, and names the seconds that the bound takes."""
    instance = exchange("random_regular(300,4,seed=1)")
    record = run_one(instance, Request("all-to-all-mcf", options={"algorithm": "first-order"}, time_limit_s=1.0))
    assert (record.status, record.exit_status) == ("limit", 4)
    assert record.message.startswith("the exact bound of 89,700 pairs takes some 0.9 s, and its verification as many")
