"""Networks that are grids, and the order in which chunks traverse their dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from cwb.algorithms.paths.grid import farthest_first, sides_of
from cwb.instances import load


@pytest.mark.parametrize("network", ["mesh(3,4)", "mesh(2,2,2)", "mesh(5,2)", "line(4)", "hypercube(3)"])
def test_grids_are_recognized(network):
    """The sides of a grid are those of its name, the last one first."""
    topology = load(network).network
    sides = sides_of(topology)
    assert sides is not None
    assert np.prod(sides) == len(topology.nodes)


@pytest.mark.parametrize(
    "network", ["torus(3,3)", "ring(5)", "dgx1()", "complete(5)", "star(4)", "ring(4, bidirectional=false)"]
)
def test_other_networks_are_none(network):
    """A network with additional links is no grid."""
    assert sides_of(load(network).network) is None


def test_the_farthest_goes_first():
    """Of two chunks that wait at a link, the one with two more links to go starts before the one with one."""
    first, edges = np.array([0, 1, 3]), np.array([0, 0, 1])
    start = np.zeros(3, dtype=np.int64)
    assert farthest_first(np.arange(2), first, edges, 1, 1, start) == 2
    assert start.tolist() == [1, 0, 1]


def test_a_chunk_under_way_holds_no_link():
    """With latency a link serves the next chunk when the last one has left it, not when it has arrived."""
    first, edges = np.array([0, 1, 3]), np.array([0, 0, 1])
    start = np.zeros(3, dtype=np.int64)
    assert farthest_first(np.arange(2), first, edges, 10, 13, start) == 26
    assert start.tolist() == [10, 0, 13]
