"""The programs behind the pages of findings agree with each other and with the package."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations, product
from math import factorial
from pathlib import Path

import numpy as np
import pytest
from cwb.benchmarks.findings import (
    allreduce_halves,
    buffers,
    circulant_steps,
    digraphs,
    exact_epochs,
    exact_paths,
    fluid,
)
from cwb.benchmarks.findings import failure_plans as plans
from cwb.benchmarks.findings import mesh_greedy as meshes
from cwb.benchmarks.findings import robust_steps as robust
from cwb.benchmarks.findings import steiner_forests as steiner
from cwb.benchmarks.findings.exact_epochs import Net
from cwb.harness.run import Request, run
from cwb.instances import load

ROOT = Path(__file__).parents[2]
EQUAL = Net(4, ((0, 1, 1, 1), (0, 3, 1, 1), (1, 2, 1, 1), (2, 0, 1, 1), (3, 0, 1, 1)))
RING = Net(3, ((0, 1, 3, 2), (1, 2, 3, 2), (2, 0, 2, 1)))


@pytest.mark.parametrize(
    ("name", "net", "collective", "epochs"),
    [("equal_links", EQUAL, "all_gather", (3, 4)), ("unequal_ring", RING, "all_to_all", (7, 8))],
)
def test_storing_helps(name, net, collective, epochs):
    """The exact search and teccl-milp find the same fewest epochs, with and without storage."""
    assert buffers.fewest(net, collective, states=10_000) == epochs
    for relays, fewest in zip(("store", "pass"), epochs, strict=True):
        instance = load(str(ROOT / f"benchmarks/findings/{name}.json"))
        record = run(instance, Request("teccl-milp", options={"relays": relays})).record
        assert (record.status, record.metrics["epochs"], record.verified) == ("optimal", fewest, True)


def test_two_searches_agree():
    """The searches over states and over paths agree on all networks of 3 ranks and two speeds."""
    tried = list(buffers.networks(buffers.Family(3, (buffers.FAST, buffers.SLOW), "all_to_all")))
    assert len(tried) == 78
    for net in tried:
        first, _ = exact_epochs.fewest(net, "all_to_all", passing=False)
        passed, _ = exact_epochs.fewest(net, "all_to_all", passing=True)
        assert (first, passed) == buffers.fewest(net, "all_to_all", states=10_000)


def test_divisible_data_needs_no_storage_on_the_ring():
    """On the ring where whole chunks lose an epoch, divisible data loses nothing: both programs deliver all in 7."""
    half = Fraction(1, 2)
    ring = fluid.Flow(3, ((0, 1, 2, half), (1, 2, 2, half), (2, 0, 2, Fraction(1))))
    shares = {passing: [fluid.share(ring, epochs, passing=passing) for epochs in (6, 7)] for passing in (False, True)}
    assert shares == {False: [Fraction(5, 6), 1], True: [Fraction(5, 6), 1]}


def test_path_search_refuses_too_many_states():
    """A search that may visit few states says so, and claims nothing."""
    with pytest.raises(exact_epochs.TooManyStatesError):
        exact_paths.fewest_epochs(RING, passing=True, states=2)


@pytest.mark.parametrize(("n", "offsets", "more"), [(15, (1, 4, 5), 1), (18, (1, 5, 6), 0), (12, (1, 3, 4, 5), 0)])
def test_a_circulant_is_repaired(n, offsets, more):
    """Circulants that lose bandwidth breadth-first lose none in as many steps as the diameter, or one more."""
    links = sorted({sign * a % n for a in offsets for sign in (1, -1)})
    steps = max(circulant_steps.distances(n, links)) + more
    assert not more or circulant_steps.find(n, links, steps - 1) is None
    trees = circulant_steps.find(n, links, steps)
    assert trees is not None
    assert circulant_steps.verified_steps(n, offsets, trees) == steps


def test_the_check_of_trees_refuses_wrong_ones():
    """Trees of which one is late, or that leave a node out, are refused."""
    links = [1, 4, 5, 10, 11, 14]
    trees = circulant_steps.find(15, links, 3)
    early = tuple((piece, v, a, 1) for piece, v, a, _ in trees.hops)
    for hops in (early, trees.hops[1:]):
        with pytest.raises(AssertionError):
            circulant_steps.check(15, links, circulant_steps.Trees(trees.pieces, hops))


def test_greedy_matchings_of_small_meshes():
    """Every choice meets the slot bound on 2 x 3 with one chunk; of 2 x 2 with two chunks some take a step more."""
    for shape, chunks, bound, most in (((2, 3), 1, 3, 3), ((2, 2), 2, 3, 4)):
        into = meshes.links_into(*shape)
        assert (meshes.slot_bound(into, chunks), meshes.most_steps(into, chunks)) == (bound, most)
        assert meshes.random_steps(into, chunks, seed=1) <= most
        assert meshes.engine_steps(*shape, chunks, 64) == bound


def test_halves_against_all_reduces():
    """The formulas agree with the methods on a mesh, and the largest loss on 4 ranks is that of a star, 3/2."""
    mesh = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
    best, halves = allreduce_halves.best_all_reduce(6, mesh), allreduce_halves.two_halves(6, mesh)
    assert (best, halves) == (Fraction(5, 7), Fraction(5, 6))
    found, bound = allreduce_halves.time_of("mesh(2,3)", "forestcoll-allreduce", "all_reduce")  # 50 GB/s: 20 ms a unit
    assert (found, bound) == pytest.approx((20 * best, 20 * best))
    tried, lost, _, worst, star = allreduce_halves.count_graphs(4)
    assert (tried, lost, worst, star) == (6, 4, Fraction(3, 2), [(0, 1), (0, 2), (0, 3)])


def test_trees_that_choose_their_switches():
    """With NVLS and SHARP at the leaves, trees that choose reach 3 GB/s, forestcoll 8/3; prices prove both best."""
    for leaves, rate, fast in ((True, Fraction(3), False), (False, Fraction(8, 3), True)):
        instance = steiner.Machine(2, 2, 2, leaves, spine=False).instance
        solution = steiner.solve(steiner.Wires(instance.network))
        assert (solution.rate, solution.bound) == (rate, rate)
        assert steiner.verified_rate(instance, solution.trees) == rate
        record = run(instance, Request("forestcoll-allreduce")).record
        assert record.status == "feasible"
        assert (record.objective == pytest.approx(float(1 / rate))) == fast


def test_rates_of_large_denominators_are_exact():
    """A mixture whose program has a vertex with denominators of some ten thousands is proved optimal, without a gap."""
    instance = steiner.Machine(3, 4, 3, leaves=False, spine=True, narrow=True).instance
    record = run(instance, Request("forestcoll-allreduce")).record
    assert (record.status, record.objective, record.bound) == ("optimal", 0.5, 0.5)


def test_any_prices_prove_no_less_than_the_best_rate():
    """Two searches for a cheapest tree agree at random prices, which prove rates of at least the best one."""
    wires = steiner.Wires(steiner.Machine(3, 2, 1, leaves=True, spine=True).instance.network)
    best = steiner.solve(wires).rate
    sets = [some for count in range(len(wires.joints) + 1) for some in combinations(wires.joints, count)]
    for seed in range(20):
        drawn = np.random.default_rng(seed).integers(4, size=len(wires.rates))
        price = dict(zip(wires.rates, drawn.tolist(), strict=True))
        cheapest = min(cost for cost, _, _ in steiner.cheap_trees(wires, price, sets))
        if cheapest:
            proved = steiner.proved_rate(wires, price)
            assert proved == sum(rate * price[wire] for wire, rate in wires.rates.items()) / cheapest >= best


def test_fewest_changes_after_a_failure():
    """Eight GPUs with links of two rates: the fastest base changes 7/12, the fewest 7/16 take half as long again."""
    dgx = plans.graph_of(load("dgx1()").network)
    least = plans.least_slack(dgx)
    assert (least, plans.least_share(dgx, Fraction(1)), plans.least_share(dgx, least)) == (
        Fraction(3, 2),
        Fraction(7, 12),
        Fraction(7, 16),
    )
    assert plans.fewest_trees(dgx, 24, Fraction(1)) == 14
    assert plans.fewest_trees(dgx, 23, Fraction(1)) is None


def test_shares_are_those_of_the_program():
    """On all graphs of 3 ranks formula and program agree, and verified repairs change and take what they promise."""
    for graph in plans.weighted_graphs(3):
        share = plans.least_share(graph, Fraction(1))
        kept, free = plans.plan(graph, Fraction(1), share=share), plans.plan(graph, Fraction(1), free=True)
        assert (kept.value, free.value) == pytest.approx((1, float(share)))
        for found in (kept, free):
            changed, slower = plans.repair_by_plan(graph, found)
            assert (changed, slower) == pytest.approx((float(share), 1), abs=1e-6)


def test_robust_schedules_are_best_by_enumeration():
    """On three ranks the program with cuts finds the least worst time of all schedules of two steps."""
    fast, unsure = robust.Interval(2, 2, 1, 2), robust.Interval(1, 4, 1, 5)
    net = robust.Net(3, robust.both_ways({(0, 1): fast, (1, 2): fast, (0, 2): unsure}))
    early = [(chunk, chunk, b, 0) for chunk, b in permutations(range(3), 2)]
    for budget in (1, 2):
        least = 10**9
        for sent in product((False, True), repeat=len(early)):
            first = [move for move, used in zip(early, sent, strict=True) if used]
            missing = [(chunk, b) for chunk, _, b, _ in (m for m, used in zip(early, sent, strict=True) if not used)]
            holders = [[v for v in range(3) if v == c or (c, c, v, 0) in first] for c, _ in missing]
            for senders in product(*holders):
                late = [(c, a, b, 1) for (c, b), a in zip(missing, senders, strict=True)]
                least = min(least, robust.worst(net, (*first, *late), budget)[0])
        found = robust.solve(net, 2, budget)
        assert found.worst == found.bound == least


def test_a_robust_schedule_pays_in_usual_times():
    """On a ring whose chords may be slow the robust all-gather takes 12 always, the fastest 6 and at worst 16."""
    (name, net, steps, chunks), *_ = (each for each in robust.nets() if "chords" in each[0])
    found = robust.compare(net, steps, 1, chunks)
    assert (found.usual, found.least_worst, found.robust, found.robust_usual, name) == (
        6,
        16,
        12,
        12,
        "ring with chords",
    )


def test_classes_of_digraphs_are_complete():
    """Labelled digraphs are as many as published (1, 9, 216 and 7,570), and classes times labellings add up to them."""
    assert [digraphs.count_labelled(nodes, 2) for nodes in range(3, 7)] == [1, 9, 216, 7570]
    for nodes, degree, number in ((4, 2, 2), (5, 2, 5), (5, 3, 2), (6, 2, 22)):
        found = digraphs.classes(nodes, degree)
        assert len(found) == number
        assert sum(factorial(nodes) // times for times in found.values()) == digraphs.count_connected(nodes, degree)


def test_the_finder_has_the_best_small_digraphs():
    """`cwb find-topology` lists 6 nodes of degree 2 in two ways, and attains both bounds of 7 nodes of degree 3."""
    assert digraphs.find_frontier(6, 2) == [(2, 1), (3, Fraction(5, 6))]
    assert digraphs.find_frontier(7, 3) == [(2, Fraction(6, 7))]


def test_a_digraph_has_one_code():
    """Renumbered nodes leave the code and the number of automorphisms as they are; a ring of n nodes has n."""
    graph = tuple(tuple(sorted((v + k) % 7 for k in (1, 3))) for v in range(7))
    for shift in (1, 2, 5):
        moved = {(3 * v + shift) % 7: tuple(sorted((3 * end + shift) % 7 for end in graph[v])) for v in range(7)}
        assert digraphs.canonical(tuple(moved[v] for v in range(7))) == digraphs.canonical(graph)
    assert digraphs.canonical(tuple(((v + 1) % 5,) for v in range(5)))[1] == 5
    assert digraphs.cost(graph)[0] == 3
