"""Schedules over time: a Gantt chart of the hops on every link, and the utilization of the links."""

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ...core.errors import InputError
from ...core.schedule import Floats, Ints
from ...core.trace import Trace
from ...core.units import TIMES, unit_for
from .look import COLOURS, new_figure, short
from .schedule_traffic import FEW, SCALE, Traffic

ROWS = 40  #: Rows of a plot: more links cannot be read.
_VECTORS = 5_000  #: More bars than this are drawn as pixels, whatever the format.

#: Bars have edges where they are thicker than this part of a row, and no more than so many are side by side.
_THIN, _EDGED = 0.2, 150

_NARROW = 0.003  #: Part of the time below which a bar is narrower than its edges.


class Bars(NamedTuple):
    """Hops on the chosen links, which are in the order of the rows: positions in the trace, and rows."""

    links: list[int]
    hop: Ints
    row: Ints


def busiest(traffic: Traffic, trace: Trace, most: int) -> Bars:
    """Choose the busiest links; their rows are in the order of the topology."""
    is_busy = np.bincount(traffic.sends.path_links, minlength=len(traffic.topology.links)) > 0
    order = np.lexsort((np.arange(len(is_busy)), -trace.link_busy_s, ~is_busy))
    links = np.sort(order[: min(most, int(is_busy.sum()))])
    row_of = np.full(len(is_busy), -1, dtype=np.int64)
    row_of[links] = np.arange(len(links))
    row = row_of[traffic.sends.path_links]
    hop = np.flatnonzero(row >= 0)
    return Bars(links.tolist(), hop, row[hop])


def assign_lanes(row: Ints | Floats, start: Floats | Ints, end: Floats | Ints, rows: int) -> tuple[Ints, Ints]:
    """Assign overlapping bars of a row to lanes; return the lane of every bar and the lanes of every row."""
    lane = np.zeros(len(row), dtype=np.int64)
    lanes = np.ones(rows, dtype=np.int64)
    order = np.lexsort((end, start, row))
    same = 1e-9 * float(end.max(initial=0.0))  # a bar that ends when another one starts does not overlap it
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    here, count = -1, 0
    columns = zip(order.tolist(), row[order].tolist(), start[order].tolist(), end[order].tolist(), strict=True)
    for bar, at, begin, finish in columns:
        if at != here:
            free, busy, here, count = [], [], at, 0
        while busy and busy[0][0] <= begin + same:
            heappush(free, heappop(busy)[1])
        if not free:
            free, count = [count], count + 1
            lanes[int(at)] = count
        lane[bar] = heappop(free)
        heappush(busy, (finish, int(lane[bar])))
    return lane, lanes


def draw_gantt(traffic: Traffic, trace: Trace) -> Figure:
    """Draw the busiest links, coloured by step, or by chunk if there is only one step."""
    bars = busiest(traffic, trace, ROWS)
    unit, size = unit_for(trace.completion_s, TIMES)
    rows = len(bars.links)
    figure = new_figure(1.3 + max(0.6, 0.125 * rows), 7.0)
    axes = figure.subplots()
    sends = traffic.hop_send[bars.hop]
    what = traffic.colour_keys[0]
    value = traffic.step if what == "step" and traffic.step is not None else traffic.sends.chunk
    start, end = trace.hop_start_s[bars.hop] / size, trace.hop_end_s[bars.hop] / size
    lane, lanes = assign_lanes(bars.row, start, end, rows)
    high = 0.8 / lanes[bars.row]
    top = bars.row - 0.4 + lane * high
    _bars(axes, np.stack([start, end, top, top + high]), value[sends], what)
    axes.set(xlim=(0, trace.completion_s / size or 1.0), ylim=(max(rows, 1) - 0.5, -0.5))
    axes.set_yticks(range(rows), [_name(traffic, link) for link in bars.links], size=6)
    axes.tick_params(axis="y", length=0, pad=2)
    axes.set_xlabel(f"time ({unit}), {trace.mode.value}")
    axes.grid(axis="x")
    total = len(traffic.topology.links)
    which = f"all {total} links" if rows == total else f"the {rows:,} busiest of {total:,} links"
    axes.set_title(f"{short(traffic.title, 70)}: {which}", loc="left")
    return figure


