"""``libra-allocation``: bandwidth by dimension, for EqualBW and both objectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.errors import InputError
from ...core.record import RunRecord
from ..labels import natural
from ..libra import PERF, PERF_PER_COST, LibraRun, bandwidth_GBps, libra_runs, network_name, workload_name
from ..marks import MISSING, mark_of
from ..records import latest
from .look import COLOURS, COLUMN_IN, HATCHES, new_figure, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

#: The bars of a workload, from left to right.
_BARS = ("EqualBW", PERF, PERF_PER_COST)
_WIDTH = 0.8

#: A panel: a network and a budget; its runs by workload and objective.
_Panel = dict[str, dict[str, LibraRun]]


def draw(records: Sequence[RunRecord]) -> Figure:
    """Draw stacked shares of the bandwidth: a panel a network, at its largest budget."""
    panels = _panels(records)
    if not panels:
        expected = "records of the model 'libra' with the metric bandwidth_GBps"
        raise InputError(f"none of {len(records)} records fits; expected {expected}", source="libra-allocation")
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
    handles = [_swatch(d) for d in range(dimensions)]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(8, dimensions), title="dimension")
    return figure


def _panels(records: Sequence[RunRecord]) -> dict[tuple[str, float], _Panel]:
    """Group the latest runs by network, at the largest budget with an allocation."""
    runs = latest(
        (run for run in libra_runs(records) if run.budget_GBps is not None),
        lambda run: (run.workload, run.network, run.budget_GBps, run.objective),
        lambda run: run.record,
    ).values()
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
    """Draw the bars of one network, and return its number of dimensions."""
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
    axes.set_xlim(-0.7, places[-1] + 0.7)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    return count


def _swatch(dimension: int) -> Patch:
    from matplotlib.patches import Patch

    colour, hatch = COLOURS[dimension % 8], HATCHES[dimension % 8]
    return Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=str(dimension + 1))
