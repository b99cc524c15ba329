"""Trees that are moved to all ranks: which networks have them, and how many steps they take."""

from __future__ import annotations

import pytest
from cwb.algorithms.matching.trees import grow, recognize
from cwb.instances import load


@pytest.mark.parametrize("chunks", [1, 2, 4])
@pytest.mark.parametrize("network", ["torus(5,5)", "torus(20,20)", "torus(4,2,3)", "torus(16,16,16)", "hypercube(10)"])
def test_steps_are_the_slot_bound(network, chunks):
    """The steps are ceil((n - 1) c / generators) in one attempt."""
    cayley = recognize(load(network).network)
    steps = int(grow(cayley, chunks, 0)[3].max()) + 1
    n, generators = cayley.after.shape[1], len(cayley.after)
    assert steps == -(-(n - 1) * chunks // generators)


def test_forty_thousand_ranks():
    """A torus of 200 x 200 has a tree at the bound."""
    cayley = recognize(load("torus(200,200)").network)
    assert int(grow(cayley, 1, 0)[3].max()) + 1 == 10_000


@pytest.mark.parametrize("network", ["mesh(3,3)", "line(4)", "star(4)", "dgx1()", "kautz(2,2)"])
def test_other_networks_are_not_taken_for_such(network):
    """Networks whose ranks differ have no such trees."""
    assert recognize(load(network).network) is None
