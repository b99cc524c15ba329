"""Schedules in steps and trees become schedules in time, and the verifier finds those right."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.trees import TreeKind, TreePacking
from cwb.harness import Request, run
from cwb.instances import load
from cwb.schedules.simulate.run import simulate
from cwb.schedules.simulate.timed import timed
from cwb.schedules.verify import verify
from families import FAMILIES

K = CollectiveKind


@pytest.mark.parametrize("name", ["ring", "direct", "rhd", "bruck", "torus-rings", "swing"])
@pytest.mark.parametrize("kind", [K.ALL_GATHER, K.REDUCE_SCATTER, K.ALL_REDUCE])
def test_a_timed_schedule_is_right_and_ends_when_the_simulation_does(name, kind):
    """The verifier, which checks every link's capacity in time, finds nothing wrong with the times of the
    congestion-aware simulation."""
    done = run(load("torus(4,4)").with_changes(demand=Demand(kind, Fraction(2**24), 2)), Request(name))
    schedule = timed(done.instance, done.answer)
    assert not verify(done.instance, schedule).violations
    assert schedule.end_s.max() == done.record.metrics["completion_time_s"]


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize(
    ("tree_kind", "kind"),
    [(TreeKind.OUT, K.ALL_GATHER), (TreeKind.IN, K.REDUCE_SCATTER), (TreeKind.BOTH, K.ALL_REDUCE)],
)
def test_timed_trees_are_right(tree_kind, kind, pieces):
    """Chains from every rank of a two-way ring of four, cut into pieces, are a right schedule in time of each
    collective."""
    n, size = 4, Fraction(2**20)
    instance = load("ring(4)").with_changes(demand=Demand(kind, size))
    ends = {pair: index for index, pair in enumerate(instance.network.link_ends)}
    parent = np.array([(r + i) % n for r in range(n) for i in range(n - 1)])
    child = (parent + 1) % n
    down = np.array([ends[int(a), int(b)] for a, b in zip(parent, child, strict=True)])
    up = np.array([ends[int(b), int(a)] for a, b in zip(parent, child, strict=True)])
    one_each, edges = np.arange(n * (n - 1) + 1), np.arange(0, n * (n - 1) + 1, n - 1)
    ones = np.ones(n, dtype=np.int64)
    shared = (np.arange(n), ones, size / n, edges, parent, child, one_each)
    there = TreePacking(instance.sha256, TreeKind.IN, *shared, up)
    reduction = there if tree_kind is TreeKind.BOTH else None
    packing = TreePacking(instance.sha256, tree_kind, *shared, up if tree_kind is TreeKind.IN else down, reduction)
    schedule = timed(instance, packing, pieces=pieces)
    assert not verify(instance, schedule).violations
    assert schedule.end_s.max() == simulate(instance, packing, pieces=pieces).completion_s


@pytest.mark.parametrize("pieces", [1, 4])
def test_timed_trees_that_reduce_along_other_trees(pieces):
    """Stars to the roots and chains from them are a right schedule in time, and so are chains through a switch."""
    for family in ("unlike_trees", "switched_trees"):
        instance, packing = FAMILIES[family]()
        assert not verify(instance, timed(instance, packing, pieces=pieces)).violations
