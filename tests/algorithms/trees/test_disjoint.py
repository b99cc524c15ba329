"""Disjoint forests, rates of trees without a common link and their proofs, and low trees of such rates."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product
from random import Random

import numpy as np
import pytest
from cwb.algorithms.trees.bounds import strength, whole_rate
from cwb.algorithms.trees.disjoint import (
    DisjointRates,
    best_pair,
    largest_forests,
    low_trees_apart,
    low_trees_of_one_rate,
)
from cwb.algorithms.trees.network import to_wan
from cwb.algorithms.trees.trees import bottlenecks, heights_of, lowest_tree, widest_tree
from cwb.core.budget import Budget
from mtree_networks import all_trees, best_of_rates, height, instance, random_edges, small


def acyclic(nodes, edges):
    """Check if edges form no cycle."""
    group = list(range(nodes))
    for a, b in edges:
        one, other = group[a], group[b]
        if one == other:
            return False
        group = [other if part == one else part for part in group]
    return True


@pytest.mark.parametrize("seed", range(30))
def test_forests_are_the_largest(seed):
    """Forests are disjoint, allowed and without cycles, and as large as the best of all ways to give links to
    forests."""
    source = Random(seed)  # noqa: S311
    nodes, count = source.randint(2, 4), source.randint(1, 3)
    edges = [tuple(source.sample(range(nodes), 2)) for _ in range(source.randint(1, 6))]
    allowed = np.array([[source.random() < 0.7 for _ in edges] for _ in range(count)])
    tail, head = np.array(edges).T
    found, _ = largest_forests(nodes, tail, head, allowed, Budget())

    def right(of):
        return all(
            acyclic(nodes, [edge for edge, one in zip(edges, of, strict=True) if one == i])
            and all(allowed[i][e] for e, one in enumerate(of) if one == i)
            for i in range(count)
        )

    assert right(found.tolist())
    best = max(sum(i >= 0 for i in of) for of in product(range(-1, count), repeat=len(edges)) if right(of))
    assert (found >= 0).sum() == best


@pytest.mark.parametrize("seed", range(8))
def test_rates_are_those_of_the_best_trees(seed):
    """Among all choices of trees that share no link the best has the total that is found, and the few sets of the proof
    exclude all larger ones; the bound that follows is no less than the rate of the best trees, with common links or
    not."""
    nodes, edges = 4, random_edges(4, 5, seed)
    wan = to_wan(instance(nodes, edges))
    rates = DisjointRates.of(wan, 3, 1, widest_tree(wan, wan.hops(None))[0])
    trees = rates.solve(Budget())
    assert len({e for tree in trees.tolist() for e in tree}) == trees.size
    assert bottlenecks(wan, trees).sum() == rates.most[-1]
    every = all_trees(nodes, edges)
    capacity = wan.capacity.tolist()
    for count in (1, 2, 3):
        best = 0
        for chosen in combinations_with_replacement(every, count):
            if len({e for tree in chosen for e in tree}) == count * (nodes - 1):
                best = max(best, sum(min(capacity[e] for e in tree) for tree in chosen))
        assert rates.most[count - 1] == max(best, *rates.most[: count - 1], 0)
    bound = whole_rate(wan, 3, rates.most[0], Fraction(0), Fraction(3 * rates.most[0]), rates.most)
    assert float(bound * wan.unit_Bps) * 8e-6 >= best_of_rates(edges, every, 3, 0) - 1e-6
    kept = rates.proof(bound)
    again = DisjointRates.of(wan, 3, 1, rates.most[0])
    for links in kept:
        inside = np.isin(np.arange(len(wan)), links)
        need = np.array([0, *(again.fewest_links(inside, rate) for rate in again.rates[1:].tolist())])
        again.open &= need[again.choices].sum(axis=1) <= len(links)
    most = [int(again.total[again.open & (again.count <= count)].max()) for count in (1, 2, 3)]
    assert whole_rate(wan, 3, rates.most[0], Fraction(0), Fraction(3 * rates.most[0]), most) == bound


@pytest.mark.parametrize("unit", ["hops", "ms"])
def test_low_trees_share_no_link_and_are_low(unit):
    """Low trees have the rates that they are said to have, are low enough, and share no link."""
    edges = random_edges(12, 40, 3)
    wan = to_wan(instance(12, edges))
    limit = wan.hops(4) if unit == "hops" else wan.latencies(Fraction(15, 1000))
    rates = DisjointRates.of(wan, 3, 1, widest_tree(wan, limit)[0])
    rates.solve(Budget())
    totals = []
    for rated in low_trees_apart(rates, limit, Fraction(0), 100_000, np.array([1], dtype=np.uint64), Budget()):
        totals.append(rated.total)
        assert bottlenecks(wan, rated.trees).tolist() >= list(rated.rates)
        assert len(set(rated.trees.ravel().tolist())) == rated.trees.size
        assert heights_of(wan, limit, rated.trees)[1].max() <= limit.most
    assert totals
    assert totals == sorted(set(totals))
    assert totals[-1] <= rates.most[-1]


def test_no_rates_of_low_trees_are_tried_after_the_end(monkeypatch):
    """A search whose budget has ended looks at no further rates, of which there may be very many."""
    wan = to_wan(instance(12, random_edges(12, 40, 3)))
    limit = wan.hops(4)
    rates = DisjointRates.of(wan, 3, 1, widest_tree(wan, limit)[0])
    rates.solve(Budget())
    ended = Budget()
    ended.stop.set()
    monkeypatch.setattr(DisjointRates, "of_choice", lambda *_: pytest.fail("rates are tried"))
    assert not list(low_trees_apart(rates, limit, Fraction(0), 100_000, np.array([1], dtype=np.uint64), ended))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("unit", ["hops", "ms"])
def test_low_trees_of_one_rate_fit_into_the_links(unit, seed):
    """Trees of one rate span the network, are low, load no link above its capacity, and get better and better."""
    wan = to_wan(instance(12, random_edges(12, 30, seed)))
    limit = wan.hops(5) if unit == "hops" else wan.latencies(Fraction(25, 1000))
    bound, above, state = strength(wan).rate, Fraction(1), np.array([seed + 1], dtype=np.uint64)
    totals = []
    for rated in low_trees_of_one_rate(wan, limit, 5, 0, (above, bound), 100_000, state, Budget()):
        assert len(set(rated.rates)) == 1
        assert len(rated.rates) <= 5
        load = [Fraction(0)] * len(wan)
        for tree in rated.trees.tolist():
            assert acyclic(wan.nodes, [(int(wan.tail[e]), int(wan.head[e])) for e in tree])
            assert len(set(tree)) == wan.nodes - 1
            for e in tree:
                load[e] += rated.rates[0]
        assert all(one <= room for one, room in zip(load, wan.capacity.tolist(), strict=True))
        assert heights_of(wan, limit, rated.trees)[1].max() <= limit.most
        totals.append(rated.total)
    assert totals
    assert totals == sorted(set(totals))
    assert above < totals[0] <= totals[-1] <= bound


def test_three_halves_of_a_triangle():
    """On a ring of three sites with equal links, three trees of rate 1/2 carry the strength, and two trees do not."""
    wan = to_wan(instance(3, [(0, 1, 10, 1), (1, 2, 10, 1), (2, 0, 10, 1)]))
    between, state = (Fraction(1), strength(wan).rate), np.array([1], dtype=np.uint64)
    assert not list(low_trees_of_one_rate(wan, wan.hops(2), 2, 0, between, 10_000, state, Budget()))
    (rated,) = low_trees_of_one_rate(wan, wan.hops(2), 3, 0, between, 10_000, state, Budget())
    assert rated.rates == (Fraction(1, 2),) * 3
    assert rated.total == strength(wan).rate


def test_a_smallest_rate_is_not_hidden_by_better_trees_below_it():
    """On five sites that are all linked, five trees of rate 1/2 are best, and two if 1 is the smallest rate."""
    wan = to_wan(instance(5, [(a, b, 10, 1) for b in range(5) for a in range(b)]))
    between, found = (Fraction(1), strength(wan).rate), []
    for least in (Fraction(1, 2), Fraction(1)):
        state = np.array([1], dtype=np.uint64)
        *_, best = low_trees_of_one_rate(wan, wan.hops(4), 5, least, between, 100_000, state, Budget())
        found.append(best.rates)
    assert found == [(Fraction(1, 2),) * 5, (Fraction(1),) * 2]


def test_too_many_rates_are_not_listed():
    """Nothing is listed for more choices of rates than the verifier tries."""
    wan = to_wan(instance(3, [(0, 1, rate, 1) for rate in range(1, 50)] + [(1, 2, rate, 1) for rate in range(1, 50)]))
    assert DisjointRates.of(wan, 10, 1, 49) is None


def best_rate_of_pair(edges, one, other):
    """Largest sum of rates of two trees: each has at most its least capacity, both together that of a common link."""
    narrow = [min(edges[e][2] for e in tree) for tree in (one, other)]
    return min([sum(narrow), *(edges[e][2] for e in one & other)])


@pytest.mark.slow
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
    most = max(best_rate_of_pair(edges, *pair) for pair in combinations_with_replacement(map(frozenset, trees), 2))
    widest = widest_tree(wan, wan.hops(None))[0]
    pair = best_pair(wan, widest, Budget())
    found = max(Fraction(widest), pair.total if pair is not None else Fraction(0))
    assert found * wan.unit_Bps == Fraction(most * 10**6, 8)
