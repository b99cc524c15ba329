"""The oracle of ForestColl against published values, brute force and its own promises."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from random import Random

import networkx as nx
import oracle_forest
import oracle_splitting
import pytest
from cwb.core.topology import Link, Node, Topology
from cwb.instances import load
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import FAMILIES, networks, random_cuts, random_unit, seeded_networks, seeded_random
from oracle import (
    Capacities,
    Demand,
    Network,
    fixed_k,
    fixed_k_by_cuts,
    from_topology,
    has_trees,
    max_flow,
    optimum,
    optimum_by_cuts,
    scale_and_count,
    to_topology,
    uniform,
)
from oracle_forest import Growing, PhysicalTree, build_forest, check_forest, solve

pytestmark = pytest.mark.slow  # forests of real machines, checked by brute force

GB = 10**9


def rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


def load_network(expression: str) -> tuple[Network, Fraction]:
    topology = load(expression).network
    assert isinstance(topology, Topology)
    return from_topology(topology)


def algbw(network: Network, unit: Fraction, count: int, scale: Fraction) -> Fraction:
    """M / (M/N U/k) in GB/s."""
    return len(network.compute) * count / scale * unit / GB


def with_weights(network: Network, rng: Random) -> dict[int, int]:
    weights = {v: rng.randint(0, 3) for v in network.compute}
    return weights if any(weights.values()) else uniform(network)


# --- flows


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda ends: ends[0] != ends[1]),
        st.integers(0, 5) | st.integers(0, 2**70),
    ),
    st.integers(0, 2**71),
)
def test_flows_are_those_of_networkx(capacity, enough):
    """The flow is the maximum one, or as much as is enough, also with capacities of more than 64 bits."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(6))
    graph.add_weighted_edges_from(((u, v, c) for (u, v), c in capacity.items()), weight="capacity")
    maximum = nx.maximum_flow_value(graph, 0, 5)
    assert max_flow(capacity, 0, 5, 2**80) == maximum
    assert max_flow(capacity, 0, 5, enough) == min(maximum, enough)


# --- known values


def test_published_optima(reference):
    """Algorithm 1 finds the optimum of every published network."""
    for row in rows(reference / "forestcoll.csv"):
        network, unit = load_network(row["expression"])
        assert len(network.compute) == int(row["gpus"])
        found = optimum(network)
        assert found / unit * GB == Fraction(row["inv_x"])
        assert round(float(algbw(network, unit, 1, found)), 4) == float(row["algbw_GBps"])


@pytest.mark.parametrize(
    ("expression", "counts"),
    [
        ("mi250(boxes=1)", range(1, 9)),
        ("mi250_8(boxes=2)", (1, 3, 6, 8)),
        ("dgx_a100(boxes=2)", (1, 4, 7)),
        pytest.param("mi250(boxes=2)", (7,), marks=pytest.mark.nightly),
    ],
)
def test_published_fixed_k(reference, expression, counts):
    """Algorithm 3 finds the bandwidth that the public code finds for few trees a root."""
    (row,) = (row for row in rows(reference / "forestcoll_fixed_k.csv") if row["expression"] == expression)
    network, unit = load_network(expression)
    for k in counts:
        assert round(float(algbw(network, unit, k, fixed_k(network, k))), 2) == float(row[f"k{k}"])


@pytest.mark.parametrize(
    ("expression", "count"), [("dgx_a100(boxes=2)", 13), ("mi250(boxes=1)", 3), ("mi250_8(boxes=2)", 13)]
)
def test_published_number_of_trees(expression, count):
    """Proposition 3 needs the published number of trees a root."""
    network, _ = load_network(expression)
    assert scale_and_count(network, optimum(network))[1] == count


def test_large_uneven_capacities_are_exact():
    """Two MI250 boxes with capacities that a float search gets wrong: 1000 b_e + 1 gives 10/110669."""
    network, unit = load_network("mi250(boxes=2)")
    uneven = {link: int(c * unit / GB) * 1000 + 1 for link, c in network.capacity.items()}
    assert optimum(replace(network, capacity=uneven)) == Fraction(10, 110669)


# --- brute force


def test_optimum_is_brute_forces():
    """Algorithm 1 is the maximum over all cuts, with equal and with random shares."""
    rng = seeded_random(1)
    for index, network in enumerate(seeded_networks(draws(30))):
        assert all(network.into(v) == network.out_of(v) > 0 for v in network.nodes)
        assert optimum(network) == optimum_by_cuts(network)
        if index < 12:
            weights = with_weights(network, rng)
            assert optimum(network, weights) == optimum_by_cuts(network, weights)


