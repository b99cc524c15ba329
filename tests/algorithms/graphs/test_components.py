"""The parts that edges join, against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from cwb.algorithms.graphs.components import components


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
