"""Strength and ceiling against all partitions and cuts."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from random import Random

import numpy as np
import pytest
from cwb.algorithms.trees.bounds import DETERMINANTS, ceiling, ratio, strength, vertex_rate, whole_rate
from cwb.algorithms.trees.network import to_wan
from cwb.algorithms.trees.trees import widest_tree
from cwb.schedules.collective import exact_bound
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from mtree_networks import all_trees, best_of_rates, best_rate, instance, one_way_links, random_edges, small

MBPS = 10**6 / 8


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
    """The strength is the smallest ratio over all partitions, is attained by the one named, and by trees (Tutte and
    Nash-Williams)."""
    nodes, edges, wan = small(seed)
    columns = wan.tail.tolist(), wan.head.tolist(), wan.capacity.tolist()
    found = strength(wan)
    assert found.rate == min(ratio(parts, *columns) for parts in partitions(list(range(nodes))) if len(parts) > 1)
    assert ratio(found.parts, *columns) == found.rate
    assert float(found.rate * wan.unit_Bps) / MBPS == pytest.approx(best_rate(edges, all_trees(nodes, edges)))


@pytest.mark.parametrize("seed", range(30))
def test_the_ceiling_is_the_least_of_all_partitions_and_cuts(seed):
    """On random networks, with links one way only, it is the least that any partition or any set of sites proves, and
    the verifier finds the same."""
    source = Random(seed)  # noqa: S311
    nodes = source.randint(2, 5)
    links = [(a, b, source.randint(1, 20)) for v in range(1, nodes) for a, b in ((v - 1, v), (v, v - 1))]
    links += [(*source.sample(range(nodes), 2), source.randint(1, 20)) for _ in range(source.randint(0, 4))]
    asked = one_way_links(nodes, links)
    wan = to_wan(asked)
    found = ceiling(asked.network, wan)
    rates = []
    for parts in partitions(list(range(nodes))):
        part_of = {v: index for index, part in enumerate(parts) for v in part}
        crossing = sum(rate for a, b, rate in links if part_of[a] != part_of[b])
        rates += [Fraction(crossing, 2 * len(parts) - 2)] if len(parts) > 1 else []
        for inside in (set(part) for part in parts) if len(parts) == 2 else ():
            rates.append(Fraction(sum(rate for a, b, rate in links if a in inside and b not in inside)))
    assert found.rate * wan.unit_Bps == min(rates) * 10**6
    assert exact_bound(asked, found.certificate) == Fraction(1000) / min(rates)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_determinants_are_those_of_all_matrices(order):
    """The listed absolute determinants are those of all 0/1 matrices of this order with different rows."""
    rows = np.array(list(product((0.0, 1.0), repeat=order)))[1:]
    chosen = rows[np.array(list(combinations(range(len(rows)), order)))]
    assert sorted({0, *np.abs(np.rint(np.linalg.det(chosen)))}) == list(DETERMINANTS[order - 1])


def test_larger_determinants_have_the_known_ends():
    """The listed absolute determinants have the known maxima, and the known first gaps (OEIS A003432, A013588)."""
    assert [max(values) for values in DETERMINANTS] == [1, 1, 2, 3, 5, 9, 32, 56]
    assert [min({*range(99)} - {*values}) for values in DETERMINANTS] == [2, 2, 3, 4, 6, 10, 19, 41]


@settings(max_examples=draws(40))
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([0, 0, 1, Fraction(1, 2), Fraction(2, 3)]))
def test_the_best_trees_have_a_rate_of_a_vertex(seed, trees, least):
    """The largest rate of at most K trees among all trees, with equal links or others, with a smallest rate or without,
    is one that is kept by rounding, and a bound just above it is not rounded to less."""
    largest = 1 if seed % 2 else 4
    edges = random_edges(5, 3 + seed % 3, seed, largest)
    wan = to_wan(instance(5, edges))
    unit = wan.unit_Bps * 8 / 10**6
    every = all_trees(5, edges)
    floor = least * unit
    if not any(min(edges[e][2] for e in tree) >= floor for tree in every):
        return
    best = Fraction(best_of_rates(edges, every, trees, floor)).limit_denominator(100) / unit
    assert vertex_rate(wan, trees, Fraction(least), best) == best
    assert best <= vertex_rate(wan, trees, Fraction(least), best + Fraction(1, 1000)) <= best + Fraction(1, 1000)
    widest = widest_tree(wan, wan.hops(None))[0]
    assert whole_rate(wan, trees, widest, Fraction(least), best + Fraction(1, 1000)) >= best
