"""The bottleneck and the numbers of trees, against brute force and the oracle's algorithms."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import networks
import oracle
import pytest
from cwb.algorithms.graphs.maxflow import Unreachable
from cwb.models.forestcoll.bounds import find_unbalanced, fixed_k, optimum, smallest_k, smallest_room
from cwb.models.forestcoll.problem import pose as posed_ways
from draws import draws
from networks import FAMILIES, random_cuts, random_network, random_unit, seeded_random
from oracle import Network, has_trees, scale_and_count, to_topology
from posing import both, pose, star


def cases(count, seed, *, groups=True):
    """Random networks with a unit and parallel links; as the method sees them, and as the oracle does."""
    rng = seeded_random(seed)
    for i in range(count):
        network = random_network(rng, FAMILIES[i % 3])
        topology = to_topology(network, random_unit(rng), random_cuts(rng, network))
        ranks = None
        if groups and rng.random() < 0.5:
            ranks = tuple(sorted(rng.sample(range(len(network.compute)), rng.randint(2, len(network.compute)))))
        found, unit = oracle.from_topology(topology, separate=True)
        group = found.compute if ranks is None else tuple(found.compute[r] for r in ranks)
        others = tuple(v for v in found.nodes if v not in group)
        _, problem = posed_ways(pose(topology, ranks=ranks))
        yield problem, Network(group, others, found.capacity), unit


@pytest.mark.slow
def test_optimum_is_the_oracles():
    """The ratio, U and k are those of algorithm 1 and proposition 3, and the set that is told has this ratio; groups
    too."""
    for problem, network, unit in cases(draws(30), 1):
        best = optimum(problem)
        assert problem.unit_Bps == unit
        assert best.ratio == oracle.optimum(network)
        if len(network.nodes) <= 10:
            assert best.ratio == oracle.optimum_by_cuts(network)
        assert (best.copies, best.k) == scale_and_count(network, best.ratio)
        outside = sum(not best.side[v] for v in network.compute)
        assert Fraction(outside, problem.graph.into(best.side)) == best.ratio


@pytest.mark.parametrize("kind", ["broadcast", "reduce"])
def test_one_root(kind):
    """For one root the bottleneck is the smallest cut between it and any other rank; for a reduction in the transposed
    network."""
    rng = seeded_random(2)
    for _ in range(30):
        network = random_network(rng)
        ranks = tuple(rng.sample(range(len(network.compute)), 3))
        group = tuple(network.compute[r] for r in ranks)
        inward, outward = posed_ways(pose(to_topology(network), kind, ranks))
        assert (inward is None) == (kind == "broadcast")
        capacity = network.capacity if inward is None else {(v, u): c for (u, v), c in network.capacity.items()}
        cut = min(oracle.max_flow(capacity, group[0], v, 10**12) for v in group[1:])
        problem = outward or inward
        assert problem is not None
        assert optimum(problem).ratio / problem.unit_Bps == Fraction(1, cut)


@pytest.mark.slow
def test_fixed_k_is_the_oracles():
    """With whole trees on every single one of parallel links, U is algorithm 3's and that of brute force, and the told
    set needs it."""
    rng = seeded_random(3)
    for problem, network, _ in cases(draws(24), 3):
        best, k = optimum(problem), rng.randint(1, 6)
        found, side = fixed_k(problem, best, k)
        assert found == oracle.fixed_k(network, k)
        if len(network.nodes) <= 10:
            assert found == oracle.fixed_k_by_cuts(network, oracle.uniform(network, k))
        assert found >= k * best.ratio
        if found > k * best.ratio:
            wanted = k * sum(not side[v] for v in network.compute)
            assert smallest_room(Counter(entering(problem, side)), wanted) == found


def entering(problem, side):
    tail, head = problem.ends
    ends = zip(tail.tolist(), head.tolist(), problem.bandwidths, strict=True)
    return [rate for u, v, rate in ends if side[v] and not side[u]]


def test_smallest_room():
    """The least U at which whole copies suffice is the first of all values at which some link carries one more."""
    rng = seeded_random(4)
    for _ in range(300):
        rates = Counter(rng.choices(range(1, rng.choice((4, 100))), k=rng.randint(1, 6)))
        copies = rng.randint(1, 40)
        steps = sorted({Fraction(i, rate) for rate in rates for i in range(1, copies + 1)})
        wanted = next(s for s in steps if sum(int(s * rate) * n for rate, n in rates.items()) >= copies)
        assert smallest_room(rates, copies) == wanted


@pytest.mark.slow
def test_smallest_k_is_the_smallest():
    """No smaller number of trees is as fast, and this one is; numbers that leave a switch unbalanced do not count."""
    smaller = 0
    for problem, network, _ in cases(90, 5):
        best = optimum(problem)
        found = smallest_k(problem, best)
        smaller += found < best.k
        for k in range(1, min(found, 128) + 1):
            floored = oracle.floor_capacities(network, k * best.ratio)
            switches = [v for v in network.nodes if v not in network.compute]
            balanced = all(floored.into(v) == floored.out_of(v) for v in switches)
            possible = balanced and has_trees(floored.capacity, oracle.uniform(network, k))
            assert possible == (k == found)
            # The oracle sees parallel links one by one, the method their sums.
            assert (find_unbalanced(problem, problem.wires(k * best.ratio).graph()) is None) >= balanced
        if found > 128:
            assert found == best.k
    assert smaller > 3


def test_unreachable_ranks_are_told():
    """Unreachable ranks are reported as a set, not as a wrong optimum."""
    topology = star(1, 2, 3)
    links = tuple(link for link in topology.links if link.target != "n1")
    instance = pose(replace(topology, links=(*links, *both("n0", "n2", 1))))
    with pytest.raises(Exception, match="'s' forwards data"):
        posed_ways(instance)
    lonely = replace(topology, links=tuple(link for link in topology.links if "n1" not in (link.source, link.target)))
    _, problem = posed_ways(pose(lonely))
    with pytest.raises(Unreachable) as caught:
        optimum(problem)
    assert problem.names(caught.value.side) == "'n1'"


@pytest.mark.parametrize("factor", [2**50 + 1, 2**62 - 57, 10**21 + 7])
def test_capacities_of_any_size_are_exact(factor):
    """With capacities near and beyond 2^62 the ratio is that of fractions over all cuts."""
    rng = seeded_random(7)
    for i in range(12):
        network = random_network(rng, networks.FAMILIES[i % 3])
        if len(network.nodes) > 9:
            continue
        # Cycles and two-way links stay balanced when all capacities are multiplied; an odd cycle is added on top.
        capacity = Counter({link: c * factor for link, c in network.capacity.items()})
        ring = rng.sample(network.nodes, len(network.nodes))
        for u, v in zip(ring, [*ring[1:], ring[0]], strict=True):
            capacity[u, v] += 1
        uneven = Network(network.compute, network.switches, dict(capacity))
        _, problem = posed_ways(pose(to_topology(uneven)))
        best = optimum(problem)
        assert best.ratio == oracle.optimum_by_cuts(uneven)
        found, _ = fixed_k(problem, best, 2)
        assert found == oracle.fixed_k_by_cuts(uneven, oracle.uniform(uneven, 2))