def test_fixed_k_is_brute_forces():
    """Algorithm 3 is the maximum over all cuts of what each needs, with equal and with random demands."""
    rng = seeded_random(2)
    for network in seeded_networks(24, seed=1):
        demand = uniform(network, rng.randint(1, 5))
        assert fixed_k(network, demand) == fixed_k_by_cuts(network, demand)
        demand = with_weights(network, rng)
        assert fixed_k(network, demand) == fixed_k_by_cuts(network, demand)


def test_split_is_the_largest_that_keeps_the_trees(monkeypatch):
    """Theorem 8 at every step of the removal: the trees exist after a split of that size, and not after one more."""
    real = oracle_splitting.splittable
    seen = set()

    def split(capacity: Capacities, u: int, w: int, t: int, amount: int) -> dict[tuple[int, int], int]:
        after = dict(capacity)
        after[u, w] -= amount
        after[w, t] -= amount
        if u != t:
            after[u, t] = after.get((u, t), 0) + amount
        return after

    def check_split(capacity: Capacities, demand: Demand, u: int, w: int, t: int) -> int:
        amount = real(capacity, demand, u, w, t)
        most = min(capacity[u, w], capacity[w, t])
        assert has_trees(split(capacity, u, w, t, amount), demand)
        assert amount == most or not has_trees(split(capacity, u, w, t, amount + 1), demand)
        seen.add((amount == 0, amount == most, u == t))
        return amount

    monkeypatch.setattr(oracle_splitting, "splittable", check_split)
    for network in seeded_networks(9, seed=4):
        solve(network)
    assert seen >= {
        (True, False, False),
        (True, False, True),
        (False, True, False),
        (False, True, True),
        (False, False, False),
    }


def test_edge_is_added_to_as_many_trees_as_possible(monkeypatch):
    """Theorem 12 at every step of the packing: μ is the one of equation (4), over all cuts."""
    real = oracle_forest.addable
    seen = set()

    def check_addition(remaining: Capacities, tree: Growing, others: list[Growing], edge: tuple[int, int]) -> int:
        amount = real(remaining, tree, others, edge)
        expected = most = min(remaining[edge], tree.multiplicity)
        compute = {v for link in remaining for v in link} | set(tree.nodes)
        rest = compute - set(edge)
        for inside in (set(s) | {edge[0]} for size in range(len(rest) + 1) for s in combinations(rest, size)):
            if not set(tree.nodes) <= inside:
                leaving = sum(c for (u, v), c in remaining.items() if u in inside and v not in inside)
                expected = min(expected, leaving - sum(o.multiplicity for o in others if set(o.nodes) <= inside))
        assert amount == expected
        seen.add((amount == 0, amount == most))
        return amount

    monkeypatch.setattr(oracle_forest, "addable", check_addition)
    for network in (n for n in seeded_networks(18, seed=6) if len(n.compute) <= 6):
        solve(network)
    assert seen == {(True, False), (False, True), (False, False)}


# --- the whole pipeline


def test_forests_of_random_networks_are_optimal():
    """The trees span, every root has k of them, and no link has more than U b_e; with less than U it could not be."""
    for network in seeded_networks(18, seed=2):
        forest = solve(network)
        check_forest(network, forest.demand, forest.scale, forest.trees)
        with pytest.raises(AssertionError, match="trees"):
            check_forest(network, forest.demand, forest.scale * Fraction(10**12 - 1, 10**12), forest.trees)


def test_forests_of_a_fixed_k_and_of_random_demands():
    """The same for few trees a root on networks with equal directions, and for as many trees as each root demands.

    ``check_forest`` asserts it.
    """
    rng = seeded_random(3)
    for network in (
        n for i, n in enumerate(seeded_networks(draws(12), seed=3)) if FAMILIES[i % len(FAMILIES)] != "one-way"
    ):
        for k, weights in (
            (rng.randint(1, 4), None),
            (1, with_weights(network, rng)),
            (None, with_weights(network, rng)),
        ):
            forest = solve(network, k, weights)
            check_forest(network, forest.demand, forest.scale, forest.trees)


@settings(max_examples=draws(10), deadline=None)
@given(network=networks())
def test_forests_of_any_network(network):
    """Hypothesis finds no network whose forest is not what was promised; ``check_forest`` asserts it."""
    forest = solve(network)
    check_forest(network, forest.demand, forest.scale, forest.trees)


