"""``gap-heatmap``: gap to the best proved bound of every method on every problem."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan, nan
from typing import TYPE_CHECKING, TypeAlias

from ...core.record import RunRecord
from ..bounds import Bounds
from ..marks import MISSING, mark_of
from ..numbers import size_text
from ..runs import LedgerRun, runs_of
from .look import COLUMN_IN, new_figure, short
from .series import left_out, most_common, nothing, series_name, several_solvers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A problem: name of the instance, collective, size.
_Problem: TypeAlias = tuple[str, str, float]

#: Problems and methods that fit a page: those with the most runs.
_ROWS, _COLUMNS = 40, 14

#: Rows that a picture has room for at least, so that its bar can be labelled.
_LEAST = 6


#: Gap from which a cell is dark, and ink on light and dark cells: not plain black and white, which a page turns with
#: its own.
_DARK, _INK = 0.55, ("#111111", "#f8f8f8")


def draw(records: Sequence[RunRecord]) -> Figure:
    """Draw a cell for each method and problem: its gap in percent, or the mark that says why there is none.

    Raises
    ------
    InputError
        If no answer has a bound to be compared with.
    """
    from matplotlib import colormaps

    runs = [run for run in runs_of(records) if run.clock != "bound"]
    bounds, solvers = Bounds(runs_of(records)), several_solvers(runs)
    if all(bounds.gap(run) is None for run in runs):
        raise nothing("gap-heatmap", records, "answers of problems with a proved bound")
    problems = [_problem(run) for run in runs]
    rows = most_common(problems, _ROWS)
    kept = [run for run in runs if _problem(run) in rows]
    methods = [series_name(run, solvers) for run in kept]
    columns = most_common(methods, _COLUMNS)
    cells = {(_problem(run), series_name(run, solvers)): run for run in kept}
    figure = new_figure(1.5 + 0.145 * max(_LEAST, len(rows)), max(COLUMN_IN, 2.3 + 0.34 * len(columns)))
    axes = figure.subplots()
    shares = [[_gap(cells.get((row, column)), bounds) for column in columns] for row in rows]
    # A mesh of few colours, its bar as well, stays a drawing where an image would be dots.
    places = [range(len(columns)), range(len(rows))]
    image = axes.pcolormesh(*places, shares, cmap=colormaps["cividis_r"].resampled(20), vmin=0.0, vmax=1.0)
    axes.invert_yaxis()
    for r, row in enumerate(rows):
        for c, column in enumerate(columns):
            text = _text(cells.get((row, column)), shares[r][c])
            ink = "black" if isnan(shares[r][c]) else _INK[shares[r][c] > _DARK]
            axes.text(c, r, text, ha="center", va="center", fontsize=5, color=ink)
    axes.set_xticks(
        range(len(columns)), [short(name, 24) for name in columns], rotation=60, ha="right", rotation_mode="anchor"
    )
    axes.set_yticks(range(len(rows)), [short(_row_name(row), 40) for row in rows])
    axes.tick_params(length=0, labelsize=5.5)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, label=f"gap to the best bound ({bounds.proofs(kept)})")
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    left = (len(set(problems)) - len(rows), len(set(methods)) - len(columns))
    left_out(
        figure,
        [
            "in the cells: percent",
            f"{left[0]} more problems and {left[1]} more methods are not shown" if any(left) else "",
        ],
    )
    return figure


def _problem(run: LedgerRun) -> _Problem:
    return (run.posed, run.record.collective or "", run.size_bytes or 0.0)


def _row_name(row: _Problem) -> str:
    name, collective, size = row
    return ", ".join(
        [name, *([collective.replace("_", "-")] if collective else []), *([size_text(size)] if size else [])]
    )


def _gap(run: LedgerRun | None, bounds: Bounds) -> float:
    gap = None if run is None else bounds.gap(run)
    return nan if gap is None or not isfinite(gap) else gap


def _text(run: LedgerRun | None, gap: float) -> str:
    if not isnan(gap):
        return f"{100 * gap:.0f}" if gap >= 0.0995 or abs(gap) < 0.0005 else f"{100 * gap:.1f}"
    mark = None if run is None else mark_of(run.record)
    return "" if run is None else (mark or MISSING).text
