"""Symmetries of networks, and schedules that are copied under them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.epochs.search import EpochSearch
from cwb.algorithms.epochs.symmetries import SymmetricSearch, groups
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.harness import Request, registry, run_one
from cwb.instances import load
from cwb.models.teccl.problem import epoch_problem, network_of
from search_families import Case, Wire, faults, random_case

METHOD = registry.get("teccl")


def network(spec, kind=Collective.ALL_GATHER, size=10**6, chunks=1):
    posed = METHOD.pose(load(spec).with_changes(demand=Demand(kind, Fraction(size), chunks)), METHOD.options())
    return network_of(epoch_problem(posed))


@pytest.mark.parametrize(
    ("spec", "orders"),
    [
        ("ring(7)", [7]),
        ("torus(3,5)", [3, 15]),
        ("torus(4,4)", [4, 16]),
        ("torus(2,3,4)", [24]),
        ("ndv2(chassis=4)", [4]),
        ("amd(chassis=2)", [2, 4, 8]),
    ],
)
def test_groups_are_found(spec, orders):
    """Rings and tori have translations, networks of equal chassis the exchange of these; the last order is the
    largest."""
    assert [len(group.nodes) for group in groups(network(spec))][-1] == orders[-1]


@pytest.mark.parametrize("spec", ["torus(3,4)", "amd(chassis=2)", "dgx2(chassis=2)", "hypercube(3)"])
def test_elements_keep_the_network(spec):
    """Every element takes links to links that are as slow, between the images of their ends, none to itself, and no
    source to itself."""
    problem = network(spec)
    for group in groups(problem):
        for at, (nodes, links) in enumerate(zip(group.nodes, group.links, strict=True)):
            assert (np.sort(nodes) == np.arange(problem.nodes)).all()
            for column in (problem.delay, problem.window, problem.room):
                assert (column[links] == column).all()
            assert (problem.tail[links] == nodes[problem.tail]).all()
            assert (problem.head[links] == nodes[problem.head]).all()
            assert at == 0 or (links != np.arange(len(problem.tail))).all()
            assert at == 0 or (nodes[problem.source] != problem.source).all()


def test_other_demands_have_none():
    """No group is claimed for demands of some ranks, or for a network without two ranks alike."""
    assert groups(network("torus(3,4)", Collective.BROADCAST)) == []
    assert groups(network("torus(3,4)", Collective.GATHER)) == []
    assert all(len(group.nodes) > 1 for seed in range(20) for group in groups(random_case(seed).network()))


@pytest.mark.parametrize("seed", range(6))
def test_copied_schedules_are_right(seed):
    """On circulants with random speeds and two chunks a rank, a replay finds schedules that are copied under the group
    right."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 9))
    wires = [
        Wire(rank, (rank + step) % n, busy, room, latency)
        for step in (1, 2)
        for busy, room, latency in [(int(rng.choice([1, 1, 3])), 1, int(rng.integers(0, 4)))]
        for rank in range(n)
    ]
    others = [tuple(r for r in range(n) if r != rank) for rank in range(n) for _ in range(2)]
    case = Case("torus", n, 0, tuple(wires), True, tuple(r for r in range(n) for _ in range(2)), tuple(others))
    assert len(groups(case.network())[-1].nodes) == n
    search = EpochSearch(case.network(), 0, Budget(), 400_000)
    symmetric = SymmetricSearch(search)
    symmetric.construct()
    symmetric.improve()
    plan = search.plan()
    assert plan is not None
    found, makespan = faults(case, plan.chunk, plan.start, plan.paths)
    assert found == []
    assert makespan == search.best


@pytest.mark.slow
def test_a_large_torus_is_proved():
    """1 MB on a torus of 6 x 6 x 6 takes 63 epochs: one tree, copied to all ranks."""
    instance = load("torus(6,6,6)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(10**6)))
    record = run_one(instance, Request("teccl", options={"effort": 20}))
    assert record.verified
    assert (record.status, record.metrics["epochs"]) == ("optimal", 63)


def test_a_schedule_is_copied_even_when_time_is_up():
    """The first schedule is one under a group, as a construction of all chunks cannot be stopped and takes longer."""
    ended = Budget()
    ended.stop.set()
    search = EpochSearch(network("torus(4,4)"), 1, ended, 10**6)
    SymmetricSearch(search).construct()
    assert search.best is not None
