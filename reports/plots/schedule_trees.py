"""Trees of a packing, drawn by level or over their network; links coloured by the value of bandwidth."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Rectangle
from matplotlib.ticker import FuncFormatter

from ...core.errors import InputError
from ...core.sensitivity import Sensitivity
from ...core.topology import Topology
from ...core.trees import TreeKind, TreePacking
from ...core.units import SIZES, TIMES, unit_for
from .look import COLOURS, bare, box_frame, new_figure, short
from .network_layout import Layout, first_clear_bend, layout_boxes

TREES = 4  #: Trees that are drawn if none are chosen.
_WIDTH_IN = 5.4  #: Least width of the plot; its title needs as much.
_NAMED = 24  #: Names are written into the nodes of trees that are no wider than this.
_EXACT = 10_000  #: Shares of the data with a smaller denominator are shown as they are.
_LETTERS = 4  #: Longer names do not fit into nodes.

_WORDS = {
    TreeKind.OUT: "data flows down (broadcast)",
    TreeKind.IN: "data flows up (reduce)",
    TreeKind.BOTH: "data flows up (reduce), then down (broadcast)",
}

_PASSES = {TreeKind.OUT: " \u2193", TreeKind.IN: " \u2191"}  #: Arrow heads tell the two halves of in-out trees apart.
_Edges = list[tuple[int, int, int]]  #: Edges of a tree: parent, child, and the number of links on the way.


def draw_trees(title: str, topology: Topology, packing: TreePacking, trees: Sequence[int] = ()) -> Figure:
    """Draw the chosen trees, or the first ones; dashed edges use more than one link.

    Reduction and broadcast of in-out trees are drawn side by side.
    """
    passes = packing.passes
    panels = [(tree, part) for tree in select_trees(packing, trees, TREES // len(passes)) for part in passes]
    edges = [_edges(part, tree) for tree, part in panels]
    spots = [tree_layout(int(packing.root[tree]), below) for (tree, _), below in zip(panels, edges, strict=True)]
    columns = 1 if len(panels) == 1 else 2
    rows = ceil(len(panels) / columns)
    levels = [max(level for _, level in spot.values()) for spot in spots]
    deep = [max(levels[row * columns : (row + 1) * columns]) for row in range(rows)]
    inches = [0.5 + min(4.0, 0.4 * (depth + 1)) for depth in deep]
    wide = max(x for spot in spots for x, _ in spot.values()) + 1
    figure = new_figure(0.8 + sum(inches), max(_WIDTH_IN, columns * min(5.0, 0.5 + 0.2 * wide)))
    grid = figure.subplots(rows, columns, squeeze=False, height_ratios=inches).ravel()
    for index, axes in enumerate(grid):
        axes.set_axis_off()
        axes.set(xticks=[], yticks=[])
        if index < len(panels):
            tree, part = panels[index]
            _tree(axes, topology, part, tree, edges[index], spots[index])
            axes.set_ylim(deep[index // columns] + 0.5, -0.5)
    count = len(panels) // len(passes)
    which = f"{count} of {len(packing):,} trees" if trees else f"the first {count} of {len(packing):,} trees"
    which = f"{count} trees" if count == len(packing) else which
    ranks = "" if max(map(len, topology.ranks)) <= _LETTERS else "; nodes are named by rank"
    figure.suptitle(f"{short(title, 60)}: {which}\n{_WORDS[packing.kind]}; dashed: over several links{ranks}", size=7)
    return figure


def select_trees(packing: TreePacking, trees: Sequence[int], first: int) -> list[int]:
    """Return the chosen trees, or the first few; refuse a packing without trees or without the chosen one."""
    if not len(packing):
        raise InputError("there is no tree to draw")
    for tree in trees:
        if not 0 <= tree < len(packing):
            raise InputError(f"there is no tree {tree}; expected one from 0 to {len(packing) - 1}")
    return list(dict.fromkeys(trees)) or list(range(min(first, len(packing))))


def weight_of(packing: TreePacking, tree: int) -> str:
    """Format the weight of a tree: bytes, and share of the data."""
    size = int(packing.units[tree]) * packing.unit_bytes
    unit, scale = unit_for(size, SIZES)
    share = Fraction(int(packing.units[tree]), sum(packing.units.tolist()))
    part = str(share) if share.denominator < _EXACT else f"{float(share):.3%}"
    return f"{float(size) / scale:.4g} {unit}, {part} of the data"


def _edges(packing: TreePacking, tree: int) -> _Edges:
    first, end = int(packing.edge_offset[tree]), int(packing.edge_offset[tree + 1])
    hops = (packing.path_offset[first + 1 : end + 1] - packing.path_offset[first:end]).tolist()
    return list(zip(packing.parent[first:end].tolist(), packing.child[first:end].tolist(), hops, strict=True))


def tree_layout(root: int, edges: _Edges) -> dict[int, tuple[float, int]]:
    """Place every rank of a tree: leaves side by side, parents centred over their children.

    Return the place of each rank from the left, and its level from 0 at the root. An edge (parent, child, links) comes
    after the one that reaches its parent.
    """
    import networkx as nx

    tree = nx.from_edgelist([(root, root), *((parent, child) for parent, child, _ in edges)], nx.DiGraph)
    tree.remove_edge(root, root)
    level = nx.single_source_shortest_path_length(tree, root)
    order = list(nx.dfs_preorder_nodes(tree, root))
    place = {leaf: float(index) for index, leaf in enumerate(node for node in order if not tree[node])}
    for node in reversed(order):
        if children := list(tree[node]):
            place[node] = (place[children[0]] + place[children[-1]]) / 2
    return {node: (place[node], level[node]) for node in order}


def _tree(
    axes: Axes, topology: Topology, packing: TreePacking, tree: int, edges: _Edges, spots: dict[int, tuple[float, int]]
) -> None:
    for is_dashed in (False, True):
        lines = [(spots[a], spots[b]) for a, b, hops in edges if (hops > 1) is is_dashed]
        style = (0, (3, 2)) if is_dashed else "solid"
        axes.add_collection(LineCollection(lines, colors="#777777", linewidths=0.8, linestyles=[style]))
    root = int(packing.root[tree])
    names = [topology.nodes[node].name for node in topology.tree_nodes]
    x, y = zip(*spots.values(), strict=True)
    wide = max(x) + 1
    with_names = wide <= _NAMED
    plain = max(map(len, names)) <= _LETTERS
    colours = [COLOURS[1] if rank == root else COLOURS[5] for rank in spots]
    axes.scatter(x, y, s=95 if with_names else 12, c=colours, edgecolors="white", linewidths=0.4, zorder=2)
    if with_names:
        for rank, spot in spots.items():
            axes.text(*spot, short(names[rank], _LETTERS) if plain else str(rank), size=5, ha="center", va="center")
    axes.set_xlim(-0.7, max(x) + 0.7)
    title = f"tree {tree}{_PASSES[packing.kind]}, root {short(names[root], 12)}: {weight_of(packing, tree)}"
    axes.set_title(title, loc="left", size=6.5)


RANKS = 160  #: More ranks cannot be distinguished.
_SPACING_IN, _RADIUS_IN = 0.42, 0.095  #: Inches between neighbours, and radius of a node.
_CLEAR = 1.25 * _RADIUS_IN / _SPACING_IN  #: Distance at which arrows pass nodes, in distances between neighbours.
_NETWORK_WIDTH_IN = 3.4  #: Least width of the plot; its titles need as much.

_PASS_NAMES = {TreeKind.IN: "reduction", TreeKind.OUT: "broadcast"}


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


def draw_over_network(title: str, topology: Topology, packing: TreePacking, trees: Sequence[int] = ()) -> Figure:
    """Draw trees over the network, by default the first one; refuse a network too large to be looked at."""
    if len(topology.ranks) > RANKS:
        raise InputError(f"{len(topology.ranks):,} ranks; expected at most {RANKS} in a plot of the network")
    panels = [(tree, part) for tree in select_trees(packing, trees, 1) for part in packing.passes]
    where = layout_boxes(topology)
    low, high = frame_of(where)
    size = ((high[0] - low[0]) * _SPACING_IN, (high[1] - low[1]) * _SPACING_IN)
    columns = 1 if len(panels) == 1 or size[0] > 5 else 2
    rows = -(-len(panels) // columns)
    figure = new_figure(0.5 + rows * (size[1] + 0.2), max(_NETWORK_WIDTH_IN, columns * size[0] + 0.1))
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    passed: dict[_Way, set[int]] = {}
    for axes in grid:
        bare(axes, low, high)
    for (tree, part), axes in zip(panels, grid, strict=False):
        for way, switches in _panel(axes, topology, part, tree, where).items():
            passed.setdefault(way, set()).update(switches)
        name = f", {_PASS_NAMES[part.kind]}" if packing.reduction is not None else ""
        root = short(topology.ranks[int(part.root[tree])], 16)
        axes.set_title(f"tree {tree}{name}: root {root}, {weight_of(part, tree)}", size=6.5)
    # An edge over several links is named after the one node that all of them cross, if there is one.
    through = {
        way: f", through {short(topology.nodes[min(nodes)].name, 16)}" if len(nodes) == 1 else ""
        for way, nodes in passed.items()
    }
    lines = [
        Line2D([], [], color=way.colour, linestyle=way.style, label=way.name + through[way])
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
    others = np.array([place for node, place in where.places.items() if node not in (source, target)]).reshape(-1, 2)
    bend = first_clear_bend(np.array(start), np.array(end), way.bends, others, _CLEAR)
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
        is_filled = node == root
        face, ink = ("#222222", "white") if is_filled else ("white", "black")
        style: Any = {"facecolor": face, "edgecolor": "#222222", "linewidth": 0.7, "zorder": 4}
        if node in ranks:
            axes.add_patch(Circle((x, y), radius, **style))
        else:
            axes.add_patch(Rectangle((x - radius, y - radius), 2 * radius, 2 * radius, **style))
        name = short(topology.nodes[node].name.rpartition(".")[2])
        label = name[len(name.rstrip("0123456789")) :] or name[:1]
        axes.text(x, y, label[-3:], size=5, ha="center", va="center_baseline", color=ink, zorder=5)


_LINKS_SPACING_IN, _LINKS_NETWORK_WIDTH_IN = 0.5, 3.4  #: Inches between neighbours, and least width of the plot.
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
    where = with_all(network, layout_boxes(network))
    low, high = frame_of(where)
    width, height = (
        max(_LINKS_NETWORK_WIDTH_IN, (high[0] - low[0]) * _LINKS_SPACING_IN),
        (high[1] - low[1]) * _LINKS_SPACING_IN,
    )
    figure = new_figure(height + 0.9, width)
    axes = figure.subplots()
    bare(axes, low, high)
    gains = gains_of(worth)
    place = {network.nodes[node].name: at for node, at in where.places.items()}
    most = max(gains.values(), default=0.0)
    scale = Normalize(0.0, most or 1.0)
    mapping: Any = ScalarMappable(scale, _COLOURS)
    pairs = sorted(gains, key=lambda pair: gains[pair])
    colours = [mapping.cmap(scale(gains[pair])) if gains[pair] > 0 else _NONE for pair in pairs]
    widths = [2.2 if gains[pair] > 0 else 1.0 for pair in pairs]
    axes.add_collection(
        LineCollection([(place[a], place[b]) for a, b in pairs], colors=colours, linewidths=widths, zorder=2)
    )
    draw_nodes(axes, network, where)
    if most > 0:
        bar = figure.colorbar(mapping, ax=axes, location="bottom", fraction=0.05, pad=0.02, aspect=40)
        name, seconds = unit_for(most, TIMES)
        bar.formatter = FuncFormatter(lambda value, _: f"{value / seconds:g}")
        bar.set_label(f"{name} less for each GB/s more on all links alike; grey: none")
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
