"""Plots by name; each is a function in a module of its own, imported on demand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import InputError, one_of
from ...core.files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...core.record import RunRecord

#: Texts of every plot for reports and lists.
CARDS: Mapping[str, dict[str, str]] = json.loads((Path(__file__).parents[1] / "cards.json").read_text())

#: Function of every plot.
_FUNCTIONS = {
    "libra-allocation": "libra:draw_allocation",
    "libra-speedup": "libra:draw_speedup",
    "performance-profile": "ledger:draw_profile",
    "time-size": "ledger:draw_time_size",
    "scaling": "ledger:draw_scaling",
    "bandwidth": "ledger:draw_bandwidth",
    "gap-time": "ledger:draw_time",
    "anytime": "ledger:draw_anytime",
    "gap-profile": "ledger:draw_gap_profile",
    "gap-heatmap": "ledger:draw_heatmap",
}

#: Function and summary of every plot.
PLOTS: Mapping[str, tuple[str, str]] = {name: (place, CARDS[name]["summary"]) for name, place in _FUNCTIONS.items()}

_FORMATS = (".svg", ".pdf", ".png")  #: Plot formats by the suffix of the file.


def get(name: str) -> Callable[[Sequence[RunRecord], str], bytes]:
    """Import a plot, one of :data:`PLOTS`.

    Return a function of records and a format of :func:`plot_format` that returns the bytes of the file: the same for
    the same records.
    """
    if name not in PLOTS:
        raise InputError(f"unknown plot {name!r}{one_of(name, PLOTS)}")

    def plot(records: Sequence[RunRecord], form: str) -> bytes:
        from .look import draw_as

        return draw_as(form, drawing(name), records)

    return plot


def drawing(name: str) -> Callable[[Sequence[RunRecord]], Figure]:
    """Import the function that draws one of :data:`PLOTS`, to be called within the common style."""
    module, attribute = PLOTS[name][0].split(":")
    draw: Callable[[Sequence[RunRecord]], Figure] = getattr(import_module(f".{module}", __package__), attribute)
    return draw


def write_plot(path: Path, draw: Callable[..., Figure], *arguments: Any) -> None:
    """Draw a figure in the common style, and write it in the format that the file's suffix names."""
    from .look import draw_as

    write_whole(path, draw_as(plot_format(path), draw, *arguments))


def plot_format(path: Path) -> str:
    """Return the format of a file by its suffix."""
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"unknown suffix; expected {', '.join(_FORMATS)}", source=str(path))
    return path.suffix.lower().removeprefix(".")
