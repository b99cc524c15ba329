"""The plots by name; each is a function in a module of its own, imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import InputError
from ...core.text import one_of

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
    """What a plot draws, in one line."""
    module, attribute = PLOTS[name].split(":")
    text = getdoc(getattr(import_module(f".{module}", __package__), attribute)) or ""
    return text.partition("\n")[0].removeprefix("Draw ").rstrip(".")


def get(name: str) -> Callable[[Sequence[RunRecord], str], bytes]:
    """Import a plot.

    Parameters
    ----------
    name : str
        One of :data:`PLOTS`.

    Returns
    -------
    callable
        Takes records and a format of :func:`plot_format`, gives the file's bytes: the same for the same records.

    Raises
    ------
    InputError
        If there is none of that name; from the callable, if no record fits.
    """
    if name not in PLOTS:
        raise InputError(f"unknown plot {name!r}{one_of(name, PLOTS)}")

    def plot(records: Sequence[RunRecord], form: str) -> bytes:
        from .look import look, to_bytes

        with look():
            return to_bytes(drawing(name)(records), form)

    return plot


def drawing(name: str) -> Callable[[Sequence[RunRecord]], Figure]:
    """Import the function that draws one of :data:`PLOTS`, to be called with the look of all plots."""
    module, attribute = PLOTS[name].split(":")
    draw: Callable[[Sequence[RunRecord]], Figure] = getattr(import_module(f".{module}", __package__), attribute)
    return draw


def plot_format(path: Path) -> str:
    """Return the format from the name of a file.

    Raises
    ------
    InputError
        If the suffix is none of a plot.
    """
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"no plot has this suffix; expected {', '.join(_FORMATS)}", source=str(path))
    return path.suffix.lower().removeprefix(".")
