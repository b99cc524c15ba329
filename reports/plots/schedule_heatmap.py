"""Heat map of a schedule: bytes and utilization of every directed link, source by target."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ...core.schedule import Floats
from .look import new_figure, short
from .schedule_view import SCALE, Loads, Traffic, bytes_unit, loads, sparse

_LABELS = 20  #: More nodes than this are labelled sparsely.
_LETTERS = 44  #: Labels with more letters in all stand upright.
_ROWS = 256  #: Rows that can still be seen.
_GRID = 32  #: Cells of no more nodes than this are set apart by white lines.


def draw(traffic: Traffic) -> Figure:
    """Draw the heat maps of one schedule; unused links are grey, missing ones white.

    Left: bytes. Right: time of these bytes at the link's bandwidth, as a share of the most loaded link, so that a slow
    link with few bytes may be dark.
    """
    found = loads(traffic.topology, traffic.link_bytes, _ROWS)
    used_share = loads(traffic.topology, traffic.link_utilization, _ROWS, np.maximum)
    unit, size = bytes_unit(float(traffic.link_bytes.max(initial=0.0)))
    figure = new_figure(4.1, 8.2)
    left, right = figure.subplots(1, 2)
    _panel(left, traffic, found, found.matrix / size, None, f"bytes over the link ({unit})")
    bar = _panel(right, traffic, found, used_share.matrix, 1.0, "utilization (the most loaded link is full)")
    bar.ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    figure.suptitle(short(traffic.title, 100), x=0.01, ha="left")
    used, links = int((traffic.link_bytes > 0).sum()), len(traffic.topology.links)
    note = f"{used:,} of {links:,} links used; grey: unused, white: no link"
    if found.block > 1:
        note += f"; a cell is the largest of {found.block} x {found.block}"
    figure.supxlabel(note, size=6, x=0.01, ha="left", color="#555555")
    return figure


def _panel(axes: Axes, traffic: Traffic, found: Loads, matrix: Floats, largest: float | None, label: str) -> Colorbar:
    """Draw one heat map with its scale."""
    image = paint(axes, matrix, largest)
    _labels(axes, traffic, found)
    axes.set(xlabel="target", ylabel="source")
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    bar.set_label(label)
    bar.outline.set_linewidth(0.6)
    return bar


def paint(axes: Axes, matrix: Floats, largest: float | None = None) -> AxesImage:
    """Paint a matrix of loads up to the largest; 0 is grey, NaN white."""
    top = float(np.nanmax(matrix, initial=0.0)) if largest is None else largest
    scale = colormaps[SCALE].with_extremes(bad="white", under="#DDDDDD")
    painted = np.ma.masked_invalid(np.where(matrix == 0, -1.0, matrix))
    image = axes.imshow(painted, scale, vmin=0.0, vmax=top or 1.0, interpolation="nearest")
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)
    if len(matrix) <= _GRID:
        for line in range(1, len(matrix)):
            axes.axhline(line - 0.5, color="white", linewidth=0.5)
            axes.axvline(line - 0.5, color="white", linewidth=0.5)
    axes.tick_params(length=2, width=0.5, pad=1.5)
    return image


def _labels(axes: Axes, traffic: Traffic, found: Loads) -> None:
    """Name rows and columns, all or some of them, and set the switches apart."""
    names = [short(traffic.topology.nodes[node].name, 12) for node in found.nodes.tolist()]
    shown = [i for i in sparse(len(names), _LABELS) if i < found.ranks or len(names) <= _LABELS]
    places = [i / found.block + 0.5 / found.block - 0.5 for i in shown]
    labels = [names[i] for i in shown]
    long = sum(map(len, labels)) > _LETTERS
    axes.set_xticks(places, labels, rotation=90 if long else 0)
    axes.set_yticks(places, labels)
    rows = len(found.matrix)
    if 0 < found.ranks < len(names):
        edge = found.ranks / found.block - 0.5
        for line in (axes.axhline, axes.axvline):
            line(edge, color="#777777", linewidth=0.6, linestyle=(0, (3, 2)))
        if len(names) > _LABELS:
            middle = (edge + rows - 0.5) / 2
            style: dict[str, Any] = {"size": 6, "color": "#555555", "clip_on": False}
            axes.text(rows - 0.2, middle, "switches", rotation=90, va="center", ha="left", **style)
            axes.text(middle, -0.7, "switches", va="bottom", ha="center", **style)
