"""Utilization of a schedule's links over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import InputError
from ...core.schedule import Floats
from .look import COLOURS, new_figure, short
from .schedule_view import seconds_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(title: str, edges_s: Floats, used: Floats) -> Figure:
    """Draw the mean and the largest utilization over all links.

    Parameters
    ----------
    edges_s : array of float, shape (parts + 1,)
        Limits of the intervals in seconds.
    used : array of float, shape (links, parts)
        Utilization of every link in every interval, from 0 to 1.

    Raises
    ------
    InputError
        If there is no link or no time.
    """
    if not used.size or edges_s[-1] <= 0:
        raise InputError("all sends have zero duration; there is no utilization to draw")
    unit, size = seconds_unit(float(edges_s[-1]))
    mean, largest = used.mean(axis=0), used.max(axis=0)
    figure = new_figure(2.5, 5.0)
    axes = figure.subplots()
    edges = edges_s / size
    busiest = f"busiest link in each 1/{len(mean)} of the time"
    axes.stairs(mean, edges, fill=True, color=COLOURS[5], alpha=0.35)
    axes.stairs(mean, edges, color=COLOURS[0], linewidth=1.2, label="mean of all links", baseline=None)
    axes.stairs(largest, edges, color=COLOURS[4], linewidth=0.7, label=busiest, baseline=None)
    average = float(mean.mean())
    axes.axhline(average, color="#555555", linewidth=0.7, linestyle=":", label=f"mean over time: {average:.1%}")
    axes.set_xlim(0, edges[-1])
    axes.set_ylim(0, max(1.05, 1.05 * float(np.max(largest))))
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel("utilization")
    axes.grid(axis="y")
    axes.set_title(short(title, 60), loc="left")
    figure.legend(loc="outside lower center", ncols=3, handlelength=2.2, columnspacing=1.2)
    return figure
