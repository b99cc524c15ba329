"""``libra-speedup``: speedup over EqualBW against the budget; ``libra-allocation``: bandwidth by dimension."""

from collections.abc import Sequence
from math import ceil
from operator import attrgetter
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ...core.record import RunRecord
from ..numbers import MISSING, mark_of, natural, number
from ..runs import latest
from ..tables.libra import PERF, PERF_PER_COST, LibraRun, bandwidth_GBps, libra_runs, network_name, workload_name
from .look import COLOURS, COLUMN_IN, HATCHES, LINES, MARKERS, new_figure, no_records_error, short


def _latest_runs(records: Sequence[RunRecord]) -> list[LibraRun]:
    """Return the latest run of every workload, network, budget and objective."""
    runs = (run for run in libra_runs(records) if run.budget_GBps is not None)
    key = attrgetter("workload", "network", "budget_GBps", "objective")
    return list(latest(runs, key, lambda run: run.record).values())


def draw_speedup(records: Sequence[RunRecord]) -> Figure:
    """Draw a panel for each objective."""
    runs = _latest_runs(records)
    speedups = [(run, None if mark_of(run.record) else number(run.record.metrics.get("speedup"))) for run in runs]
    pairs = [(run, speedup) for run, speedup in speedups if speedup is not None]
    if not pairs:
        raise no_records_error("libra-speedup", records, "records of the model 'libra' with the metric speedup")
    workloads = sorted({run.workload for run, _ in pairs}, key=natural)
    networks = sorted({run.network for run, _ in pairs}, key=natural)
    objectives = [objective for objective in (PERF, PERF_PER_COST) if any(r.objective == objective for r, _ in pairs)]
    lines: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for run, speedup in pairs:
        lines.setdefault((run.objective, run.workload, run.network), []).append((run.budget_GBps or 0.0, speedup))
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
                if points := lines.get((objective, workload, network)):
                    axes.plot(*zip(*sorted(points), strict=True), **_colour(w), **_stroke(n))
        axes.axhline(1.0, color="black", linewidth=0.6, zorder=1)
        axes.set_title(f"objective: {objective}", loc="left")
        axes.set_ylabel("speedup over EqualBW")
        axes.grid(axis="y")
    budgets = sorted({run.budget_GBps or 0.0 for run, _ in pairs})
    axes = grid[-1, 0]
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{budget:.6g}" for budget in budgets])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("bandwidth per NPU (GB/s)")
    handles = [_line(name, workload=w) for w, name in enumerate(names)]
    handles += [Line2D([], [], linestyle="none", label=" ")] * (columns * rows - len(names))
    handles += [_line(name, network=n) for n, name in enumerate(strokes)]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns + 1, handlelength=2.6, columnspacing=1.2)
    if len(pairs) < len(runs):
        figure.suptitle(f"{len(runs) - len(pairs)} of {len(runs)} runs have no speedup", fontsize=6.5)
    return figure


def _colour(workload: int) -> dict[str, Any]:
    colour = COLOURS[workload % 8]
    return {"color": colour, "markerfacecolor": "white" if workload // 8 % 2 else colour}


def _stroke(network: int) -> dict[str, Any]:
    return {"linestyle": LINES[network % 4], "marker": MARKERS[network % 8]}


def _line(label: str, *, workload: int | None = None, network: int | None = None) -> Line2D:
    """Make an entry of the legend: a workload's colour, or a network's stroke."""
    colour = {"color": "black"} if workload is None else {**_colour(workload), "linewidth": 3.0}
    stroke = {} if network is None else _stroke(network)
    return Line2D([], [], label=label, **colour, **stroke)


#: The bars of a workload, from left to right.
_BARS = ("EqualBW", PERF, PERF_PER_COST)
_WIDTH = 0.8

_Panel = dict[str, dict[str, LibraRun]]  #: A panel: a network and a budget; its runs by workload and objective.


def draw_allocation(records: Sequence[RunRecord]) -> Figure:
    """Draw stacked shares of the bandwidth: a panel a network, at its largest budget."""
    panels = _panels(records)
    if not panels:
        expected = "records of the model 'libra' with the metric bandwidth_GBps"
        raise no_records_error("libra-allocation", records, expected)
    names = [short(workload_name(workload)) for panel in panels.values() for workload in panel]
    group_in = max(0.56, 0.056 * max(map(len, names)))
    figure = new_figure(0.4 + 1.6 * len(panels), max(COLUMN_IN, 0.6 + group_in * max(map(len, panels.values()))))
    grid = figure.subplots(len(panels), 1, squeeze=False)
    dimensions = 0
    for axes, ((network, budget), panel) in zip(grid[:, 0], panels.items(), strict=True):
        dimensions = max(dimensions, _draw_panel(axes, panel))
        title = f"{short(network_name(network))}, {budget:.6g} GB/s per NPU"
        axes.set_title(title, loc="left", pad=13)
    figure.supylabel("share of bandwidth", fontsize=7)
    handles = [
        Patch(facecolor=COLOURS[d % 8], hatch=HATCHES[d % 8], edgecolor="white", label=str(d + 1))
        for d in range(dimensions)
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(8, dimensions), title="dimension")
    return figure


def _panels(records: Sequence[RunRecord]) -> dict[tuple[str, float], _Panel]:
    """Group the latest runs by network, at the largest budget with an allocation."""
    runs = _latest_runs(records)
    budgets: dict[str, float] = {}
    for run in runs:
        if _shares(run) is not None:
            budgets[run.network] = max(budgets.get(run.network, 0.0), run.budget_GBps or 0.0)
    panels: dict[tuple[str, float], _Panel] = {}
    for network in sorted(budgets, key=natural):
        panel: _Panel = {}
        for run in sorted(runs, key=lambda run: natural(run.workload)):
            if (run.network, run.budget_GBps) == (network, budgets[network]):
                panel.setdefault(run.workload, {})[run.objective] = run
        panels[network, budgets[network]] = panel
    return panels


def _shares(run: LibraRun | None) -> list[float] | None:
    """Return the share of every dimension; None if the run has no valid answer."""
    if run is None or mark_of(run.record) is not None:
        return None
    bandwidths = bandwidth_GBps(run.record)
    return None if bandwidths is None else [b / sum(bandwidths) for b in bandwidths]


def _draw_panel(axes: Axes, panel: _Panel) -> int:
    places: list[float] = []
    count = max(len(s) for runs in panel.values() for run in runs.values() if (s := _shares(run)) is not None)
    for w, (workload, runs) in enumerate(panel.items()):
        for b, name in enumerate(_BARS):
            place = w * len(_BARS) * 1.15 + b
            places.append(place)
            shares = [1 / count] * count if name == "EqualBW" else _shares(runs.get(name))
            if shares is None:
                mark = mark_of(runs[name].record) if name in runs else MISSING
                axes.text(place, 0.03, (mark or MISSING).text, rotation=90, ha="center", va="bottom")
                continue
            bottom = 0.0
            for d, share in enumerate(shares):
                axes.bar(place, share, _WIDTH, bottom, color=COLOURS[d % 8], hatch=HATCHES[d % 8], ec="white", lw=0)
                bottom += share
        name, middle = short(workload_name(workload)), w * len(_BARS) * 1.15 + 1
        axes.text(middle, 1.03, name, size=6.2, ha="center", va="bottom", transform=axes.get_xaxis_transform())
    axes.set_xticks(places, list(_BARS) * len(panel), rotation=90)
    axes.tick_params(axis="x", length=0, pad=1, labelsize=6.2)
    axes.set(xlim=(-0.7, places[-1] + 0.7), ylim=(0, 1))
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    return count
