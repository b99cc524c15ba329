"""Plots of schedules, drawn from plain objects of the core."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from itertools import pairwise
from math import dist

import numpy as np
import pytest
from cwb.core.errors import InputError
from cwb.core.schedule import offsets, sends_from_lists
from cwb.core.text import escape_unprintable
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trace import SimulationMode, Trace
from cwb.core.trees import TreeKind, TreePacking
from cwb.reports.plots import html_page, schedule_time, schedule_traffic, schedule_trees
from cwb.reports.plots.look import look, to_bytes
from cwb.reports.plots.network_layout import layout_boxes
from cwb.reports.plots.schedule_traffic import Traffic, loads, sparse

pytestmark = pytest.mark.slow  # plots are drawn

EVIL = "</script><script>alert(1)</script>&@DATA@@TITLE@'\"$x$\u2028"


def network(names=("0", "1", "s")):
    """Two ranks on a switch, and two parallel links from the first to the second; the switch comes first."""
    a, b, s = names
    nodes = (Node(s, NodeKind.SWITCH), Node(a), Node(b))
    ends = [(a, s), (s, b), (b, s), (s, a), (a, b), (a, b)]
    return Topology(nodes, tuple(Link(x, y, Fraction(10**9)) for x, y in ends))


def a_traffic(title="one", names=("0", "1", "s"), step=(0, 0, 1)):
    """Chunk 0 through the switch, chunk 1 on both parallel links."""
    sends = sends_from_lists([0, 1, 1], [1, 1, 1], [2, 2, 2], False, [[0, 1], [4], [5]])
    return Traffic(title, network(names), sends, np.array([1024.0, 2048.0]), None if step is None else np.array(step))


def a_trace(mode=SimulationMode.CONGESTION_AWARE):
    """Times for the hops of the traffic."""
    start, end = np.array([0.0, 1.0, 0.0, 2.0]) * 1e-6, np.array([1.0, 2.0, 2.0, 4.0]) * 1e-6
    busy = np.array([1.0, 1.0, 0.0, 0.0, 2.0, 2.0]) * 1e-6
    return Trace(mode, start[[0, 2, 3]], end[[1, 2, 3]], start, end, busy, 4e-6)


def packing(trees=6, kind=TreeKind.OUT):
    """Trees from rank 0 to rank 1, through the switch and directly in turn."""
    paths = [[0, 1] if tree % 2 == 0 else [4] for tree in range(trees)]
    ones = np.ones(trees, dtype=np.int64)
    offset = offsets([len(path) for path in paths])
    flat = np.array([link for path in paths for link in path], dtype=np.int64)
    return TreePacking(
        "sha",
        kind,
        0 * ones,
        np.arange(1, trees + 1),
        Fraction(1024),
        np.arange(trees + 1),
        0 * ones,
        ones,
        offset,
        flat,
    )


def in_out(trees=6):
    """The same, and back through the switch first."""
    there = packing(trees)
    back = np.tile([2, 3], trees)
    there = replace(there, kind=TreeKind.IN, path_offset=2 * np.arange(trees + 1), path_links=back)
    return replace(packing(trees), kind=TreeKind.BOTH, reduction=there)


def two_boxes():
    """Two boxes of five on one switch, each a ring, and trees that go round the root's box and then over to the other
    one."""
    names = [f"box{box}.gpu{index}" for box in range(2) for index in range(5)]
    ends = [(names[5 * b + i], names[5 * b + (i + s) % 5]) for b in range(2) for i in range(5) for s in (1, 4)]
    ends += [pair for name in names for pair in ((name, "ib"), ("ib", name))]
    nodes = (*map(Node, names), Node("ib", NodeKind.SWITCH))
    topology = Topology(nodes, tuple(Link(x, y, Fraction(10**9)) for x, y in ends))
    link = {pair: index for index, pair in enumerate(topology.link_ends)}
    rows = []
    for root in (0, 5):
        other = 5 - root
        rows += [(root + i, root + i + 1, [(root + i, root + i + 1)]) for i in range(4)]
        rows += [(root + 2, other + 1, [(root + 2, 10), (10, other + 1)])]
        rows += [(other + i, other + (i + 1) % 5, [(other + i, other + (i + 1) % 5)]) for i in (1, 2, 3, 4)]
    hops = [len(path) for _, _, path in rows]
    one = np.ones(2, dtype=np.int64)
    return topology, TreePacking(
        "sha",
        TreeKind.OUT,
        np.array([0, 5]),
        one,
        Fraction(2**20),
        np.array([0, 9, 18]),
        np.array([parent for parent, _, _ in rows]),
        np.array([child for _, child, _ in rows]),
        offsets(hops),
        np.array([link[pair] for _, _, path in rows for pair in path]),
    )


def texts(figure):
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_visible() and text.get_text()]


FIGURES = {
    "heatmap": lambda: schedule_traffic.draw_heatmap(a_traffic()),
    "gantt": lambda: schedule_time.draw_gantt(a_traffic(), a_trace()),
    "utilization": lambda: schedule_time.draw_utilization(
        "one", np.array([0.0, 1e-6, 2e-6]), np.array([[0.5, 1], [0, 1.2]])
    ),
    "trees": lambda: schedule_trees.draw_trees("one", network(), packing()),
    "in-out trees": lambda: schedule_trees.draw_trees("one", network(), in_out(), [5]),
    "network": lambda: schedule_trees.draw_over_network("one", network(), packing()),
    "boxes": lambda: schedule_trees.draw_over_network("two boxes", *two_boxes(), [1, 0]),
}


@pytest.mark.parametrize("form", ["svg", *(pytest.param(form, marks=pytest.mark.nightly) for form in ("pdf", "png"))])
@pytest.mark.parametrize("kind", FIGURES)
def test_pictures_are_reproducible(kind, form):
    """Drawing a plot again gives the same bytes, in every format."""
    with look():
        assert to_bytes(FIGURES[kind](), form) == to_bytes(FIGURES[kind](), form)


@pytest.mark.parametrize("kind", FIGURES)
def test_nothing_is_cut(kind):
    """All text lies inside the plot."""
    from matplotlib.text import Text

    with look():
        figure = FIGURES[kind]()
        figure.canvas.draw()
        frame = figure.bbox.padded(2.0)
        for text in figure.findobj(Text):
            if text.get_visible() and text.get_text().strip() and text.get_window_extent().width:
                box = text.get_window_extent()
                assert frame.x0 <= box.x0 and box.x1 <= frame.x1, text.get_text()
                assert frame.y0 <= box.y0 and box.y1 <= frame.y1, text.get_text()


def test_loads_add_up_parallel_links_and_put_switches_last():
    """The matrix has the bytes of both parallel links in one cell, ranks before switches, NaN without a link; of many
    nodes, blocks."""
    traffic = a_traffic()
    found = loads(traffic.topology, traffic.link_bytes)
    assert found.nodes.tolist() == [1, 2, 0]
    nothing = np.nan
    expected = [[nothing, 4096, 1024], [nothing, nothing, 0], [0, 1024, nothing]]
    np.testing.assert_array_equal(found.matrix, expected)
    used = loads(traffic.topology, traffic.link_utilization, together=np.maximum)
    np.testing.assert_array_equal(used.matrix, [[nothing, 1, 0.5], [nothing, nothing, 0], [0, 0.5, nothing]])
    line = tuple(Link(str(i), str(i + 1), Fraction(1)) for i in range(9))
    found = loads(Topology(tuple(Node(str(i)) for i in range(10)), line), np.arange(9.0), limit=4)
    assert found.block == 3
    assert found.matrix.shape == (4, 4)
    assert found.matrix[0, :2].tolist() == [1, 2]
    assert np.isnan(found.matrix[1, 0])


def test_the_heat_map_is_white_where_there_is_no_link():
    """Cells without a link are painted white, those of unused links in a colour of their own; unit and use are told."""
    with look():
        figure = FIGURES["heatmap"]()
        shown = texts(figure)
        image = figure.axes[0].images[0]
        colours = image.to_rgba(image.get_array())
    assert colours[0, 0].tolist() == [1, 1, 1, 1]
    assert colours[1, 2].tolist() != [1, 1, 1, 1]
    assert colours[1, 2].tolist() == colours[2, 0].tolist() != colours[0, 1].tolist()
    assert "bytes over the link (KiB)" in shown
    assert any("4 of 6 links used" in text for text in shown)


def test_the_gantt_has_a_bar_for_every_hop():
    """The bars of used links begin and end when the trace says, parallel links are told apart, and steps are in the
    legend."""
    with look():
        figure = FIGURES["gantt"]()
        (bars,) = figure.axes[0].collections
        spans = sorted((p.vertices[:, 0].min(), p.vertices[:, 0].max()) for p in bars.get_paths())
        shown = texts(figure)
    np.testing.assert_allclose(spans, [(0, 1), (0, 2), (1, 2), (2, 4)])
    assert "0 → 1 #2" in shown
    assert "1 → s" not in shown
    assert "step" in shown


def test_short_sends_are_seen():
    """A bar that takes hardly any of the time has an edge of its own colour, which a white one would cover."""
    trace = a_trace()
    short = replace(trace, hop_end_s=trace.hop_start_s + 1e-9)
    with look():
        (bars,) = schedule_time.draw_gantt(a_traffic(), short).axes[0].collections
        (usual,) = FIGURES["gantt"]().axes[0].collections
    assert bars.get_edgecolors().tolist() == bars.get_facecolors().tolist()
    assert min(bars.get_linewidths()) > 0.5 > max(usual.get_linewidths())


def test_bars_that_overlap_are_side_by_side():
    """Bars of a row that overlap get lanes, those that only touch share one, and rows do not mind each other."""
    row, start, end = np.array([0, 0, 0, 1]), np.array([0.0, 1.0, 2.0, 0.0]), np.array([2.0, 3.0, 4.0, 9.0])
    lane, lanes = schedule_time.assign_lanes(row, start, end, 3)
    assert lane.tolist() == [0, 1, 0, 0]
    assert lanes.tolist() == [2, 1, 1]


def test_utilization_shows_mean_and_largest():
    """The steps are the mean and the largest of the links in every part of the time."""
    with look():
        figure = FIGURES["utilization"]()
    lines = [patch.get_data().values.tolist() for patch in figure.axes[0].patches if not patch.get_fill()]
    assert [0.25, 1.1] in lines
    assert [0.5, 1.2] in lines


def test_nothing_to_draw_is_an_error():
    """Without time or links there is no utilization to draw, and an empty packing has no tree."""
    with pytest.raises(InputError, match="all sends have zero duration"):
        schedule_time.draw_utilization("x", np.zeros(3), np.zeros((2, 2)))
    with pytest.raises(InputError, match="no tree"):
        schedule_trees.draw_trees("x", network(), packing(0))


def test_the_first_trees_are_drawn_with_their_weights():
    """Four of six trees are drawn, each with its share of the data, and the plot says so."""
    with look():
        shown = " ".join(texts(FIGURES["trees"]()))
    assert "the first 4 of 6 trees" in shown
    assert "1 KiB, 1/21 of the data" in shown
    assert "4 KiB, 4/21 of the data" in shown
    assert "tree 4" not in shown


def test_chosen_trees_are_drawn():
    """Trees are drawn in the order in which they are chosen, each once; one that does not exist is refused, in either
    plot."""
    with look():
        shown = " ".join(texts(schedule_trees.draw_trees("one", network(), packing(), [5, 2, 5])))
    assert "2 of 6 trees" in shown
    assert shown.index("tree 5") < shown.index("tree 2")
    for draw in (schedule_trees.draw_trees, schedule_trees.draw_over_network):
        with pytest.raises(InputError, match="there is no tree 6; expected one from 0 to 5"):
            draw("one", network(), packing(), [6])
        with pytest.raises(InputError, match="no tree to draw"):
            draw("one", network(), packing(0))


def test_in_out_trees_have_two_drawings():
    """The reduction and the broadcast of a tree are drawn side by side."""
    with look():
        assert sum("tree 5" in text for text in texts(FIGURES["in-out trees"]())) == 2
        shown = texts(schedule_trees.draw_over_network("one", network(), in_out()))
    assert [text.partition(":")[0] for text in shown if "tree" in text] == ["tree 0, reduction", "tree 0, broadcast"]


def test_boxes_are_drawn_alike_and_side_by_side():
    """Both boxes have the same shape, one right of the other; the switch between them is named with the edges that pass
    it and has no place."""
    topology, _ = two_boxes()
    found = layout_boxes(topology)
    assert found.boxes == {"box0": (0, 1, 2, 3, 4), "box1": (5, 6, 7, 8, 9)}
    shift = {round(found.places[node + 5][0] - found.places[node][0], 9) for node in range(5)}
    assert len(shift) == 1
    assert shift.pop() > 1
    assert all(found.places[node + 5][1] == found.places[node][1] for node in range(5))
    assert 10 not in found.places
    shown = texts(FIGURES["boxes"]())
    assert {"box0", "box1", "one link", "between boxes, through ib"} <= set(shown)


def test_the_layout_shows_a_ring_as_a_ring():
    """Neighbours on a ring are near each other, and nobody lies on a link of others; ranks on switches alone stand on a
    circle."""
    ring = Topology(
        tuple(Node(f"n{i}") for i in range(12)),
        tuple(Link(f"n{i}", f"n{(i + 1) % 12}", Fraction(1)) for i in range(12)),
    )
    places = layout_boxes(ring).places
    apart = {(a, b): dist(places[a], places[b]) for a in range(12) for b in range(a)}
    near = sorted(apart, key=apart.get)[:12]
    assert {frozenset(pair) for pair in near} == {frozenset((i, (i + 1) % 12)) for i in range(12)}
    star = Topology(
        (*(Node(f"n{i}") for i in range(6)), Node("s", NodeKind.SWITCH)),
        tuple(Link(f"n{i}", "s", Fraction(1)) for i in range(6)),
    )
    places = layout_boxes(star).places
    assert len({round(dist(places[i], places[6]), 9) for i in range(6)}) == 1


def test_a_network_of_too_many_ranks_is_refused():
    """Nobody could tell a thousand ranks apart."""
    names = [f"n{i}" for i in range(200)]
    ring = Topology(tuple(map(Node, names)), tuple(Link(a, b, Fraction(1)) for a, b in pairwise(names)))
    with pytest.raises(InputError, match="200 ranks; expected at most"):
        schedule_trees.draw_over_network("one", ring, packing())


def test_the_layout_of_a_tree():
    """Roots are on level 0, leaves side by side, parents over the middle of their children, and depth is no matter of
    recursion."""
    spots = schedule_trees.tree_layout(7, [(7, 1, 1), (7, 2, 1), (1, 3, 1), (1, 4, 1)])
    assert spots == {7: (1.25, 0), 1: (0.5, 1), 2: (2.0, 1), 3: (0.0, 2), 4: (1.0, 2)}
    assert schedule_trees.tree_layout(0, [(i, i + 1, 1) for i in range(5000)])[5000] == (0.0, 5000)


class Reader(HTMLParser):
    """Collects what a browser sees: elements, their attributes, and the text of every script."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.scripts, self.inside = [], [], [], False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        if tag == "script":
            self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


