"""``performance-profile``: share of the problems that a method answers within a factor of the best.

Dolan and More, Benchmarking optimization software with performance profiles, Math. Program. 91 (2002). A run that
failed, and a method that was not run on a problem, never come within any factor, so that every curve is over the same
problems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ...core.record import RunRecord
from ..objective_types import is_ranked
from ..runs import LedgerRun, runs_of
from .look import short
from .series import (
    count_text,
    drawable,
    legend,
    legend_lines,
    more_series,
    most_common,
    no_records_error,
    panels,
    plain_ticks,
    series_name,
    several_solvers,
    strokes,
    write_omissions,
)

_Values: TypeAlias = dict[tuple[Any, ...], dict[str, float]]  #: Value of every series on every problem.
_CLOCKS = 2  #: Panels of objectives, one a clock: those with the most problems.

#: What is compared: own time, the completion time, or the objective by a clock.
_OWN, _COMPLETION = "own time", "completion time"


def draw(records: Sequence[RunRecord]) -> Figure:
    """Draw panels of own times, of completion times, and of objectives by time model.

    Completion times have one time model, and are compared across all methods; objectives only within one type, for the
    time models with the most problems.
    """
    runs = runs_of(records)
    solvers = several_solvers(runs)
    found = {what: _values(runs, solvers, what) for what in (_OWN, _COMPLETION)}
    clocks = sorted({run.clock for run in runs if run.clock and is_ranked(run.clock)} - {"simulated"})
    by_clock = {clock: _values(runs, solvers, clock) for clock in clocks}
    for clock in sorted(by_clock, key=lambda c: (-len(by_clock[c]), c))[:_CLOCKS]:
        found[f"objective, {clock}"] = by_clock[clock]
    found = {title: values for title, values in found.items() if values}
    if not found:
        raise no_records_error("performance-profile", records, "a problem that two methods or solvers answered")
    everything = [name for values in found.values() for line in values.values() for name in line]
    names = most_common(everything)
    styles = strokes(names)
    figure, axes = panels(len(found), legend_lines(names))
    for panel, (title, values) in zip(axes, found.items(), strict=True):
        _draw(panel, title, values, {name: styles[name] for name in names})
    axes[-1].set_xlabel("within this factor of the best")
    write_omissions(figure, more_series(len(set(everything)) - len(names)))
    legend(figure, names, styles, marker="")
    return figure


def _values(runs: Sequence[LedgerRun], solvers: bool, what: str) -> _Values:
    """Return own times, completion times, or objectives in one time model of the problems that two series answered."""
    found: _Values = {}
    for run in runs:
        value = run.own_s if what == _OWN else run.completion_s if what == _COMPLETION else run.objective
        if run.objective is None or value is None or not drawable(value) or run.record.sense == "maximize":
            continue
        if what in (_OWN, _COMPLETION) or run.clock == what:
            question = None if what in (_OWN, _COMPLETION) else run.question
            key = (run.problem, question, run.record.seed, run.record.threads)
            found.setdefault(key, {})[series_name(run, solvers)] = value
    return {problem: line for problem, line in found.items() if len(line) > 1}


def ratios(values: _Values, name: str) -> list[float]:
    """Return the sorted factors to the best of every problem that a series answered."""
    return sorted(line[name] / min(line.values()) for line in values.values() if name in line)


def _draw(axes: Axes, title: str, values: _Values, styles: Mapping[str, dict[str, Any]]) -> None:
    factors = {name: ratios(values, name) for name in styles}
    furthest = max((line[-1] for line in factors.values() if line), default=1.0)
    end = max(furthest * 1.15, 1.2)
    for name, line in factors.items():
        if line:
            shares = [(i + 1) / len(values) for i in range(len(line))]
            axes.step([1.0, *line, end], [0.0, *shares, shares[-1]], where="post", **{**styles[name], "marker": ""})
    if end > 3:  # closer together, powers would be too few ticks
        axes.set_xscale("log", base=2 if end < 100 else 10)
        plain_ticks(axes.xaxis)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set(xlim=(1.0, end), ylim=(0.0, 1.03))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_title(short(f"{title}, {count_text(len(values), 'problem')}", 60), loc="left")
    axes.set_ylabel("problems")
    axes.grid()
