"""Simulations on a part of the network, which take as long as on the whole."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.schedules.problem import group_problems
from cwb.core.answers import is_same
from cwb.core.budget import Budget
from cwb.core.collective import Demand, collective_named
from cwb.harness import Request, run_one
from cwb.heuristics.hierarchical.levels import find_hierarchy
from cwb.heuristics.hierarchical.phases import phases
from cwb.heuristics.hierarchical.search import AnswerCache, Levels, Search, _distinct_groups
from cwb.instances import load
from cwb.instances.demand import with_demand


@pytest.mark.parametrize("kind", ["all_reduce", "all_to_all", "broadcast", "gather"])
@pytest.mark.parametrize(
    ("network", "counts"), [("dgx_a100(boxes=3)", (1, 3)), ("torus(3,4)", (1, 3)), ("fat_tree(4)", (1, 8))]
)
def test_one_of_groups_that_share_no_links_takes_as_long_as_all(network, counts, kind):
    """Alone, every algorithm of every phase takes as long in the groups that stand for others as in all."""
    instance = load(network).with_changes(demand=Demand(collective_named(kind), Fraction(2**20)))
    (problem,) = group_problems(instance)
    hierarchy, search = find_hierarchy(problem), Search(problem, Budget())
    levels = Levels(problem.topology, hierarchy, AnswerCache(None, Budget()))
    for phase in phases(problem.collective, hierarchy, hierarchy.levels):
        fillings = levels.fillings(phase)
        few = _distinct_groups(fillings[0][1])
        assert len(few) in range(counts[0], 1 + counts[1])
        for _, filled in fillings:
            every = np.arange(len(filled.bases))
            some, whole = (
                search.seconds(search._alone(hierarchy, filled, groups, Fraction(2**16), 4)) for groups in (few, every)
            )
            assert some == whole


def test_answers_of_equal_service_are_one_object():
    """Between two ranks, Bine's sends are direct ones in another order over other links, and are not tried again; not
    equal are a ring's halves, another step, and another order over one link."""
    instance = with_demand(load("switch(2)"), "all_reduce", "1 MiB", None)
    cache = AnswerCache(None, Budget())
    direct, bine, ring = (cache.shares(name, instance) for name in ("direct", "bine", "ring"))
    assert bine is direct
    assert ring is not direct
    assert not is_same(direct.service, replace(direct, step=np.array([0, 0, 0, 1])).service)
    swapped = replace(ring, sends=ring.sends.take(np.array([2, 1, 0, 3, 4, 5, 6, 7])))
    assert not is_same(ring.service, swapped.service)


def test_an_algorithm_without_the_collective_that_is_reversed_keeps_its_own():
    """A double binary tree has an all-reduce, but no all-gather to reverse; its choices are recorded."""
    posed = load("ring(5)").with_changes(demand=Demand(collective_named("all_reduce"), Fraction(2**20)))
    record = run_one(posed, Request("hierarchical", options={"levels": [5], "algorithms": ["dbt"]}))
    assert (record.status, record.verified, record.message) == ("feasible", True, "")
    assert record.metrics["algorithms"] == ["all_reduce 1: dbt"]
