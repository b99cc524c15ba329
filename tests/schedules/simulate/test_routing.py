"""Routing: the schedule's paths, one by a hash of the flow, or all shortest ones in equal parts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import cwb
import hypothesis.strategies as st
import numpy as np
import pytest
from cwb.algorithms.bounds.schedule_bounds import best_bound
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.timing import RankCosts
from cwb.core.trace import Routing, SimulationMode, routing_named
from cwb.harness import registry
from cwb.schedules.simulate import simulate, simulate_totals
from cwb.schedules.simulate.run import MOST_PATHS, route
from cwb.schedules.simulate.transfers import transfers_of
from hypothesis import given

MODES = (
    SimulationMode.ALPHA_BETA,
    SimulationMode.CONGESTION_AWARE,
    SimulationMode.CUT_THROUGH,
    SimulationMode.FAIR_SHARE,
)

#: Costs of ranks with short binary fractions.
COSTS = st.builds(
    RankCosts,
    st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(3, 2)]),
    st.sampled_from([None, Fraction(1, 2), Fraction(8)]),
    st.none(),
    st.booleans(),
)


def diamond(make, latencies=(0, 0)):
    """Two ranks and two switches between them; a path of a schedule is links 0 and 1."""
    links = [(0, 2, 1, latencies[0]), (2, 1, 1, 0), (0, 3, 1, latencies[1]), (3, 1, 1, 0)]
    return make.network(2, links, switches=2)


@pytest.mark.parametrize("mode", MODES)
def test_half_over_each_of_two_paths(make, mode):
    """A chunk that is sprayed over two disjoint paths arrives when the later half does."""
    instance = diamond(make, latencies=(0, 3))
    schedule = make.steps(instance, [8], [(0, 0, (0, 1))])
    once = 4 if mode is not SimulationMode.CONGESTION_AWARE else 8
    trace = simulate(instance, schedule, mode, routing=Routing.SPRAY)
    assert trace.end_s.tolist() == [once + 3]
    assert trace.start_s.tolist() == [0]
    assert trace.link_busy_s.tolist() == [4, 4, 4, 4]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@given(data=st.data())
def test_parts_end_when_a_simulator_says_that_finds_paths_by_trying_all(make, mode, data):
    """Sprayed schedules end when the slow simulator says, with links of different speed, parallel ones, detours and
    costs of ranks, of which every message pays one."""
    instance = data.draw(make.random_networks()).with_changes(rank_costs=data.draw(st.none() | COSTS))
    sizes, rows = data.draw(make.random_rows(instance))
    schedule = make.steps(instance, sizes, rows)
    if mode is not SimulationMode.FAIR_SHARE and data.draw(st.booleans()):
        schedule = make.timed(
            instance, sizes, [(step, step + data.draw(st.integers(1, 3)), *row) for step, *row in rows]
        )
    adds = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    schedule = replace(schedule, sends=replace(schedule.sends, reduce=np.array(adds, dtype=np.bool_)))
    expected = [float(end) for end in make.Slow(instance, schedule, mode, spray=True).run()]
    assert simulate(instance, schedule, mode, routing=Routing.SPRAY).end_s == pytest.approx(expected, rel=1e-9)


@given(data=st.data())
def test_a_hashed_path_is_a_shortest_one(make, data):
    """Every send takes one of the shortest paths between its ends, the same as others, or its own if that is longer."""
    instance = data.draw(make.random_networks())
    schedule = make.steps(instance, *data.draw(make.random_rows(instance)))
    slow = make.Slow(instance, schedule, SimulationMode.CUT_THROUGH)
    transfers = transfers_of(instance, schedule)
    sends = route(instance.topology, transfers, Routing.ECMP).transfers.sends
    chosen = {}
    for send in range(len(sends)):
        own, path = transfers.sends.path(send), sends.path(send)
        assert path in slow.shortest_paths(own)
        assert chosen.setdefault((sends.source[send], sends.target[send], len(path)), path) == path or path == own


@pytest.mark.slow
@pytest.mark.parametrize("routing", Routing)
@given(data=st.data())
def test_no_routing_ends_before_a_bound(make, routing, data):
    """On random networks direct collectives end no earlier than their bound, whatever the routing, mode and costs."""
    kind = data.draw(st.sampled_from([Collective.ALL_GATHER, Collective.ALL_TO_ALL, Collective.ALL_REDUCE]))
    bare = data.draw(make.random_networks()).with_changes(demand=Demand(kind, Fraction(48)))
    method = registry.get("direct")
    answer = method.run(bare, None, Budget(), method.options()).answer
    instance = bare.with_changes(rank_costs=data.draw(st.none() | COSTS), routing=routing)
    answer = replace(answer, instance_sha256=instance.sha256)
    for mode in MODES[1:]:
        assert simulate(instance, answer, mode).completion_s >= float(best_bound(instance)[0]) * (1 - 1e-9)


@pytest.mark.parametrize("routing", Routing)
def test_the_routing_of_the_instance(routing):
    """Completion times, totals and simulations follow the routing of the instance; parts of a network that sprays are
    forwarded while they arrive."""
    bare = cwb.load("fat_tree(4)").with_changes(demand=Demand(Collective.ALL_TO_ALL, Fraction(10**6)))
    instance = bare.with_changes(routing=routing)
    run = cwb.solve(instance, "direct")
    mode = SimulationMode.CUT_THROUGH if routing is Routing.SPRAY else SimulationMode.CONGESTION_AWARE
    trace = simulate(instance, run.schedule, mode)
    assert run.metrics["completion_time_s"] == trace.completion_s == cwb.simulate(run).completion_s
    assert simulate_totals(instance, run.schedule, mode).busy_s.tolist() == trace.link_busy_s.tolist()
    other = replace(run.schedule, instance_sha256=bare.sha256)
    assert trace.completion_s == simulate(bare, other, mode, routing=routing).completion_s
    fixed = simulate(instance, run.schedule, mode, routing=Routing.FIXED)
    assert fixed.completion_s == simulate(bare, other, mode).completion_s
    told = cwb.simulate(run).to_json()
    assert told["lower_bound_s"] <= told["completion_time_s"]
    assert told.get("routing") == (None if routing is Routing.FIXED else routing.value)
    assert ("bounds hold for any routing" in told["model"]) == (routing is not Routing.FIXED)


def test_trees_keep_their_paths():
    """Trees with shares of links have the same times on a network that sprays, and say nothing of a routing."""
    bare = cwb.load("fat_tree(2)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(10**6)))
    runs = [cwb.solve(bare.with_changes(routing=routing), "forestcoll") for routing in (Routing.FIXED, Routing.SPRAY)]
    assert runs[0].metrics["completion_time_s"] == runs[1].metrics["completion_time_s"]
    assert "routing" not in cwb.simulate(runs[1]).to_json()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("routing", Routing)
@given(data=st.data())
def test_a_unique_shortest_path_and_a_detour_stay(make, mode, routing, data):
    """On a line and a one-way ring every routing gives the times of the schedule's own paths."""
    nodes = data.draw(st.integers(2, 5))
    closed = data.draw(st.booleans())
    links = [(i, (i + 1) % nodes, 2 ** data.draw(st.integers(0, 2)), 1) for i in range(nodes - (not closed))]
    instance = make.network(nodes, links)
    schedule = make.steps(instance, *data.draw(make.random_rows(instance)))
    expected = simulate(instance, schedule, mode).end_s
    assert simulate(instance, schedule, mode, routing=routing).end_s == pytest.approx(expected, rel=1e-12)


