"""Traffic of a schedule: its sends, loads of links and of pairs of nodes, and their heat maps."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ...core.schedule import Floats, Ints, Sends
from ...core.topology import Topology
from ...core.units import SIZES, unit_for
from .look import new_figure, short

FEW = 8  #: A few steps or chunks get distinct colours; more get a colour scale.

#: Colour map of everything that is a scale: colour-blind safe, light to dark; no colour in it is white.
SCALE = "viridis_r"


@dataclass(frozen=True, eq=False)
class Traffic:
    """Sends of a schedule, trees as a chunk each, with the links they use.

    Sends may have a ``step``, and a ``root``, the rank at the root of their tree.
    """

    title: str
    topology: Topology
    sends: Sends
    chunk_bytes: Floats
    step: Ints | None = None
    root: Ints | None = None

    @cached_property
    def hop_send(self) -> Ints:
        """Send of every hop."""
        return self.sends.hop_send.astype(np.int64)

    @cached_property
    def link_bytes(self) -> Floats:
        """Total bytes over every link."""
        weights = self.chunk_bytes[self.sends.chunk][self.hop_send]
        return np.bincount(self.sends.path_links, weights, minlength=len(self.topology.links)).astype(np.float64)

    @cached_property
    def link_utilization(self) -> Floats:
        """Time of every link's bytes at its bandwidth, relative to the most loaded link."""
        seconds = self.link_bytes / np.array([float(link.bandwidth_Bps) for link in self.topology.links])
        return np.asarray(seconds / (seconds.max(initial=0.0) or 1.0), dtype=np.float64)

    @cached_property
    def colour_keys(self) -> tuple[str, ...]:
        """Properties to show by colour, the most useful first: steps if there are several, then chunks."""
        if self.step is None:
            return ("chunk",) if self.root is None else ("chunk", "root")
        return ("step", "chunk") if self.step.max(initial=0) > 0 else ("chunk", "step")

    @cached_property
    def link_names(self) -> list[str]:
        """Names of the links; parallel ones after the first are numbered."""
        counts: dict[tuple[str, str], int] = {}
        names = []
        for link in self.topology.links:
            ends = link.source, link.target
            counts[ends] = counts.get(ends, 0) + 1
            names.append(f"{link.source} → {link.target}" + (f" #{counts[ends]}" if counts[ends] > 1 else ""))
        return names


class Loads(NamedTuple):
    """Loads between nodes, or between blocks of neighbouring nodes where there are many."""

    #: (blocks, blocks) Load from source (row) to target (column), the largest pair of a block; NaN where there is
    #: no link
    matrix: Floats
    nodes: Ints  #: the nodes in the order of rows and columns: ranks, then switches
    block: int
    ranks: int


