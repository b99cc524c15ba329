"""The optimal all-reduce: values, exact plans, and exact bounds."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from cwb import solvers
from cwb.algorithms.bounds.schedule_bounds import cut_bound
from cwb.core.bounds import CutCertificate, PartitionCertificate
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError, Unsupported
from cwb.core.topology import NodeKind
from cwb.instances import load
from cwb.models.forestcoll.bounds import best_certificate, narrowest_cut, strong_components
from cwb.models.forestcoll.extract import common_denominator
from cwb.models.forestcoll.method import AllReduceOptions, ForestOptions
from cwb.models.forestcoll.problem import from_all_ranks, hubs_of
from cwb.models.forestcoll.solve import run as run_in_halves
from cwb.models.forestcoll.solve_allreduce import run, solve_allreduce
from cwb.models.forestcoll.solve_lp import CutOracle, search
from cwb.schedules.collective import exact_bound
from draws import draws
from hypothesis import given, settings
from small_networks import cuts, feasible, graphs, make_instance, network, strength

HIGHS = solvers.get("highs")
GB = 10**9


def machine(expression):
    """A machine whose switches cannot store, with an all-reduce of one gigabyte."""
    instance = load(expression)
    nodes = tuple(
        replace(node, buffer_bytes=Fraction(0)) if node.kind is NodeKind.SWITCH else node
        for node in instance.network.nodes
    )
    bufferless = replace(instance.network, nodes=nodes)
    return instance.with_changes(network=bufferless, demand=Demand(Collective.ALL_REDUCE, Fraction(GB)))


def check(topology, plan):
    """Check a plan against its promises, exactly."""
    ranks, load_Bps = topology.rank_nodes, Counter()
    for (a, b), paths in plan.paths.items():
        for links, amount in paths:
            ends = [topology.link_ends[e] for e in links]
            assert (ends[0][0], ends[-1][1]) == (ranks[a], ranks[b])
            for (_, head), (tail, _) in pairwise(ends):
                assert head == tail
                assert topology.nodes[head].kind is NodeKind.SWITCH
            assert amount > 0
            for e in links:
                load_Bps[e] += amount * plan.unit_Bps
        both = plan.broadcast.get((a, b), 0) + plan.reduce.get((a, b), 0)
        assert both == sum(amount for _, amount in paths)
    assert plan.broadcast.keys() | plan.reduce.keys() <= plan.paths.keys()
    assert all(used <= topology.links[e].bandwidth_Bps for e, used in load_Bps.items())
    for capacity, turned in ((plan.broadcast, False), (plan.reduce, True)):
        arcs = [(b, a, c) if turned else (a, b, c) for (a, b), c in capacity.items()]
        assert feasible(len(plan.root), arcs, list(plan.root))


@pytest.mark.parametrize(
    ("expression", "best", "two_stages", "kind", "parts"),
    [
        ("dgx_a100(boxes=1)", Fraction(1200, 7), Fraction(1200, 7), PartitionCertificate, 8),
        ("mi250(boxes=1)", Fraction(1200, 7), Fraction(1200, 7), PartitionCertificate, 8),
        ("mi250_8(boxes=2)", Fraction(128), Fraction(104), CutCertificate, None),
        ("dgx_a100(boxes=2)", Fraction(520, 3), Fraction(520, 3), PartitionCertificate, 16),
        pytest.param(
            "mi250(boxes=2)",
            Fraction(2656, 15),
            Fraction(2656, 15),
            PartitionCertificate,
            16,
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_machines(expression, best, two_stages, kind, parts):
    """The program's value is what an exact certificate bounds and an exact plan attains; on 8+8 MI250 it beats two
    stages by 23%."""
    instance = machine(expression)
    found = solve_allreduce(instance, HIGHS, Budget())
    assert found.rate_Bps == pytest.approx(float(best) * GB, rel=1e-7)
    assert found.bound_s == 1 / best
    assert isinstance(found.certificate, kind)
    assert parts is None or len(found.certificate.parts) == parts
    assert exact_bound(instance, found.certificate) == 1 / best
    check(instance.network, found.plan)
    assert best * (1 - Fraction(1, 10**6)) * GB <= found.plan.rate_Bps <= best * GB
    net = from_all_ranks(instance.network)
    per_rank = search(CutOracle(net), HIGHS, Budget()).U * 10**9 / net.unit_Bps
    assert len(net.rank_nodes) / (2 * per_rank) == two_stages


def test_the_plan_of_eight_and_eight_is_exact():
    """On 8+8 MI250 the plan takes exactly as long as the cut says: 1 GB at 128 GB/s is optimal."""
    found = solve_allreduce(machine("mi250_8(boxes=2)"), HIGHS, Budget())
    assert found.plan.rate_Bps == 128 * GB
    assert found.plan_s == found.bound_s == Fraction(1, 128)
    assert found.plan_s == found.bound_s


@settings(max_examples=draws(60), deadline=None)
@given(graphs(two_way=True, switches=0))
def test_without_switches_the_optimum_is_the_strength_of_the_network(topology):
    """On two-way networks of ranks the optimum, the bound and the plan are what trying all partitions gives."""
    best = strength(topology)
    found = solve_allreduce(make_instance(topology), HIGHS, Budget())
    assert found.rate_Bps == pytest.approx(float(best), rel=1e-7)
    assert found.bound_s == 12 / best
    assert best * (1 - Fraction(1, 10**6)) <= found.plan.rate_Bps <= best
    check(topology, found.plan)


@settings(max_examples=draws(60), deadline=None)
@given(graphs(balanced=False, ranks=(2, 4)))
def test_plans_hold_and_bounds_are_bounds(topology):
    """On any network the plan holds exactly, is worth the program's value, and is within the bound."""
    instance = make_instance(topology)
    found = solve_allreduce(instance, HIGHS, Budget())
    check(topology, found.plan)
    rate = float(found.plan.rate_Bps)
    assert rate == pytest.approx(found.rate_Bps, rel=1e-6)
    assert found.plan_s >= found.bound_s
    assert exact_bound(instance, found.certificate) == found.bound_s


