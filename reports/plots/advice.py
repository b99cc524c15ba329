"""Bus bandwidth over size: NCCL, a ring, the best schedule, the bound, and measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .look import new_figure, short
from .selection import size_ticks
from .series import legend, legend_lines, strokes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Curves by the column of a row that has their seconds.
CURVES = {
    "bound_s": "proved bound",
    "best_s": "best schedule found",
    "nccl_s": "NCCL's schedule",
    "nccl_predicted_s": "NCCL's prediction",
    "ring_s": "ring",
    "measured_s": "measured",
}


def draw(found: Mapping[str, Any]) -> Figure:
    """Draw the curves of ``cwb advise``.

    Parameters
    ----------
    found : mapping
        The object of ``--json``, with ``rows`` and ``busbw_factor``.
    """
    points = {
        name: [(row["size_bytes"], row["size_bytes"] / row[key]) for row in found["rows"] if row[key]]
        for key, name in CURVES.items()
    }
    names = [name for name, some in points.items() if some]
    styles = strokes(names)
    figure = new_figure(2.6 + 0.13 * legend_lines(names))
    axes = figure.subplots()
    for name in names:
        sizes, rates = zip(*points[name], strict=True)
        axes.plot(sizes, [rate * found["busbw_factor"] / 1e9 for rate in rates], **styles[name])
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"size of {found['collective']} (B)")
    axes.set_ylabel("bus bandwidth (GB/s)")
    axes.set_title(f"{short(found['instance'], 36)}, {found['ranks']:,} ranks", loc="left")
    axes.grid()
    size_ticks(axes)
    legend(figure, names, styles)
    return figure
