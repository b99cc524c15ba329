"""The closed form of a forest in pieces, by hand and against the simulation in which every tree has its share of every
link."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import hypothesis.strategies as st
import numpy as np
import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.pipelining import ENOUGH, PIECES
from cwb.core.schedule import offsets
from cwb.core.timing import BandwidthChange, Semantics, Timing
from cwb.core.trace import SimulationMode
from cwb.core.trees import TreeKind, TreePacking
from cwb.schedules.completion import completion_of
from cwb.schedules.simulate import simulate
from cwb.schedules.simulate.pipeline import pipeline
from cwb.schedules.trees import edge_depths
from cwb.schedules.verify import heaviest_load
from draws import draws
from hypothesis import given, settings
from tree_packings import packing

pytestmark = pytest.mark.slow  # random forests are simulated

AWARE, SHARES = SimulationMode.CONGESTION_AWARE, SimulationMode.SHARES
COLLECTIVE = {
    TreeKind.OUT: Collective.ALL_GATHER,
    TreeKind.IN: Collective.REDUCE_SCATTER,
    TreeKind.BOTH: Collective.ALL_REDUCE,
}


def on(make, n, links, kind, size):
    """A network with a collective of this kind of trees."""
    return make.network(n, links).with_changes(demand=Demand(COLLECTIVE[kind], Fraction(size)))


def by_hand(instance, made, pieces):
    """The formula of the module, tree by tree and leaf by leaf."""
    flow, slowest = heaviest_load(instance, made), []
    for tree in range(len(made)):
        ways = []
        for part in made.passes:
            far = {int(made.root[tree]): (Fraction(0), 0)}
            for e in range(part.edge_offset[tree], part.edge_offset[tree + 1]):
                links = part.path_links[part.path_offset[e] : part.path_offset[e + 1]]
                latency = sum((instance.network.links[i].latency_s for i in links), Fraction(0))
                above = far[int(part.parent[e])]
                far[int(part.child[e])] = above[0] + latency, above[1] + len(links)
            ways.append(far.values())
        pairs = [(sum(x[0] for x in way), sum(x[1] for x in way)) for way in product(*ways)]
        slowest.append(max(a + (k - 1 + pieces) * flow / pieces for a, k in pairs))
    return max(slowest)


@pytest.mark.parametrize("kind", TreeKind)
def test_the_closed_form_by_hand(make, kind):
    """On random forests with random latencies the arrays give what the formula gives leaf by leaf, for every number of
    pieces."""

    @settings(max_examples=draws(60))
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
        made = packing(instance, kind, forest(roots), units, reduction=forest(roots))
        measured = pipeline(instance, made)
        for pieces in (1, 2, 16, 1024):
            assert measured.seconds(pieces)[0] == pytest.approx(float(by_hand(instance, made, pieces)), rel=1e-12)
        times = [float(by_hand(instance, made, pieces)) for pieces in PIECES]
        chosen = next(time for time in times if time <= min(times) * (1 + ENOUGH) * (1 + 1e-12))
        assert measured.best()[0][0] == pytest.approx(chosen, rel=1e-12)
        depths = [
            [int(edge_depths(part)[a:b].max()) + 1 for a, b in pairwise(part.edge_offset)] for part in made.passes
        ]
        assert measured.heights.tolist() == [max(ways) for ways in zip(*depths, strict=True)]

    check()


def through_switches(make, data, kind):
    """A random forest on a star of switches and a clique: edges of one to four links, some of them shared by edges of
    the same tree."""
    n = data.draw(st.integers(2, 5))
    hub, far = n, n + 1
    latency = st.integers(0, 9).map(lambda x: Fraction(x, 4))
    ends = [(a, b) for a in range(n) for b in range(n) if a != b]
    ends += [pair for r in range(n) for pair in ((r, hub), (hub, r), (r, far), (far, r))] + [(hub, far), (far, hub)]
    links = [(a, b, data.draw(st.integers(1, 5)), data.draw(latency)) for a, b in ends]
    instance = make.network(n, links, switches=2).with_changes(demand=Demand(COLLECTIVE[kind], Fraction(64)))
    number = {pair: i for i, pair in enumerate(instance.network.link_ends)}

    def way(a, b):
        via = data.draw(st.sampled_from([(), (hub,), (far,), (hub, far), (far, hub)]))
        stops = [a, *via, b]
        return [number[pair] for pair in pairwise(stops)]

    roots = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=4))
    units = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(roots), max_size=len(roots))))

    def forest(inwards):
        parent, child, paths = [], [], []
        for root in roots:
            order = [root, *data.draw(st.permutations([r for r in range(n) if r != root]))]
            for i in range(1, n):
                parent.append(order[data.draw(st.integers(0, i - 1))])
                child.append(order[i])
                paths.append(way(child[-1], parent[-1]) if inwards else way(parent[-1], child[-1]))
        return TreePacking(
            instance.sha256,
            TreeKind.IN if inwards else TreeKind.OUT,
            np.array(roots),
            units,
            Fraction(64) / int(units.sum()),
            np.arange(len(roots) + 1) * (n - 1),
            np.array(parent),
            np.array(child),
            offsets([len(path) for path in paths]),
            np.array([link for path in paths for link in path]),
        )

    there = None if kind is TreeKind.OUT else forest(True)
    if kind is TreeKind.IN:
        return instance, there
    return instance, replace(forest(False), kind=kind, reduction=there)


@pytest.mark.parametrize("kind", TreeKind)
def test_forests_take_what_the_simulation_of_shares_says(make, kind):
    """On random forests of all kinds, over switches and links that a tree uses several times, closed form and
    simulation agree to 1e-12."""

    @settings(max_examples=draws(40))
    @given(st.data())
    def check(data):
        instance, made = through_switches(make, data, kind)
        measured = pipeline(instance, made)
        for pieces in (1, 2, 7, 32):
            found = simulate(instance, made, SHARES, pieces=pieces)
            assert measured.seconds(pieces)[0] == pytest.approx(found.completion_s, rel=1e-12)
            assert completion_of(instance, made, pieces).seconds == measured.seconds(pieces)[0]
            assert completion_of(instance, made, pieces).busy_s == pytest.approx(found.link_busy_s, rel=1e-12)
        assert found.link_busy_s.max() == pytest.approx(float(measured.flow_s), rel=1e-12)

    check()


@pytest.mark.parametrize("kind", TreeKind)
def test_one_tree_is_a_schedule_like_any_other(make, kind):
    """A tree alone on links of one speed takes exactly as long as where links serve one piece at a time, as those of
    schedules in steps do."""

    @settings(max_examples=draws(60))
    @given(st.data())
    def check(data):
        n = data.draw(st.integers(2, 7))
        pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
        links = [(a, b, 2, Fraction(data.draw(st.integers(0, 6)), 4)) for a, b in pairs]
        instance = on(make, n, links, kind, 64)
        order = data.draw(st.permutations(range(n)))
        tree = [(order[data.draw(st.integers(0, i - 1))], order[i]) for i in range(1, n)]
        made = packing(
            instance, kind, [tree], [1]
        )  # the reduction of in-out trees takes the links back, which nobody else uses
        measured = pipeline(instance, made)
        for pieces in (1, 2, 8):
            found = simulate(instance, made, AWARE, pieces=pieces).completion_s
            assert measured.seconds(pieces)[0] == pytest.approx(found, rel=1e-12)

    check()


def test_a_ring_with_chains_both_ways_by_hand(make):
    """Four chains each way round a ring of four: 3 links deep, 1.5 units of 16 bytes a link, T(C) = 3 a + (2 + C) F /
    C."""
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
        assert measured.seconds(pieces)[0] == float(3 * latency + (2 + pieces) * Fraction(12, pieces))
    # 12.75 + 24 / C, of which 24 / 1024 cannot be saved: the first within a hundredth has C = 256
    seconds, pieces = measured.best()
    assert (seconds[0], pieces[0]) == (12.75 + 24 / 256, 256)


def test_trees_share_constant_bandwidths_only(make):
    """If a bandwidth varies over time, there is no closed form, and the reason is given instead of a number."""
    instance = on(make, 2, [(0, 1, 2, 0)], TreeKind.OUT, 64)
    instance = instance.with_changes(
        demand=Demand(Collective.BROADCAST, Fraction(64)),
        timing=Timing(Semantics.STORE_AND_FORWARD, Fraction(1), changes=(BandwidthChange(0, 0, 2, Fraction(0)),)),
    )
    made = packing(instance, TreeKind.OUT, [[(0, 1)]], [1])
    with pytest.raises(InputError, match="constant bandwidth"):
        simulate(instance, made, SHARES)
    found = completion_of(instance, made)
    assert found.seconds is None
    assert "constant bandwidth" in found.why


def test_many_sizes_at_once(make):
    """Only the flow time grows with the size: every size gives what an instance of that size gives, and more pieces pay
    the larger it is."""
    links = [(i, j, 10**9, Fraction(1, 10**6)) for i in range(4) for j in range(4) if i != j]
    sizes = [2**k for k in range(31)]
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
