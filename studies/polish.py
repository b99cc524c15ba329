"""The verb ``polish``: shorten a timed schedule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..algorithms.paths.justify import justify_schedule
from ..core.budget import require_schedulable
from ..core.errors import InputError, OutOfTime
from ..core.instance import Instance
from ..core.option_names import verb
from ..core.schedule import Schedule
from ..core.timing import Semantics
from ..harness.clock import WallClock
from ..harness.interrupt import command_limits
from ..schedules.files import ScheduleFile, read_schedule, write_schedule
from ..schedules.verify import verify
from .inputs import seconds_or_none


@dataclass(frozen=True, eq=False)
class PolishedSchedule:
    """A schedule before and after its sends were moved."""

    instance: Instance
    schedule: Schedule
    before_s: float
    after_s: float
    wrong: str = ""  #: File and first violation of a schedule that is rejected; empty if both are right.
    message: str = ""  #: Reason for which nothing was moved, if time or memory was exhausted.


@verb
def polish(
    file: str | Path, *, output: str | Path | None = None, time_limit_s: float | None = None
) -> PolishedSchedule:
    """Shorten the schedule in a file by moving sends into earlier gaps, as ``cwb polish`` does.

    Parameters
    ----------
    file : str or Path
        Timed schedule with timing ``circuit``, such as those of tacos.
    time_limit_s : float, optional
        Seconds after which the best schedule so far is returned.
    """
    path, clock = Path(file), WallClock(seconds_or_none(time_limit_s, "time_limit_s"))
    with command_limits(clock):
        read = read_schedule(path)
        schedule, timing = read.answer, read.instance.timing
        if not isinstance(schedule, Schedule) or timing is None or timing.semantics is not Semantics.CIRCUIT:
            raise InputError("expected a schedule in time with timing circuit", source=str(path))
        if wrong := _violation(read.instance, schedule, path):
            return _polish_result(read, schedule, schedule, wrong)
    better, message = schedule, ""
    try:
        with command_limits(clock, asks=True) as budget:
            require_schedulable(len(schedule.sends), len(schedule.sends.path_links))
            better = justify_schedule(read.instance, schedule, lambda: budget.is_exhausted)
    except OutOfTime as error:
        message = str(error)
    target = path if output is None else Path(output)
    if better is not schedule and (wrong := _violation(read.instance, better, target)):
        return _polish_result(read, schedule, better, wrong, message)
    if output is not None:
        write_schedule(target, read.instance, better, read.certificate, read.extra)
    return _polish_result(read, schedule, better, "", message)


def _polish_result(read: ScheduleFile, old: Schedule, new: Schedule, wrong: str, message: str = "") -> PolishedSchedule:
    before, after = (float(answer.end_s.max(initial=0)) for answer in (old, new))
    return PolishedSchedule(read.instance, new, before, after, wrong, message)


def _violation(instance: Instance, answer: Schedule, file: Path) -> str:
    report = verify(instance, answer)
    return "" if report.ok else f"{file}: wrong: {report.violations[0]}"
