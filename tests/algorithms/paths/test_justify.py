"""Justification and other parents: never longer, always right."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from cwb.algorithms.paths.justify import BusyIntervals, justify_schedule
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand, collective_named
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, Schedule, sends_from_lists
from cwb.core.timing import Semantics, Timing
from cwb.core.topology import Link, Node, Topology
from cwb.harness import registry
from cwb.instances import load
from cwb.schedules import verdict_of
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st


def first(instance, name="ten-ilp", seed=0, **options):
    """A first schedule of a method that is told to stop at once, and the instance as posed."""
    method = registry.get(name)
    asked = method.options.model_validate(options)
    posed = method.pose(instance, asked)
    budget = Budget(seed=seed)
    if name == "ten-ilp":
        budget.stop.set()
    return posed, method.run(posed, None, budget, asked).answer


def stretch_schedule(schedule: Schedule, factor: int) -> Schedule:
    """The same schedule with all starts so many times as late."""
    took = schedule.end_s - schedule.start_s
    return replace(schedule, start_s=schedule.start_s * factor, end_s=schedule.start_s * factor + took)


def random_network(rng: Random, nodes: int) -> Topology:
    """A ring both ways and chords, with two bandwidths."""
    pairs = {(n, (n + 1) % nodes) for n in range(nodes)}
    pairs |= {tuple(rng.sample(range(nodes), 2)) for _ in range(rng.randint(0, nodes))}
    rates = {frozenset(pair): Fraction(1, rng.choice((1, 2, 3))) for pair in pairs}
    links = [
        Link(str(a), str(b), rates[frozenset((a, b))])
        for a, b in sorted({p for x, y in pairs for p in ((x, y), (y, x))})
    ]
    return Topology(tuple(Node(str(n)) for n in range(nodes)), tuple(links))


@settings(max_examples=draws(60), deadline=None)
@given(
    st.randoms(use_true_random=False),
    st.integers(3, 6),
    st.sampled_from(["all_gather", "all_to_all", "reduce_scatter", "all_reduce", "broadcast", "reduce"]),
    st.integers(1, 2),
    st.integers(1, 3),
)
def test_no_schedule_becomes_longer_or_wrong(rng, nodes, kind, chunks, factor):
    """On random networks with slow and fast links, what the verifier agreed with it agrees with afterwards, and it
    takes no longer."""
    demand = Demand(collective_named(kind), Fraction(60), chunks)
    posed, schedule = first(Instance("by hand", random_network(rng, nodes)).with_changes(demand=demand))
    late = stretch_schedule(schedule, factor)
    better = justify_schedule(posed, late)
    before, after = verdict_of(posed, late), verdict_of(posed, better)
    assert not before.violations
    assert not after.violations
    assert after.objective <= before.objective * (1 + 1e-12)
    assert after.objective <= verdict_of(posed, schedule).objective * (1 + 1e-12)
    assert len(better.sends) == len(late.sends)
    again = justify_schedule(posed, better)
    assert verdict_of(posed, again).objective <= after.objective * (1 + 1e-12)


def test_halves_of_an_all_reduce_overlap():
    """On a line, all sums before all copies leave links idle; polished, the two halves overlap and take less time."""
    demand = Demand(Collective.ALL_REDUCE, Fraction(5 * 10**6), 4)
    posed, schedule = first(load("line(5)").with_changes(demand=demand))
    halves = first(posed.with_changes(demand=replace(demand, collective=Collective.ALL_GATHER)))[1]
    assert schedule.end_s.max() < 2 * halves.end_s.max() * (1 - 1e-9)
    assert not verdict_of(posed, schedule).violations


def by_hand(links, rows, held, needed, epoch=1):
    """A schedule of chunks of one byte: rows (chunk, link, begin, end)."""
    count = 1 + max(n for a, b, _ in links for n in (a, b))
    topology = Topology(
        tuple(Node(str(n)) for n in range(count)), tuple(Link(str(a), str(b), Fraction(1, t)) for a, b, t in links)
    )
    demand = Demand(Collective.BROADCAST, Fraction(len(held)), len(held))
    instance = Instance("by hand", topology).with_changes(
        demand=demand, timing=Timing(Semantics.CIRCUIT, Fraction(epoch))
    )
    sends = sends_from_lists(
        [c for c, _, _, _ in rows],
        [links[e][0] for _, e, _, _ in rows],
        [links[e][1] for _, e, _, _ in rows],
        False,
        [(e,) for _, e, _, _ in rows],
    )
    ones = np.ones(len(held), dtype=np.int64)
    chunks = Chunks(ones, Fraction(1), (held[0], needed), 0 * ones, ones, np.zeros(len(held), dtype=np.bool_))
    columns = (np.array([float(row[i]) for row in rows]) for i in (2, 3))
    return instance, Schedule(instance.sha256, chunks, sends, *columns)


def test_a_late_leaf_gets_another_parent():
    """A copy that comes late over a slow link comes from a neighbour that has it, over a link that was idle."""
    links = [(0, 1, 1), (0, 2, 5), (1, 2, 1), (2, 0, 1)]
    instance, schedule = by_hand(links, [(0, 0, 0, 1), (0, 1, 0, 5)], [(0,)], (0, 1, 2))
    better = justify_schedule(instance, schedule)
    assert not verdict_of(instance, better).violations
    assert better.end_s.max() == pytest.approx(2)
    assert sorted(better.sends.path_links.tolist()) == [0, 2]


def test_gaps_are_filled():
    """Of two chunks to two ranks, one that waits for the other one's link without need goes before it."""
    links = [(0, 1, 1), (1, 2, 1), (2, 0, 1)]
    rows = [(0, 0, 3, 4), (0, 1, 4, 5), (1, 0, 7, 8), (1, 1, 8, 9)]
    instance, schedule = by_hand(links, rows, [(0,), (0,)], (0, 1, 2))
    better = justify_schedule(instance, schedule)
    assert better.end_s.max() == pytest.approx(3)


