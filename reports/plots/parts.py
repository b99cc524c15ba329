"""Parts of a figure for a page: panels of one size, legend entries, remark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from ...core.record import RunRecord
from .look import COLUMN_IN, look, new_figure, to_bytes

#: Width and height of a panel, and of the sample of a legend's entry, in inches.
_WIDTH, _HEIGHT, _SAMPLE = 2.9, 2.1, (0.34, 0.12)

SERIES = "series-"  #: Letters of a series' identifier in a panel, before the number of its entry.


@dataclass(frozen=True)
class Parts:
    """The parts of a figure: panels with their titles, legend entries with their samples (SVG files), and a remark.

    In a panel, lines of entry ``k`` of the legend have the identifier ``series-k``.
    """

    panels: tuple[tuple[str, bytes], ...]
    entries: tuple[tuple[str, bytes], ...]
    remark: str


def parts(name: str, records: Sequence[RunRecord]) -> Parts:
    """Draw a plot, one of :data:`~cwb.reports.plots.PLOTS`, and split it into parts."""
    from . import drawing

    with look():
        figure = drawing(name)(records)
        remark = " ".join(figure.get_suptitle().split())
        entries = [
            (text.get_text(), handle)
            for legend in figure.legends
            for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True)
            if text.get_text().strip() and handle is not None
        ]
        names = [text for text, _ in entries]
        for line in (line for axes in figure.axes for line in axes.lines):
            if (label := str(line.get_label())) in names:
                line.set_gid(f"{SERIES}{names.index(label)}")
        panels = tuple(_panels(figure))
        return Parts(panels, tuple((text, _sample(handle)) for text, handle in entries), remark)


def _panels(figure: Figure) -> Iterator[tuple[str, bytes]]:
    """Draw each panel alone, without title, legend and remark, all of one size."""
    every = list(figure.axes)
    shared = (figure.get_supxlabel(), figure.get_supylabel())
    for artist in (*figure.legends, *figure.texts):
        artist.remove()
    for axes in every:
        _label(axes, every[-1], *shared)
    for axes in every:
        figure.delaxes(axes)
    figure.set_size_inches(_WIDTH * max(1.0, figure.get_figwidth() / COLUMN_IN), _HEIGHT)
    for axes in every:
        figure.add_axes(axes)
        axes.set_subplotspec(GridSpec(1, 1, figure=figure)[0])
        title = axes.get_title(loc="left")
        axes.set_title("", loc="left")
        yield title, to_bytes(figure, "svg")
        figure.delaxes(axes)


def _label(axes: Axes, last: Axes, across: str, up: str) -> None:
    """Give a panel the axis labels that stacked panels share."""
    axes.tick_params(labelbottom=True)
    axes.set(xlabel=axes.get_xlabel() or across or last.get_xlabel(), ylabel=axes.get_ylabel() or up)


def _sample(handle: Artist) -> bytes:
    """Draw the line, marker or patch of a legend entry alone."""
    width, height = _SAMPLE
    figure = new_figure(height, width)
    figure.set_layout_engine("none")
    figure.patch.set_visible(False)
    if isinstance(handle, Line2D):
        ends: dict[str, Any] = {"transform": figure.transFigure}
        line = Line2D([0.04, 0.5, 0.96], [0.5, 0.5, 0.5], markevery=[1], **ends)
        marker = Line2D.properties(handle)
        for what in ("color", "linestyle", "linewidth", "marker", "markersize", "markerfacecolor", "markeredgecolor"):
            line.set(**{what: marker[what]})
        figure.add_artist(line)
    else:
        patch = Rectangle((0, 0), 1, 1, transform=figure.transFigure)
        patch.update_from(handle)
        patch.set_transform(figure.transFigure)
        figure.add_artist(patch)
    return to_bytes(figure, "svg")
