"""``mtree`` against trying everything, and what its proofs rest on."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.budget import Budget
from cwb.harness import Request, run
from cwb.models.mtree import solve as mtree
from cwb.models.mtree.problem import TreeProblem, tree_problem
from mtree_networks import all_trees, best_few, best_of_rates, best_rate, height, instance, random_edges, small, solve

MBPS = 10**6 / 8


def run_mtree(nodes, edges, **options):
    """The record of a run of mtree."""
    return run(instance(nodes, edges), Request("mtree", options=options)).record


#: Six links of different capacities between four sites, as multiples of 10 Mb/s.
K4 = [(1, 0, 4), (2, 0, 3), (2, 1, 9), (3, 0, 4), (3, 1, 6), (3, 2, 5)]


def scale_links(links, rate):
    """Links with latencies, their capacities multiplied."""
    return [(one, other, capacity * rate, 1) for one, other, capacity in links]


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


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["hops", "ms"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2, 3))])
def test_low_trees_that_are_not_listed(monkeypatch, seed, unit):
    """Generated trees have rates of allowed trees, and no bound is below the best; without K the two meet."""
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


@pytest.mark.parametrize(
    ("links", "floor", "want"),
    [([(0, 1, 10_000), (1, 2, 10_000), (2, 0, 10_000)], "1 Gb/s", 8 / 15),
        ([(0, 1, 60), (0, 2, 60), (1, 2, 30)], "10 Mb/s", 320 / 3)],
)  # fmt: skip
def test_a_smallest_rate_is_no_multiple_of_anything(links, floor, want):
    """Trees may have rates between the multiples of what all capacities are multiples of, down to exactly the smallest
    rate."""
    record = run_mtree(3, scale_links(links, 1), min_rate=floor)
    assert (record.status, record.verified) == ("optimal", True)
    assert record.objective == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"height": 2}, {"trees": 3}, {"trees": 2, "height": 2}])
@pytest.mark.parametrize("floor", [Fraction(3), Fraction(25, 3), Fraction(40, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_trees_of_a_smallest_rate(seed, floor, options):
    """With a smallest rate, alone or with K and a height, the value is that of a program over all trees, no rate is
    below it, and it is proved."""
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
    """If MILP (1) has every existing tree, its bound ends the run, without models of patterns that may not end."""
    record = run_mtree(4, scale_links(K4, 10), min_rate="10 Mb/s", **options)
    assert (record.status, record.verified) == ("optimal", True)
    assert record.objective == pytest.approx(80)


def test_the_models_of_patterns_have_a_limit_in_steps(monkeypatch):
    """Every search of a model of the method has a limit of nodes, so that a run ends without any limit of time."""
    asked = []
    options = mtree.SolverOptions

    def take_options(**given):
        if "rel_gap" in given:
            asked.append(given["node_limit"])
        return options(**given)

    monkeypatch.setattr(mtree, "_SELECTED", 0)
    monkeypatch.setattr(mtree, "_NODES", 1)
    monkeypatch.setattr(mtree, "SolverOptions", take_options)
    record = run_mtree(4, scale_links(K4, 10), trees=3, height=2)
    assert record.verified
    assert asked
    assert set(asked) == {1}


def test_bounds_of_models_are_in_units():
    """If capacities are large numbers, which models scale, the bound of the exact model is in the unit of rates."""
    edges = [(one, other, 10_000 * rate + 1 + place, 1) for place, (one, other, rate) in enumerate(K4)]
    record = run_mtree(4, edges, trees=3)
    best = best_few(edges, all_trees(4, edges), 3)
    assert record.metrics["allreduce_rate_Bps"] / MBPS == pytest.approx(best)
    assert record.metrics["exact_bound_Bps"] / MBPS == pytest.approx(best)


def test_the_height_of_least_time_is_found():
    """height=auto gives the plan of the height whose pipelined time is the least of all heights that are feasible."""
    asked = instance(6, [(a, b, 10, 100) for a in range(6) for b in range(a)])
    times = {most: solve(asked, height=most).record.metrics["pipelined_time_s"] for most in (1, 2, 3, 4, 5)}
    found = solve(asked, height="auto").record
    assert found.metrics["pipelined_time_s"] == min(times.values())
    assert found.metrics["auto_height"] == min(times, key=lambda most: times[most])
    assert found.verified
    assert found.certificate["certificate"] == "partition"
    for tried, seconds in found.metrics["heights_tried_s"]:
        assert seconds == times[tried]
    assert solve(asked, height="auto", min_rate="90 Mb/s").record.status == "infeasible"


def test_the_bound_on_any_schedule_is_told_first():
    """The bound by partitions and cuts is reported with its proof before trees are sought, and survives an
    interruption."""
    told = []
    problem = tree_problem(instance(4, scale_links(K4, 1)), 2, None, Budget(tell=told.append))
    assert isinstance(problem, TreeProblem)
    assert [(one.bound, one.certificate) for one in told] == [
        (float(problem.seconds(problem.ceiling.rate)), problem.ceiling.certificate)
    ]
