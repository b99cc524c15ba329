"""Common style of all plots: a paper's column, legible without colours, the same bytes for the same records."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from ...core.text import printable

COLUMN_IN = 3.4  #: Width of a column of a two-column paper, in inches.

#: Okabe and Ito's colours, distinguishable for colour-blind readers; the light yellow last.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#999999", "#F0E442")

#: Hatches and markers tell the same series apart in black and white.
HATCHES = ("", "////", "--", "\\\\\\\\", "xxxx", "||", "++++", "oooo")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", ":", "-.")

_LOOK: Any = {
    "font.size": 7,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "grid.color": "#DDDDDD",
    "hatch.linewidth": 0.5,
    "lines.linewidth": 1.0,
    "lines.markersize": 2.8,
    "text.parse_math": False,  # a name with a dollar is a name
    "svg.hashsalt": "cwb",  # identifiers that do not change from run to run
    "svg.fonttype": "path",  # looks the same where a font is missing
    "pdf.fonttype": 42,  # TrueType: publishers reject Type 3
    "savefig.dpi": 300,
}

#: Metadata that would change from run to run.
_NO_DATE: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


@contextmanager
def look() -> Iterator[None]:
    """Apply the common style, whatever the user's own settings are."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name in letters that the font lacks is drawn as boxes; that is no reason to fail.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        # Labels larger than the figure leave no room for the axes: it is drawn as it is.
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_LOOK)
        yield


def short(text: str, width: int = 28) -> str:
    """Shorten a long name by leaving out its middle; unprintable characters become question marks."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= width else f"{text[: width // 2]}…{text[-(width // 2 - 1) :]}"


def new_figure(height_in: float, width_in: float = COLUMN_IN) -> Figure:
    """Make an empty figure with a layout that cuts nothing off."""
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def bare(axes: Axes, low: tuple[float, float], high: tuple[float, float]) -> None:
    """Show the plane between two corners in its true shape, without axes."""
    axes.set_axis_off()
    axes.set(aspect="equal", xticks=[], yticks=[], xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def box_frame(axes: Axes, low: tuple[float, float], high: tuple[float, float], facecolor: str) -> None:
    """Draw the frame of a box of ranks below everything else."""
    width, height = high[0] - low[0], high[1] - low[1]
    style: Any = {"facecolor": facecolor, "edgecolor": "#AAAAAA", "linewidth": 0.6, "zorder": 0}
    axes.add_patch(FancyBboxPatch(low, width, height, boxstyle="round,pad=0,rounding_size=0.3", **style))


def draw_as(form: str, draw: Callable[..., Figure], *arguments: Any) -> bytes:
    """Draw a figure in the common style, and return the bytes of the file."""
    with look():
        return to_bytes(draw(*arguments), form)


def to_bytes(figure: Figure, form: str) -> bytes:
    """Write a figure as SVG, PDF or PNG."""
    stream = io.BytesIO()
    figure.savefig(stream, format=form, metadata=_NO_DATE[form])
    if form == "svg":  # matplotlib repeats names in comments
        return printable(stream.getvalue().decode(), lines=True).encode()
    return stream.getvalue()
