"""The Pareto plot: the same for the same numbers, one point for every network, nothing cut."""

import pytest
from cwb.reports.plots.look import look, to_bytes
from cwb.reports.plots.studies import draw_frontier

pytestmark = pytest.mark.slow  # plots are drawn

FOUND = {
    "nodes": 32,
    "degree": 4,
    "lower_bound": {"T_L": 3, "T_B": "31/32"},
    "frontier": [
        {"topology": "L(complete_bipartite(4, 4))", "T_L": 3, "T_B": "1", "all_reduce_s": 2.278e-4, "best": True},
        {
            "topology": "ring(4, false) □ a very long name " + "□ ring(4) " * 9,
            "T_L": 4,
            "T_B": "31/32",
            "all_reduce_s": 2.4e-4,
            "best": False,
        },
    ],
}


def _draw(form):
    with look():
        return to_bytes(draw_frontier(FOUND), form)


def test_same_numbers_same_picture():
    """A plot has the same bytes every time, in all formats."""
    for form, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        first, second = _draw(form), _draw(form)
        assert first == second
        assert first.startswith(start)


def test_points_and_names():
    """Every network has a point at its values and a line in the legend; the best one is told and long names are cut."""
    with look():
        figure = draw_frontier(FOUND)
    (axes,) = figure.axes
    points = [line.get_xydata().tolist() for line in axes.lines if len(line.get_xydata()) == 1]
    assert [[3.0, 1.0]] in points
    assert [[4.0, 31 / 32]] in points
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[0] == "1  L(complete_bipartite(4, 4))  (227.8 us, best)"
    assert labels[-1] == "lower bounds of both"
    assert all(len(label) < 75 for label in labels)


def test_nothing_is_outside():
    """The legend is within the figure."""
    with look():
        figure = draw_frontier(FOUND)
        figure.draw_without_rendering()
        box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert box.y0 >= 0