@pytest.mark.parametrize(
    ("expression", "k"),
    [
        ("dgx_a100(boxes=1)", None),
        ("mi250(boxes=1)", 1),
        ("mi250_8(boxes=2)", 2),
        pytest.param("dgx_a100(boxes=2)", None, marks=pytest.mark.nightly),
    ],
)
def test_forests_of_published_networks(expression, k):
    """The trees of one and two boxes of real machines keep their promise; ``check_forest`` asserts it."""
    network, _ = load_network(expression)
    forest = solve(network, k)
    check_forest(network, forest.demand, forest.scale, forest.trees)


def test_83_trees_a_root():
    """The published optimum of two MI250 boxes needs 83 trees of each of the 32 GPUs; ``test_run`` verifies them."""
    network, unit = load_network("mi250(boxes=2)")
    scale, count = scale_and_count(network, optimum(network))
    assert count == 83
    assert round(float(algbw(network, unit, 83, scale)), 2) == 354.13


# --- representation, and what is refused


def test_topology_round_trip():
    """A network survives as a topology with parallel links and any unit of bandwidth."""
    rng = seeded_random(4)
    for network in seeded_networks(12, seed=7):
        unit = random_unit(rng)
        back, found = from_topology(to_topology(network, unit, random_cuts(rng, network)))
        assert back.compute == network.compute
        assert set(back.switches) == set(network.switches)
        assert {link: c * found for link, c in back.capacity.items()} == {
            link: c * unit for link, c in network.capacity.items()
        }


def test_separate_parallel_links():
    """Links of 1 and 2 beside each other carry one tree at U = 1/2 apart, at 1/3 as one link."""
    nodes = tuple(Node(name) for name in "ab")
    links = tuple(Link(*ends, Fraction(b)) for ends in ("ab", "ba") for b in (1, 2))
    together, _ = from_topology(Topology(nodes, links))
    apart, _ = from_topology(Topology(nodes, links), separate=True)
    assert optimum(together) == optimum(apart) == Fraction(1, 3)
    assert fixed_k(together, 1) == Fraction(1, 3)
    assert fixed_k(apart, 1) == Fraction(1, 2)
    forest = solve(apart, 3)
    check_forest(apart, 3, forest.scale, forest.trees)


def test_unreachable_nodes_are_refused():
    """A compute node that is not reached has no optimum."""
    islands = Network((0, 1, 2), (), {(0, 1): 1, (1, 0): 1})
    one_way = Network((0, 1, 2), (), {(0, 1): 1, (1, 2): 1})
    for network in (islands, one_way):
        for find in (optimum, optimum_by_cuts, lambda n: fixed_k(n, 1)):
            with pytest.raises(ValueError, match="cannot"):
                find(network)


def test_uneven_switch_is_refused():
    """Edge splitting needs as much into a switch as out of it, which floors can break on a network with unequal
    directions."""
    network = Network((0, 1, 2), (3,), {(0, 3): 2, (1, 3): 2, (3, 2): 4, (2, 0): 3, (2, 1): 3, (0, 1): 3, (1, 0): 3})
    with pytest.raises(ValueError, match="switch 3 has 2 in and 3 out"):
        build_forest(network, uniform(network), Fraction(3, 4))


def test_broken_forests_are_found():
    """The check refuses a missing tree, a missing edge, a cycle, a wrong path, a wrong amount and a path through a
    compute node."""
    network = Network((0, 1, 2), (3,), {(u, v): 2 for a in range(3) for u, v in ((a, 3), (3, a))})
    forest = solve(network)
    tree, *others = forest.trees

    def is_refused(trees: Iterable[PhysicalTree]) -> bool:
        try:
            check_forest(network, forest.demand, forest.scale, trees)
        except (AssertionError, KeyError):
            return True
        return False

    def replace_paths(paths: dict) -> list[PhysicalTree]:
        return [tree._replace(paths=paths), *others]

    (edge, pieces), (second, _) = tree.paths.items()
    rest = {e: p for e, p in tree.paths.items() if e != edge}
    other = ({0, 1, 2} - set(edge)).pop()
    assert not is_refused(forest.trees)
    assert is_refused(others)
    assert is_refused(replace_paths(rest))
    assert is_refused(replace_paths({**tree.paths, (second[1], edge[0]): pieces}))
    assert is_refused(replace_paths({**rest, edge: [(edge, tree.multiplicity)]}))
    assert is_refused(replace_paths({**rest, edge: [((edge[0], 3, other, 3, edge[1]), tree.multiplicity)]}))
    assert is_refused(replace_paths({**rest, edge: [(path, amount + 1) for path, amount in pieces]}))
    assert is_refused([tree._replace(multiplicity=tree.multiplicity + 1), *others])
