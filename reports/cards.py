"""Plots of a report: one card each, with the question it answers, its panels and its legend."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from ..core.errors import InputError
from ..core.record import RunRecord
from ..core.text import escape_html
from . import plots
from .gaps import heat_table
from .page import inline
from .plots.look import COLUMN_IN, look, new_figure, to_bytes
from .runs import Facets


@dataclass(frozen=True)
class Card:
    """A plot of the report, the question it answers, and one sentence on how to read it."""

    title: str
    question: str
    reading: str
    summary: str  #: What it shows, for lists.


#: Plots of the report, in order; ``gap-heatmap`` is a table that has colours.
CARDS: Mapping[str, Card] = {name: Card(**texts) for name, texts in plots.CARDS.items()}

_LETTER_REM, _SAMPLE_REM = 0.46, 2.8  #: Width of a letter of a legend, and of the sample before it, in the page's rem.


def cards(records: Sequence[RunRecord], facets: Facets) -> str:
    """Draw every plot for which there are records."""
    sections: list[str] = []
    for name, card in CARDS.items():
        try:
            if name == "gap-heatmap":
                inside, remark = heat_table(records, facets)
                sections.append(_card(name, card, inside, remark, "whole"))
            else:
                plot = parts(name, records)
                letters = max((len(text) for text, _ in plot.entries), default=0)
                widths = f"--panels: {len(plot.panels)}; --legend: {_SAMPLE_REM + _LETTER_REM * letters:.3g}rem"
                sections.append(_card(name, card, _body(name, card, plot, facets), plot.remark, "", widths))
        except InputError:
            continue  # no record fits
    return f'<div class="plots">{"".join(sections)}</div>' if sections else '<p class="lead">No records to draw.</p>'


def _card(name: str, card: Card, inside: str, remark: str, kind: str, style: str = "") -> str:
    """Frame a plot with its question above and the reading below."""
    reading = f"{card.reading} {remark[:1].upper()}{remark[1:]}{'.' if remark else ''}".strip()
    return (
        f'<section class="card plot {kind}" style="{style}" id="plot-{name}">'
        f'<header><h3>{escape_html(card.title)}</h3><span class="count">cwb plot {name}</span></header>'
        f'<figure><figcaption class="question">{escape_html(card.question)}</figcaption>{inside}'
        f'<p class="reading">{escape_html(reading)}</p></figure></section>'
    )


def _body(name: str, card: Card, plot: "Parts", facets: Facets) -> str:
    panels = "".join(
        f'<div class="panel">{f"<h4>{escape_html(title)}</h4>" if title else ""}'
        f"{inline(svg, f'{name}-{index}', escape_html(title or card.title))}</div>"
        for index, (title, svg) in enumerate(plot.panels)
    )
    entries = "".join(
        _entry(f"{name}-e{index}", index, text, sample, facets) for index, (text, sample) in enumerate(plot.entries)
    )
    legend = f'<ul class="legend">{entries}</ul>' if entries else ""
    return f'<div class="panels">{panels}</div>{legend}'


def _entry(name: str, index: int, text: str, sample: bytes, facets: Facets) -> str:
    """Write a legend entry; one of a method carries the method's number, for the filter."""
    method = facets.method_of(text)
    data = "" if method is None else f' data-m="{method}"'
    return f'<li class="series" data-s="{index}"{data}>{inline(sample, name, "")}<span>{escape_html(text)}</span></li>'


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
    from .plots import drawing

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
    across, up = figure.get_supxlabel(), figure.get_supylabel()
    for artist in (*figure.legends, *figure.texts):
        artist.remove()
    for axes in every:  # a panel gets the axis labels that stacked panels share
        axes.tick_params(labelbottom=True)
        axes.set(xlabel=axes.get_xlabel() or across or every[-1].get_xlabel(), ylabel=axes.get_ylabel() or up)
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
