"""Directed graphs as arrays."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from cwb.algorithms.graphs.network import INT64_SAFE, Network, components, exact_array, exact_sum, scale_exactly
from networks import seeded_random
from random_digraphs import LARGEST, as_dict, flags, random_digraph


def test_parallel_edges_add_up_and_loops_go():
    """Merging gives the sums of a dict, sorted, without loops and empty edges, for capacities of any size."""
    rng = seeded_random(1)
    for largest in LARGEST:
        for _ in range(20):
            nodes, count = rng.randint(1, 6), rng.randint(0, 30)
            edges = [(rng.randrange(nodes), rng.randrange(nodes), rng.randint(0, largest)) for _ in range(count)]
            wanted: Counter[tuple[int, int]] = Counter()
            for u, v, c in edges:
                wanted[u, v] += c if u != v else 0
            tail, head = (np.array([e[i] for e in edges], dtype=np.int64) for i in (0, 1))
            graph = Network.from_parallel_edges(nodes, tail, head, exact_array(c for *_, c in edges))
            assert as_dict(graph) == {link: c for link, c in wanted.items() if c}
            assert list(as_dict(graph)) == sorted(as_dict(graph))
            assert graph.total == sum(wanted.values())


@pytest.mark.parametrize("largest", LARGEST)
def test_sums_and_copies(largest):
    """Sums at nodes, capacity into a set, multiples and the transposed graph are those of a dict."""
    rng = seeded_random(2)
    for _ in range(20):
        graph = random_digraph(rng, largest)
        links = as_dict(graph)
        assert graph.leaving().tolist() == [sum(c for (u, _), c in links.items() if u == x) for x in range(graph.nodes)]
        assert graph.entering().tolist() == [
            sum(c for (_, v), c in links.items() if v == x) for x in range(graph.nodes)
        ]
        side = flags(graph.nodes, rng.sample(range(graph.nodes), rng.randint(0, graph.nodes)))
        assert graph.into(side) == sum(c for (u, v), c in links.items() if side[v] and not side[u])
        assert as_dict(graph.transpose()) == {(v, u): c for (u, v), c in links.items()}
        fewer = [rng.choice((0, c)) for c in links.values()]
        assert as_dict(graph.with_capacity(fewer)) == {link: c for link, c in zip(links, fewer, strict=True) if c}


def test_64_bits_are_used_while_sums_fit():
    """One more than what is safe makes Python's integers of an array."""
    assert exact_array([INT64_SAFE - 2, 1]).dtype == np.int64
    assert exact_array([INT64_SAFE - 1, 1]).dtype == object
    assert exact_array([2**70]).tolist() == [2**70]
    assert exact_array([5, INT64_SAFE // 2 - 1], [1, 1, 0]).dtype == object
    assert exact_array([1, INT64_SAFE // 2 - 1], [1, 1, 0]).tolist() == [INT64_SAFE // 2 - 1] * 2 + [1]


@pytest.mark.parametrize("factor", [1, 3, 2**31, 2**59, 2**70])
def test_sums_and_multiples_are_exact(factor):
    """Multiples of integers and sums of the multiples are right within 64 bits and beyond."""
    for values in (exact_array([4, 0, 3]), np.array([4, 0, 3], dtype=object), exact_array([])):
        scaled = scale_exactly(values, factor)
        assert scaled.tolist() == [value * factor for value in values.tolist()]
        assert exact_sum(scaled) == sum(values.tolist()) * factor


@pytest.mark.parametrize("seed", range(5))
def test_parts_are_those_of_networkx(seed):
    """Nodes have the same number where networkx has them in the same part, with parallel edges and nodes alone."""
    random = np.random.default_rng(seed)
    tail, head = random.integers(0, 12, size=(2, 14))
    graph = nx.MultiDiGraph(zip(tail.tolist(), head.tolist(), strict=True))
    graph.add_nodes_from(range(12))
    for strong, parts in (
        (False, nx.weakly_connected_components(graph)),
        (True, nx.strongly_connected_components(graph)),
    ):
        label = components(12, tail, head, strong=strong)
        assert {frozenset(np.flatnonzero(label == part).tolist()) for part in set(label.tolist())} == set(
            map(frozenset, parts)
        )
