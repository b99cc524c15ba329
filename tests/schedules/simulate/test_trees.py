"""Pipelined trees against the closed forms of MTree's section III.C, in the right form.

With latency a, serialization s = (v / k) / bandwidth and k pieces, links in series are a flow shop with equal jobs: the
first piece takes ``sum (a + s)``, and the slowest link lets one piece pass every ``max s``, or ``max (a + s)`` if it is
held for the latency too, which is what equation (2) says. A tree takes as long as its slowest path between root and
leaf,
which need not be the longest one; an all-reduce as long as its slowest pair of a way up and a way down. Equations (7)
and
(8) lack a factor v: the best number of pieces is ``sqrt((l - 1) v / (B max a))``.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import hypothesis.strategies as st
import numpy as np
import pytest
from cwb.core.schedule import StepSchedule
from cwb.core.trace import SimulationMode
from cwb.core.trees import TreeKind, TreePacking
from cwb.schedules.simulate import simulate
from cwb.schedules.trees import tree_sends
from draws import draws
from hypothesis import given, settings
from tree_packings import packing

AWARE, CUT = SimulationMode.CONGESTION_AWARE, SimulationMode.CUT_THROUGH

#: Modes of any sends; shares are of trees alone.
MODES = [mode for mode in SimulationMode if mode is not SimulationMode.SHARES]


def flow_shop(stages, pieces, hold):
    """Closed form of links in series, given as (latency, serialization of a piece)."""
    first = sum(a + s for a, s in stages)
    return first + (pieces - 1) * max(a + s if hold else s for a, s in stages)


@st.composite
def random_trees(draw, make, kind):
    """A network in which every pair is linked both ways, with a random tree on it, and another one for the reduction of
    in-out trees."""
    n = draw(st.integers(2, 6))
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    latency, speed = st.integers(0, 4), st.integers(0, 2)
    instance = make.network(n, [(a, b, 2 ** draw(speed), Fraction(draw(latency), 2)) for a, b in pairs])
    order = draw(st.permutations(range(n)))
    tree, there = ([(order[draw(st.integers(0, i - 1))], order[i]) for i in range(1, n)] for _ in range(2))
    there = there if kind is TreeKind.BOTH else tree
    return instance, tree, there, packing(instance, kind, [tree], [16], 1, [there])


@pytest.mark.parametrize("kind", TreeKind)
@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("mode", [AWARE, CUT])
def test_a_pipelined_tree_has_its_closed_form(make, kind, hold, mode):
    """Broadcast, reduction and all-reduce along a tree take exactly the closed form of their slowest path."""

    @settings(max_examples=draws(60))
    @given(st.data())
    def check(data):
        instance, tree, there, trees = data.draw(random_trees(make, kind))
        pieces = data.draw(st.sampled_from([1, 2, 4, 8]))
        wire = dict(zip(instance.network.link_ends, instance.network.links, strict=True))

        def stage(a, b):
            return wire[a, b].latency_s, Fraction(16, pieces) / wire[a, b].bandwidth_Bps

        def ways_to_leaves(edges):
            paths = {edges[0][0]: []}
            for parent, child in edges:
                paths[child] = [*paths[parent], (parent, child)]
            return [path for path in paths.values() if path]

        down = [[stage(p, c) for p, c in path] for path in ways_to_leaves(tree)]
        up = [[stage(c, p) for p, c in path] for path in ways_to_leaves(there)]
        ways = {TreeKind.OUT: down, TreeKind.IN: up, TreeKind.BOTH: [u + d for u in up for d in down]}[kind]
        expected = max(flow_shop(way, pieces, hold) for way in ways)
        assert simulate(instance, trees, mode, pieces=pieces, hold_latency=hold).completion_s == float(expected)

    check()


@pytest.mark.parametrize("mode", MODES)
def test_the_root_waits_for_the_whole_sum(make, mode):
    """A broadcast leaves the root when the slowest contribution has come, which the trees of the reduction alone
    decide."""
    instance = make.network(4, [(a, b, 1, 0) for a in range(4) for b in range(4) if a != b])
    star, chain = [(0, 1), (0, 2), (0, 3)], [(0, 1), (1, 2), (2, 3)]
    for there, back, ends in ((chain, star, 8), (star, chain, 8), (star, star, 4), (chain, chain, 12)):
        made = packing(instance, TreeKind.BOTH, [back], [2], 1, [there])
        trace = simulate(instance, made, mode)
        assert trace.start_s[3:][[p == 0 for p, _ in back]].min() == trace.end_s[:3].max()
        assert trace.completion_s == ends


def test_equation_2_on_the_path_of_figure_5(make):
    """A path of seven links with different latencies takes MTree's equation (2) if links are held for their
    latencies."""
    latencies, bandwidth, volume = [2, 4, 1, 3, 6, 5, 7], 2, 32
    links = [(i, i + 1, bandwidth, a) for i, a in enumerate(latencies)]
    instance = make.network(8, links)
    trees = packing(instance, TreeKind.OUT, [[(i, i + 1) for i in range(7)]], [volume], 1)
    for pieces in (1, 2, 4, 16, 32):
        piece_s = Fraction(volume, pieces * bandwidth)
        equation_2 = sum(latencies) + 7 * piece_s + (pieces - 1) * (max(latencies) + piece_s)
        assert simulate(instance, trees, AWARE, pieces=pieces, hold_latency=True).completion_s == equation_2
        equation_4 = sum(latencies) + (pieces - 1) * max(latencies) + 6 * piece_s + Fraction(volume, bandwidth)
        assert equation_4 == equation_2


def test_the_best_number_of_pieces_grows_with_the_volume(make):
    """The optimum of equation (4) is sqrt((l - 1) v / (B max alpha)); the printed one would be the same for every
    volume."""
    instance = make.line(5, 1, 4)
    for volume in (16, 64, 256):
        trees = packing(instance, TreeKind.OUT, [[(i, i + 1) for i in range(4)]], [volume], 1)
        times = {k: simulate(instance, trees, AWARE, pieces=k, hold_latency=True).completion_s for k in range(1, 33)}
        best = min(times, key=times.get)
        assert best in (isqrt(3 * volume // 4), isqrt(3 * volume // 4) + 1)


def test_cut_through_does_not_store_on_the_way(make):
    """An edge over several links takes the latencies and one serialization in cut-through, one per link otherwise;
    pieces follow each other."""
    instance = make.line(4, 2, 1)
    one = np.array([0, 3])
    trees = TreePacking(
        instance.sha256,
        TreeKind.OUT,
        np.array([0]),
        np.array([16]),
        Fraction(1),
        np.array([0, 1]),
        np.array([0]),
        np.array([3]),
        one,
        np.arange(3),
    )
    for pieces in (1, 2, 4):
        piece_s = 8 / pieces
        assert simulate(instance, trees, CUT, pieces=pieces).completion_s == 3 + pieces * piece_s
        assert simulate(instance, trees, AWARE, pieces=pieces).completion_s == 3 + (2 + pieces) * piece_s


@pytest.mark.parametrize("kind", TreeKind)
@pytest.mark.parametrize("mode", MODES)
def test_trees_that_meet_take_what_the_slow_simulator_says(make, kind, mode):
    """Two trees that share links, in-out trees with other ones for the reduction, take as long as the same sends in
    steps in the slow simulator."""

    @settings(max_examples=draws(30))
    @given(st.data())
    def check(data):
        n = data.draw(st.integers(2, 5))
        pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
        instance = make.network(n, [(a, b, 2, Fraction(1, 2)) for a, b in pairs])
        roots = [data.draw(st.integers(0, n - 1)) for _ in range(2)]

        def grow_tree(root):
            order = [root, *data.draw(st.permutations([rank for rank in range(n) if rank != root]))]
            return [(order[data.draw(st.integers(0, i - 1))], order[i]) for i in range(1, n)]

        trees, there = ([grow_tree(root) for root in roots] for _ in range(2))
        made = packing(instance, kind, trees, [4, 8], 1, there)
        sends, sizes, level = tree_sends(instance.network, made, 2)
        schedule = StepSchedule(instance.sha256, make.chunks_of(sizes.astype(np.int64)), sends, level)
        expected = [float(end) for end in make.Slow(instance, schedule, mode).run()]
        assert simulate(instance, made, mode, pieces=2).end_s == pytest.approx(expected, rel=1e-12)

    check()
