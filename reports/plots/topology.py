"""Drawing of a network: ranks as circles, switches as squares, link width by bandwidth."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Rectangle

from ...core.errors import InputError
from ...core.grouping import group_by_key
from ...core.schedule import Floats
from ...core.text import escape_unprintable
from ...core.topology import Topology
from ...core.units import TIMES, amount
from .look import COLOURS, COLUMN_IN, bare, box_frame, new_figure, short
from .network_layout import Layout, arc_of, first_clear_bend, layout_with_tiers

NODES, PAIRS = 640, 6000  #: More nodes, or pairs of nodes with links, cannot be distinguished.
_RADIUS_IN, _RADIUS = 0.095, 0.3  #: Radius of a node at most, in inches and in distances between neighbours.
_WIDEST, _THINNEST = 2.6, 0.45  #: Width of the fastest link and of the slowest one, in points.
_LEGIBLE = 3.4  #: Names are written from this size on, in points.
_SMALL = 4.5  #: Size of names, in points.

#: What names are written on, since links pass them.
_PLATE: Any = {"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}

_BENDS = (0.0, 0.12, -0.12, 0.18, -0.18, 0.25, -0.25)  #: Arcs that a link may take to keep off other nodes.
_FEW = 400  #: Pairs up to which links between boxes are bent, too.
_NAMED_IN = 0.22  #: Distance between neighbours, in inches, at which nodes can be named.
_CLASSES = 6  #: Rates that have a colour and a line in the legend each; others are grey.

_ORDER = (0, 4, 2, 3, 1, 5)


def draw(title: str, topology: Topology) -> Figure:
    """Draw a network; links of a pair of nodes are one line of their summed bandwidth."""
    pairs = _pairs(topology)
    check_size(len(topology.nodes), len(pairs))
    where = layout_with_tiers(topology)
    nodes, at = list(where.places), np.array(list(where.places.values()))
    place = {node: index for index, node in enumerate(nodes)}
    box_of = {node: name for name, members in where.boxes.items() for node in members}
    arcs = {  # a link within a box, or one of few, avoids other nodes
        (a, b): _arc(at, place[a], place[b], is_arc=len(pairs) <= _FEW or (a in box_of and box_of[a] == box_of.get(b)))
        for a, b in pairs
    }
    classes = _classes(pairs)
    spread = np.concatenate([at, *arcs.values()])
    low, high = spread.min(axis=0) - 0.8, spread.max(axis=0) + 0.9
    column, whole = (width / float(high[0] - low[0]) for width in (COLUMN_IN, 2 * COLUMN_IN))
    spacing_in = min(0.5, max(column, min(_NAMED_IN, whole)))  # wider than a column if names need the room
    radius = min(_RADIUS, _RADIUS_IN / spacing_in)
    one_way = any(there != back for there, back, *_ in pairs.values())
    rows = -(-len(classes) // 2) + one_way
    figure = new_figure(
        0.42 + (high[1] - low[1]) * spacing_in + 0.13 * rows, max(COLUMN_IN, (high[0] - low[0]) * spacing_in)
    )
    axes = figure.subplots()
    bare(axes, low, high)
    _draw_links(axes, pairs, arcs, classes)
    _draw_boxes(axes, where, spacing_in)
    _draw_nodes(axes, topology, where, radius, spacing_in)
    handles = _legend(pairs, classes)
    if one_way:
        arrow = "one way, or slower back"
        handles.append(Line2D([], [], color="#222222", linewidth=0.8, marker=">", markersize=3, label=arrow))
    figure.legend(handles=handles, loc="outside lower center", ncols=2, handlelength=1.6, columnspacing=1)
    figure.suptitle(f"{short(title, 54)}\n{_counts(topology)}", size=7)
    return figure


def check_size(nodes: int, pairs: int) -> None:
    """Reject a network that is too large to be looked at."""
    if nodes > NODES or pairs > PAIRS:
        raise InputError(
            f"{nodes:,} nodes with {pairs:,} linked pairs; expected at most {NODES} and {PAIRS:,} in a plot"
        )


#: Bandwidths there and back, latency there and back, and number of links of a pair of nodes.
_Pair = tuple[Fraction, Fraction, Fraction, Fraction, int]


def _pairs(topology: Topology) -> dict[tuple[int, int], _Pair]:
    pairs: dict[tuple[int, int], list[Any]] = {}
    for (a, b), link in zip(topology.link_ends, topology.links, strict=True):
        there = a < b
        entry = pairs.setdefault((min(a, b), max(a, b)), [Fraction(0), Fraction(0), Fraction(0), Fraction(0), 0])
        entry[0 if there else 1] += link.bandwidth_Bps
        place = 2 if there else 3
        entry[place] = max(entry[place], link.latency_s)
        entry[4] += 1
    return {pair: (*entry,) for pair, entry in pairs.items()}


def _classes(pairs: dict[tuple[int, int], _Pair]) -> dict[tuple[Fraction, Fraction], tuple[str, float]]:
    """Return colour and width by bandwidth and latency, fastest first; grey if there are too many."""
    kinds = sorted({_kind(pair) for pair in pairs.values()}, reverse=True)
    busiest = max(Counter(end for pair in pairs for end in pair).values(), default=1)
    crowd = min(1.0, (60 / max(1, len(pairs))) ** 0.5, 24 / busiest)
    top = kinds[0][0] if kinds else Fraction(1)
    return {
        kind: (
            COLOURS[_ORDER[index]] if len(kinds) <= _CLASSES else "#777777",
            max(_THINNEST, crowd * _WIDEST * float(kind[0] / top) ** 0.5),
        )
        for index, kind in enumerate(kinds)
    }


def _kind(pair: _Pair) -> tuple[Fraction, Fraction]:
    return max(pair[0], pair[1]), max(pair[2], pair[3])


def _legend(
    pairs: dict[tuple[int, int], _Pair], classes: dict[tuple[Fraction, Fraction], tuple[str, float]]
) -> list[Any]:
    """Return legend entries for widths and colours; of many classes the fastest, a middle one, the slowest."""
    count = Counter(_kind(pair) for pair in pairs.values())
    kinds = list(classes)
    if len(kinds) > _CLASSES:
        kinds = [kinds[0], kinds[len(kinds) // 2], kinds[-1]]
    return [
        Line2D(
            [],
            [],
            color=classes[kind][0],
            linewidth=classes[kind][1],
            label=f"{float(kind[0]) / 1e9:.4g} GB/s, {amount(kind[1], TIMES)}: {count[kind]:,} pairs",
        )
        for kind in kinds
    ]


def _counts(topology: Topology) -> str:
    parts = [
        (len(topology.ranks), "rank", "s"),
        (len(topology.switches), "switch", "es"),
        (len(topology.links), "directed link", "s"),
    ]
    return ", ".join(f"{count:,} {name}{'' if count == 1 else plural}" for count, name, plural in parts if count)


def _draw_links(
    axes: Axes,
    pairs: dict[tuple[int, int], _Pair],
    lines: dict[tuple[int, int], Floats],
    classes: dict[tuple[Fraction, Fraction], tuple[str, float]],
) -> None:
    """Draw a line for each pair, slow ones last, with an arrow if the reverse is slower."""
    order = sorted(pairs, key=lambda pair: (-classes[_kind(pairs[pair])][1], pair))
    arcs = [lines[pair] for pair in order]
    styles = [classes[_kind(pairs[pair])] for pair in order]
    crowd = 0.85 if len(order) <= 120 else 0.6
    axes.add_collection(
        LineCollection(
            arcs,
            colors=[colour for colour, _ in styles],
            linewidths=[width for _, width in styles],
            alpha=crowd,
            capstyle="round",
            zorder=1,
        )
    )
    for pair, arc, (colour, width) in zip(order, arcs, styles, strict=True):
        there, back = pairs[pair][:2]
        if there != back:
            ahead = arc if there > back else arc[::-1]
            step = (len(ahead) * 3) // 5
            axes.annotate(
                "",
                tuple(ahead[step]),
                tuple(ahead[step - 1]),
                arrowprops={
                    "arrowstyle": "-|>,head_length=0.25,head_width=0.12",
                    "color": colour,
                    "linewidth": width / 2,
                },
                zorder=2,
            )


def _arc(at: Floats, source: int, target: int, *, is_arc: bool) -> Floats:
    """Return a straight line, or the least bent arc that avoids all other nodes."""
    others = np.delete(at, [source, target], axis=0)
    if not is_arc:
        return at[[source, target]]
    return arc_of(at[source], at[target], first_clear_bend(at[source], at[target], _BENDS, others, 1.2 * _RADIUS))


def _draw_boxes(axes: Axes, where: Layout, spacing_in: float) -> None:
    """Draw a named frame around every box."""
    if len(where.boxes) == 1:
        return
    for box, nodes in where.boxes.items():
        name = escape_unprintable(box.strip())
        x, y = zip(*(where.places[node] for node in nodes), strict=True)
        low, high = (min(x) - 0.55, min(y) - 0.55), (max(x) + 0.55, max(y) + 0.9)
        box_frame(axes, low, high, "none")
        if _fits(name, (high[0] - low[0]) * spacing_in):
            axes.text(low[0] + 0.3, high[1], name, size=_SMALL, color="#555555", va="center", zorder=6, bbox=_PLATE)


def _fits(name: str, room_in: float) -> bool:
    return len(name) * 0.62 * _SMALL <= 72 * room_in


def _draw_nodes(axes: Axes, topology: Topology, where: Layout, radius: float, spacing_in: float) -> None:
    """Draw ranks as numbered circles and switches as filled squares, named if the names fit."""
    ranks = {node: rank for rank, node in enumerate(topology.rank_nodes)}
    size = min(5.0, 72 * radius * spacing_in * 0.85)
    for node, (x, y) in where.places.items():
        if node in ranks:
            axes.add_patch(Circle((x, y), radius, facecolor="white", edgecolor="#222222", linewidth=0.6, zorder=4))
            if size >= _LEGIBLE:
                axes.text(x, y, str(ranks[node]), size=size, ha="center", va="center_baseline", zorder=5)
            continue
        corner = (x - radius, y - radius)
        axes.add_patch(Rectangle(corner, 2 * radius, 2 * radius, facecolor="#444444", edgecolor="#222222", zorder=4))
    _name_rows(axes, topology, where, radius, spacing_in)


def _name_rows(axes: Axes, topology: Topology, where: Layout, radius: float, spacing_in: float) -> None:
    """Name the switches of every row within its box, or the whole row if names do not fit."""
    box_of = {node: box for box, nodes in where.boxes.items() for node in nodes}
    ranks = set(topology.rank_nodes)
    rows = group_by_key(((box_of.get(node), y), node) for node, (_, y) in where.places.items() if node not in ranks)
    for (box, y), row in rows.items():
        row.sort(key=lambda node: where.places[node][0])
        apart = where.places[row[1]][0] - where.places[row[0]][0] if len(row) > 1 else 8.0
        names = {node: escape_unprintable(topology.nodes[node].name).removeprefix(f"{box}.") for node in row}
        if not all(_fits(name, 0.95 * apart * spacing_in) for name in names.values()):
            first, last = names[min(row)], names[max(row)]
            names = {row[0]: short(f"{len(row)} switches, {first} to {last}", 48)}
        for node, name in names.items():
            x, align = (
                (where.places[node][0], "center")
                if len(names) == len(row)
                else (where.places[node][0] - radius, "left")
            )
            axes.text(
                x, y + radius + 0.12, name, size=_SMALL, ha=align, va="bottom", color="#333333", zorder=6, bbox=_PLATE
            )
