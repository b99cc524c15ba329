"""Plots of studies: advice, selected schedules, found topologies, and training iterations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from ...core.errors import InputError
from ...core.grouping import group_by_key
from ...core.units import SIZES, amount, unit_for
from .look import COLOURS, COLUMN_IN, HATCHES, LETTERS, enough_ticks, finish, legend_lines, new_figure, short, strokes

#: Curves by the column of a row that has their seconds.
CURVES = {
    "bound_s": "proved bound",
    "best_s": "best schedule found",
    "nccl_s": "NCCL's schedule",
    "nccl_predicted_s": "NCCL's prediction",
    "ring_s": "ring",
    "measured_s": "measured",
}


def draw_advice(advice: Mapping[str, Any], columns: int = 2) -> Figure:
    """Draw the curves of ``cwb advise --json``, as wide as so many columns of a paper."""
    points = {
        name: [(row["size_bytes"], row["size_bytes"] / row[key]) for row in advice["rows"] if row[key]]
        for key, name in CURVES.items()
    }
    names = [name for name, some in points.items() if some]
    styles = strokes(names)
    figure = new_figure(2.6 + 0.13 * legend_lines(names), columns * COLUMN_IN)
    axes = figure.subplots()
    for name in names:
        sizes, rates = zip(*points[name], strict=True)
        axes.plot(sizes, [rate * advice["busbw_factor"] / 1e9 for rate in rates], **styles[name])
    axes.set_ylim(bottom=0)
    _label_sizes(axes, advice, "bus bandwidth (GB/s)")
    return finish(figure, names, styles)


#: Colour of schedules that are chosen nowhere.
_OTHERS = "#CCCCCC"


def draw_selection(selection: Mapping[str, Any]) -> Figure:
    """Draw ``select.json`` of ``cwb select``: time over size, dotted lines where the choice changes."""
    names = list(dict.fromkeys(one["schedule"] for one in selection["ranges"]))
    seconds = group_by_key((curve["schedule"], curve["seconds"]) for curve in selection["curves"])
    styles = strokes(names)
    figure = new_figure(2.6 + 0.13 * legend_lines(names))
    axes = figure.subplots()
    for name, curves in seconds.items():
        for curve in curves:
            style = {**styles[name], "marker": ""} if name in styles else {"color": _OTHERS, "linewidth": 0.5}
            axes.plot(selection["sizes"], [1e6 * value for value in curve], zorder=2 if name in styles else 1, **style)
    for size in selection["crossovers"]:
        axes.axvline(size, color="black", linewidth=0.5, linestyle=":", zorder=0)
    axes.set_yscale("log")
    _label_sizes(axes, selection, "completion time (us)")
    enough_ticks(axes.yaxis)
    labels = {short(name, LETTERS): styles[name] for name in names}
    return finish(figure, list(labels), labels, marker="")


def _label_sizes(axes: Any, data: Mapping[str, Any], ylabel: str) -> None:
    """Label a plot over the sizes of a collective; powers of two are written as binary sizes."""
    axes.set(xlabel=f"size of {data['collective']} (B)", ylabel=ylabel)
    axes.set_title(f"{short(data['instance'], 36)}, {data['ranks']:,} ranks", loc="left")
    axes.grid()
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=2, numticks=7))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: amount(value, SIZES)))
    axes.xaxis.set_minor_formatter(NullFormatter())


_LETTERS = 52  #: Letters of a name in the legend.


def draw_frontier(search: Mapping[str, Any]) -> Figure:
    """Draw the frontier of ``cwb find-topology --json``, the lower bound, and the best network for the job."""
    rows = search["frontier"]
    steps = [row["T_L"] for row in rows]
    bandwidth = [float(Fraction(row["T_B"])) for row in rows]
    bound = search["lower_bound"]
    least_steps, least = bound["T_L"], float(Fraction(bound["T_B"]))
    figure = new_figure(2.0 + 0.14 * (len(rows) + 2))
    axes = figure.subplots()
    axes.step(steps, bandwidth, where="post", color=COLOURS[0], linewidth=0.8, zorder=1)
    for number, (row, x, y) in enumerate(zip(rows, steps, bandwidth, strict=True), 1):
        best = row["best"]
        time = f"{row['all_reduce_s'] * 1e6:,.4g} us"
        label = f"{number}  {short(row['topology'], _LETTERS)}  ({time}{', best' if best else ''})"
        axes.plot(
            [x], [y], "*" if best else "o", color=COLOURS[4 if best else 0], markersize=7 if best else 4, label=label
        )
        axes.annotate(str(number), (x, y), xytext=(4, 4), textcoords="offset points")
    axes.plot([least_steps], [least], "x", color="black", markersize=4, label="lower bounds of both")
    axes.axhline(least, color="black", linewidth=0.5, linestyle=":", zorder=0)
    axes.axvline(least_steps, color="black", linewidth=0.5, linestyle=":", zorder=0)
    axes.set(xlabel="steps of an all-gather, T_L / alpha", ylabel="bandwidth time, T_B / (M/B)")
    axes.set_title(f"{search['nodes']:,} nodes of degree {search['degree']}", loc="left")
    axes.margins(0.08)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid()
    figure.legend(loc="outside lower left", ncols=1, handlelength=1.4)
    return figure


ROWS, BARS = 64, 50_000  #: More rows cannot be read, and more bars are not drawn.


@dataclass(frozen=True)
class Bar:
    """A task; ``row`` is the stream, and ``what`` the kind that its colour shows."""

    row: str
    what: str
    start_s: float
    seconds: float


def draw_timeline(title: str, bars: Sequence[Bar]) -> Figure:
    """Draw at most 64 streams with 50,000 tasks, a row for each stream in the given order."""
    rows, whats = list(dict.fromkeys(b.row for b in bars)), list(dict.fromkeys(b.what for b in bars))
    if not 0 < len(rows) <= ROWS or len(bars) > BARS:
        text = f"{len(bars):,} tasks on {len(rows):,} streams; expected at most {BARS:,} on {ROWS}"
        raise InputError(text, source="--timeline")
    end = max(b.start_s + b.seconds for b in bars)
    unit, size = unit_for(end, ("s", "ms", "us"))
    figure = new_figure(1.1 + 0.25 * len(rows), 7.0)
    axes = figure.subplots()
    for index, what in enumerate(whats):
        boxes = [(rows.index(b.row), b.start_s / size, b.seconds / size) for b in bars if b.what == what]
        corners = [[(x, y - 0.4), (x + dx, y - 0.4), (x + dx, y + 0.4), (x, y + 0.4)] for y, x, dx in boxes]
        patches = PolyCollection(corners, facecolor=COLOURS[index % len(COLOURS)], label=short(what, 40))
        patches.set(hatch=HATCHES[index // len(COLOURS) % len(HATCHES)], edgecolor="white", linewidth=0)
        axes.add_collection(patches)
    axes.set(xlim=(0, end / size or 1.0), ylim=(len(rows) - 0.5, -0.5))
    axes.set_yticks(range(len(rows)), [short(row, 30) for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"time ({unit})")
    axes.set_title(short(title, 100), loc="left")
    figure.legend(loc="outside lower center", ncols=4)
    return figure
