"""Prices of links that bound trees: recomputed by the verifier, against trying all trees, and in files."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil
from random import Random

import numpy as np
import pytest
from cwb.algorithms.trees.bounds import vertex_rate as method_rate
from cwb.algorithms.trees.network import to_wan
from cwb.cli.schedules import check
from cwb.core.bounds import TreePrices
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, Topology
from cwb.core.trees import TreeKind, TreePacking
from cwb.harness import Request, run
from cwb.instances import load
from cwb.schedules import verdict_of
from cwb.schedules.collective import exact_bound
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.tree_bounds import arborescence, fault_of_trees, recomputed_tree_bound, vertex_rate
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

SIZE = 10**9
DEMAND = Demand(Collective.ALL_REDUCE, Fraction(SIZE))


def network(source, nodes, *, even):
    """A connected network, both directions of its links the same or not."""
    links = []
    pairs = [(source.randrange(v), v) for v in range(1, nodes)]
    pairs += [tuple(source.sample(range(nodes), 2)) for _ in range(source.randint(1, 3))]
    for a, b in pairs:
        rates = [source.randint(1, 9) for _ in range(2)]
        late = [Fraction(source.randint(0, 9), 1000) for _ in range(2)]
        there, back = (0, 0) if even else (0, 1)
        links.append(Link(str(a), str(b), Fraction(rates[there] * 10**6), late[there]))
        links.append(Link(str(b), str(a), Fraction(rates[back] * 10**6), late[back]))
    topology = Topology(tuple(Node(str(v)) for v in range(nodes)), tuple(links))
    return Instance("small", topology, Demand(Collective.ALL_REDUCE, Fraction(SIZE)))


def arborescences(topology, root, *, back):
    """Every choice of one link for each other node that joins it to the root, there or back, with the length of its
    longest way."""
    ends = [pair[::-1] if back else pair for pair in topology.link_ends]
    others = [v for v in range(len(topology.nodes)) if v != root]
    into = [[e for e, (_, v) in enumerate(ends) if v == node] for node in others]
    for links in product(*into):
        parent = {node: (ends[e][0], e) for node, e in zip(others, links, strict=True)}
        ways = []
        for node in others:
            way, at = [], node
            while at != root and len(way) < len(topology.nodes):
                at, e = parent[at]
                way.append(e)
            ways.append(way if at == root else None)
        if None not in ways:
            yield links, ways


def every_tree(instance, height, unit):
    """Links of every pair of a broadcast and a reduction with the same root, each as low as asked."""
    topology = instance.network
    length = [1 if unit == "links" else ceil(link.latency_s * 10**9) for link in topology.links]
    found = set()
    for root in range(len(topology.nodes)):
        both = [
            [
                links
                for links, ways in arborescences(topology, root, back=back)
                if height is None or max(sum(length[e] for e in way) for way in ways) <= height
            ]
            for back in (False, True)
        ]
        found |= {(*there, *back) for there, back in product(*both)}
    return sorted(found)


def best_rate(instance, trees, most, floor):
    """Largest sum of rates of at most so many trees, each with at least a rate, in MB/s: a mixed-integer program of its
    own."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    rate = np.array([float(link.bandwidth_Bps) / 1e6 for link in instance.network.links])
    count = len(trees)
    uses = np.array([[tree.count(e) for tree in trees] for e in range(len(rate))], dtype=float)
    none, one = np.zeros((len(rate), count)), np.eye(count)
    rows = [
        LinearConstraint(np.hstack([uses, none]), ub=rate),
        LinearConstraint(np.hstack([one, -rate.max() * one]), ub=0),
        LinearConstraint(np.hstack([-one, floor * one]), ub=0),
        LinearConstraint(np.r_[np.zeros(count), np.ones(count)], ub=count if most is None else most),
    ]
    for presolve in (True, False):  # HiGHS's presolve fails on some of these programs
        found = milp(
            np.r_[-np.ones(count), np.zeros(count)],
            constraints=rows,
            integrality=np.r_[np.zeros(count), np.ones(count)],
            bounds=Bounds(0, np.r_[np.full(count, np.inf), np.ones(count)]),
            options={"presolve": presolve},
        )
        if found.status == 0:
            break
    assert found.status == 0
    return -found.fun