def test_what_cannot_be_treated_is_left_alone():
    """Another timing, links that chunks share, and a schedule that is short already give the schedule itself."""
    posed, schedule = first(load("ring(4)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(4))))
    assert justify_schedule(posed, schedule) is schedule
    assert justify_schedule(posed.with_changes(timing=None), stretch_schedule(schedule, 3)) is not schedule
    late = stretch_schedule(schedule, 3)
    assert justify_schedule(posed.with_changes(timing=None), late) is late
    assert justify_schedule(load("RI(4)_SW(2)"), late) is late
    links = [(0, 1, 1), (1, 2, 1), (2, 0, 1)]
    rows = [(0, 0, 1, 2), (1, 0, 1, 2), (0, 1, 2, 3), (1, 1, 2, 3)]
    instance, shared = by_hand(links, rows, [(0,), (0,)], (0, 1, 2))
    assert justify_schedule(instance, shared) is shared


@settings(deadline=None)
@given(st.lists(st.tuples(st.sets(st.integers(0, 2), min_size=1), st.integers(0, 20), st.integers(1, 5)), max_size=12))
def test_links_are_free_where_they_are_said_to_be(wanted):
    """The first free stretch is the one that looking at every tick finds."""
    busy = BusyIntervals()
    taken: set[tuple[int, int]] = set()
    for links, ready, ticks in wanted:
        order = tuple(links)
        begin = busy.earliest(order, ready, ticks)

        free = [
            not any((link, t) in taken for link in order for t in range(at, at + ticks))
            for at in range(ready, begin + 1)
        ]
        assert free[-1]
        assert not any(free[:-1])
        busy.take(order, begin, begin + ticks)
        taken |= {(link, t) for link in order for t in range(begin, begin + ticks)}
    for links, ready, ticks in wanted[:1]:
        busy = BusyIntervals()
        busy.take(tuple(links), ready, ready + ticks)
        busy.give_back(tuple(links), ready, ready + ticks)
        assert busy.earliest(tuple(links), 0, 30) == 0
