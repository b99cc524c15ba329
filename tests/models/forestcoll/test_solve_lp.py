"""The optimum of ForestColl by linear programs, against definition and published numbers."""

from __future__ import annotations

import csv
import threading
from dataclasses import replace
from fractions import Fraction

import pytest
from cwb import solvers
from cwb.algorithms.graphs.maxflow import max_flow
from cwb.core.answers import BoundOnly
from cwb.core.bounds import CutCertificate
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError, Unsupported
from cwb.core.outcome import Status
from cwb.core.solver import Capability
from cwb.harness import Request, run_one
from cwb.instances import load
from cwb.models.forestcoll.extract import flow_on_arcs, largest_rate
from cwb.models.forestcoll.method import FORESTCOLL_LP, BoundOptions
from cwb.models.forestcoll.problem import from_all_ranks
from cwb.models.forestcoll.solve_lp import CutOracle, confirm_bound, first_bound, search, solve_concurrent
from cwb.schedules import verdict_of
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import feasible, graphs, make_instance, network, slowest_cut, smallest_scale

HIGHS = solvers.get("highs")


@pytest.mark.slow
@settings(max_examples=draws(60), deadline=None)
@given(graphs(balanced=False))
def test_both_programs_give_the_definition(topology):
    """Search and the concurrent program give 1/x* as the exact fraction that trying all cuts gives; exact flows agree
    and add nothing."""
    oracle = CutOracle(from_all_ranks(topology))
    for find in (search, solve_concurrent):
        found = find(oracle, HIGHS, Budget())
        assert (found.attained, found.hidden) == (True, 0)
        assert found.U == slowest_cut(topology) == oracle.least_copies(found.cut)


@pytest.mark.slow
@settings(max_examples=draws(60), deadline=None)
@given(graphs(balanced=False), st.integers(1, 5))
def test_a_fixed_number_of_trees_gives_the_definition(topology, k):
    """With k trees a rank, U is the smallest of all fractions j / b_e at which every cut has room."""
    found = search(CutOracle(from_all_ranks(topology), k), HIGHS, Budget())
    assert (found.attained, found.hidden) == (True, 0)
    assert smallest_scale(topology, k) == found.U


@settings(max_examples=draws(40), deadline=None)
@given(graphs())
def test_the_value_of_the_concurrent_program_is_the_exact_one(topology):
    """The solver's x is the reciprocal of the exact fraction to seven digits, so the cut is no accident."""
    net = from_all_ranks(topology)
    found = solve_concurrent(CutOracle(net), HIGHS, Budget())
    assert found.reports[0].objective * max(net.bandwidths) * float(found.U) == pytest.approx(1, rel=1e-7)


@pytest.mark.slow
def test_published_optima(reference):
    """The optima of ForestColl's machines are those of its own code."""
    with (reference / "forestcoll.csv").open() as file:
        for row in csv.DictReader(file):
            net = from_all_ranks(load(row["expression"]).network)
            for find in (search, solve_concurrent) if net.nodes < 20 else (search,):
                found = find(CutOracle(net), HIGHS, Budget())
                assert found.attained
                assert found.U * 10**9 / net.unit_Bps == Fraction(row["inv_x"])


@pytest.mark.parametrize(
    ("expression", "algbw"),
    [
        ("mi250(boxes=1)", [266.67, 320, 342.86, 320, 333.33, 342.86, 329.41, 336.84]),
        ("mi250(boxes=2)", [320, 341.33]),
        ("mi250_8(boxes=2)", [200, 200, 200, 204.8, 205.13, 204.26, 203.64, 204.8]),
        ("dgx_a100(boxes=2)", [342.86] * 6 + [346.39, 345.95]),
    ],
)
def test_few_trees(expression, algbw):
    """Forests of k = 1, 2, ... trees a rank are as fast as those of ForestColl's own code (for two MI250, section
    4.5)."""
    net = from_all_ranks(load(expression).network)
    found = [search(CutOracle(net, k), HIGHS, Budget()).U * 10**9 / net.unit_Bps / k for k in range(1, len(algbw) + 1)]
    assert [round(float(len(net.rank_nodes) / per_rank), 2) for per_rank in found] == pytest.approx(algbw)


