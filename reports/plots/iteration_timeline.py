"""Timeline of a training iteration: the tasks of every stream and pipeline stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.errors import InputError
from .look import COLOURS, HATCHES, new_figure, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: More rows cannot be read, and more bars are not drawn.
ROWS, BARS = 64, 50_000

#: The largest unit of which a plot has one at least.
_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))


@dataclass(frozen=True)
class Bar:
    """A task.

    Parameters
    ----------
    row : str
        Name of the stream, one row of the plot.
    what : str
        Kind of task, shown by the colour.
    """

    row: str
    what: str
    start_s: float
    seconds: float


def _corners(row: int, start: float, width: float) -> list[tuple[float, float]]:
    return [(start, row - 0.4), (start + width, row - 0.4), (start + width, row + 0.4), (start, row + 0.4)]


def draw(title: str, bars: Sequence[Bar]) -> Figure:
    """Draw the tasks, a row for each stream in the given order.

    Raises
    ------
    InputError
        If there are too many streams or tasks, or none.
    """
    from matplotlib.collections import PolyCollection

    rows, whats = list(dict.fromkeys(b.row for b in bars)), list(dict.fromkeys(b.what for b in bars))
    if not 0 < len(rows) <= ROWS or len(bars) > BARS:
        text = f"{len(bars):,} tasks on {len(rows):,} streams; expected at most {BARS:,} on {ROWS}"
        raise InputError(text, source="--timeline")
    end = max(b.start_s + b.seconds for b in bars)
    unit, size = next(((name, scale) for name, scale in _UNITS if end >= scale), _UNITS[-1])
    figure = new_figure(1.1 + 0.25 * len(rows), 7.0)
    axes = figure.subplots()
    for index, what in enumerate(whats):
        corners = [_corners(rows.index(b.row), b.start_s / size, b.seconds / size) for b in bars if b.what == what]
        drawn = PolyCollection(corners, facecolor=COLOURS[index % len(COLOURS)], label=short(what, 40))
        drawn.set(hatch=HATCHES[index // len(COLOURS) % len(HATCHES)], edgecolor="white", linewidth=0)
        axes.add_collection(drawn)
    axes.set_xlim(0, end / size or 1.0)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), [short(row, 30) for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"time ({unit})")
    axes.set_title(short(title, 100), loc="left")
    figure.legend(loc="outside lower center", ncols=4)
    return figure
