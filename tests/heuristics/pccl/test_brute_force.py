"""Tiny networks, against the fewest steps over all schedules there are."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from cwb.core.collective import Collective, Demand, conditions
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, Topology
from hypothesis import given, settings
from hypothesis import strategies as st


def fewest_steps(nodes, links, chunks):
    """Breadth-first over who holds what: in a step every link carries a chunk that its tail holds, or none."""
    state = tuple(frozenset(held) for held, _ in chunks)
    layer, steps = {state}, 0
    while True:
        for held in layer:
            if all(set(needed) <= has for has, (_, needed) in zip(held, chunks, strict=True)):
                return steps
        following = set()
        for held in layer:
            useful = [[None, *(c for c, has in enumerate(held) if a in has and b not in has)] for a, b in links]
            for choice in itertools.product(*useful):
                new = [set(has) for has in held]
                for (_, b), chunk in zip(links, choice, strict=True):
                    if chunk is not None:
                        new[chunk].add(b)
                following.add(tuple(map(frozenset, new)))
        layer, steps = following, steps + 1


def make_instance(nodes, links, kind, ranks, chunks):
    """The same as an instance: a chunk takes a second."""
    topology = Topology(
        tuple(Node(str(i)) for i in range(nodes)), tuple(Link(str(a), str(b), Fraction(1)) for a, b in links)
    )
    count = chunks if kind in (Collective.BROADCAST, Collective.POINT_TO_POINT) else chunks * len(ranks)
    return Instance("tiny", topology, Demand(kind, Fraction(count), chunks, ranks))


def chunks_of(instance):
    """Return the holders and the receivers of every chunk."""
    demand = instance.demand
    return [
        (held, needed)
        for (held, needed, _), _ in conditions(demand, instance.npus).bytes_of.items()
        for _ in range(demand.chunks)
    ]


CASES = [
    (3, [(0, 1), (1, 2), (2, 0)], Collective.ALL_GATHER, (0, 1, 2), 1),
    (3, [(0, 1), (1, 0), (1, 2), (2, 1)], Collective.ALL_TO_ALL, (0, 2), 2),
    (4, [(0, 1), (1, 3), (0, 2), (2, 3)], Collective.POINT_TO_POINT, (0, 3), 3),
    (4, [(0, 1), (1, 3), (0, 2), (2, 3), (3, 0)], Collective.BROADCAST, (0, 1, 2, 3), 1),
    (3, [(0, 1), (1, 0), (1, 2), (2, 1)], Collective.SCATTER, (0, 1, 2), 2),
]


@pytest.mark.parametrize(("nodes", "links", "kind", "ranks", "chunks"), CASES)
def test_tiny_collectives_take_the_fewest_steps(run, verify_schedule, nodes, links, kind, ranks, chunks):
    """The portfolio finds the optimum of what can be enumerated."""
    instance = make_instance(nodes, links, kind, ranks, chunks)
    assert verify_schedule(instance, run(instance)) == fewest_steps(nodes, links, chunks_of(instance))


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_no_bound_is_above_the_fewest_steps(run, verify_schedule, data):
    """On random networks of three nodes no schedule is faster than the enumeration, and no bound above it."""
    ends = list(itertools.permutations(range(3), 2))
    links = [*data.draw(st.lists(st.sampled_from(ends), max_size=2)), (0, 1), (1, 2), (2, 0)]
    kind = data.draw(st.sampled_from([Collective.ALL_GATHER, Collective.BROADCAST, Collective.SCATTER]))
    ranks = tuple(data.draw(st.permutations(range(3)))[: data.draw(st.integers(2, 3))])
    instance = make_instance(3, links, kind, ranks, 1)
    outcome = run(instance)
    best = fewest_steps(3, links, chunks_of(instance))
    assert outcome.bound <= best <= verify_schedule(instance, outcome) <= best + 1
