"""The wide-area networks: sizes, capacities, latencies, and that random graphs are those of networkx."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from cwb.core.errors import InputError

FAMILIES = [("gscale", 12, 19, 1), ("equinix_size", 20, 141, 2), ("idn_size", 40, 231, 3)]
SIZED = [*FAMILIES[1:], ("random_wan", 80, 462, 4)]


def spec(name, nodes, links, skewness, seed):
    """A network as text; a random one is told its size."""
    size = f"{nodes}, {links}, " if name == "random_wan" else ""
    return f"{name}({size}{skewness}, {seed})"


def pairs(topology):
    """Every second link, the first one of each pair."""
    return topology.links[::2]


@pytest.mark.parametrize(("name", "nodes", "links", "word"), [FAMILIES[0], *SIZED])
@pytest.mark.parametrize("seed", range(10))
def test_capacities_are_drawn_from_the_grid(name, nodes, links, word, seed, make):
    """Sizes are the paper's, capacities those of numpy's generator, multiples of 10 Mb/s within the skewness, both ways
    the same."""
    topology = make(spec(name, nodes, links, 0.7, seed))
    assert (len(topology.nodes), len(topology.links)) == (nodes, 2 * links)
    rates = [int(link.bandwidth_Bps * 8 / 10**6) for link in pairs(topology)]
    drawn = 200 + 10 * np.random.default_rng([word, 7, seed]).integers(-7, 8, size=links)
    assert rates == drawn.tolist()
    for there, back in zip(topology.links[::2], topology.links[1::2], strict=True):
        assert (there.source, there.target) == (back.target, back.source)
        assert (there.bandwidth_Bps, there.latency_s) == (back.bandwidth_Bps, back.latency_s)


@pytest.mark.parametrize(("name", "nodes", "links"), [row[:3] for row in SIZED])
@pytest.mark.parametrize("seed", range(10))
def test_random_graphs_are_those_of_networkx(name, nodes, links, seed, make):
    """The links, and their order, are those of networkx's random graphs of this size and seed."""
    found = [(int(link.source), int(link.target)) for link in pairs(make(spec(name, nodes, links, 0, seed)))]
    assert found == list(nx.gnm_random_graph(nodes, links, seed=seed).edges)


def test_latency_falls_with_capacity(make):
    """The fastest link has 50 ms, the slowest 400 ms, and in between latency is linear in one over the capacity; equal
    links have 50 ms."""
    links = make("gscale()").links
    by_rate = {link.bandwidth_Bps: link.latency_s for link in links}
    assert by_rate[max(by_rate)] == Fraction(1, 20)
    assert by_rate[min(by_rate)] == Fraction(2, 5)
    a, b = 1 / min(by_rate), 1 / max(by_rate)
    assert all(late == Fraction(1, 20) + Fraction(7, 20) * (1 / rate - b) / (a - b) for rate, late in by_rate.items())
    assert {link.latency_s for link in make("gscale(0)").links} == {Fraction(1, 20)}


def test_gscale_is_b4(make):
    """GScale has the degrees and the diameter of the published network."""
    graph = nx.Graph((link.source, link.target) for link in make("gscale()").links)
    degrees = [degree for _, degree in graph.degree]
    assert (min(degrees), max(degrees), nx.diameter(graph), nx.edge_connectivity(graph)) == (2, 4, 5, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gscale(0.55)", "skewness: 0.55; expected a multiple of 0.1 from 0 to 1"),
        ("idn_size(1.1)", "skewness: 1.1; expected a multiple of 0.1 from 0 to 1"),
        ("equinix_size(0.5, -1)", "seed: -1 is out of range"),
        ("random_wan(4, 7)", "links: 7 is out of range"),
        ("random_wan(4, 2)", "links: 2 is out of range"),
    ],
)
def test_wrong_arguments_are_refused(text, message, make):
    """Skewness off the grid and negative seeds are refused in one line."""
    with pytest.raises(InputError) as caught:
        make(text)
    assert str(caught.value).startswith(message)
