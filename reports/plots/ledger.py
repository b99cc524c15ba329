"""Plots of a ledger of records: performance profiles, own times, bandwidth over size, and gaps to proved bounds."""

from collections.abc import Callable, Mapping, Sequence
from math import isclose, isnan, nan
from typing import Any, TypeAlias

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ...core.grouping import group_by_key
from ...core.record import RunRecord
from ...core.solver import relative_gap
from ...core.units import size_text
from ..bounds import Bounds
from ..gaps import gap_matrix, problem_name, problem_of
from ..numbers import mark_of, natural, number
from ..objective_types import is_ranked
from ..runs import LedgerRun, runs_of
from ..statistics import fit_power, geometric_mean, mean
from . import look

_Values: TypeAlias = dict[tuple[Any, ...], dict[str, float]]  #: Value of every series on every problem.
_CLOCKS = 2  #: Panels of objectives, one a clock: those with the most problems.

#: What is compared: own time, the completion time, or the objective by a clock.
_OWN, _COMPLETION = "own time", "completion time"


def draw_profile(records: Sequence[RunRecord]) -> Figure:
    """Draw, for every method, the share of the problems that it answers within a factor of the best.

    Dolan and More, Benchmarking optimization software with performance profiles, Math. Program. 91 (2002). A run that
    failed, and a method that was not run on a problem, never come within any factor: every curve is over the same
    problems. Own and completion times are compared across all methods; objectives only within one type, for the time
    models with the most problems.
    """
    runs = runs_of(records)
    solvers = look.several_solvers(runs)
    panels = {what: _values(runs, solvers, what) for what in (_OWN, _COMPLETION)}
    clocks = sorted({run.clock for run in runs if run.clock and is_ranked(run.clock)} - {"simulated"})
    by_clock = {clock: _values(runs, solvers, clock) for clock in clocks}
    for clock in sorted(by_clock, key=lambda c: (-len(by_clock[c]), c))[:_CLOCKS]:
        panels[f"objective, {clock}"] = by_clock[clock]
    panels = {title: values for title, values in panels.items() if values}
    if not panels:
        raise look.no_records_error("performance-profile", records, "a problem that two methods or solvers answered")
    everything = [name for values in panels.values() for line in values.values() for name in line]
    names = look.most_common(everything)
    styles = look.strokes(names)
    figure, axes = look.panels(len(panels), look.legend_lines(names))
    for panel, (title, values) in zip(axes, panels.items(), strict=True):
        _draw(panel, title, {name: ratios(values, name) for name in names}, len(values), styles)
    axes[-1].set_xlabel("within this factor of the best")
    return look.finish(figure, names, styles, look.more_series(len(set(everything)) - len(names)), marker="")


def _values(runs: Sequence[LedgerRun], solvers: bool, what: str) -> _Values:
    """Return own times, completion times, or objectives in one time model of the problems that two series answered."""
    by_problem: _Values = {}
    for run in runs:
        value = run.own_s if what == _OWN else run.completion_s if what == _COMPLETION else run.objective
        if run.objective is None or value is None or not look.drawable(value) or run.record.sense == "maximize":
            continue
        if what in (_OWN, _COMPLETION) or run.clock == what:
            question = None if what in (_OWN, _COMPLETION) else run.question
            key = (run.problem, question, run.record.seed, run.record.threads)
            by_problem.setdefault(key, {})[look.series_name(run, solvers)] = value
    return {problem: line for problem, line in by_problem.items() if len(line) > 1}


def ratios(values: _Values, name: str) -> list[float]:
    """Return the sorted factors to the best of every problem that a series answered."""
    return sorted(line[name] / min(line.values()) for line in values.values() if name in line)


def _draw(
    axes: Axes, title: str, lines: Mapping[str, list[float]], count: int, styles: Mapping[str, dict[str, Any]]
) -> None:
    """Draw the share of ``count`` problems over factors, which are sorted and 1 or more."""
    furthest = max((line[-1] for line in lines.values() if line), default=1.0)
    end = max(furthest * 1.15, 1.2)
    for name, line in lines.items():
        if line:
            shares = [(i + 1) / count for i in range(len(line))]
            axes.step([1.0, *line, end], [0.0, *shares, shares[-1]], where="post", **{**styles[name], "marker": ""})
    if end > 3:  # closer together, powers would be too few ticks
        axes.set_xscale("log", base=2 if end < 100 else 10)
        look.plain_ticks(axes.xaxis)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set(xlim=(1.0, end), ylim=(0.0, 1.03))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_title(look.short(f"{title}, {look.count_text(count, 'problem')}", 60), loc="left")
    axes.set_ylabel("problems")
    axes.grid()


