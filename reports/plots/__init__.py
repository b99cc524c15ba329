"""Plots by name; each is a function in a module of its own, imported on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import InputError, one_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...core.record import RunRecord

PLOTS: Mapping[str, str] = {
    "libra-allocation": "libra_allocation:draw",
    "libra-speedup": "libra_speedup:draw",
    "performance-profile": "profile:draw",
    "time-size": "time_size:draw_size",
    "scaling": "time_size:draw_ranks",
    "bandwidth": "bandwidth:draw",
    "gap-time": "quality:draw",
    "gap-heatmap": "ratios:draw",
}

#: Plot formats by the suffix of the file.
_FORMATS = (".svg", ".pdf", ".png")


def summary(name: str) -> str:
    """Return the summary of a plot in one line."""
    module, attribute = PLOTS[name].split(":")
    text = getdoc(getattr(import_module(f".{module}", __package__), attribute)) or ""
    return text.partition("\n")[0].removeprefix("Draw ").rstrip(".")


def get(name: str) -> Callable[[Sequence[RunRecord], str], bytes]:
    """Import a plot, one of :data:`PLOTS`.

    Return a function of records and a format of :func:`plot_format` that returns the bytes of the file: the same for
    the same records.
    """
    if name not in PLOTS:
        raise InputError(f"unknown plot {name!r}{one_of(name, PLOTS)}")

    def plot(records: Sequence[RunRecord], form: str) -> bytes:
        from .look import look, to_bytes

        with look():
            return to_bytes(drawing(name)(records), form)

    return plot


def drawing(name: str) -> Callable[[Sequence[RunRecord]], Figure]:
    """Import the function that draws one of :data:`PLOTS`, to be called within the common style."""
    module, attribute = PLOTS[name].split(":")
    draw: Callable[[Sequence[RunRecord]], Figure] = getattr(import_module(f".{module}", __package__), attribute)
    return draw


def plot_format(path: Path) -> str:
    """Return the format of a file by its suffix."""
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"unknown suffix; expected {', '.join(_FORMATS)}", source=str(path))
    return path.suffix.lower().removeprefix(".")
