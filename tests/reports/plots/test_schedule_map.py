"""Trees as lanes on a map: what is drawn is what the packing says."""

from __future__ import annotations

from fractions import Fraction
from io import BytesIO

import numpy as np
import pytest
from cwb.core.errors import InputError
from cwb.core.topology import Link, Node, Topology
from cwb.core.trees import TreeKind, TreePacking
from cwb.reports.plots import schedule_map
from cwb.reports.plots.look import COLOURS, look, to_bytes

#: Two parallel links of 3 and 2 between the first two sites, one of 4 to the third, both ways.
ENDS = [("a", "b", 3), ("b", "a", 3), ("a", "b", 2), ("b", "a", 2), ("b", "c", 4), ("c", "b", 4)]


def network(names=("a", "b", "c")):
    """Three sites in a line."""
    return Topology(tuple(map(Node, names)), tuple(Link(x, y, Fraction(rate)) for x, y, rate in ENDS))


def packing(units=(3, 1), root=1):
    """Trees over the fast and over the slow one of the parallel links in turn, from the middle."""
    count = len(units)
    path = [link for i in range(count) for link in ((1, 4) if i % 2 == 0 else (3, 4))]
    return TreePacking(
        "sha",
        TreeKind.OUT,
        np.full(count, root),
        np.array(units),
        Fraction(5),
        np.arange(count + 1) * 2,
        np.tile([1, 1], count),
        np.tile([0, 2], count),
        np.arange(2 * count + 1),
        np.array(path),
    )


def test_rates_fill_the_busiest_link():
    """Of 3 and 1 units the link of both, 4 bytes per second, is full: 3 and 1 bytes per second."""
    assert schedule_map.rates(network(), packing()) == [3, 1]


def test_rates_count_both_ways_of_an_all_reduce():
    """In-out trees load a link by both passes where both use it."""
    out = packing()
    both = TreePacking(
        **{**vars_of(out), "kind": TreeKind.BOTH, "reduction": TreePacking(**{**vars_of(out), "kind": TreeKind.IN})}
    )
    assert schedule_map.rates(network(), both) == [Fraction(3, 2), Fraction(1, 2)]


def vars_of(trees):
    """Fields of a packing."""
    return {name: getattr(trees, name) for name in TreePacking.__dataclass_fields__}


def test_roads_and_lanes():
    """Parallel links are one road with the sum of their bandwidths, and a lane has the rate of its tree."""
    assert schedule_map.roads(network()) == {(0, 1): 5, (1, 2): 4}
    found = schedule_map.lanes(network(), packing(), [0, 1], [Fraction(3), Fraction(1)])
    assert found == {(0, 1): [(0, 3), (1, 1)], (1, 2): [(0, 3), (1, 1)]}
    assert schedule_map.lanes(network(), packing(), [1], [Fraction(3), Fraction(1)]) == {
        (0, 1): [(0, 1)],
        (1, 2): [(0, 1)],
    }


def test_every_tree_has_a_colour_and_a_line_in_the_legend():
    """Lanes are as many as trees times links, each in its tree's colour; the legend tells root, rate and share."""
    from matplotlib.colors import to_hex
    from matplotlib.patches import Polygon, Wedge

    with look():
        figure = schedule_map.draw("three sites", network(), packing())
        (axes,) = figure.axes
        strips = [patch for patch in axes.patches if type(patch) is Polygon]
        colours = [to_hex(patch.get_facecolor()).upper() for patch in strips]
        assert [colours.count(colour) for colour in COLOURS[:2]] == [2, 2]
        assert len([patch for patch in axes.patches if isinstance(patch, Wedge)]) == 2
        labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["tree 0: root b, 0.024 kb/s (75%)", "tree 1: root b, 0.008 kb/s (25%)"]


def test_lanes_are_as_wide_as_rates():
    """The lane of three times the rate is three times as wide, and both together no wider than the road."""
    from matplotlib.patches import Polygon

    with look():
        figure = schedule_map.draw("three sites", network(), packing())
    width = {}
    for patch in figure.axes[0].patches:
        if type(patch) is Polygon:
            corners = patch.get_xy()
            width.setdefault(patch.get_zorder(), []).append(float(np.hypot(*(corners[3] - corners[0]))))
    assert width[2][0] == pytest.approx(3 * width[2][1])
    assert width[2][0] + width[2][1] == pytest.approx(width[1][0] * 4 / 5)
    assert width[2][2] + width[2][3] == pytest.approx(width[1][1])


@pytest.mark.parametrize("form", ["svg", "pdf", "png"])
def test_a_map_is_the_same_every_time(form):
    """The same packing gives the same bytes in every format."""
    with look():
        first, second = (
            to_bytes(schedule_map.draw("x", network(), packing((5, 4, 3) * 4), range(12)), form) for _ in range(2)
        )
    assert first == second
    assert len(BytesIO(first).getvalue()) > 1000


def test_what_cannot_be_drawn_is_told():
    """Too many trees or sites, a tree that is none, and sites without coordinates are input errors."""
    many = packing((1,) * 20)
    with pytest.raises(InputError, match="17 trees; expected at most 16"):
        schedule_map.draw("x", network(), many, range(17))
    with pytest.raises(InputError, match="there is no tree 20"):
        schedule_map.draw("x", network(), many, [20])
    with pytest.raises(InputError, match="no coordinates of 'c'"):
        schedule_map.draw("x", network(), many, [], {"a": (0.0, 0.0), "b": (1.0, 1.0)})
    names = tuple(f"s{i}" for i in range(81))
    large = Topology(tuple(map(Node, names)), tuple(Link(names[0], name, Fraction(1)) for name in names[1:]))
    with pytest.raises(InputError, match="81 sites; expected at most 80"):
        schedule_map.draw("x", large, packing())


def test_only_the_first_trees_are_drawn_unless_chosen():
    """Of many trees eight are drawn, and the title says so."""
    with look():
        figure = schedule_map.draw("x", network(), packing((1,) * 10))
    assert figure.get_suptitle() == "x, 8 of 10 trees"


def test_coordinates_are_projected():
    """A degree of longitude is shorter than one of latitude, away from the equator."""
    where = schedule_map._project_sites(network(), {"a": (0.0, 60.0), "b": (1.0, 60.0), "c": (1.0, 61.0)})
    east, north = where[1][0] - where[0][0], where[2][1] - where[1][1]
    assert east / north == pytest.approx(0.5, abs=0.02)
