"""The exact parts against trying everything."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import cwb
import numpy as np
import pytest
from cwb import solvers
from cwb.bench import Request, run
from cwb.core.budget import Budget
from cwb.core.solver import SolverOptions, Termination
from cwb.models.common.wan.bottleneck import lowest_tree, widest_tree
from cwb.models.common.wan.network import pose
from cwb.models.common.wan.strength import ratio, strength
from cwb.models.common.wan.trees import excess, heights_of
from cwb.models.mtree import columns, layers, mtree
from cwb.models.mtree.pairs import best_pair
from cwb.models.mtree.pool import every_tree
from mtree_networks import all_trees, best_few, best_of_rates, best_rate, height, instance, random_edges

MBPS = 10**6 / 8


def small(seed):
    """A random network of five or six sites."""
    nodes = 5 + seed % 2
    edges = random_edges(nodes, 3 + seed % 3, seed)
    return nodes, edges, pose(instance(nodes, edges))


def partitions(sites):
    """All partitions of a list."""
    if not sites:
        yield []
        return
    first, *others = sites
    for parts in partitions(others):
        yield [[first], *parts]
        for i in range(len(parts)):
            yield [*parts[:i], [first, *parts[i]], *parts[i + 1 :]]


@pytest.mark.parametrize("seed", range(40))
def test_strength_is_the_least_ratio_of_all_partitions(seed):
    """The strength is the smallest ratio over all partitions, is attained by the one named, and by trees (Tutte and Nash-Williams)."""
    nodes, edges, wan = small(seed)
    columns = wan.tail.tolist(), wan.head.tolist(), wan.capacity.tolist()
    found = strength(wan)
    assert found.rate == min(ratio(parts, *columns) for parts in partitions(list(range(nodes))) if len(parts) > 1)
    assert ratio(found.parts, *columns) == found.rate
    assert float(found.rate * wan.unit_Bps) / MBPS == pytest.approx(best_rate(edges, all_trees(nodes, edges)))


@pytest.mark.parametrize("seed", range(40))
def test_all_trees_are_listed_once(seed):
    """The list of spanning trees, and the height of each in hops and in latency, are those of trying every set of links."""
    nodes, edges, wan = small(seed)
    trees = every_tree(wan)
    # Links of the network are in the order of the edges.
    assert sorted(map(tuple, trees.tolist())) == all_trees(nodes, edges)
    weights = [edge[3] * 10**6 for edge in edges]
    for limit, lengths in ((wan.hops(None), None), (wan.latencies(Fraction(1)), weights)):
        assert heights_of(wan, limit, trees)[1].tolist() == [height(nodes, edges, t, lengths) for t in trees.tolist()]


@pytest.mark.parametrize("seed", range(30))
def test_one_and_two_trees(seed):
    """One tree of any height limit, and two of any height, are as fast as the best of all."""
    nodes, edges, wan = small(seed)
    trees = all_trees(nodes, edges)
    late = [edge[3] * 10**6 for edge in edges]
    nearest = lowest_tree(wan, wan.latencies(Fraction(1)), wan.capacity > 0)[0]
    assert nearest == min(height(nodes, edges, tree, late) for tree in trees)
    lowest = lowest_tree(wan, wan.hops(None), wan.capacity > 0)[0]
    assert lowest == min(height(nodes, edges, tree) for tree in trees)
    for most in range(lowest, nodes):
        rate = max(min(edges[e][2] for e in t) for t in trees if height(nodes, edges, t) <= most)
        assert widest_tree(wan, wan.hops(most))[0] * wan.unit_Bps == Fraction(rate * 10**6, 8)
    assert widest_tree(wan, wan.hops(lowest - 1)) is None
    two = max(best_rate(edges, pair) for pair in combinations_with_replacement(trees, 2))
    widest = widest_tree(wan, wan.hops(None))[0]
    pair = best_pair(wan, widest, Budget())
    found = max(Fraction(widest), pair.total if pair is not None else Fraction(0))
    assert float(found * wan.unit_Bps) / MBPS == pytest.approx(two)


@pytest.mark.parametrize("unit", ["hops", "ms"])
@pytest.mark.parametrize("seed", range(6))
def test_any_number_of_low_trees(seed, unit):
    """Without K the value is that of the linear program over all trees that are low enough, and it is proved."""
    nodes, edges, _ = small(seed)
    lengths = None if unit == "hops" else [edge[3] for edge in edges]
    heights = {tree: height(nodes, edges, tree, lengths) for tree in all_trees(nodes, edges)}
    most = sorted(set(heights.values()))[:2][-1]
    done = run(instance(nodes, edges), Request("mtree", options={"height": most if unit == "hops" else f"{most} ms"}))
    assert done.record.status == "optimal"
    assert done.record.verified
    want = best_rate(edges, [tree for tree, h in heights.items() if h <= most])
    assert done.record.metrics["allreduce_rate_Bps"] / MBPS == pytest.approx(want)


@pytest.mark.parametrize("unit", ["hops", "ms", "any"])
@pytest.mark.parametrize("seed", range(3))
def test_three_low_trees(seed, unit):
    """With K = 3 and a height the value is that of the best of all sets of three trees, and it is proved."""
    nodes, edges = 5, random_edges(5, 3, 100 + seed)
    lengths = [edge[3] for edge in edges] if unit == "ms" else None
    heights = {tree: height(nodes, edges, tree, lengths) for tree in all_trees(nodes, edges)}
    most = sorted(set(heights.values()))[:2][-1]
    options = {"hops": {"height": most}, "ms": {"height": f"{most} ms"}, "any": {}}[unit]
    record = run(instance(nodes, edges), Request("mtree", options={"trees": 3, **options})).record
    assert record.status == "optimal"
    assert record.verified
    trees = [tree for tree, h in heights.items() if h <= most or unit == "any"]
    assert record.metrics["allreduce_rate_Bps"] / MBPS == pytest.approx(best_few(edges, trees, 3))


@pytest.mark.parametrize("unit", ["hops", "ms"])
@pytest.mark.parametrize("seed", range(10))
def test_low_trees_that_are_not_listed(monkeypatch, seed, unit):
    """Where trees are generated, as on large networks, rates are those of allowed trees, and no bound is below the best: without K they meet."""
    monkeypatch.setattr(mtree, "every_tree", lambda _: None)
    nodes, edges = 5, random_edges(5, 3, 200 + seed)
    lengths = [edge[3] for edge in edges] if unit == "ms" else None
    heights = {tree: height(nodes, edges, tree, lengths) for tree in all_trees(nodes, edges)}
    most = sorted(set(heights.values()))[:2][-1]
    trees = [tree for tree, h in heights.items() if h <= most]
    options = {"height": most if unit == "hops" else f"{most} ms"}
    record = run(instance(nodes, edges), Request("mtree", options=options)).record
    assert record.status == "optimal"
    assert record.metrics["allreduce_rate_Bps"] / MBPS == pytest.approx(best_rate(edges, trees))
    for count in (2, 3):
        record = run(instance(nodes, edges), Request("mtree", options={**options, "trees": count})).record
        assert record.verified
        best = best_few(edges, trees, count)
        assert record.metrics["allreduce_rate_Bps"] / MBPS <= best * (1 + 1e-9)
        assert record.metrics["exact_bound_Bps"] / MBPS >= best * (1 - 1e-9)


def test_an_interruption_keeps_the_rates(monkeypatch):
    """If a run is stopped between two linear programs, the rates of the last one that was solved are the answer, and fit."""
    wan = pose(cwb.load("equinix_size(0.5, 0)").with_changes(demand=cwb.load("gscale").demand))
    limit, budget, rounds = wan.latencies(Fraction(1, 4)), Budget(), []
    cheap = columns._Generation.cheap

    def interrupted(generation):
        found = cheap(generation)
        rounds.append(len(found))
        if len(rounds) == 3:
            budget.stop.set()
        return found

    monkeypatch.setattr(columns._Generation, "cheap", interrupted)
    _, widest = widest_tree(wan, limit)
    task = columns.Task(wan, limit, None, 0, strength(wan).rate, exact=False)
    fluid = columns.generate(task, widest[None, :], solvers.get("highs"), budget)
    assert len(rounds) == 3
    assert fluid.reports[-1].termination is not Termination.OPTIMAL
    assert len(fluid.rated.rates) > 1
    assert excess(wan, fluid.rated.trees, fluid.rated.rates) <= 1
    assert fluid.rated.total <= fluid.bound


@pytest.mark.parametrize("unit", ["hops", "ns"])
@pytest.mark.parametrize("seed", range(3))
def test_the_cheapest_low_tree(seed, unit):
    """The pricing model gives the cheapest of all trees that are low enough."""
    nodes, edges, wan = small(seed)
    prices = np.array([1 + (7 * e + seed) % 5 for e in range(len(edges))], dtype=np.float64)
    lengths = None if unit == "hops" else [edge[3] * 10**6 for edge in edges]
    heights = {tree: height(nodes, edges, tree, lengths) for tree in all_trees(nodes, edges)}
    most = sorted(set(heights.values()))[0]
    limit = wan.hops(most) if unit == "hops" else wan.latencies(Fraction(most, 10**9))
    tree, report = layers.cheapest(wan, limit, prices, solvers.get("highs"), Budget(), SolverOptions())
    want = min(sum(prices[e] for e in t) for t, h in heights.items() if h <= most)
    assert prices[tree].sum() == pytest.approx(want) == report.objective


def solved(nodes, edges, **options):
    """The record of a run of mtree."""
    return run(instance(nodes, edges), Request("mtree", options=options)).record


#: Six links of different capacities between four sites, as multiples of 10 Mb/s.
K4 = [(1, 0, 4), (2, 0, 3), (2, 1, 9), (3, 0, 4), (3, 1, 6), (3, 2, 5)]


def scaled(links, rate):
    """Links with latencies, their capacities multiplied."""
    return [(one, other, capacity * rate, 1) for one, other, capacity in links]


@pytest.mark.parametrize(
    ("links", "floor", "want"),
    [([(0, 1, 10_000), (1, 2, 10_000), (2, 0, 10_000)], "1 Gb/s", 8 / 15), ([(0, 1, 60), (0, 2, 60), (1, 2, 30)], "10 Mb/s", 320 / 3)],
)  # fmt: skip
def test_a_smallest_rate_is_no_multiple_of_anything(links, floor, want):
    """Trees may have rates between the multiples of what all capacities are multiples of, down to exactly the smallest rate."""
    record = solved(3, scaled(links, 1), min_rate=floor)
    assert (record.status, record.verified) == ("optimal", True)
    assert record.objective == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"height": 2}, {"trees": 3}, {"trees": 2, "height": 2}])
@pytest.mark.parametrize("floor", [Fraction(3), Fraction(25, 3), Fraction(40, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_trees_of_a_smallest_rate(seed, floor, options):
    """With a smallest rate, alone or with K and a height, the value is that of a program over all trees, no rate is below it, and it is proved."""
    edges = [(one, other, 10 * rate, late) for one, other, rate, late in random_edges(4, 3, 300 + seed)]
    most = options.get("height", 4)
    trees = [tree for tree in all_trees(4, edges) if height(4, edges, tree) <= most]
    done = run(instance(4, edges), Request("mtree", options={**options, "min_rate": f"{floor * 10**6 // 1} b/s"}))
    if done.record.status == "infeasible":
        assert all(min(edges[e][2] for e in tree) < floor - 1e-6 for tree in trees)
        return
    assert (done.record.status, done.record.verified) == ("optimal", True)
    want = best_of_rates(edges, trees, options.get("trees"), Fraction(floor * 10**6 // 1, 10**6))
    assert done.record.metrics["allreduce_rate_Bps"] / MBPS == pytest.approx(want, rel=2e-6)
    packing = done.answer
    smallest = min(packing.units.tolist()) * packing.unit_bytes / Fraction(done.record.objective)
    assert smallest >= Fraction(floor * 10**6 // 1, 8) * (1 - Fraction(1, 10**12))


@pytest.mark.parametrize("options", [{"height": 2}, {}, {"height": 2, "trees": 6}])
def test_a_program_over_all_trees_is_a_proof(options):
    """Where MILP (1) has every tree there is, its bound ends the run, instead of models of patterns that may not end."""
    record = solved(4, scaled(K4, 10), min_rate="10 Mb/s", **options)
    assert (record.status, record.verified) == ("optimal", True)
    assert record.objective == pytest.approx(80)


def test_the_models_of_patterns_have_a_limit_in_steps(monkeypatch):
    """Every search of a model of the method has a limit of nodes, so that a run ends without any limit of time."""
    asked = []
    options = mtree.patterns.SolverOptions
    monkeypatch.setattr(mtree, "_SELECTED", 0)
    monkeypatch.setattr(mtree.patterns, "NODES", 1)
    monkeypatch.setattr(
        mtree.patterns, "SolverOptions", lambda **given: asked.append(given["node_limit"]) or options(**given)
    )
    record = solved(4, scaled(K4, 10), trees=3, height=2)
    assert record.verified
    assert asked
    assert set(asked) == {1}


def test_bounds_of_models_are_in_units():
    """Where capacities are large numbers, which models scale, the bound of the exact model is one on the rate and not on what the model counts."""
    edges = [(one, other, 10_000 * rate + 1 + place, 1) for place, (one, other, rate) in enumerate(K4)]
    record = solved(4, edges, trees=3)
    best = best_few(edges, all_trees(4, edges), 3)
    assert record.metrics["allreduce_rate_Bps"] / MBPS == pytest.approx(best)
    assert record.metrics["exact_bound_Bps"] / MBPS == pytest.approx(best)