def open_page(content):
    reader = Reader()
    reader.feed(content.decode())
    return reader, json.loads(reader.scripts[0])


def test_the_page_has_every_hop():
    """The page's data are the hops of the trace with chunk, ends, start and end, and the cells of the heat map; it is
    the same twice."""
    content = html_page.page(a_traffic(), a_trace())
    assert content == html_page.page(a_traffic(), a_trace())
    _, data = open_page(content)
    assert data["names"] == ["0 → s", "s → 1", "0 → 1", "0 → 1 #2"]
    bars = data["bars"]
    assert bars["row"] == [0, 1, 2, 3]
    assert bars["chunk"] == [0, 0, 1, 1]
    assert bars["start"] == pytest.approx([0, 1e-6, 0, 2e-6])
    assert bars["end"] == pytest.approx([1e-6, 2e-6, 2e-6, 4e-6])
    assert bars["step"] == [0, 0, 0, 1]
    assert data["cells"]["bytes"] == [4096, 1024, 0, 0, 1024]
    assert data["cells"]["used"] == [1, 0.5, 0, 0, 0.5]


@pytest.mark.parametrize("evil", [EVIL, "<!--", "]]>", "<img src=x onerror=alert(1)>"])
def test_names_cannot_break_the_page(evil):
    """Names that look like markup are shown as they are: the page has its own elements only, and its data say the
    name."""
    plain, _ = open_page(html_page.page(a_traffic(), a_trace()))
    reader, data = open_page(html_page.page(a_traffic(evil, (evil, "1", evil + "2")), a_trace()))
    assert reader.tags == plain.tags
    assert data["nodes"] == [escape_unprintable(evil + "2"), escape_unprintable(evil), "1"]