def draw_gap_profile(records: Sequence[RunRecord]) -> Figure:
    """Draw the share of the problems that each method answers within a factor of the best bound.

    Problems are those of the heat map; one that a method did not answer is never within a factor.
    """
    matrix = gap_matrix(records, len(records), look.MOST)
    factors = {
        name: sorted(
            1 + max(cell.gap, 0.0)
            for row in matrix.rows
            if (cell := matrix.cells.get((row, name))) is not None and cell.gap is not None
        )
        for name in matrix.columns
    }
    styles = look.strokes(matrix.columns)
    figure, (axes,) = look.panels(1, look.legend_lines(matrix.columns), 2.2)
    _draw(axes, f"bounds: {matrix.proofs}", factors, len(matrix.rows), styles)
    axes.set_xlabel("answer within this factor of the best bound")
    return look.finish(figure, matrix.columns, styles, matrix.left_out, marker="")


_SIZES = 3  #: Sizes from which a power is fitted.


def draw_time_size(records: Sequence[RunRecord]) -> Figure:
    """Draw own times against the variables of the largest model passed to a solver."""
    expected = "runs that answered with the help of a solver"
    return _draw_times(
        "time-size", records, lambda run: number(run.record.size.get("variables")), "variables", expected, False
    )


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
    with_fit: bool,
) -> Figure:
    runs = runs_of(records)
    solvers = look.several_solvers(runs)
    points: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        x, y = size(run), run.own_s
        if run.objective is not None and x is not None and y is not None and look.drawable(x) and look.drawable(y):
            points.setdefault(look.series_name(run, solvers), []).append((float(x), y))
    if with_fit:
        points = {name: line for name, line in points.items() if len({x for x, _ in line}) >= _SIZES}
    if not points:
        raise look.no_records_error(plot, records, expected)
    names = look.most_common([name for name, line in points.items() for _ in line])
    fits = {name: fit for name in names if with_fit and (fit := fit_power(points[name])) is not None}
    styles = look.strokes(names)
    for name, (_, exponent, half) in fits.items():  # with half of its 95 % interval if there are points for one
        styles[name]["label"] += f": {label[0]}^{exponent:.1f}{'' if half is None else f' ± {half:.1f}'}"
    figure, (axes,) = look.panels(1, look.legend_lines([styles[name]["label"] for name in names]), 2.6)
    for name in names:
        axes.plot(*zip(*points[name], strict=True), **{**styles[name], "linestyle": "", "alpha": 0.8})
        if name in fits:
            factor, exponent, _ = fits[name]
            ends = [min(x for x, _ in points[name]), max(x for x, _ in points[name])]
            axes.plot(ends, [factor * x**exponent for x in ends], **{**styles[name], "marker": ""})
    axes.set(xscale="log", yscale="log")
    look.enough_ticks(axes.xaxis)
    look.enough_ticks(axes.yaxis)
    axes.set(xlabel=label, ylabel="own time (s)")
    axes.grid()
    return look.finish(figure, names, styles, look.more_series(len(points) - len(names)))


_PANELS = 4  #: Panels at most: those with the most runs.
_WIDEST = 1e3  #: Gaps beyond this are mistakes, which the tables show.
_Panel = tuple[str, str]  #: A panel: instance and collective.


def draw_bandwidth(records: Sequence[RunRecord]) -> Figure:
    """Draw the panels with the most runs of at least two sizes.

    A panel for each instance and a line for each method, as in nccl-tests, by completion time, whose time model is the
    same for all methods.
    """
    runs = [run for run in runs_of(records) if _busbw(run) is not None and run.size_bytes is not None]
    solvers = look.several_solvers(runs)
    groups = group_by_key(((run.problem_name, run.record.collective or ""), run) for run in runs)
    panels = {panel: some for panel, some in groups.items() if len({run.size_bytes for run in some}) > 1}
    if not panels:
        raise look.no_records_error("bandwidth", records, "answered collectives of at least two sizes on one instance")
    top = sorted(panels, key=lambda panel: (-len(panels[panel]), natural(panel[0]), panel[1]))[:_PANELS]
    top.sort(key=lambda panel: (natural(panel[0]), panel[1]))
    everything = [look.series_name(run, solvers) for panel in top for run in panels[panel]]
    names = look.most_common(everything)
    styles = look.strokes(names)
    figure, axes = look.panels(len(top), look.legend_lines(names), 1.5)
    for axis, panel in zip(axes, top, strict=True):
        for name in names:
            runs_of_name = (run for run in panels[panel] if look.series_name(run, solvers) == name)
            by_size = group_by_key((run.size_bytes or 0.0, _busbw(run) or 0.0) for run in runs_of_name)
            if by_size:
                sizes = sorted(by_size)
                axis.plot(sizes, [sum(by_size[size]) / len(by_size[size]) for size in sizes], **styles[name])
        _frame(axis, panel, sorted({run.size_bytes or 0.0 for run in panels[panel]}))
    axes[-1].set_xlabel("size")
    more = len(panels) - len(top)
    pairs = f"{more} more pairs of instance and collective are not shown" if more else ""
    return look.finish(figure, names, styles, pairs, look.more_series(len(set(everything)) - len(names)))