def loads(topology: Topology, link_loads: Floats, limit: int = 512, together: np.ufunc = np.add) -> Loads:
    """Arrange the loads of links by their ends in at most ``limit`` rows; ``together`` combines parallel links."""
    ranks = list(topology.rank_nodes)
    is_rank = np.zeros(len(topology.nodes), dtype=np.bool_)
    is_rank[ranks] = True
    nodes = np.concatenate([np.array(ranks, dtype=np.int64), np.flatnonzero(~is_rank)])
    place = np.empty(len(nodes), dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    pair, inverse = np.unique(place[ends[:, 0]] * len(nodes) + place[ends[:, 1]], return_inverse=True)
    total = np.zeros(len(pair))
    together.at(total, inverse, link_loads)
    block = -(-len(nodes) // limit)
    rows = -(-len(nodes) // block)
    flat = np.full((rows, rows), -1.0)
    np.maximum.at(flat, (pair // len(nodes) // block, pair % len(nodes) // block), total)
    flat[flat < 0] = np.nan
    return Loads(flat, nodes, block, len(ranks))


def sparse(count: int, most: int) -> list[int]:
    """Return positions to label, at most so many: every 1st, 2nd, 5th, 10th, ..."""
    steps = (base * 10**power for power in range(10) for base in (1, 2, 5))
    step = next(step for step in steps if -(-count // step) <= most)
    return list(range(0, count, step))


_LABELS = 20  #: More nodes than this are labelled sparsely.
_LETTERS = 44  #: Labels with more letters in all stand upright.
_ROWS = 256  #: Rows that can still be seen.
_GRID = 32  #: Cells of no more nodes than this are set apart by white lines.


def draw_heatmap(traffic: Traffic) -> Figure:
    """Draw the heat maps of one schedule; unused links are grey, missing ones white.

    Left: bytes. Right: time of these bytes at the link's bandwidth, as a share of the most loaded link, so that a slow
    link with few bytes may be dark.
    """
    load = loads(traffic.topology, traffic.link_bytes, _ROWS)
    used_share = loads(traffic.topology, traffic.link_utilization, _ROWS, np.maximum)
    unit, size = unit_for(float(traffic.link_bytes.max(initial=0.0)), SIZES)
    figure = new_figure(4.1, 8.2)
    left, right = figure.subplots(1, 2)
    _panel(left, traffic, load, load.matrix / size, None, f"bytes over the link ({unit})")
    bar = _panel(right, traffic, load, used_share.matrix, 1.0, "utilization (the most loaded link is full)")
    bar.ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    figure.suptitle(short(traffic.title, 100), x=0.01, ha="left")
    count, links = int((traffic.link_bytes > 0).sum()), len(traffic.topology.links)
    note = f"{count:,} of {links:,} links used; grey: unused, white: no link"
    if load.block > 1:
        note += f"; a cell is the largest of {load.block} x {load.block}"
    figure.supxlabel(note, size=6, x=0.01, ha="left", color="#555555")
    return figure


def _panel(axes: Axes, traffic: Traffic, load: Loads, matrix: Floats, largest: float | None, label: str) -> Colorbar:
    image = paint(axes, matrix, largest)
    _labels(axes, traffic, load)
    axes.set(xlabel="target", ylabel="source")
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    bar.set_label(label)
    bar.outline.set_linewidth(0.6)
    return bar


def paint(axes: Axes, matrix: Floats, largest: float | None = None) -> AxesImage:
    """Paint a matrix of loads up to the largest; 0 is grey, NaN white."""
    top = float(np.nanmax(matrix, initial=0.0)) if largest is None else largest
    scale = colormaps[SCALE].with_extremes(bad="white", under="#DDDDDD")
    values = np.ma.masked_invalid(np.where(matrix == 0, -1.0, matrix))
    image = axes.imshow(values, scale, vmin=0.0, vmax=top or 1.0, interpolation="nearest")
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)
    if len(matrix) <= _GRID:
        for line in range(1, len(matrix)):
            axes.axhline(line - 0.5, color="white", linewidth=0.5)
            axes.axvline(line - 0.5, color="white", linewidth=0.5)
    axes.tick_params(length=2, width=0.5, pad=1.5)
    return image


def _labels(axes: Axes, traffic: Traffic, load: Loads) -> None:
    """Name rows and columns, all or some of them, and set the switches apart."""
    names = [short(traffic.topology.nodes[node].name, 12) for node in load.nodes.tolist()]
    ticks = [i for i in sparse(len(names), _LABELS) if i < load.ranks or len(names) <= _LABELS]
    places = [i / load.block + 0.5 / load.block - 0.5 for i in ticks]
    labels = [names[i] for i in ticks]
    long = sum(map(len, labels)) > _LETTERS
    axes.set_xticks(places, labels, rotation=90 if long else 0)
    axes.set_yticks(places, labels)
    rows = len(load.matrix)
    if 0 < load.ranks < len(names):
        edge = load.ranks / load.block - 0.5
        for line in (axes.axhline, axes.axvline):
            line(edge, color="#777777", linewidth=0.6, linestyle=(0, (3, 2)))
        if len(names) > _LABELS:
            middle = (edge + rows - 0.5) / 2
            style: dict[str, Any] = {"size": 6, "color": "#555555", "clip_on": False}
            axes.text(rows - 0.2, middle, "switches", rotation=90, va="center", ha="left", **style)
            axes.text(middle, -0.7, "switches", va="bottom", ha="center", **style)
