"""The optimum of ForestColl by linear programs, against definition and published numbers."""

from __future__ import annotations

import csv
import threading
from dataclasses import replace
from fractions import Fraction

import pytest
from cwb import solvers
from cwb.bench import Request, run_one
from cwb.core.answers import BoundOnly
from cwb.core.bounds import CutCertificate
from cwb.core.budget import Budget
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.errors import InputError, Unsupported
from cwb.core.method import Status
from cwb.core.solver import Capability
from cwb.instances import load
from cwb.models import registry
from cwb.models.forestcoll.exact_flow import feasible, largest_rate, max_flow
from cwb.models.forestcoll.lp import Trees, concurrent, first_bound, search, settle
from cwb.models.forestcoll.lp_method import METHOD, Options
from cwb.models.forestcoll.scaled import scale
from cwb.schedules import judge
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import graphs, network, posed, slowest_cut, smallest_scale

HIGHS = solvers.get("highs")


@settings(max_examples=60, deadline=None)
@given(graphs(balanced=False))
def test_both_programs_give_the_definition(topology):
    """Search and the concurrent program give 1/x* as the exact fraction that trying all cuts gives; exact flows agree and add nothing."""
    trees = Trees(scale(topology))
    for find in (search, concurrent):
        found = find(trees, HIGHS, Budget())
        assert (found.attained, found.hidden) == (True, 0)
        assert found.U == slowest_cut(topology) == trees.needed(found.cut)


@settings(max_examples=60, deadline=None)
@given(graphs(balanced=False), st.integers(1, 5))
def test_a_fixed_number_of_trees_gives_the_definition(topology, k):
    """With k trees a rank, U is the smallest of all fractions j / b_e at which every cut has room."""
    found = search(Trees(scale(topology), k), HIGHS, Budget())
    assert (found.attained, found.hidden) == (True, 0)
    assert smallest_scale(topology, k) == found.U


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_the_value_of_the_concurrent_program_is_the_exact_one(topology):
    """What the solver calls x is the reciprocal of the exact fraction, to seven digits: the cut is no accident."""
    net = scale(topology)
    found = concurrent(Trees(net), HIGHS, Budget())
    assert found.reports[0].objective * max(net.capacity) * float(found.U) == pytest.approx(1, rel=1e-7)


def test_published_optima(reference):
    """The optima of ForestColl's machines are those of its own code."""
    with (reference / "forestcoll.csv").open() as file:
        for row in csv.DictReader(file):
            net = scale(load(row["expression"]).network)
            for find in (search, concurrent) if net.nodes < 20 else (search,):
                found = find(Trees(net), HIGHS, Budget())
                assert found.attained
                assert found.U * net.seconds_per_gigabyte == Fraction(row["inv_x"])


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
    """Forests of k = 1, 2, ... trees a rank are as fast as those of ForestColl's own code (for two MI250, section 4.5)."""
    net = scale(load(expression).network)
    found = [search(Trees(net, k), HIGHS, Budget()).U * net.seconds_per_gigabyte / k for k in range(1, len(algbw) + 1)]
    assert [round(float(len(net.ranks) / per_rank), 2) for per_rank in found] == pytest.approx(algbw)


@settings(max_examples=30, deadline=None)
@given(graphs(balanced=False), st.none() | st.integers(1, 4))
def test_exact_flows_find_what_a_program_has_missed(topology, k):
    """Also from the first cut alone exact flows lead to the optimum."""
    trees = Trees(scale(topology), k)
    found = settle(trees, first_bound(trees), Budget())
    assert found.attained
    assert search(trees, HIGHS, Budget()).U == found.U


