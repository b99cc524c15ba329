"""Pareto plot of the topology finder: steps and bandwidth time of the best networks."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .look import COLOURS, new_figure, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Letters of a name in the legend.
_LETTERS = 52


def draw(found: Mapping[str, Any]) -> Figure:
    """Draw the frontier of ``cwb find-topology --json``, the lower bound, and the best network for the job.

    Parameters
    ----------
    found : mapping
        With ``frontier``, ``lower_bound``, ``nodes`` and ``degree``; T_B are texts such as ``"31/32"``.
    """
    from matplotlib.ticker import MaxNLocator

    rows = found["frontier"]
    steps = [row["T_L"] for row in rows]
    bandwidth = [float(Fraction(row["T_B"])) for row in rows]
    bound = found["lower_bound"]
    least_steps, least = bound["T_L"], float(Fraction(bound["T_B"]))
    figure = new_figure(2.0 + 0.14 * (len(rows) + 2))
    axes = figure.subplots()
    axes.step(steps, bandwidth, where="post", color=COLOURS[0], linewidth=0.8, zorder=1)
    for number, (row, x, y) in enumerate(zip(rows, steps, bandwidth, strict=True), 1):
        best = row["best"]
        time = f"{row['all_reduce_s'] * 1e6:,.4g} us"
        label = f"{number}  {short(row['topology'], _LETTERS)}  ({time}{', best' if best else ''})"
        axes.plot(
            [x], [y], "*" if best else "o", color=COLOURS[4 if best else 0], markersize=7 if best else 4, label=label
        )
        axes.annotate(str(number), (x, y), xytext=(4, 4), textcoords="offset points")
    axes.plot([least_steps], [least], "x", color="black", markersize=4, label="lower bounds of both")
    axes.axhline(least, color="black", linewidth=0.5, linestyle=":", zorder=0)
    axes.axvline(least_steps, color="black", linewidth=0.5, linestyle=":", zorder=0)
    axes.set_xlabel("steps of an all-gather, T_L / alpha")
    axes.set_ylabel("bandwidth time, T_B / (M/B)")
    axes.set_title(f"{found['nodes']:,} nodes of degree {found['degree']}", loc="left")
    axes.margins(0.08)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid()
    figure.legend(loc="outside lower left", ncols=1, handlelength=1.4)
    return figure