@pytest.mark.slow
@settings(max_examples=draws(30))
@given(st.integers(0, 10**6))
def test_no_prices_prove_more_than_the_optimum(seed):
    """Whatever the prices are, on networks whose directions differ too, no bound is above the time of the best trees of
    those it speaks of."""
    source = Random(seed)  # noqa: S311
    instance = network(source, source.randint(2, 4), even=source.random() < 0.5)
    unit = source.choice(["links", "ns"])
    height = source.choice([None, source.randint(1, 3) if unit == "links" else source.randint(1, 15) * 10**6])
    floor, most = source.choice([0, 0, 1, 2]), source.choice([None, 1, 2, 3])
    certificate = TreePrices(
        tuple(source.choice([0, 1, source.randint(0, 10), 2**40]) for _ in instance.network.links),
        Fraction(source.choice([0, source.randint(0, 9 * 10**7)])),
        most,
        height,
        unit,
        Fraction(floor * 10**6),
        tuple(
            tuple(e for e in range(len(instance.network.links)) if source.random() < share)
            for share in (0.3, 0.6, 0.9)[: source.randint(0, 3) if most is not None else 0]
        ),
    )
    trees = every_tree(instance, height, unit)
    if floor or most is not None:
        trees = [tree for tree in trees if len(set(tree)) == len(tree)]
    trees = trees[:400]
    try:
        proved = recomputed_tree_bound(instance, certificate)
    except InputError:
        # Only where there are no such trees at all.
        assert not trees or best_rate(instance, trees, most, floor) < 1e-6
        return
    if trees and (rate := best_rate(instance, trees, most, floor)) > 1e-6:
        assert float(proved) <= SIZE / (rate * 1e6) * (1 + 1e-6)


@settings(max_examples=100)
@given(st.integers(0, 10**6))
def test_arborescences_are_the_cheapest(seed):
    """The compiled arborescence costs as little as the best of all choices of a link for every node; where there is
    none, that is found."""
    source = Random(seed)  # noqa: S311
    nodes = source.randint(2, 6)
    ends = [tuple(source.sample(range(nodes), 2)) for _ in range(source.randint(1, 9))]
    price = [source.randint(0, 9) for _ in ends]
    topology = Topology(
        tuple(Node(str(v)) for v in range(nodes)),
        tuple(Link(str(a), str(b), Fraction(1), Fraction(0)) for a, b in ends),
    )
    costs = [sum(price[e] for e in links) for links, _ in arborescences(topology, 0, back=False)]
    tail, head = (np.array(column, dtype=np.int64) for column in zip(*ends, strict=True))
    found = arborescence(0, nodes, tail, head, np.array(price, dtype=np.int64))
    assert found == min(costs, default=-1)


#: Sites 0 to 3, every pair joined.
K4 = [(1, 0, 40), (2, 0, 30), (2, 1, 90), (3, 0, 40), (3, 1, 60), (3, 2, 50)]


def solve_mtree(**options):
    """A run of mtree on four sites whose bound is one of prices."""
    links = [Link(str(u), str(v), Fraction(rate * 10**6, 8), Fraction(1, 1000)) for a, b, rate in K4 for u,
        v in ((a, b), (b, a))]  # fmt: skip
    topology = Topology(tuple(Node(str(v)) for v in range(4)), tuple(links))
    instance = Instance("k4", topology, Demand(Collective.ALL_REDUCE, Fraction(SIZE)))
    return run(instance, Request("mtree", options=options))


@pytest.mark.parametrize(
    "options",
    [{"trees": 1}, {"height": 1}, {"height": "1 ms"}, {"height": 1, "trees": 4}, {"height": 1, "min_rate": "10 Mb/s"}],
)
def test_the_method_claims_what_the_verifier_recomputes(options):
    """For heights, few trees and smallest rates the optimum is proved by prices, says for which trees, and the verifier
    finds the same."""
    done = solve_mtree(**options)
    assert (done.record.status, done.record.verified) == ("optimal", True)
    assert isinstance(done.certificate, TreePrices)
    assert done.record.bound == pytest.approx(done.record.objective, rel=1e-6)
    assert done.record.metrics["bound_holds_for"].endswith(("hop", "ms", "twice"))
    assert exact_bound(done.instance, done.certificate, done.answer) == recomputed_tree_bound(
        done.instance, done.certificate
    )


