"""Process groups on networks of sites, for which other sites relay."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from cwb.algorithms.trees.helpers import flow_time, group_bound, trees_of_group
from cwb.algorithms.trees.network import supports, supports_group
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.topology import NodeKind, Topology
from cwb.harness import Request, registry, run_one
from cwb.harness.run import run
from cwb.instances import load
from cwb.schedules import verdict_of

METHODS = ("mtree", "gost", "topoadopt", "blink-wan", "single-tree")


def reduce_among(network, *group):
    return load(network).with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(10**9), ranks=group or None))


@pytest.mark.parametrize("name", METHODS)
def test_opposite_sites_of_a_line_are_joined_through_the_others(name):
    """Trees on the only path between two members meet the bound, and the verifier agrees."""
    record = run_one(reduce_among("line(4)", 0, 2), Request(name))
    assert (record.status, record.verified) == ("optimal", True)
    assert record.metrics["helpers"] == 1  # the last site is a leaf, and loses its link
    assert record.objective == record.bound


def test_the_reason_is_that_of_all_sites():
    """If no tree is low or wide enough, or the time is over, the message says so, not that members are apart."""
    low = run_one(reduce_among("line(4)", 0, 2), Request("mtree", options={"height": "1"}))
    late = run_one(reduce_among("line(4)", 0, 2), Request("mtree", time_limit_s=0.0))
    assert (low.status, late.status) == ("limit", "limit")
    assert "height" in low.message
    assert "time" in late.message


@pytest.mark.parametrize("name", ["mtree", "gost"])
@pytest.mark.parametrize("units", ["links", "seconds"])
def test_the_height_is_that_from_a_member(name, units):
    """On a star whose middle only relays, trees are two links high from a member, and a lower limit leaves none."""
    instance = reduce_among("star(3)", 0, 1, 2)
    nodes = tuple(replace(node, kind=NodeKind.COMPUTE) for node in instance.network.nodes)
    star = instance.with_changes(network=replace(instance.network, nodes=nodes))
    late = instance.network.links[0].latency_s
    limits = ("1", "2") if units == "links" else (f"{float(late)} s", f"{float(2 * late)} s")
    low, high = (run_one(star, Request(name, options={"height": limit})) for limit in limits)
    assert low.status == "limit" and "higher" in low.message
    assert (high.status, high.metrics["max_height"]) == ("optimal", 2)


def test_both_ways_round_a_ring_are_used():
    """Two trees through different helpers carry twice what one does."""
    both, one = (run_one(reduce_among("ring(6)", 0, 3), Request(name)) for name in ("mtree", "single-tree"))
    assert both.status == "optimal"
    assert (both.metrics["helpers"], one.metrics["helpers"]) == (4, 2)
    assert one.objective == pytest.approx(2 * both.objective)


def test_trees_lose_idle_leaves_and_begin_at_members():
    """A tree of all sites has a root in the group, no helper as a leaf, and the flow time of its own links."""
    whole, group = reduce_among("line(5)"), reduce_among("line(5)", 1, 3)
    trees = run(whole, Request("single-tree")).answer
    pruned = trees_of_group(group, trees, [0, 1, 2, 3, 4])
    assert int(pruned.root[0]) in (1, 3)
    assert {*pruned.parent.tolist(), *pruned.child.tolist()} == {1, 2, 3}
    assert flow_time(group.network, pruned) == Fraction(10**9) / group.network.links[0].bandwidth_Bps
    assert not verdict_of(group, pruned, None).violations


def test_a_group_that_no_links_join():
    """Members of two networks without a link between them have no trees, and the error names the network."""
    instance = reduce_among("ring(6)", 0, 3)
    links = [
        link
        for link, (a, b) in zip(instance.network.links, instance.network.link_ends, strict=True)
        if (a < 3) == (b < 3)
    ]
    apart = instance.with_changes(network=Topology(instance.network.nodes, tuple(links)))
    with pytest.raises(InputError):
        group_bound(apart)


@pytest.mark.parametrize("seed", range(6))
def test_no_group_is_faster_than_its_bound(seed):
    """On random groups of a mesh, verified trees take at least the bound of any schedule, which is recomputed."""
    group = Random(seed).sample(range(9), 2 + seed % 4)  # noqa: S311 (nothing is secret here)
    record = run_one(reduce_among("mesh(3,3)", *group), Request("single-tree"))
    assert record.verified
    assert record.bound <= record.objective


def test_groups_are_for_methods_of_trees_alone():
    """Models and methods of messages reject a group; one member is none."""
    group = reduce_among("ring(6)", 0, 3)
    assert "process group" in str(supports(group))
    assert supports_group(group) is None
    assert "two ranks" in str(supports_group(reduce_among("ring(6)", 4)))
    for name in ("psld", "plink", "wan-ring", "mtree-repair"):
        assert "process group" in str(registry.get(name).supports(group))
    assert "process group" in str(registry.formulation("mtree/selection").supports(group))
