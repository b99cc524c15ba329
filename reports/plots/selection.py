"""Cost of schedules over size, and the choice for each range of sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .look import new_figure, short
from .series import LETTERS, enough_ticks, legend, legend_lines, strokes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colour of schedules that are chosen nowhere.
_OTHERS = "#CCCCCC"


def draw(found: Mapping[str, Any]) -> Figure:
    """Draw ``select.json`` of ``cwb select``: time over size, dotted lines where the choice changes.

    Parameters
    ----------
    found : mapping
        With ``sizes``, ``curves``, ``ranges`` and ``crossovers``.
    """
    chosen = list(dict.fromkeys(one["schedule"] for one in found["ranges"]))
    seconds: dict[str, list[list[float]]] = {}
    for curve in found["curves"]:
        seconds.setdefault(curve["schedule"], []).append(curve["seconds"])
    styles = strokes(chosen)
    figure = new_figure(2.6 + 0.13 * legend_lines(chosen))
    axes = figure.subplots()
    for name, curves in seconds.items():
        for curve in curves:
            style = {**styles[name], "marker": ""} if name in styles else {"color": _OTHERS, "linewidth": 0.5}
            axes.plot(found["sizes"], [1e6 * value for value in curve], zorder=2 if name in styles else 1, **style)
    for size in found["crossovers"]:
        axes.axvline(size, color="black", linewidth=0.5, linestyle=":", zorder=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel(f"size of {found['collective']} (B)")
    axes.set_ylabel("completion time (us)")
    axes.set_title(f"{short(found['instance'], 36)}, {found['ranks']:,} ranks", loc="left")
    axes.grid()
    enough_ticks(axes.yaxis)
    size_ticks(axes)
    legend(figure, [short(name, LETTERS) for name in chosen], {short(n, LETTERS): styles[n] for n in chosen}, marker="")
    return figure


def size_ticks(axes: Any) -> None:
    """Write powers of two as binary sizes."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    def text(value: float, _: int) -> str:
        for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
            if value >= scale:
                return f"{value / scale:g} {unit}"
        return f"{value:g} B"

    axes.xaxis.set_major_locator(LogLocator(base=2, numticks=7))
    axes.xaxis.set_major_formatter(FuncFormatter(text))
    axes.xaxis.set_minor_formatter(NullFormatter())