def test_the_page_needs_nothing_else():
    """No address is in the page, no element loads anything, and its policy forbids to."""
    content = html_page.page(a_traffic(), a_trace()).decode()
    reader, _ = open_page(content.encode())
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", content)
    assert not {"src", "href"} & {name for name, _ in reader.attributes}
    assert "default-src 'none'" in content
    assert not re.search(r"innerHTML|insertAdjacent|document\.write|eval\(", content)


def test_a_page_is_bounded_and_says_so():
    """More hops than fit are put together on their links, no time or byte is lost, and the page tells how many."""
    count = 1000
    sends = sends_from_lists([0] * count, [1] * count, [2] * count, False, [[4]] * count)
    traffic = Traffic("many", network(), sends, np.array([8.0]))
    start = np.arange(count) * 1e-6
    busy = np.array([0, 0, 0, 0, count * 1e-6, 0])
    trace = Trace(SimulationMode.CONGESTION_AWARE, start, start + 1e-6, start, start + 1e-6, busy, count * 1e-6)
    content = html_page.page(traffic, trace, most=100)
    _, data = open_page(content)
    assert len(data["bars"]["row"]) <= 100
    assert sum(data["bars"]["count"]) == count
    assert sum(data["bars"]["bytes"]) == 8 * count
    assert max(data["bars"]["end"]) == pytest.approx(count * 1e-6)
    assert "1,000 hops are too many for a page" in content.decode()


