"""Shortest path first: rounds on networks that can be followed by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.outcome import Status
from cwb.core.topology import Link, Node, Topology
from cwb.heuristics.spff import METHOD, SpffOptions, run
from cwb.instances import load
from cwb.schedules import verdict_of


def make_instance(network, kind=Collective.ALL_GATHER, size=400_000, chunks=1):
    instance = load(network) if isinstance(network, str) else load("ring(3)").with_changes(network=network)
    return instance.with_changes(demand=Demand(kind, Fraction(size), chunks))


@pytest.mark.parametrize(
    ("network", "kind", "steps"),
    [
        ("ring(5)", Collective.ALL_GATHER, 2),
        ("line(4)", Collective.BROADCAST, 3),
        ("complete(5)", Collective.ALL_TO_ALL, 1),
        ("star(5)", Collective.ALL_TO_ALL, 4),
        ("ndv2(chassis=2)", Collective.ALL_GATHER, None),
        ("amd(2)", Collective.GATHER, None),
        ("mesh(3,3)", Collective.SCATTER, None),
    ],
)
@pytest.mark.parametrize("first", ["shortest", "longest"])
def test_schedules_are_verified(network, kind, steps, first):
    """Schedules are valid, with as many rounds as can be counted by hand."""
    instance = make_instance(network, kind)
    outcome = run(instance, solvers.get("highs"), Budget(), SpffOptions(first=first))
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations
    if steps is not None and not (network == "star(5)" and first == "longest"):
        assert outcome.answer.steps >= steps
    if network in ("ring(5)", "line(4)", "complete(5)"):
        assert outcome.answer.steps == steps


def test_the_way_is_the_shortest_in_seconds():
    """Two fast links are taken instead of a slow one, for chunks that are large enough."""
    fast, slow = Fraction(10**9), Fraction(10**8)
    links = [
        Link("a", "b", slow),
        Link("a", "c", fast),
        Link("c", "b", fast),
        Link("b", "a", fast),
        Link("b", "c", fast),
        Link("c", "a", fast),
    ]
    instance = make_instance(Topology((Node("a"), Node("b"), Node("c")), tuple(links)), Collective.BROADCAST)
    outcome = run(instance, solvers.get("highs"), Budget(), SpffOptions())
    assert sorted(outcome.answer.sends.path_links.tolist()) == [1, 2]


def test_unreachable_ranks_and_stops_are_told():
    """A rank that no path leads to is an error; a run that is stopped says so."""
    one_way = Topology((Node("a"), Node("b")), (Link("a", "b", Fraction(1)),))
    with pytest.raises(InputError):
        run(make_instance(one_way), solvers.get("highs"), Budget(), SpffOptions())
    budget = Budget()
    budget.stop.set()
    assert run(make_instance("ring(4)"), solvers.get("highs"), budget, SpffOptions()).status is Status.LIMIT
    assert METHOD.supports(make_instance("ring(4)", Collective.REDUCE_SCATTER)) is not None
