"""The baselines: against brute force on small networks, by hand, and what stands beside one another in tables."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, permutations
from random import Random

import numpy as np
import pytest
from cwb.bench import Request, run
from cwb.core.budget import Budget
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.trace import SimulationMode
from cwb.core.trees import TreePacking
from cwb.instances import load
from cwb.models.common.wan.network import pose
from cwb.models.common.wan.strength import strength
from cwb.models.common.wan.trees import Rated, excess
from cwb.models.common.wan.ways import shortest_ways
from cwb.models.wan.answer import lowest_root
from cwb.models.wan.blink import weighted_packing
from cwb.models.wan.cycles import cut_site, exact_cycle, random_cycle
from cwb.models.wan.options import PsldOptions, WanRingOptions
from cwb.models.wan.plink import clusters, median
from cwb.models.wan.psld import pair_bandwidth, shares
from cwb.models.wan.ring import widest_ring
from cwb.models.wan.topoadopt import random_tree, swapped
from cwb.schedules.simulate import simulate
from hypothesis import given, settings
from hypothesis import strategies as st
from mtree_networks import all_trees, best_few, best_rate, height, instance, random_edges, spans

TREES = ("topoadopt", "blink-wan", "single-tree")
MESSAGES = ("plink", "psld")
QUICK = {"topoadopt": {"moves": 20}, "blink-wan": {"steps": 300, "nodes": 5}}
SHARED = {"allreduce_rate_Bps", "normalized_throughput", "strength_share", "strength_Bps", "completion_time_s"}
OF_TREES = {"mean_tree_height", "max_tree_height", "max_tree_latency_s", "mean_max_fanout", "max_fanout", "trees"}

seeds = st.integers(0, 10**6)


def solve(asked, model, seed=0, **options):
    """Run a method."""
    loaded = load(asked) if isinstance(asked, str) else asked
    if loaded.demand is None:
        loaded = loaded.with_changes(demand=Demand(CollectiveKind.ALL_REDUCE, Fraction(10**9)))
    return run(loaded, Request(model, options=options, seed=seed))


def rate(done):
    """Rate in Mb/s."""
    return done.record.metrics["allreduce_rate_Bps"] * 8e-6


def rings(nodes, edges, least=0):
    """Every order of the sites, from site 0, in which links of at least a capacity join neighbours."""
    joined = {frozenset(edge[:2]) for edge in edges if edge[2] >= least}
    orders = ((0, *rest) for rest in permutations(range(1, nodes)))
    return [o for o in orders if all(frozenset(pair) in joined for pair in pairwise((*o, 0)))]


@pytest.mark.parametrize(
    ("model", "spec"),
    [
        *(
            (model, spec)
            for model in (*TREES, *MESSAGES)
            for spec in ("gscale(0.9, 4)", "equinix_size(0.3, 2)", "torus(3,3)")
        ),
        *(("wan-ring", spec) for spec in ("equinix_size(0.3, 2)", "torus(3,3)")),
    ],
)
def test_every_answer_is_judged_beside_the_strength(model, spec):
    """Every baseline is verified, has the numbers of the table, and none beats the bound that its partition proves."""
    record = solve(spec, model, **QUICK.get(model, {})).record
    assert record.verified, record.violations
    assert record.certificate["certificate"] == "partition"
    assert set(record.metrics) >= SHARED
    assert record.metrics["allreduce_rate_Bps"] <= record.metrics["strength_Bps"] * (1 + 1e-12)
    assert record.bound <= record.objective
    if model not in MESSAGES:
        assert set(record.metrics) >= OF_TREES
        assert record.objective == pytest.approx(10**9 / record.metrics["allreduce_rate_Bps"], rel=1e-12)


@settings(max_examples=30, deadline=None)
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
    """A ring is found exactly where trying all orders finds one, and its slowest link is as fast as that of the best."""
    source = Random(seed)  # noqa: S311
    nodes = source.randint(3, 7)
    edges = random_edges(nodes, source.randint(1, 12), seed)
    wan = pose(instance(nodes, edges))
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
    """Where a site is cut there is no ring, and what rotations find is one."""
    edges = random_edges(6, 4, seed)
    wan = pose(instance(6, edges))
    exact = exact_cycle(6, wan.tail, wan.head)
    if cut_site(6, wan.tail, wan.head) is not None:
        assert exact is None
    found = random_cycle(6, wan.tail, wan.head, Random(seed))  # noqa: S311
    if found is not None:
        assert tuple(found[found.index(0) :] + found[: found.index(0)]) in rings(6, edges)
        assert exact is not None


def test_a_ring_is_a_ring():
    """On a ring of equal links the ring all-reduce takes 2 (n - 1) / n of the data each way, which is the strength; every part goes around."""
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
    """GScale has none, nor has a network that a site parts; two sites are too few: the method does not fit them, which says nothing of others."""
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


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_multiplicative_weights_pack_close_to_the_strength(seed):
    """The packing overloads no link and has at least three quarters of the strength."""
    wan = pose(instance(6, random_edges(6, 6, seed)))
    trees, weights = weighted_packing(wan, 0.05, 5000, Budget())
    assert excess(wan, trees, [Fraction(weight) for weight in weights.tolist()]) <= 1 + Fraction(1, 10**9)
    assert weights.sum() >= 0.75 * float(strength(wan).rate)
    assert (np.diff(weights) <= 0).all()


@settings(max_examples=6, deadline=None)
@given(seeds)
def test_blinks_cuts_are_ordered(seed):
    """All trees carry at least what few do, which are at least as good as one; units are whole; few trees are few."""
    asked = instance(5, random_edges(5, 5, seed))
    whole = solve(asked, "blink-wan", cut="none")
    few = solve(asked, "blink-wan", cut="trees", trees=2)
    units = solve(asked, "blink-wan", cut="unit")
    assert rate(whole) >= rate(few) - 1e-6
    assert rate(whole) >= rate(units) - 1e-6
    assert few.record.metrics["trees"] <= 2
    assert len(set(units.answer.units.tolist())) == 1
    for done in (whole, few, units):
        assert done.record.verified, done.record.violations


def test_blinks_packing_reaches_the_strength_of_gscale():
    """All trees of the packing, at the best rates, are as fast as anything; one root serves all of them, or each its own."""
    common, own = (solve("gscale", "blink-wan", cut="none", root=root) for root in ("common", "centre"))
    assert common.record.metrics["strength_share"] == own.record.metrics["strength_share"] == 1
    assert len(set(common.answer.root.tolist())) == 1
    assert own.record.metrics["mean_tree_height"] <= common.record.metrics["mean_tree_height"]


def test_the_common_root_makes_the_highest_tree_lowest():
    """On a line of five sites the root is in the middle."""
    wan = pose(instance(5, [(i, i + 1, 1, 1) for i in range(4)]))
    assert lowest_root(wan, Rated(np.array([[0, 1, 2, 3]]), (Fraction(1),))) == 2


@settings(max_examples=4, deadline=None)
@given(seeds)
def test_annealing_stays_below_the_best_trees(seed):
    """K annealed trees are at most as good as the best K of all; a longer run, which begins alike, is not worse."""
    edges = random_edges(5, 3, seed)
    asked = instance(5, edges)
    best = best_few(edges, all_trees(5, edges), 2)
    short, long = (solve(asked, "topoadopt", trees=2, moves=moves) for moves in (3, 25))
    assert rate(short) <= rate(long) + 1e-6 <= best + 1e-5
    assert long.record.verified


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_moves_keep_spanning_trees(seed):
    """A move changes one link, and what is left spans."""
    edges = random_edges(7, 5, seed)
    wan, source = pose(instance(7, edges)), Random(seed)  # noqa: S311
    ends = list(zip(wan.tail.tolist(), wan.head.tolist(), strict=True))
    tree = random_tree(wan, source)
    for _ in range(5):
        other = swapped(wan, tree, source)
        assert len(set(other.tolist()) - set(tree.tolist())) == 1
        assert spans(7, ends, other.tolist())
        tree = other


def test_annealing_finds_the_optimum_of_gscale():
    """The ten trees reach the strength in a quarter of the moves."""
    done = solve("gscale", "topoadopt", moves=100)
    assert done.record.status == "optimal"
    assert done.record.metrics["moves"] == 100


def test_a_network_that_is_a_tree_has_nothing_to_anneal():
    """Without a link outside the tree no move is made."""
    done = solve("line(4)", "topoadopt", trees=3)
    assert done.record.metrics["moves"] == 0
    assert done.record.status == "optimal"


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 6))
def test_clusters_are_those_of_complete_linkage(seed, count):
    """Merging the two groups whose farthest members are nearest, one pair at a time, gives the same groups."""
    source = np.random.default_rng(seed)
    distance = source.permutation(36).reshape(6, 6) + 1
    distance = np.triu(distance, 1) + np.triu(distance, 1).T
    groups = [[site] for site in range(6)]
    while len(groups) > count:
        pairs = [(a, b) for a in range(len(groups)) for b in range(a)]
        a, b = min(pairs, key=lambda p: distance[np.ix_(groups[p[0]], groups[p[1]])].max())
        groups = [g for i, g in enumerate(groups) if i not in (a, b)] + [sorted(groups[a] + groups[b])]
    assert sorted(clusters(distance, count)) == sorted(groups)


def test_plink_by_hand():
    """Two pairs, near each other and far apart: leaders exchange whole vectors, and every phase waits for the one before."""
    edges = [(0, 1, 80, 10), (1, 2, 40, 100), (2, 3, 80, 10)]
    done = solve(instance(4, edges, size=10**6), "plink", groups=2)
    assert done.record.metrics["leaders"] == ["0", "2"]
    assert done.record.metrics["root"] == "0"
    # 1 to 0 and 3 to 2: 10 ms + 0.1 s; 2 to 0 over both links: 110 ms + 0.2 s as a flow; and the same back.
    trace = simulate(done.instance, done.answer, SimulationMode.FAIR_SHARE)
    assert trace.completion_s == pytest.approx(2 * (0.11 + 0.31))
    # Both directions of the slowest link carry the vector once; those of the first link twice at twice the rate.
    assert rate(done) == pytest.approx(40)


def test_a_median_is_nearest_to_all():
    """The leader of a path is its middle."""
    distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    assert median(distance, [0, 1, 2, 3, 4]) == 2
    assert median(distance, [4, 0]) == 4


def test_psld_by_hand():
    """On a triangle shares are as the slowest bandwidth to a peer; equal shares of equal links take two thirds of the data each way."""
    edges = [(0, 1, 80, 1), (1, 2, 80, 1), (0, 2, 40, 1)]
    wan = pose(instance(3, edges))
    bandwidth = pair_bandwidth(wan, shortest_ways(wan, wan.latency_ns))
    units = shares(bandwidth, PsldOptions())
    assert [round(unit / sum(units), 5) for unit in units] == [0.25, 0.5, 0.25]
    assert shares(bandwidth, PsldOptions(share="equal")) == [1, 1, 1]
    mean = shares(bandwidth, PsldOptions(share="mean"))
    assert [round(unit / sum(mean), 5) for unit in mean] == [0.3, 0.4, 0.3]
    done = solve(instance(3, [(0, 1, 80, 0), (1, 2, 80, 0), (0, 2, 80, 0)], size=3 * 10**6), "psld")
    trace = simulate(done.instance, done.answer, SimulationMode.FAIR_SHARE)
    assert trace.completion_s == pytest.approx(0.2)
    assert rate(done) == pytest.approx(120)


def test_the_bandwidth_of_a_pair_is_the_mean_along_the_way_of_least_latency():
    """Of two ways the one of less latency counts, though it is slower and longer."""
    edges = [(0, 1, 20, 1), (1, 2, 40, 1), (0, 2, 90, 5)]
    wan = pose(instance(3, edges))
    unit = float(wan.unit_Bps) * 8e-6
    bandwidth = pair_bandwidth(wan, shortest_ways(wan, wan.latency_ns))
    assert bandwidth[0, 2] * unit == pytest.approx(30)
    assert bandwidth[0, 1] * unit == pytest.approx(20)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_ways_are_shortest(seed):
    """Lengths are those that Floyd and Warshall's algorithm gives, and the sites of a way add up to them, also without latency."""
    source = Random(seed)  # noqa: S311
    edges = [(a, b, c, source.randint(0, 4)) for a, b, c, _ in random_edges(6, 4, seed)]
    wan = pose(instance(6, edges))
    far = np.full((6, 6), 10**12)
    np.fill_diagonal(far, 0)
    for a, b, _, ms in edges:
        far[a, b] = far[b, a] = min(far[a, b], ms * 10**6)
    for k in range(6):
        far = np.minimum(far, far[:, [k]] + far[[k], :])
    ways = shortest_ways(wan, wan.latency_ns)
    assert (ways.reach == far).all()
    for one in range(6):
        for other in range(6):
            sites = ways.sites(one, other)
            assert sum(int(wan.latency_ns[ways.link(a, b)]) for a, b in pairwise(sites)) == far[one, other]


