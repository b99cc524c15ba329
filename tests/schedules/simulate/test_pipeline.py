"""The closed form of a forest in pieces, by hand and against the simulation where trees do not share links unevenly."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import hypothesis.strategies as st
import numpy as np
import pytest
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.trace import SimulationMode
from cwb.core.trees import TreeKind, TreePacking
from cwb.schedules.simulate import simulate
from cwb.schedules.simulate.pipeline import PIECES, pipeline
from cwb.schedules.tree_levels import edge_depths
from cwb.schedules.verify import heaviest_load
from hypothesis import given, settings

AWARE = SimulationMode.CONGESTION_AWARE
COLLECTIVE = {
    TreeKind.OUT: CollectiveKind.ALL_GATHER,
    TreeKind.IN: CollectiveKind.REDUCE_SCATTER,
    TreeKind.BOTH: CollectiveKind.ALL_REDUCE,
}


def packing(instance, kind, trees, units, reduction=None):
    """Trees as lists of (parent, child) over links between neighbours."""
    if kind is TreeKind.BOTH:
        there = packing(instance, TreeKind.IN, reduction or trees, units)
        return replace(packing(instance, TreeKind.OUT, trees, units), kind=kind, reduction=there)
    link = {ends: i for i, ends in enumerate(instance.network.link_ends)}
    edges = [edge for tree in trees for edge in tree]
    return TreePacking(
        instance.sha256,
        kind,
        np.array([tree[0][0] for tree in trees]),
        np.array(units),
        instance.demand.size_bytes / sum(units),
        np.concatenate([[0], np.cumsum([len(tree) for tree in trees])]),
        np.array([p for p, _ in edges]),
        np.array([c for _, c in edges]),
        np.arange(len(edges) + 1),
        np.array([link[(p, c) if kind is TreeKind.OUT else (c, p)] for p, c in edges]),
    )


def on(make, n, links, kind, size):
    """A network with a collective of this kind of trees."""
    return make.network(n, links).with_changes(demand=Demand(COLLECTIVE[kind], Fraction(size)))


def by_hand(instance, made, pieces):
    """The formula of the module, tree by tree and leaf by leaf."""
    flow, startup, slowest = heaviest_load(instance, made), Fraction(0), []
    for tree in range(len(made)):
        ways = []
        for part in made.passes:
            far = {int(made.root[tree]): (Fraction(0), 0)}
            for e in range(part.edge_offset[tree], part.edge_offset[tree + 1]):
                links = part.path_links[part.path_offset[e] : part.path_offset[e + 1]]
                latency = sum((instance.network.links[i].latency_s for i in links), Fraction(0))
                startup = max(startup, latency)
                above = far[int(part.parent[e])]
                far[int(part.child[e])] = above[0] + latency, above[1] + 1
            ways.append(far.values())
        pairs = [(sum(x[0] for x in way), sum(x[1] for x in way)) for way in product(*ways)]
        slowest.append(max(a + (k - 1 + pieces) * flow / pieces for a, k in pairs))
    return max(slowest) + (pieces - 1) * startup


@pytest.mark.parametrize("kind", TreeKind)
def test_the_closed_form_by_hand(make, kind):
    """On random forests with random latencies the arrays give what the formula gives leaf by leaf, for every number of pieces."""

    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def check(data):
        n = data.draw(st.integers(2, 6))
        latency = st.integers(0, 9)
        pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
        instance = on(make, n, [(a, b, 2, Fraction(data.draw(latency), 2)) for a, b in pairs], kind, 64)

        def forest(roots):
            trees = []
            for root in roots:
                order = [root, *data.draw(st.permutations([r for r in range(n) if r != root]))]
                trees.append([(order[data.draw(st.integers(0, i - 1))], order[i]) for i in range(1, n)])
            return trees

        roots = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=4))
        units = data.draw(st.lists(st.integers(1, 5), min_size=len(roots), max_size=len(roots)))
        made = packing(instance, kind, forest(roots), units, forest(roots))
        measured = pipeline(instance, made)
        for pieces in (1, 2, 16, 1024):
            assert measured.seconds(pieces)[0] == pytest.approx(float(by_hand(instance, made, pieces)), rel=1e-12)
        best = min(PIECES, key=lambda pieces: by_hand(instance, made, pieces))
        assert measured.best()[0][0] == pytest.approx(float(by_hand(instance, made, best)), rel=1e-12)
        depths = [
            [int(edge_depths(part)[a:b].max()) + 1 for a, b in pairwise(part.edge_offset)] for part in made.passes
        ]
        assert measured.heights.tolist() == [max(ways) for ways in zip(*depths, strict=True)]

    check()


@pytest.mark.parametrize("kind", TreeKind)
def test_one_tree_takes_what_the_simulation_says(make, kind):
    """A tree alone on links of one speed and one latency takes exactly as long as the simulation in which links are held for their latency."""

    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def check(data):
        n = data.draw(st.integers(2, 7))
        pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
        latency = Fraction(data.draw(st.integers(0, 6)), 4)
        instance = on(make, n, [(a, b, 2, latency) for a, b in pairs], kind, 64)
        order = data.draw(st.permutations(range(n)))
        tree = [(order[data.draw(st.integers(0, i - 1))], order[i]) for i in range(1, n)]
        made = packing(
            instance, kind, [tree], [1]
        )  # the reduction of in-out trees takes the links back, which nobody else uses
        measured = pipeline(instance, made)
        for pieces in (1, 2, 8):
            found = simulate(instance, made, AWARE, pieces=pieces, hold_latency=True).completion_s
            assert measured.seconds(pieces)[0] == pytest.approx(found, rel=1e-12)

    check()


def test_a_chain_of_different_latencies_takes_what_the_simulation_says(make):
    """On one path the largest latency paces the pieces, wherever it is."""
    instance = on(make, 5, [(i, i + 1, 2, a) for i, a in enumerate((1, 4, 2, 3))], TreeKind.OUT, 64)
    made = packing(instance, TreeKind.OUT, [[(i, i + 1) for i in range(4)]], [1])
    for pieces in PIECES[:6]:
        found = simulate(instance, made, AWARE, pieces=pieces, hold_latency=True).completion_s
        assert pipeline(instance, made).seconds(pieces)[0] == found


def test_a_ring_with_chains_both_ways_by_hand(make):
    """Four chains each way round a ring of four: 3 edges deep, 1.5 units of 16 bytes a link, T(C) = 3 a + (2 + C) F / C + (C - 1) a."""
    n, latency = 4, Fraction(1, 4)
    links = [(i, (i + s) % n, 2, latency) for i in range(n) for s in (1, n - 1)]
    instance = on(make, n, links, TreeKind.OUT, 64)
    trees = [[((r + s * k) % n, (r + s * (k + 1)) % n) for k in range(n - 1)] for r in range(n) for s in (1, -1)]
    made = packing(instance, TreeKind.OUT, trees, [1] * 8)
    measured = pipeline(instance, made)
    assert (
        measured.flow_s == 12
    )  # three of the four chains that go this way, 8 bytes each, pass a link of 2 bytes a second
    for pieces in PIECES:
        assert measured.seconds(pieces)[0] == float(
            3 * latency + (2 + pieces) * Fraction(12, pieces) + (pieces - 1) * latency
        )
    seconds, pieces = measured.best()
    assert (seconds[0], pieces[0]) == (12 + 0.75 + 3 + 7 / 4, 8)


def test_many_sizes_at_once(make):
    """Only the flow time grows with the size: every size gives what an instance of that size gives, and more pieces pay the larger it is."""
    links = [(i, j, 10**9, Fraction(1, 10**6)) for i in range(4) for j in range(4) if i != j]
    sizes = [2**k for k in range(10, 31)]
    trees = [[(r, (r + 1) % 4), ((r + 1) % 4, (r + 2) % 4), ((r + 1) % 4, (r + 3) % 4)] for r in range(4)]
    alone = []
    for size in sizes:
        instance = on(make, 4, links, TreeKind.OUT, size)
        made = packing(instance, TreeKind.OUT, trees, [1] * 4)
        seconds, pieces = pipeline(instance, made).best()
        alone.append((seconds[0], pieces[0]))
    seconds, pieces = pipeline(instance, made).best(sizes)
    assert list(zip(seconds, pieces, strict=True)) == alone
    assert (np.diff(pieces) >= 0).all()
    assert pieces[0] == 1 < pieces[-1]
    assert (seconds >= [float(heaviest_load(instance, made) * size / sizes[-1]) for size in sizes]).all()
