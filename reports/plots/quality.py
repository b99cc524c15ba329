"""``gap-time``: gap to the best proved bound against own time, with a Pareto front for each time model."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum, log
from typing import TYPE_CHECKING

from ...core.record import RunRecord
from ..bounds import Bounds
from ..runs import LedgerRun, runs_of
from .look import LINES, short
from .series import (
    LETTERS,
    count_text,
    drawable,
    enough_ticks,
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

#: Gaps beyond this are mistakes, which the tables show.
_WIDEST = 1e3

#: A method in the plot: mean own time, mean gap, problems.
_Point = tuple[float, float, int]


def draw(records: Sequence[RunRecord]) -> Figure:
    """Draw a point for each method: geometric mean time and mean gap over its answered problems.

    Raises
    ------
    InputError
        If no answer has a bound to be compared with.
    """
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
    places = {name: _mean(found[name]) for name in names}
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
    axes.set_xlabel("own time (s), geometric mean")
    axes.set_ylabel("mean gap to the best bound")
    axes.grid()
    more = len(found) - len(names)
    write_omissions(
        figure,
        [
            f"{more} more series are not shown" if more else "",
            f"bounds: {bounds.proofs(runs)}; means are over the problems that a method answered; a front for each "
            "clock",
        ],
    )
    figure.legend(loc="outside lower left", ncols=1, handlelength=1.4)
    return figure


def _point(run: LedgerRun, bounds: Bounds) -> tuple[float, float] | None:
    gap, seconds = bounds.gap(run), run.own_s
    if gap is None or abs(gap) > _WIDEST or seconds is None or not drawable(seconds):
        return None
    return None if run.clock in (None, "bound") else (seconds, gap)


def _mean(points: Sequence[tuple[float, float]]) -> _Point:
    times = [x for x, _ in points]
    return exp(fsum(map(log, times)) / len(times)), fsum(y for _, y in points) / len(points), len(points)


def front(points: Sequence[_Point]) -> list[_Point]:
    """Return the points that no other point dominates, from the fastest to the best."""
    kept: list[_Point] = []
    for point in sorted(points):
        if not kept or point[1] < kept[-1][1]:
            kept.append(point)
    return kept
