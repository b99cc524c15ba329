"""Packed trees, certain ones, pools of cuts, and lower trees: what is demanded, within the capacities."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cwb.algorithms.forests.engine import eccentricities, exchange_edges, lower_trees
from cwb.algorithms.forests.kernels import heights
from cwb.algorithms.forests.packing import CutPool, Packer, exact_tree, seeds
from cwb.algorithms.forests.splitting import remove_switches
from cwb.algorithms.forests.symmetry import find_groups
from draws import draws
from networks import FAMILIES, random_network, seeded_random
from random_digraphs import (
    as_dict,
    check_trees,
    column,
    digraph,
    flags,
    is_rooted,
    random_packable,
    tallest,
    with_trees,
)

pytestmark = pytest.mark.slow  # random networks, checked by brute force

WAYS = [{"thrifty": thrifty, "exact_only": exact_only} for thrifty in (False, True) for exact_only in (False, True)]


def without_switches(rng, family):
    """A random network after its switches are gone, its nodes numbered anew; with demand and groups."""
    network, demand = with_trees(rng, random_network(rng, family))
    nodes, members = len(network.nodes), flags(len(network.nodes), network.compute)
    split = remove_switches(digraph(network.capacity, nodes), column(nodes, demand), members)
    place = {v: i for i, v in enumerate(network.compute)}
    links = {(place[u], place[v]): c for (u, v), c in as_dict(split.graph).items()}
    graph = digraph(links, len(place))
    return graph, {place[v]: d for v, d in demand.items()}, seeds(split.groups, np.array(network.compute))


@cache
def cases(count):
    """Tight networks that had switches, and unbalanced ones that never had any: the first of 30 that tests share."""
    if count < 30:
        return cases(30)[:count]
    rng = seeded_random(1)
    return [
        (*random_packable(rng, rng.randint(3, 9), rng.choice((3, 20, 10**4))), ())
        if i % 2
        else without_switches(rng, FAMILIES[i // 2 % 3])
        for i in range(count)
    ]


@pytest.mark.parametrize("way", WAYS)
def test_all_that_is_demanded_is_packed(way):
    """From every root come as many trees as demanded; they span, and no edge is loaded beyond its capacity."""
    certain = 0
    for graph, demand, levels in cases(draws(30)):
        packer = Packer(graph, column(graph.nodes, demand), CutPool(graph, levels), **way)
        forest = packer.pack()
        assert forest is not None
        check_trees(forest, demand, graph.capacity.tolist())
        assert (packer.residual == graph.capacity - forest.load()).all()
        assert not packer.rest.any()
        certain += forest.counts["certain_trees"]
        if way["exact_only"]:
            assert forest.counts["certain_trees"] == len(forest)
    assert certain > draws(150) or not way["exact_only"]


@pytest.mark.parametrize("factor", [2**50, 2**62 + 1, 3**50])
@pytest.mark.parametrize("exact_only", [False, True])
def test_large_capacities(factor, exact_only):
    """The same where copies of trees need Python's integers; lowering keeps it so."""
    for graph, demand, levels in cases(8):
        large, many = (
            graph.with_capacity([c * factor for c in graph.capacity.tolist()]),
            {v: d * factor for v, d in demand.items()},
        )
        pool = CutPool(large, levels)
        forest = Packer(large, column(graph.nodes, many), pool, exact_only=exact_only).pack()
        assert forest is not None
        check_trees(forest, many, large.capacity.tolist())
        check_trees(lower_trees(forest), many, large.capacity.tolist())
        again = exchange_edges(forest, 2, 0)
        check_trees(again, many, large.capacity.tolist())
        assert again.tallness() <= forest.tallness()


def test_packing_into_what_others_leave():
    """A part of the trees is packed anew into what the rest leaves; together they are a forest again."""
    rng = seeded_random(3)
    for graph, demand, levels in cases(24):
        pool = CutPool(graph, levels)
        forest = Packer(graph, column(graph.nodes, demand), pool).pack()
        assert forest is not None
        keep = np.array([rng.random() < 0.5 for _ in range(len(forest))])
        rest = replace(forest, root=forest.root[keep], copies=forest.copies[keep], into=forest.into[keep])
        missing: dict[int, int] = {}
        for root, copies in zip(forest.root[~keep].tolist(), forest.copies[~keep].tolist(), strict=True):
            missing[root] = missing.get(root, 0) + copies
        if not missing:
            continue
        residual = graph.capacity - rest.load()
        for way in WAYS:
            part = Packer(graph, column(graph.nodes, missing), pool, **way, residual=residual).pack()
            assert part is not None
            check_trees(part, missing, residual.tolist())


def test_roots_in_any_order_and_a_stop():
    """Trees exist in whatever order roots come; told to stop, there is no forest."""
    rng = seeded_random(4)
    for graph, demand, levels in cases(20):
        roots = np.array(rng.sample(range(graph.nodes), graph.nodes))
        forest = Packer(graph, column(graph.nodes, demand), CutPool(graph, levels)).pack(roots)
        assert forest is not None
        check_trees(forest, demand, graph.capacity.tolist())
        assert Packer(graph, column(graph.nodes, demand), CutPool(graph, levels)).pack(stop=lambda: True) is None


def test_a_certain_tree_leaves_room_for_all_others():
    """After a tree of the algorithm of Berczi and Frank, what is left has all other trees, whichever root it is for."""
    for graph, demand, _ in cases(24):
        numbers = column(graph.nodes, demand)
        for root in np.flatnonzero(numbers).tolist():
            copies, into = exact_tree(graph, graph.capacity, numbers, root)
            assert 1 <= copies <= demand[root]
            residual, left = graph.capacity.copy(), numbers.copy()
            residual[into[into >= 0]] -= copies
            left[root] -= copies
            assert (residual >= 0).all()
            assert is_rooted(graph.with_capacity(residual), left)


