"""``time-size``: own time against model size; ``scaling``: own time against ranks.

The second one has fitted exponents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...core.record import RunRecord
from ..numbers import number
from ..runs import LedgerRun, runs_of
from ..statistics import fit_power
from .series import (
    drawable,
    enough_ticks,
    legend,
    legend_lines,
    most_common,
    no_records_error,
    panels,
    series_name,
    several_solvers,
    strokes,
    write_omissions,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Sizes from which a power is fitted.
_SIZES = 3

#: Points of a series, of a size and seconds each.
_Points = list[tuple[float, float]]


def draw_size(records: Sequence[RunRecord]) -> Figure:
    """Draw own times against the variables of the largest model passed to a solver.

    Raises
    ------
    InputError
        If no run passed a model to a solver.
    """
    expected = "runs that answered with the help of a solver"
    return _draw(
        "time-size", records, lambda run: number(run.record.size.get("variables")), "variables", expected, False
    )


def draw_ranks(records: Sequence[RunRecord]) -> Figure:
    """Draw own times against ranks, with the fitted exponent of each method.

    Raises
    ------
    InputError
        If no method answered collectives of three numbers of ranks.
    """
    expected = "answered collectives of at least three numbers of ranks for one method"
    return _draw("scaling", records, lambda run: run.ranks, "ranks", expected, True)


def _draw(
    plot: str,
    records: Sequence[RunRecord],
    size: Callable[[LedgerRun], float | None],
    label: str,
    expected: str,
    fitted: bool,
) -> Figure:
    runs = runs_of(records)
    solvers = several_solvers(runs)
    points: dict[str, _Points] = {}
    for run in runs:
        x, y = size(run), run.own_s
        if run.objective is not None and x is not None and y is not None and drawable(x) and drawable(y):
            points.setdefault(series_name(run, solvers), []).append((float(x), y))
    if fitted:
        points = {name: line for name, line in points.items() if len({x for x, _ in line}) >= _SIZES}
    if not points:
        raise no_records_error(plot, records, expected)
    names = most_common([name for name, line in points.items() for _ in line])
    fits = {name: fit_power(points[name]) if fitted else None for name in names}
    styles = strokes(names)
    for name in names:
        styles[name]["label"] += _exponent(fits[name], label)
    figure, (axes,) = panels(1, legend_lines([styles[name]["label"] for name in names]), 2.6)
    for name in names:
        axes.plot(*zip(*points[name], strict=True), **{**styles[name], "linestyle": "", "alpha": 0.8})
        if (fit := fits[name]) is not None:
            ends = [min(x for x, _ in points[name]), max(x for x, _ in points[name])]
            axes.plot(ends, [fit[0] * x ** fit[1] for x in ends], **{**styles[name], "marker": ""})
    axes.set_xscale("log")
    axes.set_yscale("log")
    enough_ticks(axes.xaxis)
    enough_ticks(axes.yaxis)
    axes.set_xlabel(label)
    axes.set_ylabel("own time (s)")
    axes.grid()
    more = len(points) - len(names)
    write_omissions(figure, [f"{more} more series are not shown" if more else ""])
    legend(figure, names, styles)
    return figure


def _exponent(fit: tuple[float, float, float | None] | None, label: str) -> str:
    """Format the exponent, with half of its 95 % interval if there are points for one."""
    if fit is None:
        return ""
    half = "" if fit[2] is None else f" ± {fit[2]:.1f}"
    return f": {label[0]}^{fit[1]:.1f}{half}"
