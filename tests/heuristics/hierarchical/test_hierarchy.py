"""The levels that networks have, and which links their groups take."""

from __future__ import annotations

import pytest
from cwb.algorithms.schedules.problem import GroupProblem
from cwb.core.collective import Collective, Demand
from cwb.heuristics.hierarchical.levels import Networks, find_hierarchy
from cwb.instances import load


def problem(spec: str, ranks=None) -> GroupProblem:
    instance = load(spec)
    return GroupProblem(instance, instance.network, Demand(Collective.BROADCAST, 1), ranks or range(instance.npus))


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        ("a100(boxes=2)", (8, 2)),  # by bandwidth
        ("mi250(boxes=2)", (2, 2, 4, 2)),
        ("rail(boxes=3)", (8, 3)),  # dimensions
        ("RI(4)_SW(2)", (4, 2)),
        ("mesh(3,4)", (3, 4)),
        ("pods(2,3)", (8, 3, 2)),  # bandwidth, and distance
        ("fat_tree(4)", (2, 2, 4)),
        ("dragonfly(4,4,4)", (4, 4, 4)),  # communities
        ("ring(7)", (7,)),
    ],
)
def test_levels_of_networks(spec, sizes):
    """Boxes, pods, groups of routers and dimensions are found; what has no parts of one size is one level."""
    from cwb.core.network_views import links_of

    instance = load(spec)
    topology = links_of(instance.network)
    posed = GroupProblem(instance, topology, Demand(Collective.BROADCAST, 1), tuple(range(instance.npus)))
    hierarchy = find_hierarchy(posed)
    assert hierarchy.sizes == sizes
    assert sorted(hierarchy.order.tolist()) == list(range(instance.npus))


def test_levels_of_a_process_group():
    """Of two ranks in each of two boxes there are two levels, and the root can be put first."""
    hierarchy = find_hierarchy(problem("a100(boxes=2)", (9, 1, 8, 0)))
    assert hierarchy.sizes == (2, 2)
    assert hierarchy.order.tolist() == [0, 1, 8, 9]
    assert hierarchy.with_leader(9).order.tolist() == [9, 8, 1, 0]


def test_groups_keep_to_the_links_of_their_level():
    """Inside a box data takes the box's switch, between boxes the NICs."""
    posed = problem("a100(boxes=2)")
    networks = Networks(posed.topology, find_hierarchy(posed))

    def rates(ranks, level):
        links = networks.links([posed.topology.rank_nodes[rank] for rank in ranks], level)
        return {float(posed.topology.links[link].bandwidth_Bps) / 1e9 for link in links}

    assert rates(range(8), 0) == {300.0}
    assert rates((0, 8), 1) == {25.0}