def _name(traffic: Traffic, link: int) -> str:
    """Name a link so that both ends can be recognized, however long they are."""
    source, target = traffic.link_names[link].split(" → ") if traffic.link_names[link].count(" → ") == 1 else ("", "")
    return f"{short(source, 13)} → {short(target, 13)}" if source else short(traffic.link_names[link], 29)


def _bars(axes: Axes, boxes: Floats, value: Ints, what: str) -> None:
    """Draw bars given by start, end, bottom and top, with a legend of colours."""
    start, end, high, low = boxes
    x = np.stack([start, start, end, end], axis=1)
    y = np.stack([high, low, low, high], axis=1)
    top = int(value.max(initial=0))
    norm = Normalize(0, max(top, 1))
    palette = np.array([to_rgba(colour) for colour in COLOURS])
    colours = palette[value] if top < FEW else colormaps[SCALE](norm(value))
    shapes = PolyCollection(np.stack([x, y], axis=2), facecolors=colours)  # type: ignore[arg-type]
    # A thin white edge sets neighbours apart where there is room for it.
    thick = float((low - high).min(initial=1.0)) > _THIN
    roomy = thick and np.unique(high, return_counts=True)[1].max(initial=0) <= _EDGED
    # One that takes hardly any time gets an edge of its own colour, or it would not be seen.
    narrow = (end - start < _NARROW * float(end.max(initial=0.0))) & (len(value) <= _VECTORS)
    shapes.set_edgecolor(np.where(narrow[:, None], colours, to_rgba("white" if roomy else "none")))  # type: ignore[arg-type]
    shapes.set_linewidth(np.where(narrow, 0.6, 0.3 if roomy else 0.0))  # type: ignore[arg-type]
    shapes.set_rasterized(len(value) > _VECTORS)
    axes.add_collection(shapes)
    figure = axes.figure
    if top < FEW:
        handles = [Patch(facecolor=COLOURS[v], label=str(v)) for v in sorted(set(value.tolist()))]
        figure.legend(handles=handles, loc="outside right upper", title=what)
    else:
        bar = figure.colorbar(ScalarMappable(norm, SCALE), ax=axes, fraction=0.025, pad=0.01)
        bar.set_label(what)
        bar.outline.set_linewidth(0.6)


def draw_utilization(title: str, edges_s: Floats, shares: Floats) -> Figure:
    """Draw the mean and the largest utilization over all links.

    ``edges_s`` are the limits of the intervals; ``shares`` has a row for every link and a column for every interval,
    values from 0 to 1.
    """
    if not shares.size or edges_s[-1] <= 0:
        raise InputError("all sends have zero duration; there is no utilization to draw")
    unit, size = unit_for(float(edges_s[-1]), TIMES)
    mean, largest = shares.mean(axis=0), shares.max(axis=0)
    figure = new_figure(2.5, 5.0)
    axes = figure.subplots()
    edges = edges_s / size
    busiest = f"busiest link in each 1/{len(mean)} of the time"
    axes.stairs(mean, edges, fill=True, color=COLOURS[5], alpha=0.35)
    axes.stairs(mean, edges, color=COLOURS[0], linewidth=1.2, label="mean of all links", baseline=None)
    axes.stairs(largest, edges, color=COLOURS[4], linewidth=0.7, label=busiest, baseline=None)
    average = float(mean.mean())
    axes.axhline(average, color="#555555", linewidth=0.7, linestyle=":", label=f"mean over time: {average:.1%}")
    axes.set_xlim(0, edges[-1])
    axes.set_ylim(0, max(1.05, 1.05 * float(np.max(largest))))
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set(xlabel=f"time ({unit})", ylabel="utilization")
    axes.grid(axis="y")
    axes.set_title(short(title, 60), loc="left")
    figure.legend(loc="outside lower center", ncols=3, handlelength=2.2, columnspacing=1.2)
    return figure