@pytest.mark.parametrize("model", [*TREES, *MESSAGES])
def test_bad_networks_are_refused_in_a_line(model):
    """A network in two parts is told with two of its sites; a switch and another collective are not supported."""
    from cwb.core.errors import InputError

    with pytest.raises(InputError, match=r"no path of links in both directions leads from '0' to '2'"):
        solve(instance(4, [(0, 1, 1, 1), (2, 3, 1, 1)]), model)
    switched = solve("star(4)", model).record
    assert (switched.status, "switch" in switched.message) == ("unsupported", True)
    other = load("gscale").with_changes(demand=Demand(CollectiveKind.ALL_GATHER, Fraction(10**6)))
    assert solve(other, model).record.status == "unsupported"


def test_the_best_rates_are_those_of_a_linear_program():
    """On all trees of a small network the Pyomo model is as good as another linear program."""
    from cwb import solvers
    from cwb.models.common.wan.rates import best_rates

    for seed in range(5):
        edges = random_edges(5, 4, seed)
        trees = all_trees(5, edges)
        wan = pose(instance(5, edges))
        # The network lists links by their first direction, which is the order of the edges.
        rated, _ = best_rates(wan, np.array(trees), solvers.get("highs"), Budget())
        assert float(rated.total * wan.unit_Bps) * 8e-6 == pytest.approx(best_rate(edges, trees))
