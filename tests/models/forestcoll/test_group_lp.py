"""Linear program (6) among the ranks of a process group; other ranks forward."""

from __future__ import annotations

import numpy as np
import pytest
from cwb.harness.run import Request, run
from posing import pose

#: The last group of hypercube(3) has no two neighbours, so that all trees lead through other ranks.
CASES = [
    ("mi250(boxes=2)", (0, 1, 2, 3, 8, 9)),
    ("torus(3,3)", (0, 1, 4, 8)),
    ("ring(6)", (0, 2, 4)),
    ("a100(boxes=2)", (0, 1, 2, 3, 8, 9, 10, 11)),
    ("hypercube(3)", (0, 3, 5, 6)),
]


@pytest.mark.parametrize(("network", "ranks"), CASES)
def test_trees_of_a_group_verify_and_are_never_slower_than_two_halves(network, ranks):
    """The program's trees span the group, keep the bound, and are no slower than a reduce-scatter and all-gather."""
    instance = pose(network, "all_reduce", ranks)
    halves = run(instance, Request("forestcoll"))
    whole = run(instance, Request("forestcoll-allreduce", options={"always_solve": True}))
    declared = run(instance, Request("forestcoll/allreduce"))
    assert whole.record.verified and declared.record.verified
    assert whole.record.bound <= whole.record.objective * (1 + 1e-9)
    assert whole.record.objective <= halves.record.objective * (1 + 1e-9)
    assert declared.record.objective == pytest.approx(whole.record.objective, rel=1e-6)


def test_a_group_of_all_ranks_is_the_collective_of_all():
    """A group of every rank has the optimum of the collective without a group."""
    found = [
        run(pose("mi250(boxes=2)", "all_reduce", ranks), Request("forestcoll-allreduce")).record
        for ranks in (None, tuple(range(32)))
    ]
    assert found[0].objective == found[1].objective


@pytest.mark.parametrize("seed", range(6))
def test_random_groups_keep_their_bounds(seed):
    """Random groups of small networks have verified trees whose time is not below the proved bound."""
    draw = np.random.default_rng(seed)
    network = str(draw.choice(["torus(3,3)", "mesh(2,4)", "hypercube(3)", "a100(boxes=2)", "dgx1()"]))
    ranks = tuple(sorted(draw.choice(8, size=draw.integers(2, 7), replace=False).tolist()))
    found = run(pose(network, "all_reduce", ranks), Request("forestcoll-allreduce", options={"always_solve": True}))
    assert found.record.verified
    assert found.record.bound <= found.record.objective * (1 + 1e-9)