def test_a_page_with_too_many_links_says_so():
    """Of more links than rows, the page has the busiest and says how many there are."""
    content = html_page.page(a_traffic(), a_trace(), most=4)
    _, data = open_page(content)
    assert data["names"] == ["0 → 1", "0 → 1 #2"]
    assert "the 2 busiest of 4 used links" in content.decode()


def test_empty_schedules_can_be_drawn():
    """A schedule without sends has a heat map, a Gantt chart and a page."""
    empty = Traffic("none", network(), sends_from_lists([], [], [], False, []), np.array([1.0]))
    none = np.zeros(0)
    trace = Trace(SimulationMode.CONGESTION_AWARE, none, none, none, none, np.zeros(6), 0.0)
    with look():
        assert to_bytes(schedule_traffic.draw_heatmap(empty), "svg")
        assert to_bytes(schedule_time.draw_gantt(empty, trace), "svg")
    assert open_page(html_page.page(empty, trace))[1]["bars"]["row"] == []


def test_labels_and_colours():
    """Labels are never more than asked for, and colours tell chunks where there are no several steps."""
    assert a_traffic().colour_keys == ("step", "chunk")
    assert a_traffic(step=None).colour_keys == ("chunk",)
    assert a_traffic(step=(0, 0, 0)).colour_keys[0] == "chunk"
    assert sparse(64, 20) == list(range(0, 64, 5))
    assert len(sparse(4096, 20)) <= 20
    assert sparse(3, 20) == [0, 1, 2]
