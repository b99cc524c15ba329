"""Common style of all plots: a paper's column, legible without colours, the same bytes for the same records.

In every plot of a ledger, a method has one stroke, and the legend stands below.
"""

import io
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil, log10
from pathlib import Path
from textwrap import fill
from typing import Any, TypeVar
from zlib import crc32

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from ...core.errors import InputError
from ...core.grouping import group_by_key
from ...core.record import RunRecord
from ...core.text import escape_unprintable
from ..numbers import natural
from ..runs import LedgerRun

COLUMN_IN = 3.4  #: Width of a column of a two-column paper, in inches.

#: Okabe and Ito's colours, distinguishable for colour-blind readers; the light yellow last.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#999999", "#F0E442")

#: Hatches and markers tell the same series apart in black and white.
HATCHES = ("", "////", "--", "\\\\\\\\", "xxxx", "||", "++++", "oooo")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", ":", "-.")

#: Names with a dollar stay names, SVG has paths and the same identifiers in every run, and PDF has TrueType fonts.
_LOOK: Any = json.loads(Path(__file__).parents[1].joinpath("look.json").read_text())

#: Metadata: the writer, by which cwb knows its own files, and no date, which would change from run to run.
_METADATA: dict[str, dict[str, Any]] = {
    form: {"Software" if form == "png" else "Creator": "cwb", **date}
    for form, date in {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}.items()
}


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
    figure.savefig(stream, format=form, metadata=_METADATA[form])
    if form == "svg":  # matplotlib repeats names in comments
        return escape_unprintable(stream.getvalue().decode(), lines=True).encode()
    return stream.getvalue()


_T = TypeVar("_T", str, tuple[str, str, float])

MOST = 16  #: Series that a plot has at most, those with the most runs first: of more a reader can tell none.
_DECADES = (0.7, 2.2)  #: Decades of an axis below which its ticks are even, and below which they are at 1, 2 and 5.
LETTERS = 34  #: Letters of a name in the legend.


def series_name(run: LedgerRun, solvers: bool) -> str:
    """Return the name of the method, with its solver if solvers differ."""
    return f"{run.method}, {run.record.solver}" if solvers and run.record.solver else run.method


def drawable(value: float | None) -> bool:
    """Return whether a value is a positive number that fits on a logarithmic axis."""
    return value is not None and 1e-15 < value < 1e15


def several_solvers(runs: Iterable[LedgerRun]) -> bool:
    """Return whether some method was run with more than one solver."""
    by_method = group_by_key((run.method, run.record.solver) for run in runs)
    return any(len({*solvers} - {None}) > 1 for solvers in by_method.values())


def strokes(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Assign every series its label, colour, line and marker; the second round of the colours has hollow markers.

    A series has the same colour in all plots, unless one before it in its plot has that colour.
    """
    styles: dict[str, dict[str, Any]] = {}
    series = sorted(set(names), key=natural)
    free = list(range(7 * ceil(len(series) / 7)))
    for name in series:
        own = crc32(name.split(" [")[0].encode())  # without the time model
        index = min(free, key=lambda place: (place // 7, (place - own) % 7))
        free.remove(index)
        colour = COLOURS[index % 7]
        styles[name] = {
            "label": short(name, LETTERS),
            "color": colour,
            "marker": MARKERS[index % 8],
            "linestyle": LINES[index % 4],
            "markerfacecolor": "white" if index // 7 % 2 else colour,
        }
    return styles


def most_common(names: Sequence[_T], most: int = MOST) -> list[_T]:
    """Return the most frequent names in natural order."""
    counts = Counter(names)
    top = sorted(counts, key=lambda name: (-counts[name], _in_order(name)))[:most]
    return sorted(top, key=_in_order)


def _in_order(name: str | tuple[str | float, ...]) -> list[tuple[Any, ...]]:
    return [natural(part) for part in ([name] if isinstance(name, str) else name)]


def panels(count: int, labels: int, height_in: float = 1.9) -> tuple[Figure, list[Axes]]:
    """Make a figure of stacked panels, with room for a legend of so many lines."""
    figure = new_figure(0.35 + height_in * count + 0.13 * labels)
    grid = figure.subplots(count, 1, squeeze=False)
    return figure, list(grid[:, 0])


def legend_lines(names: Sequence[str]) -> int:
    """Return the number of lines of a legend of the names."""
    return ceil(len(names) / legend_columns(names))


def legend_columns(names: Sequence[str]) -> int:
    """Return the number of legend columns that fit below a figure."""
    longest = max((len(short(name, LETTERS)) for name in names), default=1)
    return max(1, min(4, 64 // (longest + 8)))


def finish(
    figure: Figure, names: Sequence[str], styles: dict[str, dict[str, Any]], *omissions: str, **changes: Any
) -> Figure:
    """Add the legend below the panels, and above them what is left out."""
    write_omissions(figure, *omissions)
    handles = [Line2D([], [], **{**styles[name], **changes}) for name in names]
    columns = legend_columns([styles[name]["label"] for name in names])
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, handlelength=2.4)
    return figure


def plain_ticks(axis: Axis) -> None:
    """Write the ticks of a logarithmic axis as plain numbers, without math text."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def enough_ticks(axis: Axis) -> None:
    """Tick a logarithmic axis by decades, or more closely if these are too few; call it after everything is drawn."""
    low, high = sorted(axis.get_view_interval())
    decades = log10(high / low)
    if decades < _DECADES[0]:
        axis.set_major_locator(MaxNLocator(4))
    elif decades < _DECADES[1]:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    plain_ticks(axis)


def count_text(count: int, what: str) -> str:
    """Format a count with its noun."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def more_series(count: int) -> str:
    """Count the series left out; empty without any."""
    return f"{count} more series are not shown" if count else ""


def write_omissions(figure: Figure, *parts: str) -> None:
    """Write above the plot what it leaves out."""
    if texts := [part for part in parts if part]:
        figure.suptitle(fill("; ".join(texts), 62), fontsize=6)


def no_records_error(name: str, records: Sequence[RunRecord], expected: str) -> InputError:
    """Return the error for a plot that no record fits."""
    return InputError(f"none of {len(records)} records fits; expected {expected}", source=name)
