"""Strength and ceiling against all partitions and cuts."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from cwb.algorithms.trees.bounds import ceiling, ratio, strength
from cwb.algorithms.trees.network import to_wan
from cwb.schedules.collective import exact_bound
from mtree_networks import all_trees, best_rate, one_way_links, small

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
    instance = one_way_links(nodes, links)
    wan = to_wan(instance)
    found = ceiling(instance.network, wan)
    rates = []
    for parts in partitions(list(range(nodes))):
        part_of = {v: index for index, part in enumerate(parts) for v in part}
        crossing = sum(rate for a, b, rate in links if part_of[a] != part_of[b])
        rates += [Fraction(crossing, 2 * len(parts) - 2)] if len(parts) > 1 else []
        for inside in (set(part) for part in parts) if len(parts) == 2 else ():
            rates.append(Fraction(sum(rate for a, b, rate in links if a in inside and b not in inside)))
    assert found.rate * wan.unit_Bps == min(rates) * 10**6
    assert exact_bound(instance, found.certificate) == Fraction(1000) / min(rates)
