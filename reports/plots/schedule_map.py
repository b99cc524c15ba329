"""Trees as lanes on a map: roads as wide as bandwidths, lanes as wide as rates."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import cos, hypot, radians, sqrt
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Patch, Polygon, Wedge

from ...core.errors import InputError
from ...core.grouping import group_by_key
from ...core.topology import Topology
from ...core.trees import TreePacking
from ...core.units import unit_for
from .look import COLOURS, HATCHES, bare, new_figure, short
from .network_layout import layout_boxes
from .schedule_trees import select_trees

SITES, TREES = 80, 16  #: More sites, and more trees, cannot be distinguished.
SHOWN = 8  #: Trees that are drawn if none are chosen.

#: Width of the widest road and radius of a site, in distances between neighbours; inches of that distance.
_ROAD, _RADIUS, _SPACING_IN = 0.3, 0.17, 0.78

_LINKS = 4  #: Roads are narrower where a site has more than this many links.
_LEAST_IN, _MOST_IN = 4.4, 7.0  #: Least and largest width of the map in inches.

Places = Mapping[int, tuple[float, float]]


def draw(
    title: str,
    topology: Topology,
    packing: TreePacking,
    trees: Sequence[int] = (),
    coordinates: Mapping[str, tuple[float, float]] | None = None,
) -> Figure:
    """Draw trees of a packing, by default the first eight, over the network, each as lanes of a colour.

    Where reduction and broadcast use different links, those of the broadcast are drawn. ``coordinates`` are longitude
    and latitude of every site in degrees; by default, places follow from the links.
    """
    if len(topology.nodes) > SITES:
        raise InputError(f"{len(topology.nodes):,} sites; expected at most {SITES} on a map")
    trees = list(dict.fromkeys(select_trees(packing, trees, SHOWN)))
    if len(trees) > TREES:
        raise InputError(f"{len(trees)} trees; expected at most {TREES} on a map", source="--tree")
    places = layout_boxes(topology).places if coordinates is None else _project_sites(topology, coordinates)
    rate = rates(topology, packing)
    low, high = _frame(places)
    if coordinates is None and high[1] - low[1] > high[0] - low[0]:  # a tall map is turned
        places = {node: (-y, x) for node, (x, y) in places.items()}
        low, high = _frame(places)
    inches = min(_MOST_IN, max(_LEAST_IN, (high[0] - low[0]) * _SPACING_IN))
    columns = max(1, min(len(trees), int(inches / 1.9)))
    rows = -(-len(trees) // columns)
    figure = new_figure(inches * (high[1] - low[1]) / (high[0] - low[0]) + 0.35 + 0.13 * rows, inches)
    axes = figure.subplots()
    bare(axes, low, high)
    _draw_lanes(axes, topology, packing, trees, rate, places)
    _sites(axes, topology, packing, trees, places)
    whole = sum(rate, Fraction(0))
    handles: list[Patch] = []
    for index, tree in enumerate(trees):
        root = short(topology.ranks[int(packing.root[tree])], 12)
        unit, size = unit_for(rate[tree], ("Tb/s", "Gb/s", "Mb/s", "kb/s"))  # the units of wide-area links
        label = f"tree {tree}: root {root}, {float(rate[tree]) / size:.4g} {unit} ({float(rate[tree] / whole):.0%})"
        handles.append(Patch(label=label, **_style(index)))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, handlelength=1.6, columnspacing=1.2)
    which = "" if len(trees) == len(packing) else f", {len(trees)} of {len(packing):,} trees"
    figure.suptitle(short(title, 60) + which, size=7)
    note = "grey: bandwidth that these trees leave; coloured sites: roots"
    if coordinates is None:
        note += "; places follow from the links"
    axes.set_title(note, size=5.5, color="#555555")
    return figure


def _draw_lanes(
    axes: Axes, topology: Topology, packing: TreePacking, trees: Sequence[int], rate: Sequence[Fraction], places: Places
) -> None:
    width = roads(topology)
    narrow = _ROAD * min(1.0, sqrt(_LINKS * len(topology.nodes) / (2 * len(width))))
    scale = narrow / float(max(width.values()))
    on = lanes(topology, packing, trees, rate)
    for pair, bandwidth in width.items():
        if not set(pair) <= set(places):
            continue
        one, other = places[pair[0]], places[pair[1]]
        half = scale * float(bandwidth) / 2
        road: dict[str, Any] = {"facecolor": "#E4E4E4", "edgecolor": "#BBBBBB", "linewidth": 0.3, "zorder": 1}
        _draw_lane(axes, one, other, -half, half, road)
        users = on.get(pair, [])
        at = -scale * float(sum(r for _, r in users)) / 2
        for index, r in users:
            wide = scale * float(r)
            _draw_lane(axes, one, other, at, at + wide, {**_style(index), "zorder": 2})
            at += wide


def _draw_lane(
    axes: Axes, one: tuple[float, float], other: tuple[float, float], left: float, right: float, style: dict[str, Any]
) -> None:
    (a, b), (c, d) = one, other
    length = hypot(c - a, d - b) or 1.0
    x, y = -(d - b) / length, (c - a) / length
    corners = [
        (a + left * x, b + left * y),
        (c + left * x, d + left * y),
        (c + right * x, d + right * y),
        (a + right * x, b + right * y),
    ]
    axes.add_patch(Polygon(corners, closed=True, **style))


def _style(index: int) -> dict[str, Any]:
    """Return the fill of a tree: a colour, from the ninth on with a hatch."""
    return {
        "facecolor": COLOURS[index % len(COLOURS)],
        "edgecolor": "white",
        "linewidth": 0.35,
        "hatch": HATCHES[index // len(COLOURS)] or None,
    }


def _sites(axes: Axes, topology: Topology, packing: TreePacking, trees: Sequence[int], places: Places) -> None:
    """Draw sites with their names; roots have a ring with sectors in the colours of their trees."""
    trees_at = group_by_key((topology.rank_nodes[int(packing.root[tree])], i) for i, tree in enumerate(trees))
    for node, (x, y) in places.items():
        mine = trees_at.get(node, [])
        for sector, index in enumerate(mine):
            turn = 360 / len(mine)
            style = {**_style(index), "edgecolor": "#222222", "linewidth": 0.5}
            axes.add_patch(
                Wedge((x, y), 1.45 * _RADIUS, 90 - (sector + 1) * turn, 90 - sector * turn, zorder=4, **style)
            )
        axes.add_patch(Circle((x, y), _RADIUS, facecolor="white", edgecolor="#222222", linewidth=0.7, zorder=5))
        name = topology.nodes[node].name
        size = 6 if len(name) <= 3 else 5
        axes.text(x, y, short(name, 8), size=size, ha="center", va="center_baseline", zorder=6)


def _frame(places: Places) -> tuple[tuple[float, float], tuple[float, float]]:
    x, y = zip(*places.values(), strict=True)
    return (min(x) - 0.45, min(y) - 0.45), (max(x) + 0.45, max(y) + 0.45)


def _project_sites(topology: Topology, coordinates: Mapping[str, tuple[float, float]]) -> Places:
    """Place sites by longitude and latitude, the median link as long as that of neighbours in other layouts."""
    missing = [node.name for node in topology.nodes if node.name not in coordinates]
    if missing:
        raise InputError(f"no coordinates of {missing[0]!r}", source="--places")
    middle = sum(coordinates[node.name][1] for node in topology.nodes) / len(topology.nodes)
    flat = [(coordinates[n.name][0] * cos(radians(middle)), coordinates[n.name][1]) for n in topology.nodes]
    lengths = sorted(hypot(flat[a][0] - flat[b][0], flat[a][1] - flat[b][1]) for a, b in topology.link_ends)
    unit = lengths[len(lengths) // 2] or 1.0
    return {node: (x / unit, y / unit) for node, (x, y) in enumerate(flat)}


Pair = tuple[int, int]


def rates(topology: Topology, packing: TreePacking) -> list[Fraction]:
    """Return the bytes per second of every tree when the most loaded link is full.

    The verifier's flow time follows from these rates.
    """
    load = np.zeros(len(topology.links), dtype=object)
    for part in packing.passes:
        np.add.at(load, part.path_links, part.path_units)
    busiest = max(units / link.bandwidth_Bps for units, link in zip(load.tolist(), topology.links, strict=True))
    return [units / busiest for units in packing.units.tolist()]


def roads(topology: Topology) -> dict[Pair, Fraction]:
    """Return the bandwidth of each pair of neighbours: parallel links summed, the larger of both directions."""
    rates = group_by_key(zip(topology.link_ends, (link.bandwidth_Bps for link in topology.links), strict=True))
    ways = group_by_key(((min(ends), max(ends)), sum(some, Fraction(0))) for ends, some in rates.items())
    return {pair: max(some) for pair, some in ways.items()}


def lanes(
    topology: Topology, packing: TreePacking, trees: Sequence[int], rate: Sequence[Fraction]
) -> dict[Pair, list[tuple[int, Fraction]]]:
    """Return the shown trees on every road, by position, with their rates there."""
    part = packing.passes[-1]
    place = {tree: index for index, tree in enumerate(trees)}
    by_pair: dict[Pair, dict[int, Fraction]] = {}
    for tree, link in zip(part.path_tree.tolist(), part.path_links.tolist(), strict=True):
        if tree in place:
            a, b = topology.link_ends[link]
            on = by_pair.setdefault((min(a, b), max(a, b)), {})
            on[place[tree]] = on.get(place[tree], Fraction(0)) + rate[tree]
    return {pair: sorted(on.items()) for pair, on in by_pair.items()}
