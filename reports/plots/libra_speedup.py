"""``libra-speedup``: speedup over EqualBW against the budget, a line for every workload and network."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from ...core.errors import InputError
from ...core.record import RunRecord
from ..labels import natural
from ..libra import PERF, PERF_PER_COST, LibraRun, libra_runs, network_name, workload_name
from ..marks import mark_of
from ..numbers import number
from ..records import latest
from .look import COLOURS, LINES, MARKERS, new_figure, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: Points of a line: budget and speedup.
_Points = list[tuple[float, float]]


def draw(records: Sequence[RunRecord]) -> Figure:
    """Draw a panel for each objective."""
    runs = list(
        latest(
            (run for run in libra_runs(records) if run.budget_GBps is not None),
            lambda run: (run.workload, run.network, run.budget_GBps, run.objective),
            lambda run: run.record,
        ).values()
    )
    drawn = [run for run in runs if _speedup(run) is not None]
    if not drawn:
        expected = "records of the model 'libra' with the metric speedup"
        raise InputError(f"none of {len(records)} records fits; expected {expected}", source="libra-speedup")
    workloads = sorted({run.workload for run in drawn}, key=natural)
    networks = sorted({run.network for run in drawn}, key=natural)
    objectives = [objective for objective in (PERF, PERF_PER_COST) if any(r.objective == objective for r in drawn)]
    names = [short(workload_name(name), 20) for name in workloads]
    strokes = [short(network_name(name), 20) for name in networks]
    # Legends are filled column by column: two columns of workloads where there is room, and one of networks.
    columns = 2 if 2 * max(map(len, names)) + max(map(len, strokes)) <= 36 else 1
    rows = max(len(networks), ceil(len(workloads) / columns))
    figure = new_figure(0.5 + 1.6 * len(objectives) + 0.14 * rows)
    grid = figure.subplots(len(objectives), 1, sharex=True, sharey=True, squeeze=False)
    for axes, objective in zip(grid[:, 0], objectives, strict=True):
        for w, workload in enumerate(workloads):
            for n, network in enumerate(networks):
                _draw_line(axes, _points(drawn, workload, network, objective), w, n)
        axes.axhline(1.0, color="black", linewidth=0.6, zorder=1)
        axes.set_title(f"objective: {objective}", loc="left")
        axes.set_ylabel("speedup over EqualBW")
        axes.grid(axis="y")
    _budget_axis(grid[-1, 0], sorted({run.budget_GBps or 0.0 for run in drawn}))
    handles = [_line(name, workload=w) for w, name in enumerate(names)]
    handles += [_nothing()] * (columns * rows - len(names))
    handles += [_line(name, network=n) for n, name in enumerate(strokes)]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns + 1, handlelength=2.6, columnspacing=1.2)
    if len(drawn) < len(runs):
        figure.suptitle(f"{len(runs) - len(drawn)} of {len(runs)} runs have no speedup", fontsize=6.5)
    return figure


def _speedup(run: LibraRun) -> float | None:
    return None if mark_of(run.record) is not None else number(run.record.metrics.get("speedup"))


def _points(runs: Sequence[LibraRun], workload: str, network: str, objective: str) -> _Points:
    return sorted(
        (run.budget_GBps or 0.0, _speedup(run) or 0.0)
        for run in runs
        if (run.workload, run.network, run.objective) == (workload, network, objective)
    )


def _draw_line(axes: Axes, points: _Points, workload: int, network: int) -> None:
    """Draw one line: the colour tells the workload, the stroke and the marker tell the network."""
    if points:
        budgets, speedups = zip(*points, strict=True)
        axes.plot(budgets, speedups, **_colour(workload), **_stroke(network))


def _colour(workload: int) -> dict[str, Any]:
    """Return the style of a workload's colour; the second round of colours has hollow markers."""
    colour = COLOURS[workload % 8]
    return {"color": colour, "markerfacecolor": "white" if workload // 8 % 2 else colour}


def _stroke(network: int) -> dict[str, Any]:
    return {"linestyle": LINES[network % 4], "marker": MARKERS[network % 8]}


def _line(label: str, *, workload: int | None = None, network: int | None = None) -> Line2D:
    """Make an entry of the legend: a workload's colour, or a network's stroke."""
    from matplotlib.lines import Line2D

    colour = {"color": "black"} if workload is None else {**_colour(workload), "linewidth": 3.0}
    stroke = {} if network is None else _stroke(network)
    return Line2D([], [], label=label, **colour, **stroke)


def _nothing() -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", label=" ")


def _budget_axis(axes: Axes, budgets: Sequence[float]) -> None:
    """Label the budgets that occur, on a logarithmic scale."""
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{budget:.6g}" for budget in budgets])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("bandwidth per NPU (GB/s)")
