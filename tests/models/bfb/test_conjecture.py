"""Conjecture 1 of the paper, that every circulant graph has a breadth-first schedule without loss of bandwidth, fails
at degree 6."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import gcd

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.instances import load
from cwb.models.bfb.extract import read
from cwb.models.bfb.formulation import build_lp
from cwb.models.bfb.problem import choices_of
from cwb.models.bfb.solve import balance


def network(n, offsets):
    return load(f"circulant(n={n}, offsets={list(offsets)})").network


def by_sets(n, offsets):
    """T_B by theorem 19 with sets of numbers alone: shares no code with the method."""
    links = {sign * a % n for a in offsets for sign in (1, -1)}
    near, seen, total = {0}, {0}, Fraction(0)
    while len(seen) < n:
        far = {(v + a) % n for v in near for a in links} - seen
        # Shard v comes to node 0 over the link from w if w is one step nearer to v; by translation v - w is as near to
        # 0.
        over = {v: frozenset(w for w in links if (v - w) % n in near) for v in far}
        sets = (frozenset(w) for size in range(1, len(links) + 1) for w in combinations(sorted(links), size))
        total += max(Fraction(sum(f <= w for f in over.values()), len(w)) for w in sets)
        near, seen = far, seen | far
    return Fraction(len(links), n) * total


def test_the_counterexample_by_hand():
    """In C(15, {1,4,5}), 6 of the 8 shards at distance 2 can only come over 4 of the 6 links: 3/2 instead of 8/6."""
    links = {a % 15 for a in (1, -1, 4, -4, 5, -5)}
    far = set(range(1, 15)) - links
    through_fives = {v for v in far for w in (5, 10) if (v - w) % 15 in links}
    assert (len(far), through_fives) == (8, {6, 9})
    assert Fraction(6, 15) * (1 + Fraction(len(far - through_fives), 4)) == 1


def test_the_counterexample_by_three_ways():
    """T_B of C(15, {1,4,5}) is 1 and not 14/15 by the method, by LP (1) and by sets."""
    graph = network(15, (1, 4, 5))
    choices = choices_of(graph)
    model = build_lp(choices)
    solvers.get("highs").solve(model, Budget())
    assert balance(graph).time == read(choices, model).time == by_sets(15, (1, 4, 5)) == 1
    assert balance(graph).loads == (1, Fraction(3, 2))


@pytest.mark.parametrize(("offsets", "below"), [(3, 15), (4, 12)])
def test_nothing_smaller_fails(offsets, below):
    """No circulant graph of degree 6 with fewer than 15 nodes fails, and none of degree 8 with fewer than 12."""
    for n in range(2 * offsets + 1, below):
        for chosen in combinations(range(1, (n + 1) // 2), offsets):
            if gcd(n, *chosen) == 1:
                assert balance(network(n, chosen)).time == Fraction(n - 1, n) == by_sets(n, chosen)


def test_the_smallest_of_degree_8():
    """C(12, {1,3,4,5}) fails by the method and by sets."""
    assert balance(network(12, (1, 3, 4, 5))).time == by_sets(12, (1, 3, 4, 5)) > Fraction(11, 12)


def test_degree_4_holds_on_small_networks():
    """All circulant graphs of degree 4 with up to 24 nodes have T_B = (N - 1) / N, as the paper proves."""
    for n in range(5, 25):
        for chosen in combinations(range(1, (n + 1) // 2), 2):
            if gcd(n, *chosen) == 1:
                assert balance(network(n, chosen)).time == Fraction(n - 1, n)