@settings(max_examples=draws(30), deadline=None)
@given(graphs(balanced=False), st.none() | st.integers(1, 4))
def test_exact_flows_find_what_a_program_has_missed(topology, k):
    """Also from the first cut alone exact flows lead to the optimum."""
    oracle = CutOracle(from_all_ranks(topology), k)
    found = confirm_bound(oracle, first_bound(oracle), Budget())
    assert found.attained
    assert search(oracle, HIGHS, Budget()).U == found.U


@pytest.mark.parametrize("factor", [10**3, 10**6, 10**9])
def test_large_bandwidths_stay_exact(factor):
    """Bandwidths that differ in the tenth digit are told apart, where floats and fixed tolerances fail."""
    links = [(a, b, c * factor + 1) for a, b, c in [(0, 1, 3), (1, 2, 2), (2, 0, 2), (1, 0, 2), (2, 1, 3), (0, 2, 3)]]
    topology = network(3, 0, links)
    for find in (search, solve_concurrent):
        found = find(CutOracle(from_all_ranks(topology)), HIGHS, Budget())
        assert found.attained
        assert slowest_cut(topology) == found.U


def solve_verified(instance, **options):
    """Return the method's answer and its verification."""
    assert FORESTCOLL_LP.supports(instance) is None
    outcome = FORESTCOLL_LP.run(instance, HIGHS, Budget(), BoundOptions(**options))
    return outcome, verdict_of(instance, outcome.answer, outcome.certificate)


@pytest.mark.parametrize("kind", [Collective.ALL_GATHER, Collective.REDUCE_SCATTER])
def test_a_bound_alone_is_verified(kind):
    """The record's bound is what the verifier recomputes from the cut; k and U are those of proposition 3."""
    instance = load("mi250(boxes=2)").with_changes(demand=Demand(kind, Fraction(10**9)))
    outcome, verdict = solve_verified(instance)
    assert (outcome.status, outcome.answer) == (Status.OPTIMAL, BoundOnly())
    assert isinstance(outcome.certificate, CutCertificate)
    assert verdict.ok
    assert verdict.objective == verdict.bound == outcome.bound == float(Fraction(15, 166) / 32)
    assert outcome.metrics["inv_x"] == "15/166"
    assert (outcome.metrics["k"], outcome.metrics["U"]) == (83, "15/2")
    assert outcome.metrics["forest_algbw_GBps"] == pytest.approx(354.133333333)


def test_a_record_has_the_bound_as_its_objective():
    """A run whose answer is a bound alone is verified, optimal, without a gap, and says that there is no schedule."""
    instance = load("mi250_8(boxes=2)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(10**9)))
    record = run_one(instance, Request("forestcoll-lp", options={"method": "concurrent"}))
    assert (record.status, record.verified, record.exit_status) == ("optimal", True, 0)
    assert record.objective == record.bound == float(Fraction(1, 208))
    assert record.gap == 0
    assert record.answer == {"answer": "bound-only"}
    assert record.certificate["certificate"] == "cut"
    assert record.metrics["inv_x"] == "1/13"


@settings(max_examples=draws(25), deadline=None)
@given(graphs(balanced=False), st.sampled_from([Collective.ALL_GATHER, Collective.REDUCE_SCATTER]))
def test_one_way_networks_are_turned_around_for_reductions(topology, kind):
    """The verified time is size / N times the worst cut, of the links turned around for a reduce-scatter."""
    instance = make_instance(topology, kind, size=12)
    outcome, verdict = solve_verified(instance)
    turned = replace(topology, links=tuple(replace(x, source=x.target, target=x.source) for x in topology.links))
    worst = slowest_cut(topology if kind is Collective.ALL_GATHER else turned)
    unit = from_all_ranks(topology).unit_Bps
    assert outcome.status is Status.OPTIMAL
    assert verdict.bound == float(Fraction(12, instance.npus) * worst / unit)


def test_an_all_reduce_is_two_stages_and_a_bound_that_may_be_below_them():
    """On 8+8 MI250 the two stages in turn reach 104 GB/s; what the cut proves is less, and the status says so."""
    instance = load("mi250_8(boxes=2)").with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(10**9)))
    outcome, verdict = solve_verified(instance, method="concurrent", k=2)
    assert outcome.status is Status.FEASIBLE
    assert verdict.ok
    assert verdict.bound == outcome.bound <= 1 / 128
    assert outcome.metrics["inv_x"] == "2/13"
    assert (outcome.metrics["k"], outcome.metrics["forest_algbw_GBps"]) == (2, pytest.approx(100))


