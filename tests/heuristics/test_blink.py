"""Blink: its rate is the least maximum flow, its root the best one, its trees right, and what it refuses has a
reason."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import lcm

import pytest
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand, collective_named
from cwb.core.errors import InputError
from cwb.core.outcome import Status
from cwb.core.trees import TreeKind
from cwb.harness import Request, run_one
from cwb.heuristics.blink import BLINK, BLINK_SWITCH
from cwb.instances import load
from cwb.schedules.verify import heaviest_load, verify
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import networks
from oracle import max_flow, to_topology
from pydantic import ValidationError
from small_networks import graphs, make_instance, network, strength

ALL_REDUCE, BROADCAST, REDUCE = Collective.ALL_REDUCE, Collective.BROADCAST, Collective.REDUCE


def solve(instance, method=BLINK_SWITCH, budget=None, **options):
    """Run the method itself; how tall trees are does not matter here."""
    return method.run(instance, None, budget or Budget(), method.options.model_validate({"repack": 0} | options))


def rates(topology, root):
    """The least maximum flow from a rank to any other, and to it from any other, by the oracle; bytes per second."""
    scale = lcm(*(link.bandwidth_Bps.denominator for link in topology.links))
    capacity = Counter()
    for ends, link in zip(topology.link_ends, topology.links, strict=True):
        capacity[ends] += int(link.bandwidth_Bps * scale)
    start, enough = topology.rank_nodes[root], capacity.total()
    others = [node for node in topology.rank_nodes if node != start]
    out = min(max_flow(capacity, start, node, enough) for node in others)
    into = min(max_flow(capacity, node, start, enough) for node in others)
    return Fraction(out, scale), Fraction(into, scale)


@settings(max_examples=draws(30), deadline=None)
@given(networks(), st.sampled_from([ALL_REDUCE, BROADCAST, REDUCE]))
def test_the_rate_is_the_least_maximum_flow_from_the_root(drawn, kind):
    """On random networks with switches the trees carry what Edmonds' theorem says, are right, and the claim is the load
    of a link."""
    topology = to_topology(drawn)
    instance = make_instance(topology, kind)
    outcome = solve(instance)
    report = verify(instance, outcome.answer)
    assert report.ok, report.violations
    out, into = rates(topology, outcome.metrics["root"])
    if kind is not REDUCE:
        assert Fraction(outcome.metrics["broadcast_GBps"]) * 10**9 == out
    if kind is not BROADCAST:
        assert Fraction(outcome.metrics["reduce_GBps"]) * 10**9 == into
    in_turn = sum(12 / rate for rate, used in ((out, kind is not REDUCE), (into, kind is not BROADCAST)) if used)
    assert outcome.metrics["in_turn_s"] == float(in_turn)
    seconds = heaviest_load(instance, outcome.answer)
    assert outcome.objective == float(seconds)
    assert seconds <= in_turn
    assert outcome.bound <= outcome.objective
    if kind is not ALL_REDUCE:
        assert seconds == in_turn
        assert outcome.status is Status.OPTIMAL


@st.composite
def uneven(draw):
    """Networks of one-way links between most pairs of ranks, in which nobody sends as much as he receives."""
    nodes = draw(st.integers(3, 6))
    around = {(v, (v + 1) % nodes) for v in range(nodes)}
    pairs = sorted(around | draw(st.sets(st.sampled_from(list(permutations(range(nodes), 2))), min_size=nodes)))
    return network(nodes, 0, [(a, b, draw(st.integers(1, 9))) for a, b in pairs])


@settings(max_examples=draws(30), deadline=None)
@given(uneven())
def test_the_root_is_the_best_of_all(topology):
    """With unequal send and receive rates, no root has a shorter time for both ways in turn, by enumeration."""
    outcome = solve(make_instance(topology))
    times = [sum(12 / rate for rate in rates(topology, root)) for root in range(len(topology.ranks))]
    report = verify(make_instance(topology), outcome.answer)
    assert report.ok, report.violations
    assert outcome.objective <= outcome.metrics["in_turn_s"]
    assert outcome.metrics["root"] == times.index(min(times))
    assert outcome.metrics["in_turn_s"] == float(min(times))


@settings(max_examples=draws(30), deadline=None)
@given(networks())
def test_in_balanced_networks_every_root_has_the_same_rate(drawn):
    """If every node receives as much as it sends, one root is enough."""
    topology = to_topology(drawn)
    assert len({rate for root in range(len(topology.ranks)) for rate in rates(topology, root)}) == 1


@settings(max_examples=20, deadline=None)
@given(graphs(two_way=True, switches=0, ranks=(2, 5)))
def test_no_root_of_a_two_way_network_beats_the_packing_of_undirected_trees(topology):
    """Reduce and broadcast share each pair of links, so the strength of the network bounds Blink too; the fastest root
    is no slower than the best."""
    instance = make_instance(topology)
    best, fastest = solve(instance), solve(instance, root="fastest")
    assert fastest.objective <= best.objective
    assert fastest.metrics["in_turn_s"] == best.metrics["in_turn_s"]
    assert heaviest_load(instance, fastest.answer) >= 12 / strength(topology)


@settings(max_examples=20, deadline=None)
@given(networks("two-way"), st.integers(1, 4))
def test_a_number_of_trees_is_kept(drawn, k):
    """With k trees asked for, k are packed, right, and never faster than the optimum one way."""
    instance = make_instance(to_topology(drawn), BROADCAST)
    few, best = solve(instance, k=k), solve(instance)
    assert few.metrics["k"] == k
    assert verify(instance, few.answer).ok
    units = few.answer.units * few.answer.unit_bytes
    assert sum(units.tolist()) == 12
    assert few.objective >= best.objective
    smallest = solve(instance, k="smallest")
    assert smallest.objective == best.objective
    assert smallest.metrics["k"] == best.metrics["smallest_k"] <= best.metrics["optimal_k"]


def test_a_ring_of_two_way_links():
    """On a ring of n both neighbours of the root feed it: rate 2 b, and 2 size / rate in turn."""
    record = run_one(load("ring(5, bandwidth='10 GB/s')").with_changes(demand=demand(ALL_REDUCE)), Request("blink"))
    assert record.verified
    assert record.metrics["broadcast_GBps"] == record.metrics["reduce_GBps"] == "20"
    assert record.metrics["in_turn_s"] == pytest.approx(2 * 12e9 / 20e9)


def test_what_one_way_leaves_empty_the_other_may_use():
    """On a line with the root at its end, out-trees use one link of each pair and in-trees the other: half the time of
    both in turn, and optimal."""
    outcome = solve(load("line(4)").with_changes(demand=demand(ALL_REDUCE)), BLINK)
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == pytest.approx(outcome.metrics["in_turn_s"] / 2)


@pytest.mark.parametrize(
    ("spec", "rate"), [("a100(boxes=2)", 200), ("mi250(boxes=2)", 256), ("mi250_8(boxes=2)", 128), ("dgx1()", 150)]
)
def test_rates_on_the_testbeds(spec, rate):
    """The narrowest cut limits the root: all links between two boxes, or the links of one GPU."""
    instance = load(spec).with_changes(demand=demand(ALL_REDUCE))
    outcome = solve(instance)
    assert outcome.metrics["broadcast_GBps"] == str(rate)
    assert verify(instance, outcome.answer).ok
    assert outcome.answer.kind is TreeKind.BOTH


def test_switches_and_ranks_outside_the_group_need_their_removal():
    """blink names the first node that only passes on; blink-switch takes both, and the trees span the group alone."""
    star = load("star(4)").with_changes(demand=demand(ALL_REDUCE))
    assert "'switch' only forwards data" in str(BLINK.supports(star))
    assert BLINK_SWITCH.supports(star) is None
    some = load("ring(6)").with_changes(demand=demand(ALL_REDUCE, ranks=(4, 1, 2)))
    assert "'0' only forwards data" in str(BLINK.supports(some))
    outcome = solve(some)
    assert outcome.metrics["root"] == 4
    assert verify(some, outcome.answer).ok
    assert set(outcome.answer.child.tolist()) == {1, 2}


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_to_all", "gather"])
def test_collectives_with_several_roots_are_not_supported(kind):
    """One root makes neither an all-gather nor a reduce-scatter; the reason says what it makes."""
    asked = load("ring(4)").with_changes(demand=demand(collective_named(kind)))
    for method in (BLINK, BLINK_SWITCH):
        assert kind in str(method.supports(asked))
        assert "no collective" in str(method.supports(load("ring(4)")))


def test_the_root_that_is_asked_for_is_taken():
    """Any rank of the group can be the root of an all-reduce; a broadcast has its own."""
    asked = load("torus(3,3)").with_changes(demand=demand(ALL_REDUCE))
    assert solve(asked, root=5).metrics["root"] == 5
    assert set(solve(asked, root=5).answer.root.tolist()) == {5}
    spread = asked.with_changes(demand=demand(BROADCAST, ranks=(3, *range(3), *range(4, 9))))
    assert solve(spread, root=3).metrics["root"] == solve(spread).metrics["root"] == 3
    with pytest.raises(InputError, match="0; expected root 3 of the collective"):
        solve(spread, root=0)
    with pytest.raises(InputError, match="9; expected a rank of the group"):
        solve(asked, root=9)


@pytest.mark.parametrize("options", [{"root": -1}, {"root": "first"}, {"k": 0}, {"k": "few"}, {"repack": -1}, {"x": 1}])
def test_wrong_options_are_refused(options):
    """Roots, numbers of trees and rounds are what they can be."""
    with pytest.raises(ValidationError):
        BLINK.options.model_validate(options)


def test_a_disconnected_network_is_an_input_error():
    """If nothing leads to a rank, the message names it."""
    topology = load("line(3)").network
    cut = type(topology)(topology.nodes, tuple(link for link in topology.links if link.target != "2"))
    with pytest.raises(InputError, match="disconnected: no link leads to '2'"):
        solve(make_instance(cut))


def test_a_run_that_is_asked_to_stop_keeps_its_bound():
    """Without trees there is no answer; the bound is one all the same."""
    budget = Budget()
    budget.stop.set()
    outcome = solve(load("torus(3,3)").with_changes(demand=demand(ALL_REDUCE)), budget=budget, root="fastest")
    assert (outcome.status, outcome.answer) == (Status.LIMIT, None)
    assert outcome.bound > 0


def demand(kind, ranks=None):
    """A collective of 12 GB."""
    return Demand(kind, Fraction(12 * 10**9), ranks=ranks)
