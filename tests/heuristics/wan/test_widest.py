"""``single-tree`` and ``wan-ring`` against brute force."""

from __future__ import annotations

from itertools import pairwise, permutations
from random import Random

import numpy as np
import pytest
from cwb.algorithms.trees.network import to_wan
from cwb.core.budget import Budget
from cwb.core.trees import TreePacking
from cwb.heuristics.wan.method import WanRingOptions
from cwb.heuristics.wan.widest import cut_site, exact_cycle, random_cycle, widest_ring
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from mtree_networks import all_trees, height, instance, random_edges, rate, solve

pytestmark = pytest.mark.slow  # random networks, checked by brute force

seeds = st.integers(0, 10**6)


def rings(nodes, edges, least=0):
    """Every order of the sites, from site 0, in which links of at least a capacity join neighbours."""
    joined = {frozenset(edge[:2]) for edge in edges if edge[2] >= least}
    orders = ((0, *rest) for rest in permutations(range(1, nodes)))
    return [o for o in orders if all(frozenset(pair) in joined for pair in pairwise((*o, 0)))]


@settings(max_examples=draws(30), deadline=None)
@given(seeds)
def test_the_single_tree_is_the_best_of_all(seed):
    """Of all trees that are low enough, none has a larger smallest capacity."""
    edges = random_edges(5, 5, seed)
    trees = all_trees(5, edges)
    heights = [height(5, edges, tree) for tree in trees]
    for most in (None, 2):
        low = [tree for tree, h in zip(trees, heights, strict=True) if most is None or h <= most]
        done = solve(instance(5, edges), "single-tree", **({} if most is None else {"height": most}))
        if low:
            assert rate(done) == pytest.approx(max(min(edges[e][2] for e in tree) for tree in low))
        else:
            assert done.record.status == "infeasible"
            assert done.record.message.endswith(f"the smallest feasible height is {min(heights)} hops")


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_the_ring_is_the_best_of_all(seed):
    """A ring is found exactly where trying all orders finds one, and its slowest link is as fast as that of the
    best."""
    source = Random(seed)  # noqa: S311
    nodes = source.randint(3, 7)
    edges = random_edges(nodes, source.randint(1, 12), seed)
    wan = to_wan(instance(nodes, edges))
    found, _ = widest_ring(wan, Budget(), WanRingOptions())
    best = max((c for c in range(1, 10) if rings(nodes, edges, c)), default=None)
    assert (found is None) == (best is None)
    if found is not None:
        assert sorted(found) == list(range(nodes))
        fastest = {frozenset(edge[:2]): 0 for edge in edges}
        for edge in edges:
            fastest[frozenset(edge[:2])] = max(fastest[frozenset(edge[:2])], edge[2])
        assert min(fastest[frozenset(pair)] for pair in pairwise([*found, found[0]])) == best


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_what_parts_a_network_leaves_no_ring(seed):
    """If a cut site leaves no ring, none is found; a ring found by rotations is one."""
    edges = random_edges(6, 4, seed)
    wan = to_wan(instance(6, edges))
    exact = exact_cycle(6, wan.tail, wan.head)
    if cut_site(6, wan.tail, wan.head) is not None:
        assert exact is None
    found = random_cycle(6, wan.tail, wan.head, Random(seed))  # noqa: S311
    if found is not None:
        assert tuple(found[found.index(0) :] + found[: found.index(0)]) in rings(6, edges)
        assert exact is not None


def test_a_ring_is_a_ring():
    """On a ring of equal links the ring all-reduce takes 2 (n - 1) / n of the data each way, which is the strength;
    every part goes around."""
    done = solve("ring(5)", "wan-ring")
    assert done.record.status == "optimal"
    assert done.record.metrics["strength_share"] == 1
    assert done.record.metrics["trees"] == 10
    assert done.record.metrics["max_height"] == 4
    packing = done.answer
    assert isinstance(packing, TreePacking)
    used = np.bincount(packing.path_links, minlength=10) + np.bincount(packing.reduction.path_links, minlength=10)
    assert set(used.tolist()) == {8}


def test_where_no_ring_is_the_reason_is_told():
    """GScale has none, nor has a network that a site parts; two sites are too few: the method does not fit them, which
    says nothing of others."""
    assert solve("gscale", "wan-ring").record.message.startswith("no ring passes every site once; all sets")
    assert solve("line(4)", "wan-ring").record.message.endswith("without '1' the network falls apart")
    for spec in ("gscale", "line(4)", "line(2)"):
        assert solve(spec, "wan-ring").record.exit_status == 7


def test_a_large_network_has_a_ring_by_rotations():
    """On 40 sites a ring is looked for at random, the same for the same seed."""
    first, again = (solve("idn_size(0.5, 1)", "wan-ring", seed=3) for _ in range(2))
    assert first.record.verified
    assert first.record.metrics["ring"] == again.record.metrics["ring"]
    assert len(set(first.record.metrics["ring"])) == 40
