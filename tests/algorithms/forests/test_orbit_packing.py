"""Single trees that fit: kinds of links, exact loads, and none where none fit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.forests.orbit_packing import OrbitNetwork, pack_orbits
from cwb.algorithms.graphs.translations import ColouredNetwork, find_symmetry
from cwb.instances import load


def network_of(name: str) -> OrbitNetwork:
    """A network of equal links whose bottleneck are the links of hosts, by orbits of its translations."""
    topology = load(name).topology
    symmetry = find_symmetry(ColouredNetwork.of(topology))
    assert symmetry is not None
    ends = np.zeros(len(topology.nodes), dtype=np.bool_)
    ends[list(topology.rank_nodes)] = True
    room = tuple(Fraction((len(topology.ranks) - 1) * size, symmetry.motions) for size in symmetry.size.tolist())
    return OrbitNetwork(*topology.end_arrays, ends, symmetry.roots, symmetry.orbit, room)


def loads(network: OrbitNetwork, forest) -> list[Fraction]:
    """Uses of every orbit by the weighted trees, over its room."""
    total = [Fraction(0)] * len(network.room)
    for column, weight in zip(forest.columns, forest.weight, strict=True):
        links = network.grow_tree(column)[3]
        for orbit, uses in enumerate(np.bincount(network.orbit[links], minlength=len(total)).tolist()):
            total[orbit] += weight * uses
    return [use / room for use, room in zip(total, network.room, strict=True)]


def test_links_within_and_between_groups_are_of_different_kinds() -> None:
    """Four kinds: links from and to hosts, of which each router has an orbit, those within groups, those between."""
    network = network_of("dragonfly(33,8,4)")
    assert sorted(np.bincount(network.kind).tolist()) == [8, 8, 32, 56]


@pytest.mark.parametrize(("groups", "routers", "hosts"), [(9, 4, 2), (19, 6, 3), (33, 8, 4), (73, 12, 6)])
def test_dragonflies_of_the_usual_proportions_have_direct_trees(groups: int, routers: int, hosts: int) -> None:
    """Every rank sends to every other one over at most one link between groups, so that loads are known exactly."""
    network = network_of(f"dragonfly({groups},{routers},{hosts})")
    forest = pack_orbits(network, seed=0)
    assert forest is not None and forest.weight == (1,) * routers
    assert {column.height for column in forest.columns} == {1}
    ranks = groups * routers * hosts
    within = hosts**2 + 2 * hosts**2 * (groups - 1)
    expected = {1, Fraction(within, ranks - 1), Fraction((routers * hosts) ** 2, ranks - 1)}
    assert set(loads(network, forest)) == expected


@pytest.mark.parametrize(("name", "height"), [("dragonfly(70,12,6)", 2), ("dragonfly(33,12,8)", 2)])
def test_too_little_room_between_groups_takes_relays(name: str, height: int) -> None:
    """If direct trees overload links between groups, one host of a router sends on to its others."""
    network = network_of(name)
    forest = pack_orbits(network, seed=0)
    assert forest is not None and len(forest.columns) == len(network.roots)
    assert {column.height for column in forest.columns} == {height} and max(loads(network, forest)) == 1


def test_whatever_is_packed_fits_exactly() -> None:
    """On random dragonflies with too many orbits for the program, trees are single and overload none, or are none."""
    random, packed = np.random.default_rng(5), 0
    for _ in range(8):
        groups, routers, hosts = random.integers([2, 10, 1], [61, 15, 9]).tolist()
        network = network_of(f"dragonfly({groups},{routers},{hosts})")
        if (forest := pack_orbits(network, seed=0)) is not None:
            packed += 1
            assert set(forest.weight) == {1} and max(loads(network, forest)) <= 1
            for column in forest.columns:
                child = network.grow_tree(column)[1]
                reached = {int(network.roots[column.root]), *child.tolist()}
                assert len(child) == network.ends.sum() - 1 and reached == set(np.flatnonzero(network.ends))
    assert packed >= 4


def test_no_single_trees_and_too_many_orbits_is_none() -> None:
    """Some routers of few groups have no link between groups: no single trees are found, and nothing is claimed."""
    assert pack_orbits(network_of("dragonfly(2,12,5)"), seed=0) is None


def test_a_stop_comes_first() -> None:
    """Nothing is packed if the budget has ended."""
    assert pack_orbits(network_of("dragonfly(9,4,2)"), 0, lambda: True) is None
