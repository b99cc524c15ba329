"""``bandwidth``: busbw over the size of a collective.

A panel for each instance and a line for each method, as in nccl-tests, by completion time, whose time model is the
same for all methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.record import RunRecord
from ..labels import natural
from ..marks import mark_of
from ..numbers import number, size_text
from ..runs import LedgerRun, runs_of
from .look import short
from .series import (
    drawable,
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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Panels at most: those with the most runs.
_PANELS = 4

#: A panel: instance and collective.
_Panel = tuple[str, str]


def draw(records: Sequence[RunRecord]) -> Figure:
    """Draw the panels with the most runs of at least two sizes.

    Raises
    ------
    InputError
        If no collective was run with two sizes.
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
    panels_more, names_more = len(found) - len(kept), len(set(everything)) - len(names)
    write_omissions(
        figure,
        [
            f"{panels_more} more pairs of instance and collective are not shown" if panels_more else "",
            f"{names_more} more series are not shown" if names_more else "",
        ],
    )
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
