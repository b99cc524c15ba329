"""Trees drawn over the network, and links coloured by the value of more bandwidth on them."""

from __future__ import annotations

from collections.abc import Sequence
from math import dist, inf
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Rectangle

from ...core.errors import InputError
from ...core.sensitivity import Sensitivity
from ...core.topology import Topology
from ...core.trees import TreeKind, TreePacking
from .look import COLOURS, bare, box_frame, new_figure, short
from .network_layout import Layout, layout
from .schedule_trees import select_trees, weight_of

RANKS = 160  #: More ranks cannot be distinguished.
_SPACING_IN, _RADIUS_IN = 0.42, 0.095  #: Inches between neighbours, and radius of a node.
_CLEAR = 1.25 * _RADIUS_IN / _SPACING_IN  #: Distance at which arrows pass nodes, in distances between neighbours.
_WIDTH_IN = 3.4  #: Least width of the plot; its titles need as much.

_PASSES = {TreeKind.IN: "reduction", TreeKind.OUT: "broadcast"}


class _Way(NamedTuple):
    """Style of one sort of edges."""

    name: str
    colour: str
    style: Any
    bends: tuple[float, ...]


DIRECT = _Way("one link", COLOURS[0], "solid", (0.0, 0.2, -0.2))
WITHIN = _Way("several links", COLOURS[2], "solid", (0.12, -0.12, 0.25, -0.25))
BETWEEN = _Way(
    "between boxes", COLOURS[4], (0, (3.5, 1.5)), (0.16, -0.16, 0.22, -0.22, 0.1, -0.1, 0.28, -0.28, 0.05, -0.05)
)


def draw(title: str, topology: Topology, packing: TreePacking, trees: Sequence[int] = ()) -> Figure:
    """Draw trees over the network, by default the first one; refuse a network too large to be looked at."""
    if len(topology.ranks) > RANKS:
        raise InputError(f"{len(topology.ranks):,} ranks; expected at most {RANKS} in a plot of the network")
    panels = [(tree, part) for tree in select_trees(packing, trees, 1) for part in packing.passes]
    where = layout(topology)
    low, high = frame_of(where)
    size = ((high[0] - low[0]) * _SPACING_IN, (high[1] - low[1]) * _SPACING_IN)
    columns = 1 if len(panels) == 1 or size[0] > 5 else 2
    rows = -(-len(panels) // columns)
    figure = new_figure(0.5 + rows * (size[1] + 0.2), max(_WIDTH_IN, columns * size[0] + 0.1))
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    passed: dict[_Way, set[int]] = {}
    for axes in grid:
        bare(axes, low, high)
    for (tree, part), axes in zip(panels, grid, strict=False):
        for way, switches in _panel(axes, topology, part, tree, where).items():
            passed.setdefault(way, set()).update(switches)
        name = f", {_PASSES[part.kind]}" if packing.reduction is not None else ""
        root = short(topology.ranks[int(part.root[tree])], 16)
        axes.set_title(f"tree {tree}{name}: root {root}, {weight_of(part, tree)}", size=6.5)
    lines = [
        Line2D([], [], color=way.colour, linestyle=way.style, label=way.name + _through(topology, passed[way]))
        for way in (DIRECT, WITHIN, BETWEEN)
        if way in passed
    ]
    if lines:
        figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), handlelength=2.6)
    figure.suptitle(short(title, 60), size=7)
    return figure


