"""Translations of networks: what is found, that it is right, and that nothing is found where there is nothing."""

from __future__ import annotations

import numpy as np
import pytest
from cwb.algorithms.graphs.translations import ColouredNetwork, find_symmetry
from cwb.instances import load


@pytest.mark.parametrize(
    ("network", "orders", "roots"),
    [
        ("dgx_a100(boxes=3)", (3, 8), 1),
        ("mi250(boxes=2)", (2, 2, 2), 4),
        ("torus(4,6)", (6, 4), 1),
        ("fat_tree(4)", (4, 2, 2), 1),
        ("pods(2,2,4,4,2)", (2, 2, 4), 1),
        ("star(7)", (7,), 1),
    ],
)
def test_translations_of_named_networks(network, orders, roots):
    """Pods, boxes, rows and positions are turned around; orbits of links have links of one kind, as many as divide
    motions."""
    coloured = ColouredNetwork.of(load(network).network)
    found = find_symmetry(coloured)
    assert tuple(each.order for each in found.translations) == orders
    assert (found.motions, len(found.roots)) == (np.prod(orders), roots)
    for orbit, size in enumerate(found.size.tolist()):
        assert found.motions % size == 0
        assert len(set(coloured.label[found.orbit == orbit].tolist())) == 1


def test_nothing_where_ranks_differ():
    """A box without one of its links to the network has no translations with the others."""
    assert find_symmetry(ColouredNetwork.of(load("rail(4,4,missing_nics=1)").network)) is None