def test_a_run_that_is_stopped_says_what_it_knows():
    """With no time left the first cut is still a bound, and the status is not optimal."""
    stop = threading.Event()
    stop.set()
    instance = load("mi250(boxes=2)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(10**9)))
    outcome = FORESTCOLL_LP.run(instance, HIGHS, Budget(stop=stop), BoundOptions())
    assert outcome.status is Status.FEASIBLE
    assert "budget" in outcome.message
    assert verdict_of(instance, outcome.answer, outcome.certificate).bound == outcome.bound


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"demand": None}, "no collective"),
        ({"demand": Demand(Collective.BROADCAST, Fraction(8))}, "does not define broadcast"),
        ({"demand": Demand(Collective.ALL_GATHER, Fraction(8), ranks=(0, 1))}, "all ranks"),
        ({"demand": Demand(Collective.ALL_GATHER, Fraction(0))}, "no data"),
        ({"also": (Demand(Collective.ALL_GATHER, Fraction(8)),)}, "expected one"),
        ({"network": network(3, 0, [])}, "no links"),
    ],
)
def test_what_does_not_fit_has_a_reason(change, reason):
    """Whatever the method does not bound is told in words."""
    instance = make_instance(load("ring(3)").network, Collective.ALL_GATHER).with_changes(**change)
    assert reason in str(FORESTCOLL_LP.supports(instance))


def test_a_network_that_falls_apart_is_refused():
    """If a rank cannot be reached, there is no rate."""
    instance = make_instance(network(3, 0, [(0, 1, 1), (1, 0, 1), (1, 2, 1)]), Collective.ALL_GATHER)
    for method in ("search", "concurrent"):
        with pytest.raises(InputError, match="no link does"):
            FORESTCOLL_LP.run(instance, HIGHS, Budget(), BoundOptions(method=method))


class WithoutDuals:
    """A solver that only solves."""

    name = "plain"
    capabilities = Capability.LP


def test_a_solver_without_dual_values_is_refused():
    """Without dual values there is no cut."""
    with pytest.raises(Unsupported, match="plain does not keep"):
        search(CutOracle(from_all_ranks(load("ring(3)").network)), WithoutDuals(), Budget())


@settings(max_examples=60, deadline=None)
@given(graphs(), st.data())
def test_exact_flows_are_those_of_networkx(topology, data):
    """Value, flow and cut of the exact maximum flow are right, also where links are parallel."""
    networkx = pytest.importorskip("networkx")
    net = from_all_ranks(topology)
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(net.nodes))
    for a, b, c in zip(net.tail, net.head, net.bandwidths, strict=True):
        graph.add_edge(a, b, capacity=c + graph.edges.get((a, b), {}).get("capacity", 0))
    source, sink = data.draw(st.permutations(range(net.nodes)))[:2]
    arcs = list(zip(net.tail, net.head, net.bandwidths, strict=True))
    flow = flow_on_arcs(net.nodes, arcs, source, sink)
    value = sum(f * ((a == source) - (b == source)) for a, b, f in zip(net.tail, net.head, flow, strict=True))
    assert value == networkx.maximum_flow_value(graph, source, sink)
    found = max_flow(net.graph, source, sink)
    assert found.value == value
    ends = list(zip(net.tail, net.head, flow, net.bandwidths, strict=True))
    assert all(0 <= f <= c for _, _, f, c in ends)
    kept = [sum(f for _, b, f, _ in ends if b == v) - sum(f for a, _, f, _ in ends if a == v) for v in range(net.nodes)]
    assert kept == [value * ((v == sink) - (v == source)) for v in range(net.nodes)]
    assert value == sum(c for a, b, _, c in ends if found.source_side[a] and not found.source_side[b])


@settings(max_examples=60, deadline=None)
@given(graphs(switches=0), st.data())
def test_the_largest_rate_fits_and_no_larger_one(topology, data):
    """All ranks can receive the weights times the largest rate, and no multiple above it."""
    net = from_all_ranks(topology)
    weight = [data.draw(st.integers(1, 5)) for _ in net.rank_nodes]
    arcs = list(zip(net.tail, net.head, net.bandwidths, strict=True))
    rate = largest_rate(weight, arcs)

    def fits(wanted):
        scaled = [(a, b, c * wanted.denominator) for a, b, c in arcs]
        return feasible(len(weight), scaled, [w * wanted.numerator for w in weight])

    assert fits(rate)
    assert not fits(rate * Fraction(1001, 1000))
