"""Measures of networks: closed forms, and bounds on the bisection that hold beside all halves."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from cwb import instances
from cwb.instances import measures
from cwb.instances.build import build_topology
from cwb.instances.measures import measure_network
from cwb.instances.schema import TopologyFile
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

GB = 1e9


def of(text):
    """Measures of an expression."""
    return measure_network(instances.load(text).network)


@pytest.mark.parametrize(
    ("text", "diameter", "bisection"),
    [
        ("ring(8)", 4, 100),
        ("line(6)", 5, 50),
        ("torus(4,4)", 4, 400),
        ("torus(8,8)", 8, 800),
        ("torus(4,4,4)", 6, 1600),
        ("hypercube(5)", 5, 800),
        ("complete(9)", 1, 1000),
        ("star(16)", 2, 400),
        ("a100()", 2, 1200),
        ("h100(2)", 4, 400),
        ("ring(8, false)", 7, 50),
        ("ndv2(2)", 5, 12.5),
    ],
)
def test_closed_forms(text, diameter, bisection):
    """Diameters and bisections of the textbook, in GB/s in each direction, are found and said to be exact."""
    found = of(text)
    assert found.diameter == diameter
    assert found.bisection.exact
    assert found.bisection.high_Bps == pytest.approx(bisection * GB, rel=1e-9)


@given(st.integers(4, 9), st.integers(0, 10**6), st.booleans())
@settings(max_examples=draws(25))
def test_bounds_hold(nodes, seed, switched):
    """On random networks the bound and the cut are below and above the least of all halves by networkx."""
    graph = nx.gnm_random_graph(nodes, 2 * nodes, seed=seed, directed=True)
    draw = np.random.default_rng(seed)
    kinds = ["switch" if switched and node == 0 else "compute" for node in graph]
    ends = [{"source": str(a), "target": str(b), "bandwidth": f"{draw.integers(1, 9)} GB/s"} for a, b in graph.edges]
    data = {"nodes": [{"name": str(node), "kind": kind} for node, kind in enumerate(kinds)], "links": ends}
    network = build_topology(TopologyFile.model_validate(data))
    cuts = measures._Cuts(network)
    ranks = [name for name, kind in enumerate(kinds) if kind == "compute"]
    half = len(ranks) // 2
    expected = min(_cut(network, set(part), set(ranks) - set(part)) for part in combinations(ranks, half))
    expected = min(expected, *(_cut(network, set(ranks) - set(p), set(p)) for p in combinations(ranks, half)))
    assert measure_network(network).bisection.high_Bps == pytest.approx(expected)
    low = max(cuts.spectral(), cuts.by_loads()) * half * (len(ranks) - half)
    assert low <= expected * (1 + 1e-9)
    assert min(cuts.least(part) for part in cuts.likely()) >= expected * (1 - 1e-9)


def _cut(network, sources, sinks):
    """Maximum flow of networkx."""
    graph = nx.DiGraph()
    for (a, b), link in zip(network.link_ends, network.links, strict=True):
        graph.add_edge(a, b, capacity=int(link.bandwidth_Bps))
    graph.add_edges_from([("s", node) for node in sources] + [(node, "t") for node in sinks])
    return nx.maximum_flow_value(graph, "s", "t")


def test_degrees_and_asymmetries():
    """Degrees of ranks and switches, links without a way back, and ranks that differ are told."""
    rail = of("rail(8, 8, missing_nics=1)")
    assert (rail.degrees, rail.radixes) == (Counter({2: 63, 1: 1}), Counter({8: 15, 7: 1}))
    assert {float(rate) / GB: count for rate, count in rail.rates_Bps.items()} == {325: 63, 300: 1}
    assert not rail.unequal
    one_way = of("ndv2(2)")
    assert one_way.unequal == (("box0.gpu0", "box1.gpu1"), ("box1.gpu0", "box0.gpu1"))
    assert set(one_way.uneven) == {f"box{box}.gpu{index}" for box in (0, 1) for index in (0, 1)}


def test_what_is_not_reached_and_what_is_large():
    """No diameter where a rank is not reached; of large networks a sample of distances and no bisection."""
    network = instances.load("line(4)").network
    apart = type(network)(network.nodes, network.links[:-1])
    assert measure_network(apart).diameter is None
    alone = type(network)(instances.load("line(24)").network.nodes, network.links)
    assert (measure_network(alone).diameter, measure_network(alone).bisection.high_Bps) == (None, 0)
    large = of("torus(40,40)")
    assert (large.diameter, large.all_sources, large.bisection) == (40, False, None)


def test_rates_beyond_the_integers_of_scipy():
    """Capacities of more than 31 bits are cut by networkx, exactly."""
    found = of('product(ring(4, bandwidth="50000000001 B/s"), complete(2, bandwidth="1 B/s"))')
    assert found.bisection.high_Bps == 4
    switched = measures._Cuts(instances.load('fabric("SW(4)", bandwidth=["50000000001 B/s"])').network)
    assert switched.least(np.array([True, True, False, False])) == 2 * 50000000001