def test_of_other_trees_it_says_nothing():
    """A certificate for fewer, lower or faster trees than those of an answer is refused, and so is one with an answer
    that is none of trees."""
    done = solve_mtree(height=1)
    certificate, packing = done.certificate, done.answer
    assert fault_of_trees(done.instance, certificate, packing) is None
    many = solve_mtree(height=2)
    assert len(many.answer) > 1
    for other, told in (
        (replace(certificate, height=None, trees=1), "speaks of at most 1 trees"),
        (replace(certificate, height=1), "the answer has one of 2"),
        (replace(certificate, height=999_999, height_unit="ns"), "ns, the answer has one of"),
        (replace(certificate, height=None, min_rate_Bps=Fraction(10**9)), "the answer has one of"),
    ):
        assert told in fault_of_trees(many.instance, other, many.answer)
        verdict = verdict_of(many.instance, many.answer, other)
        assert told in verdict.violations[0]
        assert verdict.bound is None
    with pytest.raises(InputError, match="speaks of trees"):
        exact_bound(done.instance, certificate)


def test_few_trees_use_no_link_twice():
    """Trees that reduce and broadcast over the same directed link are refused by a certificate of few trees, or of a
    smallest rate, and are covered by one of any trees."""
    links = tuple(Link(str(a), str(b), Fraction(10**6)) for a, b in ((0, 1), (1, 2), (2, 0), (0, 2), (2, 1), (1, 0)))
    instance = Instance("three", Topology(tuple(Node(str(v)) for v in range(3)), links), DEMAND)
    sha, root, units, paths = instance.sha256, np.array([0]), np.array([1]), np.arange(3)

    def tree(kind, parent, child, path_links, reduction=None):
        columns = np.array([0, 2]), np.array(parent), np.array(child), paths, np.array(path_links)
        return TreePacking(sha, kind, root, units, Fraction(SIZE), *columns, reduction)

    reduction = tree(TreeKind.IN, [0, 2], [2, 1], [2, 1])
    for path_links, ends, used_twice in (([0, 1], ([0, 1], [1, 2]), True), ([3, 4], ([0, 2], [2, 1]), False)):
        packing = tree(TreeKind.BOTH, *ends, path_links, reduction)
        assert verdict_of(instance, packing).ok
        assert fault_of_trees(instance, TreePrices((1,) * 6, height=2), packing) is None
        for limit in ({"trees": 1}, {"min_rate_Bps": Fraction(1)}):
            fault = fault_of_trees(instance, TreePrices((1,) * 6, **limit), packing)
            assert (fault is not None and "no link twice" in fault) == used_twice


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"prices": (1,)}, "certificate.prices"),
        ({"prices": (-1,) * 12}, "certificate.prices"),
        ({"prices": (2**61,) * 12}, "certificate.prices"),
        ({"tree_price_Bps": Fraction(-1)}, "certificate.tree_price_Bps"),
        ({"min_rate_Bps": Fraction(-1)}, "certificate.min_rate_Bps"),
        ({"min_rate_Bps": Fraction(10**12)}, "certificate"),
        ({"trees": 0}, "certificate.trees"),
        ({"height": 0}, "certificate"),
        ({"height_unit": "miles"}, "certificate.height_unit"),
        ({"link_sets": ((0,), (12,))}, "certificate.link_sets[1]"),
        ({"link_sets": ((3, 3),)}, "certificate.link_sets[0]"),
        ({"link_sets": ((-1,),)}, "certificate.link_sets[0]"),
        ({"link_sets": ((1,),)}, "certificate.trees"),
    ],
)
def test_what_means_nothing_is_refused(change, place):
    """Prices that are not one for every link, negative or too large, and trees that cannot exist, are told with their
    place."""
    done = solve_mtree(height=1)
    with pytest.raises(InputError) as caught:
        recomputed_tree_bound(done.instance, replace(done.certificate, **change))
    assert caught.value.place == place