@pytest.mark.parametrize("factor", [10**3, 10**6, 10**9])
def test_large_bandwidths_stay_exact(factor):
    """Bandwidths that differ in the tenth digit are told apart, where floats and fixed tolerances fail."""
    links = [(a, b, c * factor + 1) for a, b, c in [(0, 1, 3), (1, 2, 2), (2, 0, 2), (1, 0, 2), (2, 1, 3), (0, 2, 3)]]
    topology = network(3, 0, links)
    for find in (search, concurrent):
        found = find(Trees(scale(topology)), HIGHS, Budget())
        assert found.attained
        assert slowest_cut(topology) == found.U


def answered(instance, **options):
    """What the method says, and the judge of it."""
    assert METHOD.supports(instance) is None
    outcome = METHOD.run(instance, HIGHS, Budget(), Options(**options))
    return outcome, judge(instance, outcome.answer, outcome.certificate)


@pytest.mark.parametrize("kind", [CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER])
def test_a_bound_alone_is_judged(kind):
    """The record's bound is what the judge recomputes from the cut; k and U are those of proposition 3."""
    instance = load("mi250(boxes=2)").with_changes(demand=Demand(kind, Fraction(10**9)))
    outcome, verdict = answered(instance)
    assert (outcome.status, outcome.answer) == (Status.OPTIMAL, BoundOnly())
    assert isinstance(outcome.certificate, CutCertificate)
    assert verdict.ok
    assert verdict.objective == verdict.bound == outcome.bound == float(Fraction(15, 166) / 32)
    assert outcome.metrics["inv_x"] == "15/166"
    assert (outcome.metrics["k"], outcome.metrics["U"]) == (83, "15/2")
    assert outcome.metrics["forest_algbw_GBps"] == pytest.approx(354.133333333)


def test_a_record_has_the_bound_as_its_objective(monkeypatch):
    """A run whose answer is a bound alone is verified, optimal, without a gap, and says that there is no schedule."""
    monkeypatch.setitem(registry.METHODS, "forestcoll-lp", "forestcoll.lp_method:METHOD")
    instance = load("mi250_8(boxes=2)").with_changes(demand=Demand(CollectiveKind.ALL_GATHER, Fraction(10**9)))
    record = run_one(instance, Request("forestcoll-lp", options={"method": "concurrent"}))
    assert (record.status, record.verified, record.exit_status) == ("optimal", True, 0)
    assert record.objective == record.bound == float(Fraction(1, 208))
    assert record.gap == 0
    assert record.answer == {"answer": "bound-only"}
    assert record.certificate["certificate"] == "cut"
    assert record.metrics["inv_x"] == "1/13"


@settings(max_examples=25, deadline=None)
@given(graphs(balanced=False), st.sampled_from([CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER]))
def test_one_way_networks_are_turned_around_for_reductions(topology, kind):
    """The judged time is size / N times the worst cut, of the links turned around for a reduce-scatter."""
    instance = posed(topology, kind, size=12)
    outcome, verdict = answered(instance)
    turned = replace(topology, links=tuple(replace(x, source=x.target, target=x.source) for x in topology.links))
    worst = slowest_cut(topology if kind is CollectiveKind.ALL_GATHER else turned)
    unit = scale(topology).unit_Bps
    assert outcome.status is Status.OPTIMAL
    assert verdict.bound == float(Fraction(12, instance.npus) * worst / unit)


def test_an_all_reduce_is_two_stages_and_a_bound_that_may_be_below_them():
    """On 8+8 MI250 the two stages in turn reach 104 GB/s; what the cut proves is less, and the status says so."""
    instance = load("mi250_8(boxes=2)").with_changes(demand=Demand(CollectiveKind.ALL_REDUCE, Fraction(10**9)))
    outcome, verdict = answered(instance, method="concurrent", k=2)
    assert outcome.status is Status.FEASIBLE
    assert verdict.ok
    assert verdict.bound == outcome.bound <= 1 / 128
    assert outcome.metrics["inv_x"] == "2/13"
    assert (outcome.metrics["k"], outcome.metrics["forest_algbw_GBps"]) == (2, pytest.approx(100))


