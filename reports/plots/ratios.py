"""``gap-heatmap``: gap to the best proved bound of every method on every problem."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from typing import TYPE_CHECKING

from ...core.record import RunRecord
from ..gaps import gap_matrix, problem_name
from .look import COLUMN_IN, new_figure, short
from .series import write_omissions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Problems and methods that fit a page: those with the most runs.
_ROWS, _COLUMNS = 40, 14

#: Rows that a plot has room for at least, so that its bar can be labelled.
_LEAST = 6


#: Gap from which a cell is dark, and ink on light and dark cells: not plain black and white, which a page turns with
#: its own.
_DARK, _INK = 0.55, ("#111111", "#f8f8f8")


def draw(records: Sequence[RunRecord]) -> Figure:
    """Draw a cell for each method and problem: its gap in percent, or the mark in its place.

    Raises
    ------
    InputError
        If no answer has a bound to be compared with.
    """
    from matplotlib import colormaps

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
    write_omissions(figure, ["in the cells: percent", matrix.left_out])
    return figure
