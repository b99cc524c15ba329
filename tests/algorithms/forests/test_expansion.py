"""Trees on the real links: every path is one, and no link carries more whole copies than it may."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.forests.engine import grow_forest
from cwb.algorithms.forests.expansion import ParallelLinks, expand, trace_splits
from cwb.algorithms.graphs.network import exact_array
from cwb.core.budget import Budget
from draws import draws
from networks import FAMILIES, random_network, seeded_random
from random_digraphs import column, flags, with_trees

pytestmark = pytest.mark.slow  # random networks, checked by brute force


def parallel(rng, capacity):
    """Cut some edges into two or three parallel links, and put all in a random order."""
    links = []
    for (u, v), c in capacity.items():
        cuts = sorted(rng.randint(0, c) for _ in range(rng.choice((0, 0, 1, 2))))
        links += [(u, v, b - a) for a, b in zip([0, *cuts], [*cuts, c], strict=True)]  # some carry nothing
    rng.shuffle(links)
    return links


def expand_forest(rng, network, demand):
    """Grow a forest on parallel links and give it its paths."""
    nodes, members = len(network.nodes), flags(len(network.nodes), network.compute)
    links = parallel(rng, network.capacity)
    tail, head = (np.array([link[i] for link in links], dtype=np.int64) for i in (0, 1))
    wires = ParallelLinks(nodes, tail, head, exact_array(c for *_, c in links))
    patterns, repack = rng.random() < 0.5, rng.choice((0, 1))
    grown = grow_forest(wires, column(nodes, demand), members, Budget(), patterns=patterns, repack=repack)
    assert grown is not None
    pieces = trace_splits(wires, grown.split.log, grown.forest.graph, grown.members)
    return links, grown, expand(pieces, grown.forest, np.arange(len(network.compute)), "", Fraction(1, 7))


def check_paths(network, demand, links, packing):
    """Walk along every path of every tree."""
    compute = network.compute
    load: Counter[int] = Counter()
    roots: Counter[int] = Counter()
    assert len(packing.edge_offset) == len(packing) + 1
    for t, (root, units) in enumerate(zip(packing.root.tolist(), packing.units.tolist(), strict=True)):
        assert units > 0
        roots[compute[root]] += units
        reached = {root}
        for e in range(packing.edge_offset[t], packing.edge_offset[t + 1]):
            parent, child = int(packing.parent[e]), int(packing.child[e])
            assert parent in reached
            assert child not in reached
            reached.add(child)
            at = compute[parent]
            path = packing.path_links[packing.path_offset[e] : packing.path_offset[e + 1]].tolist()
            for i, link in enumerate(path):
                assert links[link][0] == at
                at = links[link][1]
                assert (at in network.switches) == (i < len(path) - 1)
                load[link] += units
            assert at == compute[child]
        assert reached == set(range(len(compute)))
    assert roots == Counter({v: d for v, d in demand.items() if d})
    assert all(units <= links[link][2] for link, units in load.items())


@pytest.mark.parametrize("family", FAMILIES)
def test_paths_are_links_and_fit(family):
    """Every path leads from parent to child over switches alone, and every single one of parallel links keeps its whole
    copies."""
    rng = seeded_random(31)
    divided = 0
    for _ in range(draws(30)):
        network, demand = with_trees(rng, random_network(rng, family))
        links, grown, packing = expand_forest(rng, network, demand)
        check_paths(network, demand, links, packing)
        divided += len(packing) > len(grown.forest)
    assert divided > draws(30) // 10


def test_ranks_outside_of_the_group_are_passed_through():
    """With a group of some compute nodes, paths may cross the others, which then count as switches.

    ``check_paths`` asserts it.
    """
    rng = seeded_random(32)
    for i in range(30):
        network = random_network(rng, FAMILIES[i % 3])
        group = tuple(sorted(rng.sample(network.compute, rng.randint(2, len(network.compute)))))
        network = type(network)(group, tuple(v for v in network.nodes if v not in group), network.capacity)
        network, demand = with_trees(rng, network)
        links, _, packing = expand_forest(rng, network, demand)
        check_paths(network, demand, links, packing)


@pytest.mark.parametrize("factor", [2**30, 2**58 + 1])
def test_large_amounts(factor):
    """The same with as many copies as 64 bits can count, and capacities beyond them; ``check_paths`` asserts it."""
    rng = seeded_random(33)
    for i in range(9):
        network, demand = with_trees(rng, random_network(rng, FAMILIES[i % 3]))
        if max(demand.values()) * factor >= 2**63:
            continue
        network = type(network)(
            network.compute, network.switches, {link: c * factor for link, c in network.capacity.items()}
        )
        demand = {v: d * factor for v, d in demand.items()}
        links, _, packing = expand_forest(rng, network, demand)
        check_paths(network, demand, links, packing)


def test_trees_are_cut_where_pieces_end():
    """Two copies of a tree whose one edge has two ways of one copy each become two trees of one."""
    links = [(0, 2, 1), (2, 1, 1), (0, 3, 1), (3, 1, 1), (1, 2, 1), (2, 0, 1), (1, 3, 1), (3, 0, 1)]
    tail, head = (np.array([link[i] for link in links]) for i in (0, 1))
    wires = ParallelLinks(4, tail, head, np.ones(8, dtype=np.int64))
    grown = grow_forest(wires, np.array([2, 2, 0, 0]), flags(4, [0, 1]), Budget())
    assert grown is not None
    assert grown.forest.copies.tolist() == [2, 2]
    pieces = trace_splits(wires, grown.split.log, grown.forest.graph, grown.members)
    packing = expand(pieces, grown.forest, np.arange(2), "", Fraction(1))
    assert packing.units.tolist() == [1, 1, 1, 1]
    ways = defaultdict(set)
    for t, root in enumerate(packing.root.tolist()):
        ways[root].add(tuple(packing.path_links[packing.path_offset[t] : packing.path_offset[t + 1]].tolist()))
    assert ways == {0: {(0, 1), (2, 3)}, 1: {(4, 5), (6, 7)}}
