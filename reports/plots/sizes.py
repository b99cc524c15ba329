"""``time-size`` and ``scaling``: own time against model size and ranks; ``bandwidth``: busbw over size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...core.record import RunRecord
from ..numbers import mark_of, natural, number, size_text
from ..runs import LedgerRun, runs_of
from ..statistics import fit_power
from .look import short
from .series import (
    drawable,
    enough_ticks,
    legend,
    legend_lines,
    more_series,
    most_common,
    no_records_error,
    panels,
    series_name,
    several_solvers,
    strokes,
    write_omissions,
)

_SIZES = 3  #: Sizes from which a power is fitted.


def draw_time_size(records: Sequence[RunRecord]) -> Figure:
    """Draw own times against the variables of the largest model passed to a solver."""
    expected = "runs that answered with the help of a solver"

    def variables(run: LedgerRun) -> float | None:
        return number(run.record.size.get("variables"))

    return _draw_times("time-size", records, variables, "variables", expected, False)


def draw_scaling(records: Sequence[RunRecord]) -> Figure:
    """Draw own times against ranks, with the fitted exponent of each method that ran at three numbers of ranks."""
    expected = "answered collectives of at least three numbers of ranks for one method"
    return _draw_times("scaling", records, lambda run: run.ranks, "ranks", expected, True)


def _draw_times(
    plot: str,
    records: Sequence[RunRecord],
    size: Callable[[LedgerRun], float | None],
    label: str,
    expected: str,
    fitted: bool,
) -> Figure:
    runs = runs_of(records)
    solvers = several_solvers(runs)
    points: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        x, y = size(run), run.own_s
        if run.objective is not None and x is not None and y is not None and drawable(x) and drawable(y):
            points.setdefault(series_name(run, solvers), []).append((float(x), y))
    if fitted:
        points = {name: line for name, line in points.items() if len({x for x, _ in line}) >= _SIZES}
    if not points:
        raise no_records_error(plot, records, expected)
    names = most_common([name for name, line in points.items() for _ in line])
    fits = {name: fit for name in names if fitted and (fit := fit_power(points[name])) is not None}
    styles = strokes(names)
    for name, (_, exponent, half) in fits.items():  # with half of its 95 % interval if there are points for one
        styles[name]["label"] += f": {label[0]}^{exponent:.1f}{'' if half is None else f' ± {half:.1f}'}"
    figure, (axes,) = panels(1, legend_lines([styles[name]["label"] for name in names]), 2.6)
    for name in names:
        axes.plot(*zip(*points[name], strict=True), **{**styles[name], "linestyle": "", "alpha": 0.8})
        if name in fits:
            factor, exponent, _ = fits[name]
            ends = [min(x for x, _ in points[name]), max(x for x, _ in points[name])]
            axes.plot(ends, [factor * x**exponent for x in ends], **{**styles[name], "marker": ""})
    axes.set(xscale="log", yscale="log")
    enough_ticks(axes.xaxis)
    enough_ticks(axes.yaxis)
    axes.set(xlabel=label, ylabel="own time (s)")
    axes.grid()
    write_omissions(figure, more_series(len(points) - len(names)))
    legend(figure, names, styles)
    return figure


_PANELS = 4  #: Panels at most: those with the most runs.
_Panel = tuple[str, str]  #: A panel: instance and collective.


def draw_bandwidth(records: Sequence[RunRecord]) -> Figure:
    """Draw the panels with the most runs of at least two sizes.

    A panel for each instance and a line for each method, as in nccl-tests, by completion time, whose time model is the
    same for all methods.
    """
    runs = [run for run in runs_of(records) if _busbw(run) is not None and run.size_bytes is not None]
    solvers = several_solvers(runs)
    found: dict[_Panel, list[LedgerRun]] = {}
    for run in runs:
        found.setdefault((run.problem_name, run.record.collective or ""), []).append(run)
    found = {panel: some for panel, some in found.items() if len({run.size_bytes for run in some}) > 1}
    if not found:
        raise no_records_error("bandwidth", records, "answered collectives of at least two sizes on one instance")
    kept = sorted(found, key=lambda panel: (-len(found[panel]), natural(panel[0]), panel[1]))[:_PANELS]
    kept.sort(key=lambda panel: (natural(panel[0]), panel[1]))
    everything = [series_name(run, solvers) for panel in kept for run in found[panel]]
    names = most_common(everything)
    styles = strokes(names)
    figure, axes = panels(len(kept), legend_lines(names), 1.5)
    for axis, panel in zip(axes, kept, strict=True):
        for name in names:
            points = _points([run for run in found[panel] if series_name(run, solvers) == name])
            if points:
                axis.plot(*zip(*points, strict=True), **styles[name])
        _frame(axis, panel, sorted({run.size_bytes or 0.0 for run in found[panel]}))
    axes[-1].set_xlabel("size")
    more = len(found) - len(kept)
    pairs = f"{more} more pairs of instance and collective are not shown" if more else ""
    write_omissions(figure, pairs, more_series(len(set(everything)) - len(names)))
    legend(figure, names, styles)
    return figure


def _busbw(run: LedgerRun) -> float | None:
    value = None if mark_of(run.record) is not None else number(run.record.metrics.get("busbw_GBps"))
    return value if drawable(value) else None


def _points(runs: Sequence[LedgerRun]) -> list[tuple[float, float]]:
    """Return the mean of the runs of every size, in order."""
    by_size: dict[float, list[float]] = {}
    for run in runs:
        by_size.setdefault(run.size_bytes or 0.0, []).append(_busbw(run) or 0.0)
    return [(size, sum(values) / len(values)) for size, values in sorted(by_size.items())]


def _frame(axes: Axes, panel: _Panel, sizes: Sequence[float]) -> None:
    """Label the sizes in binary units, at most as many as fit."""
    axes.set_xscale("log", base=2)
    step = -(-len(sizes) // 6)
    chosen = list(sizes)[::step]
    axes.set_xticks(chosen, [size_text(size) for size in chosen])
    axes.set_xticks([], minor=True)
    axes.set_title(short(f"{panel[1].replace('_', '-')} on {panel[0]}", 62), loc="left")
    axes.set_ylabel("busbw (GB/s)")
    axes.set_ylim(bottom=0)
    axes.grid()
