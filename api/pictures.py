"""Pictures of answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.answers import BandwidthPlan
from ..core.errors import InputError
from ..core.text import did_you_mean

if TYPE_CHECKING:
    from .runs import Run


class Picture:
    """A picture, drawn in the format in which it is asked for.

    Parameters
    ----------
    draw : callable
        Takes ``svg``, ``pdf`` or ``png`` and gives the file's bytes.
    """

    def __init__(self, draw: Callable[[str], bytes]) -> None:
        self._draw = draw

    def save(self, path: str | Path) -> Path:
        """Write a .svg, .pdf or .png file, and give its path.

        Raises
        ------
        InputError
            If it has another suffix, or cannot be written.
        """
        from ..core.files import write_whole
        from ..reports.plots import picture_format

        path = Path(path)
        write_whole(path, self._draw(picture_format(path)))
        return path

    def _repr_svg_(self) -> str:
        return self._draw("svg").decode()


def picture_of(run: Run, kind: str | None, mode: str | None) -> Picture:
    """Draw the answer of a run; see :meth:`cwb.api.runs.Run.plot`."""
    from ..core.trace import SimulationMode
    from ..cli.plot import KINDS, drawn
    from ..reports.plots import PLOTS, get
    from ..schedules.files import KINDS as ANSWERS
    from ..schedules.files import ScheduleFile

    answer = run.schedule
    kind = kind or ("libra-allocation" if isinstance(answer, BandwidthPlan) else KINDS[0])
    if kind in PLOTS:
        return Picture(lambda form: get(kind)([run], form))
    if kind not in KINDS or not isinstance(answer, tuple(ANSWERS.values())):
        known = (*KINDS, *PLOTS) if isinstance(answer, tuple(ANSWERS.values())) else tuple(PLOTS)
        text = f"there is no {kind!r} of it; expected one of {', '.join(known)}"
        raise InputError(text + did_you_mean(kind, known), source="kind")
    return Picture(lambda form: b"")