def test_a_run_that_is_stopped_says_what_it_knows():
    """With no time left the first cut is still a bound, and the status is not optimal."""
    stop = threading.Event()
    stop.set()
    instance = load("mi250(boxes=2)").with_changes(demand=Demand(CollectiveKind.ALL_GATHER, Fraction(10**9)))
    outcome = METHOD.run(instance, HIGHS, Budget(stop=stop), Options())
    assert outcome.status is Status.FEASIBLE
    assert "budget" in outcome.message
    assert judge(instance, outcome.answer, outcome.certificate).bound == outcome.bound


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"demand": None}, "no collective"),
        ({"demand": Demand(CollectiveKind.BROADCAST, Fraction(8))}, "does not bound broadcast"),
        ({"demand": Demand(CollectiveKind.ALL_GATHER, Fraction(8), ranks=(0, 1))}, "all ranks"),
        ({"demand": Demand(CollectiveKind.ALL_GATHER, Fraction(0))}, "no data"),
        ({"also": (Demand(CollectiveKind.ALL_GATHER, Fraction(8)),)}, "one collective"),
        ({"network": network(3, 0, [])}, "no links"),
    ],
)
def test_what_does_not_fit_has_a_reason(change, reason):
    """Whatever the method does not bound is told in words."""
    instance = posed(load("ring(3)").network, CollectiveKind.ALL_GATHER).with_changes(**change)
    assert reason in METHOD.supports(instance)


def test_a_network_that_falls_apart_is_refused():
    """Where a rank cannot be reached there is no rate."""
    instance = posed(network(3, 0, [(0, 1, 1), (1, 0, 1), (1, 2, 1)]), CollectiveKind.ALL_GATHER)
    for method in ("search", "concurrent"):
        with pytest.raises(InputError, match="no link does"):
            METHOD.run(instance, HIGHS, Budget(), Options(method=method))


class WithoutDuals:
    """A solver that only solves."""

    name = "plain"
    capabilities = Capability.LP


def test_a_solver_without_dual_values_is_refused():
    """Without dual values there is no cut."""
    with pytest.raises(Unsupported, match="plain does not keep"):
        search(Trees(scale(load("ring(3)").network)), WithoutDuals(), Budget())


@settings(max_examples=60, deadline=None)
@given(graphs(), st.data())
def test_exact_flows_are_those_of_networkx(topology, data):
    """Value, flow and cut of the exact maximum flow are right, and the largest rate is feasible while any larger is not."""
    networkx = pytest.importorskip("networkx")
    net = scale(topology)
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(net.nodes))
    for a, b, c in zip(net.tail, net.head, net.capacity, strict=True):
        graph.add_edge(a, b, capacity=c + graph.edges.get((a, b), {}).get("capacity", 0))
    source, sink = data.draw(st.permutations(range(net.nodes)))[:2]
    found = max_flow(net.nodes, net.tail, net.head, net.capacity, source, sink)
    assert found.value == networkx.maximum_flow_value(graph, source, sink)
    ends = list(zip(net.tail, net.head, found.flow, net.capacity, strict=True))
    assert all(0 <= f <= c for _, _, f, c in ends)
    kept = [sum(f for _, b, f, _ in ends if b == v) - sum(f for a, _, f, _ in ends if a == v) for v in range(net.nodes)]
    assert kept == [found.value * ((v == sink) - (v == source)) for v in range(net.nodes)]
    assert found.value == sum(c for a, b, _, c in ends if a in found.source_side and b not in found.source_side)
    supply = [data.draw(st.integers(1, 5)) if v in net.ranks else -1 for v in range(net.nodes)]
    rate = largest_rate(net.nodes, net.tail, net.head, net.capacity, supply)

    def fits(wanted):
        scaled = [c * wanted.denominator for c in net.capacity]
        return feasible(net.nodes, net.tail, net.head, scaled, [s * wanted.numerator if s > 0 else s for s in supply])

    assert fits(rate)
    assert not fits(rate * Fraction(1001, 1000))
