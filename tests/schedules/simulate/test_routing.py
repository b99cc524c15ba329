"""Routing: the schedule's paths, one by a hash of the flow, or all shortest ones in equal parts."""

from __future__ import annotations

from fractions import Fraction

import cwb
import hypothesis.strategies as st
import numpy as np
import pytest
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.trace import Routing, SimulationMode, routing_named
from cwb.harness import registry
from cwb.schedules.simulate import simulate
from cwb.schedules.simulate.routing import MOST_PATHS
from hypothesis import given

MODES = (
    SimulationMode.ALPHA_BETA,
    SimulationMode.CONGESTION_AWARE,
    SimulationMode.CUT_THROUGH,
    SimulationMode.FAIR_SHARE,
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
