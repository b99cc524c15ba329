"""``cwb polish``: a schedule in time, made shorter if it can be, of any origin."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.errors import ExitStatus, InputError, OutOfTime
from .options import OUTPUT_FILE, PATH, parse_duration
from .streams import echo

if TYPE_CHECKING:
    from ..core.instance import Instance
    from ..core.schedule import Schedule
    from ..schedules.files import ScheduleFile


@click.command()
@click.argument("file", type=PATH)
@click.option("--output", "-o", type=OUTPUT_FILE, required=True, metavar="FILE", help="Where the schedule goes to.")
@click.option("--time-limit", metavar="DURATION", help="Such as 60 (seconds) or '5 min'.")
def polish(file: Path, output: Path, time_limit: str | None) -> int:
    """Shorten the schedule in FILE: move sends into earlier gaps, and let late copies come from others.

    \b
    cwb solve --model tacos "rfs3d(2,4,4)" --collective all_gather -O unwind=0 -o s.json
    cwb polish s.json -o shorter.json

    Schedules in time whose chunks hold links as circuits do are polished, such as those of tacos and ten-ilp. The
    result is verified and never longer; where nothing is gained, it is the same schedule. When the time is up, or at
    Ctrl-C, what has been gained is written. The exit status is 5 if the
    schedule in FILE is wrong, 2 if it cannot be read or is of another kind.
    """
    from ..algorithms.paths.justify import justified
    from ..core.effort import require_schedulable
    from ..harness.clock import WallClock
    from ..harness.interrupt import within
    from ..schedules.files import read_schedule, write_schedule

    clock = WallClock(parse_duration(time_limit, "--time-limit"))
    with within(clock):
        read = read_schedule(file)
        schedule = _on_circuits(read, file)
        if not _right(read.instance, schedule, file):
            return int(ExitStatus.VERIFICATION_FAILED)
    better = schedule
    try:
        with within(clock, asks=True) as budget:
            require_schedulable(len(schedule.sends), len(schedule.sends.path_links))
            better = justified(read.instance, schedule, lambda: budget.exhausted)
    except OutOfTime as error:
        echo(f"cwb: {error}; the schedule stays as it is", err=True)
    if better is not schedule and not _right(read.instance, better, output):
        return int(ExitStatus.VERIFICATION_FAILED)
    write_schedule(output, read.instance, better, read.certificate, read.extra)
    before, after = (float(answer.end_s.max(initial=0)) for answer in (schedule, better))
    echo(f"{output}: {after:.9g} s, before {before:.9g} s" if after < before else f"{output}: {after:.9g} s, as before")
    return int(ExitStatus.OK)


def _on_circuits(read: ScheduleFile, file: Path) -> Schedule:
    """The schedule of a file, if it is one that can be polished."""
    from ..core.schedule import Schedule
    from ..core.timing import Semantics

    timing = read.instance.timing
    if not isinstance(read.answer, Schedule) or timing is None or timing.semantics is not Semantics.CIRCUIT:
        raise InputError("expected a schedule in time with timing circuit", source=str(file))
    return read.answer


def _right(instance: Instance, answer: Schedule, file: Path) -> bool:
    """Verify a schedule, and tell the first violation if it is wrong."""
    from ..schedules.verify import verify

    report = verify(instance, answer)
    if not report.ok:
        echo(f"{file}: wrong: {report.violations[0]}", err=True)
    return report.ok
