"""Random directed graphs as the fast path holds them, and what is asked of trees in them, in slow Python."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
from cwb.algorithms.forests.packing import SpanningTrees
from cwb.algorithms.graphs.maxflow import RootedFlow, near_order
from cwb.algorithms.graphs.network import Network, exact_array
from oracle import Network as OracleNetwork
from oracle import floor_capacities, optimum, scale_and_count, uniform

#: Largest capacities: small, as those of machines, and at both sides of what 64 bits hold.
LARGEST = (1, 10, 10**6, 2**40, 2**58, 2**61, 2**62, 2**70)


def digraph(capacity, nodes):
    """Arrays of a dict of capacities."""
    keys = list(capacity)
    tail, head = (np.array([key[end] for key in keys], dtype=np.int64) for end in (0, 1))
    return Network.from_parallel_edges(nodes, tail, head, exact_array(capacity[key] for key in keys))


def as_dict(graph: Network) -> dict[tuple[int, int], int]:
    """A dict of capacities."""
    return dict(zip(zip(graph.tail.tolist(), graph.head.tolist(), strict=True), graph.capacity.tolist(), strict=True))


def random_digraph(rng: Random, largest: int, nodes: int | None = None) -> Network:
    """Draw edges between some pairs, in no way balanced; perhaps disconnected."""
    nodes = nodes or rng.randint(2, 12)
    density = rng.random()
    pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v and rng.random() < density]
    return digraph({pair: rng.randint(max(1, largest // 2), largest) for pair in pairs}, nodes)


def column(nodes: int, values) -> np.ndarray:
    """Values of some nodes as an array over all; 0 elsewhere."""
    return exact_array(values.get(node, 0) for node in range(nodes))


def flags(nodes: int, chosen) -> np.ndarray:
    """The nodes that are chosen."""
    found = np.zeros(nodes, dtype=np.bool_)
    found[list(chosen)] = True
    return found


def with_trees(rng: Random, network: OracleNetwork) -> tuple[OracleNetwork, dict[int, int]]:
    """Network's whole copies of trees and a demand that they allow and no larger one: equal, or with weights."""
    weights = uniform(network)
    if rng.random() < 0.4:
        weights = {v: rng.randint(0, 3) for v in network.compute} | {network.compute[0]: 1}
    scale, k = scale_and_count(network, optimum(network, weights))
    return floor_capacities(network, scale), {v: k * w for v, w in weights.items()}


def random_packable(rng: Random, nodes: int, largest: int) -> tuple[Network, dict[int, int]]:
    """Draw a graph without switches, in no way balanced, and a demand that it just allows."""
    while True:
        graph = random_digraph(rng, largest, nodes)
        network = OracleNetwork(tuple(range(nodes)), (), as_dict(graph))
        try:
            best = optimum(network)
        except ValueError:  # somebody cannot be reached
            continue
        scale, k = scale_and_count(network, best)
        return digraph(floor_capacities(network, scale).capacity, nodes), dict.fromkeys(range(nodes), k)


def check_trees(forest: SpanningTrees, demand, capacity) -> None:
    """Assert that the trees span, have the roots that are demanded, and fit into the capacities."""
    tail, head = forest.graph.tail.tolist(), forest.graph.head.tolist()
    roots: Counter[int] = Counter()
    load: Counter[int] = Counter()
    for root, copies, into in zip(forest.root.tolist(), forest.copies.tolist(), forest.into.tolist(), strict=True):
        assert copies > 0
        roots[root] += copies
        assert into[root] == -1
        for node, edge in enumerate(into):
            if node == root:
                continue
            assert edge >= 0
            assert head[edge] == node
            load[edge] += copies
            at, steps = node, 0
            while at != root:
                at, steps = tail[into[at]], steps + 1
                assert steps < len(into), "a circle"
    assert roots == Counter({v: d for v, d in demand.items() if d})
    assert all(load[edge] <= room for edge, room in enumerate(capacity))
    assert forest.load().tolist() == [load[edge] for edge in range(len(tail))]


def tallest(forest: SpanningTrees) -> int:
    """The height of the tallest tree, by walking up from every node."""
    tail, height = forest.graph.tail.tolist(), 0
    for root, into in zip(forest.root.tolist(), forest.into.tolist(), strict=True):
        for node in range(len(into)):
            at, steps = node, 0
            while at != root:
                at, steps = tail[into[at]], steps + 1
            height = max(height, steps)
    return height


def is_rooted(graph, demand, sinks=None):
    """Check if every sink, by default every node, can receive all demand."""
    return RootedFlow(graph, demand, near_order(graph) if sinks is None else sinks).violation() is None
