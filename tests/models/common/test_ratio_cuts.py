"""The worst cut against all cuts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.models.common.maxflow import is_rooted, near_order
from cwb.models.common.ratio_cuts import Unreachable, smallest_step, worst_cut
from networks import seeded, seeded_networks
from oracle import fixed_k_by_cuts, floored, optimum, optimum_by_cuts, uniform
from random_digraphs import column, digraph, flags, random_digraph


def posed(network, weights):
    nodes = len(network.nodes)
    graph = digraph(network.capacity, nodes)
    return graph, column(nodes, weights), near_order(graph, flags(nodes, network.compute))


def test_worst_cut_is_brute_forces():
    """Newton's method finds the maximum over all cuts, with equal and with random weights, and a set that has this ratio."""
    rng = seeded(1)
    for network in seeded_networks(120, seed=11):
        if len(network.nodes) > 11:
            continue
        weights = uniform(network) if rng.random() < 0.5 else {v: rng.randint(0, 4) for v in network.compute}
        if sum(weights.values()) == 0:
            continue
        found = worst_cut(*posed(network, weights))
        assert found.ratio == optimum_by_cuts(network, weights) == optimum(network, weights)
        outside = sum(w for v, w in weights.items() if not found.side[v])
        assert Fraction(outside, posed(network, weights)[0].into(found.side)) == found.ratio
        assert any(found.side[v] for v in network.compute)


@pytest.mark.parametrize("factor", [2**31 - 1, 2**45 + 1, 2**62 - 57, 10**25 + 13])
def test_any_size_of_capacities_is_exact(factor):
    """Capacities times a large number, plus one, make the ratio that fractions make."""
    for network in seeded_networks(12, seed=12):
        large = type(network)(
            network.compute, network.switches, {link: c * factor + 1 for link, c in network.capacity.items()}
        )
        if len(network.nodes) <= 9:
            assert worst_cut(*posed(large, uniform(large))).ratio == optimum_by_cuts(large)


def test_a_set_that_nothing_enters_is_told():
    """Where somebody cannot be reached, the set that is told has a sink and no edge into it; else there is none such."""
    rng = seeded(2)
    told = 0
    for _ in range(100):
        graph = random_digraph(rng, 5, rng.randint(2, 6))
        demand = column(graph.nodes, dict.fromkeys(range(graph.nodes), 1))
        reached = is_rooted(graph.scaled(10**6), demand)
        if reached:
            assert worst_cut(graph, demand, near_order(graph)).side is not None
            continue
        told += 1
        with pytest.raises(Unreachable) as caught:
            worst_cut(graph, demand, near_order(graph))
        assert caught.value.side.any()
        assert not caught.value.side.all()
        assert graph.into(caught.value.side) == 0
    assert 20 < told < 90


def test_no_demand_has_no_cut():
    """Where nothing has to be sent, or its only root is the only sink, the ratio is 0."""
    graph = digraph({(0, 1): 3, (1, 0): 3}, 2)
    assert worst_cut(graph, np.zeros(2, dtype=np.int64), np.arange(2)).side is None
    assert worst_cut(graph, np.array([7, 0]), np.array([0])).ratio == 0


def test_smallest_step_is_brute_forces():
    """With floors, the smallest scale at which trees exist is the maximum over all cuts of the scale that each needs."""
    rng = seeded(3)
    for network in seeded_networks(60, seed=13):
        if len(network.nodes) > 10:
            continue
        demand = uniform(network, rng.randint(1, 4))
        nodes = len(network.nodes)
        graph, numbers, sinks = posed(network, demand)

        def at(scale, network=network, nodes=nodes):
            return digraph(floored(network, scale).capacity, nodes)

        def needed(side, network=network, demand=demand):
            rates = [c for (u, v), c in network.capacity.items() if side[v] and not side[u]]
            missing = sum(d for v, d in demand.items() if not side[v])
            steps = sorted({Fraction(i, c) for c in rates for i in range(1, missing + 1)})
            return next(s for s in steps if sum(s.numerator * c // s.denominator for c in rates) >= missing)

        start = worst_cut(graph, numbers, sinks).ratio
        found, side = smallest_step(at, needed, numbers, sinks, start)
        assert found == fixed_k_by_cuts(network, demand)
        assert (side is None) == (found == start)


def test_a_sink_may_fail_several_times():
    """On a chain to the only sink, each link further away is slower: every cut is served in turn, the last one decides."""
    length = 6
    chain = {(v, v + 1): v + 2 for v in range(length)}
    demand, sinks = column(length + 1, {0: 1}), np.array([length])

    def at(scale):
        return digraph({link: int(scale * c) for link, c in chain.items()}, length + 1)

    def needed(side):
        return Fraction(1, next(c for (u, v), c in chain.items() if side[v] and not side[u]))

    found, side = smallest_step(at, needed, demand, sinks, Fraction(1, 100))
    assert (found, side.tolist()) == (Fraction(1, 2), [False] + [True] * length)
    worst = worst_cut(digraph(chain, length + 1), demand, sinks)
    assert (worst.ratio, worst.side.tolist()) == (Fraction(1, 2), [False] + [True] * length)
