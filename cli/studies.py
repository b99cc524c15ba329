"""What ``cwb solve`` finds out beside a run: why there is no answer, and what more bandwidth is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import OutOfTime, Unsupported
from ..core.files import write_whole
from .streams import echo

if TYPE_CHECKING:
    from ..core.budget import Progress
    from ..core.explanation import Explanation
    from ..core.instance import Instance
    from ..core.record import RunRecord
    from ..core.sensitivity import Sensitivity
    from ..harness import FinishedRun
    from ..harness.plan import Cell


@dataclass(frozen=True)
class Findings:
    """What was found out.

    Parameters
    ----------
    explanation : Explanation or None
        Why there is no answer.
    sensitivity : Sensitivity or None
        What more bandwidth is worth.
    """

    explanation: Explanation | None = None
    sensitivity: Sensitivity | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """What is printed."""
        return tuple(one.text() for one in (self.explanation, self.sensitivity) if one is not None)

    def noted(self, record: RunRecord) -> RunRecord:
        """The record with it."""
        why, worth = (None if one is None else one.to_json() for one in (self.explanation, self.sensitivity))
        return replace(record, explanation=why, sensitivity=worth)


def studied(
    cell: Cell, done: FinishedRun, progress: Progress, *, explained: bool, sensitive: bool, picture: Path | None
) -> Findings:
    """Find out what is asked.

    Parameters
    ----------
    cell : Cell
        What was run.
    done : FinishedRun
        How it ended.
    progress : callable
        Shows lines.
    explained, sensitive : bool
        What is asked.
    picture : Path or None
        Where the network with its sensitivities is drawn.
    """
    if not (explained or sensitive) or done.instance is None:
        return Findings()
    from ..harness.clock import WallClock
    from ..harness.explain import explain
    from ..harness.interrupt import within
    from ..harness.sensitivity import sensitivity
    from ..harness.task import loaded

    explanation = worth = None
    try:
        with within(WallClock(cell.request.time_limit_s)):
            instance = loaded(cell)
        if explained and done.record.answer is not None:
            echo("cwb: --explain: there is an answer", err=True)
        elif explained:
            explanation = explain(instance, cell.request, progress)
        if sensitive:
            worth = sensitivity(instance, cell.request, progress)
    except (OutOfTime, Unsupported) as error:
        echo(f"cwb: --sensitivity: {error}", err=True)
    except KeyboardInterrupt:  # the run itself is done, and is not lost
        echo("cwb: interrupted; what the run has found is kept", err=True)
    if picture is not None and worth is not None:
        draw(picture, done.instance, worth)
    return Findings(explanation, worth)


def draw(path: Path, instance: Instance, worth: Sensitivity) -> None:
    """Draw the network with its sensitivities.

    Raises
    ------
    InputError
        If the suffix is none of a picture, or the instance has no network that can be drawn.
    """
    from ..reports.plots import plot_format
    from ..reports.plots.look import look, to_bytes
    from ..reports.plots.sensitivity import draw as drawn

    form = plot_format(path)
    with look():
        write_whole(path, to_bytes(drawn(instance.network, worth), form))