def test_prices_of_nothing_prove_nothing():
    """Without prices, or with a price of trees whose number nothing limits, the bound is 0."""
    done = solve_mtree(height=1)
    assert recomputed_tree_bound(done.instance, TreePrices((0,) * 12)) == 0
    assert recomputed_tree_bound(done.instance, TreePrices((0,) * 12, Fraction(1))) == 0
    assert recomputed_tree_bound(done.instance, TreePrices((0,) * 12, Fraction(1), trees=1)) == Fraction(
        SIZE * 8, 40 * 10**6
    )


def test_other_collectives_are_refused():
    """Prices of trees bound an all-reduce among all nodes, and no other collective."""
    done = solve_mtree(height=1)
    for demand in (
        Demand(Collective.BROADCAST, Fraction(SIZE)),
        Demand(Collective.ALL_REDUCE, Fraction(SIZE), ranks=(0, 1)),
    ):
        with pytest.raises(InputError, match="prices of trees"):
            recomputed_tree_bound(done.instance.with_changes(demand=demand), done.certificate)


def test_files_hold_it(tmp_path):
    """A schedule file with prices reads back as it was, proves its bound, and a claim beyond it, or prices for other
    trees, fail the check."""
    done = solve_mtree(height="1 ms", min_rate="7 Mb/s")
    file = tmp_path / "trees.json"
    write_schedule(file, done.instance, done.answer, done.certificate, {"bound_s": done.record.bound})
    assert read_schedule(file).certificate == done.certificate
    assert check.main([str(file)], standalone_mode=False) == 0
    data = json.loads(file.read_text())
    for part, name, value in (("extra", "bound_s", done.record.bound * 1.1), ("certificate", "height", 10**6 - 1)):
        wrong = json.loads(json.dumps(data))
        wrong[part][name] = value
        other = tmp_path / "wrong.json"
        other.write_text(json.dumps(wrong))
        assert check.main([str(other)], standalone_mode=False) == 5


def between_five(capacity):
    """An all-reduce among five nodes, all linked; the two directions of a link have its capacity in GB/s."""
    links = tuple(
        Link(str(a), str(b), capacity(min(a, b), max(a, b)) * Fraction(10**9))
        for a in range(5)
        for b in range(5)
        if a != b
    )
    topology = Topology(tuple(Node(str(v)) for v in range(5)), links)
    return Instance("five", topology, Demand(Collective.ALL_REDUCE, Fraction(SIZE)))


@pytest.mark.parametrize(("trees", "rate"), [(1, 3), (2, 6), (3, 6), (4, Fraction(15, 2)), (9, Fraction(15, 2))])
def test_few_trees_have_few_rates(trees, rate):
    """Prices of 1 say 7.5 GB/s on five nodes with links of 3 GB/s. Two trees have at most 6; three have no total
    between 6 and 9, since 0/1 matrices of order three have no larger determinant than 2, and 2.5 is no 1 + n / d."""
    prices = TreePrices((1,) * 20, trees=trees)
    assert recomputed_tree_bound(between_five(lambda *_: 3), prices) == SIZE / (rate * Fraction(10**9))


@pytest.mark.parametrize(("trees", "rate"), [(6, 3), (7, 3), (8, 3), (9, Fraction(240, 79))])
def test_eight_trees_over_equal_links_have_no_rate_just_above_a_whole_one(trees, rate):
    """If prices say 240/79 of a link, up to eight trees have 3 at most, since no determinants are as 1 + n / d asks;
    links of two rates leave eight trees more, as does a smallest rate."""
    most, unit = Fraction(240, 79), Fraction(5)
    assert vertex_rate([unit] * 3, Fraction(0), trees, most * unit) == rate * unit
    assert vertex_rate([unit, 2 * unit], Fraction(0), 8, most * unit) == Fraction(82, 27) * unit
    assert vertex_rate([unit], unit, 8, most * unit) == Fraction(82, 27) * unit
    assert vertex_rate([unit], unit / 7, 2, most * unit) == Fraction(21, 7) * unit