@settings(max_examples=draws(40), deadline=None)
@given(graphs())
def test_the_optimum_is_no_less_than_two_stages(topology):
    """In balanced networks, trees do at least as well as a reduce-scatter and an all-gather."""
    rate = solve_allreduce(make_instance(topology), HIGHS, Budget()).rate_Bps
    net = from_all_ranks(topology)
    stages = [search(CutOracle(stage), HIGHS, Budget()).U for stage in (net, net.transpose())]
    assert rate >= float(len(net.rank_nodes) * net.unit_Bps / sum(stages)) * (1 - 1e-6)


@settings(max_examples=draws(20), deadline=None)
@given(graphs())
def test_capacities_are_multiples_of_one_kth(topology):
    """With the paper's k all capacities are multiples of one k-th of the network's unit, and the plan still holds."""
    found = solve_allreduce(make_instance(topology), HIGHS, Budget(), k=7)
    check(topology, found.plan)
    assert found.plan.unit_Bps == from_all_ranks(topology).unit_Bps / 7
    for values in (found.plan.root, found.plan.broadcast.values(), found.plan.reduce.values()):
        assert all(isinstance(value, int) for value in values)
    assert found.plan.rate_Bps <= 12 / found.bound_s


def test_one_root_may_do_all():
    """On a star of ranks the middle one adds up everything, at the rate of a link."""
    topology = network(4, 0, [(0, i, 5) for i in (1, 2, 3)] + [(i, 0, 5) for i in (1, 2, 3)])
    found = solve_allreduce(make_instance(topology), HIGHS, Budget())
    assert found.plan.rate_Bps == 5
    assert found.plan_s == found.bound_s


def test_a_k_that_is_too_small_leaves_nothing():
    """Three ranks on a ring of one-way links share a link's bandwidth in parts that a k of 1 rounds to nothing, and no
    time is claimed."""
    found = solve_allreduce(make_instance(network(3, 0, [(0, 1, 1), (1, 2, 1), (2, 0, 1)])), HIGHS, Budget(), k=1)
    assert found.plan.rate_Bps == 0
    assert found.plan_s is None


def test_nothing_is_found_in_no_time():
    """A solve that is stopped at once gives no plan and no bound."""
    stop = threading.Event()
    stop.set()
    found = solve_allreduce(machine("mi250_8(boxes=2)"), HIGHS, Budget(stop=stop))
    assert (found.rate_Bps, found.plan, found.plan_s, found.bound_s) == (None, None, None, None)


