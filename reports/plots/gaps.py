"""``gap-time``: gap to the best proved bound against own time; ``gap-heatmap``: by method and problem."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan

from matplotlib import colormaps
from matplotlib.figure import Figure

from ...core.record import RunRecord
from ..bounds import Bounds
from ..gaps import gap_matrix, problem_name
from ..runs import LedgerRun, runs_of
from ..statistics import geometric_mean, mean
from .look import COLUMN_IN, LINES, new_figure, short
from .series import (
    LETTERS,
    count_text,
    drawable,
    enough_ticks,
    more_series,
    most_common,
    no_records_error,
    panels,
    series_name,
    several_solvers,
    strokes,
    write_omissions,
)

_WIDEST = 1e3  #: Gaps beyond this are mistakes, which the tables show.
_Point = tuple[float, float, int]  #: A method in the plot: mean own time, mean gap, problems.


def draw_time(records: Sequence[RunRecord]) -> Figure:
    """Draw a point for each method: geometric mean time and mean gap over its answered problems."""
    runs = runs_of(records)
    bounds, solvers = Bounds(runs), several_solvers(runs)
    found: dict[str, list[tuple[float, float]]] = {}
    clock: dict[str, str] = {}
    for run in runs:
        if (point := _point(run, bounds)) is not None:
            name = f"{series_name(run, solvers)} [{run.clock}]"
            found.setdefault(name, []).append(point)
            clock[name] = run.clock or ""
    if not found:
        raise no_records_error("gap-time", records, "answers of problems with a proved bound")
    names = most_common([name for name, points in found.items() for _ in points])
    places = {
        name: (geometric_mean([x for x, _ in points]) or 0.0, mean([y for _, y in points]) or 0.0, len(points))
        for name in names
        if (points := found[name])
    }
    styles = strokes(names)
    figure, (axes,) = panels(1, len(names), 2.5)
    clocks = sorted({clock[name] for name in names})
    for index, one in enumerate(clocks):
        ends = front([places[name] for name in names if clock[name] == one])
        axes.step(
            *zip(*((x, y) for x, y, _ in ends), strict=True), LINES[index % 4], where="post", color="#777777", zorder=1
        )
    for name in names:
        x, y, count = places[name]
        label = f"{short(name, LETTERS)}  ({y:.1%}, {x:.3g} s, {count_text(count, 'run')})"
        axes.plot([x], [y], **{**styles[name], "linestyle": "", "markersize": 4.5, "label": label})
    axes.set_xscale("log")
    enough_ticks(axes.xaxis)
    axes.set_yscale("symlog", linthresh=0.01)
    axes.set_ylim(-0.002, max(0.02, 1.7 * max(y for _, y, _ in places.values())))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set(xlabel="own time (s), geometric mean", ylabel="mean gap to the best bound")
    axes.grid()
    means = "means are over the problems that a method answered; a front for each clock"
    write_omissions(figure, more_series(len(found) - len(names)), f"bounds: {bounds.proofs(runs)}; {means}")
    figure.legend(loc="outside lower left", ncols=1, handlelength=1.4)
    return figure


def _point(run: LedgerRun, bounds: Bounds) -> tuple[float, float] | None:
    gap, seconds = bounds.gap(run), run.own_s
    if gap is None or abs(gap) > _WIDEST or seconds is None or not drawable(seconds):
        return None
    return None if run.clock in (None, "bound") else (seconds, gap)


def front(points: Sequence[_Point]) -> list[_Point]:
    """Return the points that no other point dominates, from the fastest to the best."""
    kept: list[_Point] = []
    for point in sorted(points):
        if not kept or point[1] < kept[-1][1]:
            kept.append(point)
    return kept


_ROWS, _COLUMNS = 40, 14  #: Problems and methods that fit a page: those with the most runs.
_LEAST = 6  #: Rows that a plot has room for at least, so that its bar can be labelled.


#: Gap from which a cell is dark, and ink on light and dark cells: not plain black and white, which a page turns with
#: its own.
_DARK, _INK = 0.55, ("#111111", "#f8f8f8")


def draw_heatmap(records: Sequence[RunRecord]) -> Figure:
    """Draw a cell for each method and problem: its gap in percent, or the mark in its place."""
    matrix = gap_matrix(records, _ROWS, _COLUMNS)
    rows, columns, cells = matrix.rows, matrix.columns, matrix.cells
    figure = new_figure(1.5 + 0.145 * max(_LEAST, len(rows)), max(COLUMN_IN, 2.3 + 0.34 * len(columns)))
    axes = figure.subplots()
    found = [[cells.get((row, column)) for column in columns] for row in rows]
    shares = [[nan if cell is None or cell.gap is None else cell.gap for cell in line] for line in found]
    # A mesh of few colours, its bar as well, stays a drawing where an image would be dots.
    places = [range(len(columns)), range(len(rows))]
    image = axes.pcolormesh(*places, shares, cmap=colormaps["cividis_r"].resampled(20), vmin=0.0, vmax=1.0)
    axes.invert_yaxis()
    for r, line in enumerate(found):
        for c, cell in enumerate(line):
            ink = "black" if isnan(shares[r][c]) else _INK[shares[r][c] > _DARK]
            axes.text(c, r, "" if cell is None else cell.text, ha="center", va="center", fontsize=5, color=ink)
    axes.set_xticks(
        range(len(columns)), [short(name, 24) for name in columns], rotation=60, ha="right", rotation_mode="anchor"
    )
    axes.set_yticks(range(len(rows)), [short(problem_name(row), 40) for row in rows])
    axes.tick_params(length=0, labelsize=5.5)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, label=f"gap to the best bound ({matrix.proofs})")
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    write_omissions(figure, "in the cells: percent", matrix.left_out)
    return figure