def frame_of(where: Layout) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the corners of the plot: all nodes with frames and names of boxes."""
    x, y = zip(*where.places.values(), strict=True)
    return (min(x) - 0.55, min(y) - 0.55), (max(x) + 0.55, max(y) + (0.95 if "" not in where.boxes else 0.55))


def _through(topology: Topology, nodes: set[int]) -> str:
    """Name the one node that all of these paths cross, if there is one."""
    return f", through {short(topology.nodes[min(nodes)].name, 16)}" if len(nodes) == 1 else ""


def _panel(axes: Axes, topology: Topology, packing: TreePacking, tree: int, where: Layout) -> dict[_Way, set[int]]:
    """Draw one tree, and return its sorts of edges with the nodes that each crosses."""
    _draw_network(axes, topology, where)
    box_of = {node: name for name, nodes in where.boxes.items() for node in nodes}
    passed: dict[_Way, set[int]] = {}
    for edge in range(int(packing.edge_offset[tree]), int(packing.edge_offset[tree + 1])):
        path = packing.path_links[packing.path_offset[edge] : packing.path_offset[edge + 1]].tolist()
        source, target = topology.link_ends[path[0]][0], topology.link_ends[path[-1]][1]
        way = BETWEEN if box_of[source] != box_of[target] else DIRECT if len(path) == 1 else WITHIN
        passed.setdefault(way, set()).update(topology.link_ends[link][1] for link in path[:-1])
        _arrow(axes, where, source, target, way)
    draw_nodes(axes, topology, where, topology.rank_nodes[int(packing.root[tree])])
    return passed


def _arrow(axes: Axes, where: Layout, source: int, target: int, way: _Way) -> None:
    """Draw an arrow, bent to avoid all nodes but its ends."""
    start, end = where.places[source], where.places[target]
    others = [place for node, place in where.places.items() if node not in (source, target)]
    bend = next((bend for bend in way.bends if _clearance(start, end, bend, others) > _CLEAR), None)
    if bend is None:
        bend = max(way.bends, key=lambda bend: _clearance(start, end, bend, others))
    axes.annotate(
        "",
        end,
        start,
        arrowprops={
            "arrowstyle": "-|>,head_length=0.28,head_width=0.13",
            "connectionstyle": f"arc3,rad={bend}",
            "color": way.colour,
            "linestyle": way.style,
            "linewidth": 1.1,
            "shrinkA": 72 * _RADIUS_IN,
            "shrinkB": 72 * _RADIUS_IN + 0.5,
        },
        zorder=3,
    )


def _clearance(
    start: tuple[float, float], end: tuple[float, float], bend: float, others: list[tuple[float, float]]
) -> float:
    """Return the distance between an arc, a parabola as in matplotlib, and the nearest other node."""
    (a, b), (c, d) = start, end
    middle = (a + c) / 2 + bend * (d - b), (b + d) / 2 - bend * (c - a)
    arc = [
        tuple((1 - t) ** 2 * p + 2 * t * (1 - t) * q + t**2 * r for p, q, r in zip(start, middle, end, strict=True))
        for t in (k / 40 for k in range(1, 40))
    ]
    return min((dist(point, other) for point in arc for other in others), default=inf)


def _draw_network(axes: Axes, topology: Topology, where: Layout) -> None:
    """Draw the links within boxes faintly, and a frame round every box that has a name."""
    places = where.places
    pairs = sorted({(min(a, b), max(a, b)) for a, b in topology.link_ends if a in places and b in places})
    box_of = {node: name for name, nodes in where.boxes.items() for node in nodes}
    lines = [(places[a], places[b]) for a, b in pairs if box_of[a] == box_of[b]]
    axes.add_collection(LineCollection(lines, colors="#D4D4D4", linewidths=1.6, zorder=1))
    for name, nodes in where.boxes.items():
        x, y = zip(*(places[node] for node in nodes), strict=True)
        low, high = (min(x) - 0.5, min(y) - 0.5), (max(x) + 0.5, max(y) + 0.5)
        if name:
            box_frame(axes, low, high, "#FAFAFA")
            axes.text(low[0] + 0.2, high[1] + 0.08, short(name), size=6, color="#555555", va="bottom")


def draw_nodes(axes: Axes, topology: Topology, where: Layout, root: int | None = None) -> None:
    """Draw ranks as circles with the last part of their names, the root filled, and switches as squares."""
    radius = _RADIUS_IN / _SPACING_IN
    ranks = set(topology.rank_nodes)
    for node, (x, y) in where.places.items():
        filled = node == root
        face, ink = ("#222222", "white") if filled else ("white", "black")
        style: Any = {"facecolor": face, "edgecolor": "#222222", "linewidth": 0.7, "zorder": 4}
        if node in ranks:
            axes.add_patch(Circle((x, y), radius, **style))
        else:
            axes.add_patch(Rectangle((x - radius, y - radius), 2 * radius, 2 * radius, **style))
        name = short(topology.nodes[node].name.rpartition(".")[2])
        label = name[len(name.rstrip("0123456789")) :] or name[:1]
        axes.text(x, y, label[-3:], size=5, ha="center", va="center_baseline", color=ink, zorder=5)


_LINKS_SPACING_IN, _LINKS_WIDTH_IN = 0.5, 3.4  #: Inches between neighbours, and least width of the plot.
_COLOURS = "cividis_r"  #: Colours from no to the most effect, legible in black and white.

#: Links without effect.
_NONE = "#D4D4D4"


def draw_sensitivity(network: Any, worth: Sensitivity) -> Figure:
    """Draw a network with the seconds saved by one more GB/s on all links of a class."""
    if not isinstance(network, Topology):
        raise InputError(
            f"{network} has no links that could be drawn; expected an explicit network", source="--picture"
        )
    if len(network.ranks) > RANKS:
        raise InputError(f"{len(network.ranks):,} ranks; expected at most {RANKS}", source="--picture")
    where = with_all(network, layout(network))
    low, high = frame_of(where)
    width, height = max(_LINKS_WIDTH_IN, (high[0] - low[0]) * _LINKS_SPACING_IN), (high[1] - low[1]) * _LINKS_SPACING_IN
    figure = new_figure(height + 0.9, width)
    axes = figure.subplots()
    bare(axes, low, high)
    gains = gains_of(worth)
    place = {network.nodes[node].name: at for node, at in where.places.items()}
    most = max(gains.values(), default=0.0)
    scale = Normalize(0.0, most or 1.0)
    shown: Any = ScalarMappable(scale, _COLOURS)
    pairs = sorted(gains, key=lambda pair: gains[pair])
    colours = [shown.cmap(scale(gains[pair])) if gains[pair] > 0 else _NONE for pair in pairs]
    widths = [2.2 if gains[pair] > 0 else 1.0 for pair in pairs]
    axes.add_collection(
        LineCollection([(place[a], place[b]) for a, b in pairs], colors=colours, linewidths=widths, zorder=2)
    )
    draw_nodes(axes, network, where)
    if most > 0:
        bar = figure.colorbar(shown, ax=axes, location="bottom", fraction=0.05, pad=0.02, aspect=40)
        bar.set_label("seconds less for each GB/s more on all links alike; grey: none")
    figure.suptitle(short(f"{worth.model} on {worth.instance}: {worth.seconds:.6g} s", 60), size=7)
    return figure


def gains_of(worth: Sensitivity) -> dict[tuple[str, str], float]:
    """Return the seconds saved by one more GB/s, by pair of nodes; links of a class are widened together."""
    gains: dict[tuple[str, str], float] = {}
    for entry in sorted(worth.entries, key=lambda entry: entry.count):
        slope = None if entry.up is None else entry.up.slope_s_per_GBps
        gains |= dict.fromkeys(entry.members, 0.0 if slope is None else abs(slope))
    return gains


def with_all(topology: Topology, where: Layout) -> Layout:
    """Add places for switches between boxes: a row above everything, in order of their names."""
    missing = [node for node in range(len(topology.nodes)) if node not in where.places]
    if not missing:
        return where
    x, y = zip(*where.places.values(), strict=True)
    step = (max(x) - min(x)) / (len(missing) + 1)
    places = {node: (min(x) + step * place, max(y) + 1.6) for place, node in enumerate(missing, start=1)}
    return Layout({**where.places, **places}, where.boxes)
