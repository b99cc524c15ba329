"""Plots of networks: what they show, that nothing lies on anything else, and that bytes are the same."""

from __future__ import annotations

from itertools import combinations
from math import dist

import numpy as np
import pytest
from cwb import instances
from cwb.core.errors import InputError
from cwb.core.network_views import links_of
from cwb.reports.plots.look import look, to_bytes
from cwb.reports.plots.network_layout import layout_with_tiers
from cwb.reports.plots.topology import draw

pytestmark = pytest.mark.slow  # plots are drawn

NETWORKS = [
    "dgx1()",
    "h100(4)",
    "torus(8,8)",
    "torus(4,4,8)",
    "fat_tree(8)",
    "pcie(2)",
    "ndv2(2)",
    "kautz(2,6)",
    "star(16)",
]


@pytest.mark.parametrize("text", NETWORKS)
def test_every_node_has_a_place_of_its_own(text):
    """All nodes are placed, the same every time, and none lies on another one."""
    network = instances.load(text).network
    where = layout_with_tiers(network)
    assert set(where.places) == set(range(len(network.nodes)))
    assert layout_with_tiers(network).places == where.places
    assert min(dist(*pair) for pair in combinations(where.places.values(), 2)) > 0.6


def test_switches_stand_apart():
    """Switches between boxes are above all ranks, those of higher tiers above the others."""
    network = instances.load("three_tier()").network
    where = layout_with_tiers(network)
    height = {network.nodes[node].name: y for node, (_, y) in where.places.items()}
    top = max(y for name, y in height.items() if name.startswith("box"))
    assert top < height["leaf0.0"] < height["aggregation1.2"] < height["core3"]
    assert list(where.boxes)[:2] == ["box0", "box1"]


def test_rails_do_not_cross():
    """The GPUs of a box stand in a row, and their rails above them in the same order."""
    network = instances.load("dgx_h100(boxes=2)").network
    where = layout_with_tiers(network)
    number = {node.name: index for index, node in enumerate(network.nodes)}
    for name in ("ib{}", "box0.gpu{}", "box1.gpu{}"):
        x = [where.places[number[name.format(rail)]][0] for rail in range(8)]
        assert x == sorted(x)


@pytest.mark.parametrize("text", ["dgx_h100(boxes=2)", "mi300x(boxes=2)", "a100(boxes=2)", "dgx1()"])
def test_no_link_passes_a_node_that_it_does_not_end_at(text):
    """A line keeps off all other nodes, so that none is hidden and none seems to be where it ends."""
    network = instances.load(text).network
    at = np.array(list(layout_with_tiers(network).places.values()))
    with look():
        (links,) = draw(text, network).axes[0].collections
    for line in links.get_paths():
        way = line.interpolated(1 if len(line.vertices) > 2 else 40).vertices
        far = np.hypot(*(way[:, None] - at).transpose(2, 0, 1)).min(axis=0)
        ends = np.hypot(*(way[[0, -1], None] - at).transpose(2, 0, 1)).min(axis=0) < 1e-9
        assert ends.sum() == 2
        assert far[~ends].min() > 0.2, text


def test_switches_of_a_box_are_named():
    """Switches inside a box are named without the name of the box."""
    network = instances.load("dgx_h100(boxes=2)").network
    with look():
        figure = draw("two", network)
    written = [text.get_text() for text in figure.axes[0].texts]
    assert written.count("nvswitch") == 2
    assert {f"ib{rail}" for rail in range(8)} <= set(written)


def lines(text):
    """Widths in points of the drawn links, and the texts of the legend."""
    with look():
        figure = draw(text, instances.load(text).network)
        (axes,) = figure.axes
        (links,) = axes.collections
        legend = [entry.get_text() for entry in figure.legends[0].get_texts()]
    return np.array(links.get_linewidths()), legend


def test_widths_are_bandwidths():
    """Each pair of nodes has one line, the wider the faster; the legend tells bandwidths and numbers."""
    widths, legend = lines("h100(4)")
    assert len(widths) == 64
    assert sorted(np.unique(widths, return_counts=True)[1]) == [32, 32]
    assert legend == ["450 GB/s, 500 ns: 32 pairs", "50 GB/s, 500 ns: 32 pairs"]
    assert lines("ndv2(2)")[1][-1] == "one way, or slower back"


def test_parallel_links_are_one_line_of_their_sum():
    """Two links between the same nodes are drawn as wide as both together."""
    assert lines("parallel(ring(4), 2)")[1] == ["100 GB/s, 500 ns: 4 pairs"]


def test_the_same_bytes():
    """The same network is the same file."""
    network = links_of(instances.load("RI(4)_FC(4)").network)
    with look():
        assert to_bytes(draw("one", network), "svg") == to_bytes(draw("one", network), "svg")


def test_too_large():
    """A network that is too large to look at is refused with its size."""
    with pytest.raises(InputError, match="10,000 nodes with 20,000 linked pairs; expected at most 640 and 6,000"):
        draw("one", instances.load("torus(100,100)").network)
