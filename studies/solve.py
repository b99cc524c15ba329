"""Files and studies after a run: answer, record, reasons for infeasibility, value of more bandwidth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.budget import Progress, Start, ignore
from ..core.errors import CwbError, ExitStatus, OutOfTime, Unsupported
from ..core.files import write_whole
from .answer_files import with_files

if TYPE_CHECKING:
    from ..core.explanation import Explanation
    from ..core.instance import Instance
    from ..core.record import RunRecord
    from ..core.sensitivity import Sensitivity
    from ..harness import FinishedRun
    from ..harness.request import Request
    from ..schedules.files import ScheduleFile


@dataclass(frozen=True)
class Findings:
    """Findings on the answer of a run.

    Parameters
    ----------
    exit_status : int
        Exit status of a study that failed, else 0; the answer of the run is kept.
    error : Exception or None
        Error of a study that failed.
    """

    explanation: Explanation | None = None
    sensitivity: Sensitivity | None = None
    exit_status: int = ExitStatus.OK
    error: Exception | None = None
    interrupted: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """Texts to print, one for each study."""
        return tuple(one.text() for one in (self.explanation, self.sensitivity) if one is not None)

    def add_to_record(self, record: RunRecord) -> RunRecord:
        """Return the record with these results."""
        why, worth = (None if one is None else one.to_json() for one in (self.explanation, self.sensitivity))
        return replace(record, explanation=why, sensitivity=worth)


def start_of(given: ScheduleFile | str | Path) -> Start:
    """Return the answer of a schedule file as the start of a search."""
    from ..schedules.files import read_schedule

    file = read_schedule(Path(given)) if isinstance(given, str | Path) else given
    return Start(file.instance, file.answer)


def finish_run(
    done: FinishedRun,
    request: Request,
    load: Callable[[], Instance],
    *,
    output: Path | None = None,
    append: Path | None = None,
    explain: bool = False,
    sensitivity: bool = False,
    picture: Path | None = None,
    progress: Progress = ignore,
    notice: Progress = ignore,
) -> tuple[RunRecord, Findings]:
    """Write the answer of a run, study it, and append its record, also where the study fails.

    Parameters
    ----------
    progress, notice : callable
        Called with lines of progress, and with what a user has to know.
    """
    from ..core.record import append_record
    from ..harness.clock import WallClock

    record, found = done.record, Findings()
    try:
        if output is not None and done.answer is not None:
            with (writing := WallClock()).phase("write"):
                record = with_files(output, done, notice)
            record = replace(record, seconds={**writing.seconds(), **record.seconds})
        if (explain or sensitivity) and done.instance is not None:
            found = _run_studies(done, request, load, explain, sensitivity, picture, progress, notice)
        record = found.add_to_record(record)
    finally:
        if append is not None:
            append_record(append, record)
    return record, found


def _run_studies(
    done: FinishedRun,
    request: Request,
    load: Callable[[], Instance],
    explained: bool,
    sensitive: bool,
    picture: Path | None,
    progress: Progress,
    notice: Progress,
) -> Findings:
    from ..harness.clock import WallClock
    from ..harness.interrupt import command_limits
    from .explain import explain
    from .sensitivity import sensitivity

    asked = "--sensitivity" if sensitive else "--explain"
    found = Findings()
    try:
        with command_limits(WallClock(request.time_limit_s)):
            instance = load()
        if explained and done.record.answer is not None:
            notice("--explain: there is an answer")
        elif explained:
            found = replace(found, explanation=explain(instance, request, progress))
        if sensitive:
            found = replace(found, sensitivity=sensitivity(instance, request, progress))
        if picture is not None and found.sensitivity is not None and done.instance is not None:
            draw(picture, done.instance, found.sensitivity)
    except (OutOfTime, Unsupported) as error:
        notice(f"{asked}: {error}")
    except CwbError as error:
        notice(f"error: {error}")
        found = replace(found, exit_status=error.exit_status, error=error)
    except Exception as error:  # the run itself is done, and is not lost
        notice(f"error: {asked}: internal error: {type(error).__name__}: {error} (--debug shows where)")
        found = replace(found, exit_status=ExitStatus.FAILURE, error=error)
    except KeyboardInterrupt:
        notice("interrupted; what the run has found is kept")
        found = replace(found, interrupted=True)
    return found


def draw(path: Path, instance: Instance, worth: Sensitivity) -> None:
    """Draw the network with its sensitivities."""
    from ..reports.plots import plot_format
    from ..reports.plots.look import look, to_bytes
    from ..reports.plots.sensitivity import draw as drawn

    form = plot_format(path)
    with look():
        write_whole(path, to_bytes(drawn(instance.network, worth), form))