def _busbw(run: LedgerRun) -> float | None:
    value = None if mark_of(run.record) is not None else number(run.record.metrics.get("busbw_GBps"))
    return value if look.drawable(value) else None


def _frame(axes: Axes, panel: _Panel, sizes: Sequence[float]) -> None:
    axes.set_xscale("log", base=2)
    step = -(-len(sizes) // 6)
    ticks = list(sizes)[::step]
    axes.set_xticks(ticks, [size_text(size) for size in ticks])
    axes.set_xticks([], minor=True)
    axes.set_title(look.short(f"{panel[1].replace('_', '-')} on {panel[0]}", 62), loc="left")
    axes.set_ylabel("busbw (GB/s)")
    axes.set_ylim(bottom=0)
    axes.grid()


def draw_anytime(records: Sequence[RunRecord]) -> Figure:
    """Draw the gap of every method over its seconds: a panel for each of the problems with the most reports."""
    runs = runs_of(records)
    bounds, solvers = Bounds(runs), look.several_solvers(runs)
    of_runs = ((run, line) for run in runs if (line := gaps_over_time(run, bounds)))
    every = group_by_key((problem_of(run), (look.series_name(run, solvers), line)) for run, line in of_runs)
    lines_of = {problem: lines for problem, lines in every.items() if any(len(line) > 1 for _, line in lines)}
    if not lines_of:
        raise look.no_records_error("anytime", records, "runs that reported answers and have a proved bound")
    top = sorted(lines_of, key=lambda problem: (-sum(len(line) for _, line in lines_of[problem]), problem))[:_PANELS]
    everything = [name for problem in top for name, _ in lines_of[problem]]
    names = look.most_common(everything)
    styles = look.strokes(names)
    figure, axes = look.panels(len(top), look.legend_lines(names))
    for axis, problem in zip(axes, top, strict=True):
        for name, line in lines_of[problem]:
            if name in styles:
                axis.step(*zip(*line, strict=True), where="post", **styles[name])
        _scale_gaps(axis, max(gap for _, line in lines_of[problem] for _, gap in line))
        axis.set_title(look.short(problem_name(problem), 62), loc="left")
        axis.set_ylabel("gap")
        axis.grid()
    axes[-1].set_xlabel("seconds")
    more = f"{len(lines_of) - len(top)} more problems are not shown" if len(lines_of) > len(top) else ""
    return look.finish(figure, names, styles, more, look.more_series(len(set(everything)) - len(names)))


def _scale_gaps(axes: Axes, largest: float) -> None:
    """Scale axes of times and gaps: both by powers, gaps around 0 evenly."""
    axes.set_xscale("log")
    look.enough_ticks(axes.xaxis)
    axes.set_yscale("symlog", linthresh=0.01)
    axes.set_ylim(-0.002, max(0.02, 1.7 * largest))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")


def gaps_over_time(run: LedgerRun, bounds: Bounds) -> list[tuple[float, float]]:
    """Return the seconds and the gap of every better answer that a run reported, and of its verified one.

    The gaps are to the best proved bound. Reports of a solver count if the method has none, and if the last of them is
    the verified objective: its model may have another one.
    """
    entries = [
        (each.get("of"), seconds, objective)
        for each in run.record.history
        if isinstance(each, Mapping)
        and (seconds := number(each.get("seconds"))) is not None
        and (objective := number(each.get("objective"))) is not None
    ]
    reports = [each for each in entries if each[0] == "method"]
    if not reports and entries and run.objective and isclose(entries[-1][2], run.objective):
        reports = entries
    line: list[tuple[float, float]] = []
    best = bounds.best(run)
    for _, seconds, objective in reports:
        gap = relative_gap(objective, best)
        if gap is not None and gap <= _WIDEST and look.drawable(seconds) and (not line or gap < line[-1][1]):
            line.append((seconds, gap))
    gap, seconds = bounds.gap(run), max(run.own_s or 0.0, line[-1][0] if line else 0.0)
    return (
        line if gap is None or abs(gap) > _WIDEST or not look.drawable(seconds) else [*line, (seconds, max(gap, 0.0))]
    )


_Point = tuple[float, float, int]  #: A method in the plot: mean own time, mean gap, problems.


def draw_time(records: Sequence[RunRecord]) -> Figure:
    """Draw a point for each method: geometric mean time and mean gap over its answered problems."""
    runs = runs_of(records)
    bounds, solvers = Bounds(runs), look.several_solvers(runs)
    by_name: dict[str, list[tuple[float, float]]] = {}
    clock: dict[str, str] = {}
    for run in runs:
        if (point := _point(run, bounds)) is not None:
            name = f"{look.series_name(run, solvers)} [{run.clock}]"
            by_name.setdefault(name, []).append(point)
            clock[name] = run.clock or ""
    if not by_name:
        raise look.no_records_error("gap-time", records, "answers of problems with a proved bound")
    names = look.most_common([name for name, points in by_name.items() for _ in points])
    places = {
        name: (geometric_mean([x for x, _ in points]) or 0.0, mean([y for _, y in points]) or 0.0, len(points))
        for name in names
        if (points := by_name[name])
    }
    styles = look.strokes(names)
    figure, (axes,) = look.panels(1, len(names), 2.5)
    clocks = sorted({clock[name] for name in names})
    for index, one in enumerate(clocks):
        ends = front([places[name] for name in names if clock[name] == one])
        axes.step(
            *zip(*((x, y) for x, y, _ in ends), strict=True),
            look.LINES[index % 4],
            where="post",
            color="#777777",
            zorder=1,
        )
    for name in names:
        x, y, count = places[name]
        label = f"{look.short(name, look.LETTERS)}  ({y:.1%}, {x:.3g} s, {look.count_text(count, 'run')})"
        axes.plot([x], [y], **{**styles[name], "linestyle": "", "markersize": 4.5, "label": label})
    _scale_gaps(axes, max(y for _, y, _ in places.values()))
    axes.set(xlabel="own time (s), geometric mean", ylabel="mean gap to the best bound")
    axes.grid()
    means = "means are over the problems that a method answered; a front for each clock"
    look.write_omissions(figure, look.more_series(len(by_name) - len(names)), f"bounds: {bounds.proofs(runs)}; {means}")
    figure.legend(loc="outside lower left", ncols=1, handlelength=1.4)
    return figure


def _point(run: LedgerRun, bounds: Bounds) -> tuple[float, float] | None:
    gap, seconds = bounds.gap(run, timed=True), run.own_s
    if gap is None or abs(gap) > _WIDEST or seconds is None or not look.drawable(seconds):
        return None
    return None if run.clock in (None, "bound") else (seconds, gap)


def front(points: Sequence[_Point]) -> list[_Point]:
    """Return the points that no other point dominates, from the fastest to the best."""
    best: list[_Point] = []
    for point in sorted(points):
        if not best or point[1] < best[-1][1]:
            best.append(point)
    return best


_ROWS, _COLUMNS = 40, 14  #: Problems and methods that fit a page: those with the most runs.
_LEAST = 6  #: Rows that a plot has room for at least, so that its bar can be labelled.

#: Gap from which a cell is dark, and ink on light and dark cells: not plain black and white, which a page turns with
#: its own.
_DARK, _INK = 0.55, ("#111111", "#f8f8f8")


def draw_heatmap(records: Sequence[RunRecord]) -> Figure:
    """Draw a cell for each method and problem: its gap in percent, or the mark in its place."""
    matrix = gap_matrix(records, _ROWS, _COLUMNS)
    rows, columns, cells = matrix.rows, matrix.columns, matrix.cells
    figure = look.new_figure(1.5 + 0.145 * max(_LEAST, len(rows)), max(look.COLUMN_IN, 2.3 + 0.34 * len(columns)))
    axes = figure.subplots()
    grid = [[cells.get((row, column)) for column in columns] for row in rows]
    shares = [[nan if cell is None or cell.gap is None else cell.gap for cell in line] for line in grid]
    # A mesh of few colours, its bar as well, stays a drawing where an image would be dots.
    places = [range(len(columns)), range(len(rows))]
    image = axes.pcolormesh(*places, shares, cmap=colormaps["cividis_r"].resampled(20), vmin=0.0, vmax=1.0)
    axes.invert_yaxis()
    for r, line in enumerate(grid):
        for c, cell in enumerate(line):
            ink = "black" if isnan(shares[r][c]) else _INK[shares[r][c] > _DARK]
            axes.text(c, r, "" if cell is None else cell.text, ha="center", va="center", fontsize=5, color=ink)
    axes.set_xticks(
        range(len(columns)), [look.short(name, 24) for name in columns], rotation=60, ha="right", rotation_mode="anchor"
    )
    axes.set_yticks(range(len(rows)), [look.short(problem_name(row), 40) for row in rows])
    axes.tick_params(length=0, labelsize=5.5)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, label=f"gap to the best bound ({matrix.proofs})")
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    look.write_omissions(figure, "in the cells: percent", matrix.left_out)
    return figure