def test_a_network_that_falls_apart_is_refused():
    """If a rank cannot be reached, there is no all-reduce."""
    with pytest.raises(InputError, match="no link does"):
        solve_allreduce(make_instance(network(3, 0, [(0, 1, 1), (1, 0, 1), (1, 2, 1)])), HIGHS, Budget())


def test_a_denominator_is_found_where_there_is_one():
    """Values that are fractions up to rounding have a common denominator; others are taken to eight digits.

    Large denominators are those of values that are closer to such fractions, as in vertices of the program.
    """
    assert common_denominator([0.5, 1 / 3 + 1e-9, 2.0, 0.0]) == 6
    assert common_denominator([4133 / 9170, 0.25 + 1e-15, 101 / 45850]) == 91700
    assert common_denominator([2**0.5, 3**0.5, 5**0.5]) == 10**8
    assert common_denominator([1 / 997, 1 / 991, 1 / 983]) == 10**8


def test_strong_components():
    """Nodes that reach each other over the given links are together, and every node is in one component."""
    net = from_all_ranks(network(5, 0, [(3, 1, 1), (1, 0, 1), (0, 1, 1), (0, 4, 1), (4, 3, 1)]))
    assert sorted(map(sorted, strong_components(net, [0, 1, 2, 3]))) == [[0, 1], [2], [3], [4]]
    assert sorted(map(sorted, strong_components(net, list(range(len(net.tail)))))) == [[0, 1, 3, 4], [2]]


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_the_narrowest_cut_is_that_of_all_cuts(topology):
    """No set of nodes with some but not all ranks has less bandwidth out of it."""
    net = from_all_ranks(topology)
    seconds, _ = cut_bound(make_instance(topology), narrowest_cut(net))
    assert seconds == Fraction(12, min(sum(leaving) for _, leaving in cuts(net))) / net.unit_Bps


@settings(max_examples=30, deadline=None)
@given(graphs(two_way=True, switches=0))
def test_good_partitions_are_found_without_dual_values_too(topology):
    """Wrong dual values cost sharpness only: what is found bounds the time, and is a bound of some partition."""
    instance, net = make_instance(topology), from_all_ranks(topology)
    seconds, certificate = best_certificate(instance, net, {})
    assert seconds <= 12 / strength(topology)
    assert exact_bound(instance, certificate) == seconds


@pytest.mark.parametrize(
    ("can", "entries"),
    [({}, 6), ({"buffer_bytes": None}, 6), ({"multicast": True}, 6), ({"reduces": True}, 6)]
    + [({"multicast": True, **adds}, 4) for adds in ({"buffer_bytes": None}, {"reduces": True})],
)
def test_switches_that_add_and_copy_weaken_a_partition(can, entries):
    """On a star of four ranks every byte enters a rank six times if the switch cannot add, leaves one six times if it
    cannot copy, and does both four times if it can; trees are as fast."""
    topology = network(4, 1, [(i, 4, 6) for i in range(4)] + [(4, i, 6) for i in range(4)])
    able = replace(topology, nodes=(*topology.nodes[:4], replace(topology.nodes[4], **can)))
    found = solve_allreduce(make_instance(able), HIGHS, Budget(), hubs=hubs_of(able))
    assert found.bound_s == Fraction(entries * 12, 24)
    assert found.plan_s == found.bound_s


UNEVEN = [(0, 1, 46743210987), (1, 2, 398123456789), (2, 3, 23371605493), (3, 0, 25000000001)]
UNEVEN += [(0, 2, 12345678901), (2, 0, 12345678901), (1, 3, 46743210987), (3, 1, 46743210987)]


@pytest.mark.parametrize(
    "topology",
    [
        pytest.param(network(4, 0, UNEVEN), id="bytes per second as they were measured"),
        pytest.param(
            network(3, 1, [(0, 3, 2), (3, 1, 1), (1, 3, 1), (3, 0, 1), (1, 2, 1), (2, 1, 1), (2, 0, 1)]),
            id="a switch with more in than out",
        ),
    ],
)
def test_the_program_answers_where_the_halves_fail(topology):
    """Trees of uneven bandwidths are counted in 64 bits, and a node that only forwards need not be balanced."""
    instance = make_instance(topology)
    with pytest.raises((InputError, Unsupported)):
        run_in_halves(instance, HIGHS, Budget(), ForestOptions())
    found = run(instance, HIGHS, Budget(), AllReduceOptions())
    assert found.answer is not None
    assert found.objective == pytest.approx(found.bound, rel=1e-6)