def test_dependencies_are_those_of_whole_chunks(make):
    """A chunk is passed on when its last part has arrived."""
    links = [(0, 3, 1, 0), (3, 1, 1, 0), (0, 4, 1, 5), (4, 1, 1, 0), (1, 2, 8, 0)]
    instance = make.network(3, links, switches=2)
    schedule = make.steps(instance, [8], [(0, 0, (0, 1)), (1, 0, (4,))])
    trace = simulate(instance, schedule, SimulationMode.CUT_THROUGH, routing=Routing.SPRAY)
    assert trace.end_s.tolist() == [9, 10]


@pytest.mark.parametrize(
    ("mode", "routing", "least_us", "most_us"),
    [
        (SimulationMode.CUT_THROUGH, Routing.FIXED, 7686, 7686),
        (SimulationMode.CUT_THROUGH, Routing.SPRAY, 0.95 * 2470, 1.05 * 2470),
        (SimulationMode.FAIR_SHARE, Routing.SPRAY, 0.95 * 2470, 1.05 * 2470),
        (SimulationMode.CUT_THROUGH, Routing.ECMP, 2400, 7686),
    ],
)
def test_an_all_to_all_on_a_fat_tree(mode, routing, least_us, most_us):
    """Sprayed, 32 MB among 16 hosts take within 5 % of the 2,470 us of Ultra Ethernet's packet simulator."""
    network = "fat_tree(4, bandwidth='12.5 GB/s', latency='1 us')"
    instance = cwb.load(network).with_changes(demand=Demand(Collective.ALL_TO_ALL, Fraction(32 * 10**6)))
    method = registry.get("direct")
    answer = method.run(instance, None, Budget(), method.options()).answer
    trace = simulate(instance, answer, mode, routing=routing)
    assert least_us * (1 - 1e-9) <= trace.completion_s * 1e6 <= most_us * (1 + 1e-9)
    assert len(trace.end_s) == len(answer.sends)
    again = simulate(instance, answer, mode, routing=routing)
    assert np.array_equal(trace.end_s, again.end_s)


def test_numbers_of_paths_without_common_divisors(make):
    """Parts of bundles of 31 to 59 links end in time although their common unit is too small for numbers of 64 bits."""
    bundles = (31, 37, 41, 43, 47, 53, 59)
    links = [(rank, rank + 1, 1, 0) for rank, count in enumerate(bundles) for _ in range(count)]
    instance = make.network(len(bundles) + 1, links)
    first = [sum(bundles[:rank]) for rank in range(len(bundles))]
    schedule = make.steps(instance, [2**40] * len(bundles), [(0, chunk, (link,)) for chunk, link in enumerate(first)])
    trace = simulate(instance, schedule, routing=Routing.SPRAY)
    assert trace.end_s == pytest.approx([2**40 / count for count in bundles], rel=1e-12)


def test_too_many_paths_are_refused():
    """Spraying over more shortest paths than can be distinguished is an input error that names the two ends."""
    instance = cwb.load("torus(9,9,9)").with_changes(demand=Demand(Collective.BROADCAST, Fraction(1)))
    method = registry.get("direct")
    answer = method.run(instance, None, Budget(), method.options()).answer
    with pytest.raises(InputError, match=f"more than {MOST_PATHS:,} shortest paths"):
        simulate(instance, answer, routing=Routing.SPRAY)


def test_an_unknown_routing_is_an_error():
    """A name that is no routing is an input error that lists the three."""
    with pytest.raises(InputError, match="spray"):
        routing_named("random")