@settings(max_examples=draws(200))
@given(st.integers(1, 9), st.sampled_from([(3,), (1, 3), (2, 4)]), st.sampled_from([0, 1, 2]), st.integers(1, 10**4))
def test_the_method_rounds_as_the_verifier_does(trees, rates, least, most):
    """The rule of the method and that of the verifier, which share no code, lower a bound to the same total."""
    wan = to_wan(parallel(*rates))
    bound = max(rates) + Fraction(most, 997)
    expected = vertex_rate([Fraction(rate) for rate in rates], Fraction(least), trees, bound)
    unit = wan.unit_Bps / 10**6
    assert method_rate(wan, trees, least / unit, bound / unit) * unit == expected


def test_files_hold_the_number_of_trees(tmp_path):
    """Four trees over 16 equal links between 8 nodes have two links together, less than the strength of 16/7, which a
    file proves; a certificate that speaks of more trees, or of a smallest rate, proves less than the claim."""
    done = run(load("random_regular(8, 4)").with_changes(demand=DEMAND), Request("mtree", options={"trees": 4}))
    assert done.record.status == "optimal"
    assert done.record.metrics["strength_share"] == pytest.approx(7 / 8)
    file = tmp_path / "trees.json"
    write_schedule(file, done.instance, done.answer, done.certificate, {"bound_s": done.record.bound})
    assert check.main([str(file)], standalone_mode=False) == 0
    data = json.loads(file.read_text())
    for name, value in (("trees", 8), ("min_rate_Bps", "1/3"), ("trees", 2**40)):
        wrong = json.loads(json.dumps(data))
        wrong["certificate"][name] = value
        file.write_text(json.dumps(wrong))
        assert check.main([str(file)], standalone_mode=False) == 5


def parallel(*rates):
    """An all-reduce between two sites over parallel links of these rates in MB/s."""
    links = [Link(a, b, Fraction(rate * 10**6)) for rate in rates for a, b in (("0", "1"), ("1", "0"))]
    return Instance(
        "parallel",
        Topology((Node("0"), Node("1")), tuple(links)),
        Demand(Collective.ALL_REDUCE, Fraction(SIZE)),
    )


def test_sets_of_links_exclude_rates():
    """Two trees over links of 9 and 7 MB/s have 16, since both ways of the faster one are all that a tree of 9 can use;
    without this set prices say 18."""
    instance = parallel(9, 7)
    prices = TreePrices((0,) * 4, Fraction(1), trees=2)
    assert recomputed_tree_bound(instance, prices) == Fraction(SIZE, 18 * 10**6)
    assert recomputed_tree_bound(instance, replace(prices, link_sets=((0, 1),))) == Fraction(SIZE, 16 * 10**6)
    every = replace(prices, link_sets=((0, 1), (0, 1, 2, 3), ()))
    assert recomputed_tree_bound(instance, every) == Fraction(SIZE, 16 * 10**6)
    slow = parallel(9, 3)
    assert recomputed_tree_bound(slow, replace(prices, link_sets=((0, 1),))) == Fraction(SIZE, 12 * 10**6)


@pytest.mark.parametrize(("rates", "trees"), [(range(1, 13), 12), ((5,), 20_000), ((5,), 2**61)])
def test_too_many_rates_are_not_tried(rates, trees):
    """Sets of links with more trees and rates than can be tried are refused, also where a choice alone is too long."""
    instance = parallel(*rates)
    prices = TreePrices((0,) * 2 * len(rates), Fraction(1), trees=trees, link_sets=((0, 1),))
    with pytest.raises(InputError, match="too many combinations of rates"):
        recomputed_tree_bound(instance, prices)


def test_files_hold_sets_of_links(tmp_path):
    """The best trees of a network too large for all of its trees are proved by sets of links, which a file holds; one
    that lacks a set proves less than it claims."""
    done = run(
        load("idn_size(0.5, 2)").with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(SIZE))),
        Request("mtree", options={"trees": 4, "height": 4}),
    )
    assert done.record.status == "optimal"
    assert done.certificate.link_sets
    file = tmp_path / "trees.json"
    write_schedule(file, done.instance, done.answer, done.certificate, {"bound_s": done.record.bound})
    assert read_schedule(file).certificate == done.certificate
    assert check.main([str(file)], standalone_mode=False) == 0
    data = json.loads(file.read_text())
    for sets in ([], data["certificate"]["link_sets"][1:]):
        data["certificate"]["link_sets"] = sets
        file.write_text(json.dumps(data))
        assert check.main([str(file)], standalone_mode=False) == 5