def test_what_cuts_have_to_spare():
    """Every cut's slack is what enters it less the demand outside, edge by edge; never negative while all trees
    exist."""
    rng = seeded_random(6)
    images = 0
    for graph, demand, levels in cases(24):
        pool = CutPool(graph, levels)
        before = len(pool)
        sides = [flags(graph.nodes, rng.sample(range(graph.nodes), rng.randint(1, graph.nodes))) for _ in range(5)]
        pool.add(sides, images=True)
        pool.add(sides, images=True)
        images += len(pool) - before
        assert len({side.tobytes() for side in pool.inside}) == len(pool)
        numbers, links = column(graph.nodes, demand), as_dict(graph)
        slack = pool.slack(graph.capacity, numbers).tolist()
        for side, spare in zip(pool.inside, slack, strict=True):
            entering = sum(c for (u, v), c in links.items() if side[v] and not side[u])
            assert spare == entering - sum(d for v, d in demand.items() if not side[v])
            assert spare >= 0 or not side.any()
        for node in range(graph.nodes):
            listed = pool.cuts[pool.cut_start[node] : pool.cut_start[node + 1]].tolist()
            assert listed == np.flatnonzero(pool.inside[:, node]).tolist()
    assert images > 30


def test_images_of_a_cut_are_in_equal_groups():
    """A set in one of four equal boxes has an image of its size in each of the others."""
    links = {(4 * b + i, 4 * b + (i + 1) % 4): 10 + i for b in range(4) for i in range(4)}
    links |= {(4 * b, 4 * ((b + 1) % 4)): 1 for b in range(4)}
    graph = digraph({link: c for link, c in links.items() if c >= 10}, 16)
    groups = find_groups(graph, flags(16, range(16)))
    pool = CutPool(digraph(links, 16), [groups])
    before = len(pool)
    pool.add([flags(16, [5, 6])], images=True)
    added = {frozenset(np.flatnonzero(side).tolist()) for side in pool.inside[before:]}
    assert added == {frozenset({4 * b + 1, 4 * b + 2}) for b in range(4)}


def test_lower_trees_are_the_same_forest():
    """Lowering and exchanging edges keep demand and capacities, and no forest becomes taller; many become lower."""
    less = 0
    for graph, demand, levels in cases(30):
        forest = Packer(graph, column(graph.nodes, demand), CutPool(graph, levels)).pack()
        assert forest is not None
        low = lower_trees(forest)
        check_trees(low, demand, graph.capacity.tolist())
        assert low.tallness() <= forest.tallness()
        again = exchange_edges(low, 3, seed=1)
        check_trees(again, demand, graph.capacity.tolist())
        assert again.tallness() <= low.tallness()
        assert tallest(again) == again.tallness()[0] >= eccentricities(again).max(initial=0)
        less += again.tallness() < forest.tallness()
    assert less > 5


def test_a_single_tree_that_is_too_tall():
    """A forest of one tree that is taller than it must be is made lower; there is no second one to exchange edges
    with."""
    graph = digraph({(0, 1): 1, (1, 2): 1, (2, 3): 1, (3, 0): 1, (0, 2): 1, (0, 3): 1}, 4)
    edges = {link: index for index, link in enumerate(as_dict(graph))}
    forest = Packer(graph, column(4, {0: 1}), CutPool(graph, ())).pack()
    assert forest is not None
    chain = replace(forest, into=np.array([[-1, edges[0, 1], edges[1, 2], edges[2, 3]]]))
    assert chain.tallness() == (3, 3)
    check_trees(exchange_edges(chain, 5, seed=0), {0: 1}, graph.capacity.tolist())
    low = lower_trees(chain)
    check_trees(low, {0: 1}, graph.capacity.tolist())
    assert low.tallness() == (1, 1)


def test_very_many_copies_do_not_overflow():
    """With some 2^50 copies of tall trees, cubes of heights pass 64 bits, and still nothing becomes taller."""
    links = {(v, (v + step) % 12): 2**52 for v in range(12) for step in (1, 11)}
    graph, demand = digraph(links, 12), dict.fromkeys(range(12), 2**53 // 11)
    forest = Packer(graph, column(12, demand), CutPool(graph, ())).pack()
    assert forest is not None
    again = exchange_edges(forest, 5, seed=3)
    check_trees(again, demand, graph.capacity.tolist())
    assert again.tallness() <= forest.tallness()


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_gives_the_same_trees(seed):
    """Packing, lowering and exchanging twice gives the same trees in the same order."""
    for graph, demand, levels in cases(10):
        found = []
        for _ in range(2):
            pool = CutPool(graph, levels)
            forest = Packer(graph, column(graph.nodes, demand), pool).pack()
            assert forest is not None
            forest = exchange_edges(lower_trees(forest), 3, seed)
            found.append((forest.root.tolist(), forest.copies.tolist(), forest.into.tolist()))
        assert found[0] == found[1]


def test_heights_and_depths():
    """Heights and depths of trees are those of walking up."""
    for graph, demand, levels in cases(20):
        forest = Packer(graph, column(graph.nodes, demand), CutPool(graph, levels)).pack()
        assert forest is not None
        height, depth = heights(forest.into, graph.tail)
        assert height.max() == tallest(forest)
        assert (depth.max(axis=1) == height).all()
        for root, row, into in zip(forest.root.tolist(), depth, forest.into, strict=True):
            assert row[root] == 0
            assert all(row[v] == row[graph.tail[into[v]]] + 1 for v in range(graph.nodes) if v != root)
