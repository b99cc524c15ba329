"""``cwb polish``: a schedule in time, made shorter if it can be, whoever made it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.errors import ExitStatus, InputError
from .streams import echo

if TYPE_CHECKING:
    from ..core.instance import Instance
    from ..core.schedule import Schedule


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), required=True, metavar="FILE", help="Where the schedule goes to."
)
def polish(file: Path, output: Path) -> int:
    """Shorten the schedule in FILE: move sends into earlier gaps, and let late copies come from others.

    \b
    cwb solve --model tacos "rfs3d(2,4,4)" --collective all_gather -O unwind=0 -o s.json
    cwb polish s.json -o shorter.json

    Schedules in time whose chunks hold links as circuits do are polished, such as those of tacos and ten-ilp. The
    result is verified and never longer; where nothing is gained, it is the same schedule. The exit status is 5 if the
    schedule in FILE is wrong, 2 if it cannot be read or is of another kind.
    """
    from ..algorithms.paths.justify import justified
    from ..core.schedule import Schedule
    from ..core.timing import Semantics
    from ..schedules.files import read_schedule, write_schedule

    read = read_schedule(file)
    timing = read.instance.timing
    if not isinstance(read.answer, Schedule) or timing is None or timing.semantics is not Semantics.CIRCUIT:
        raise InputError("expected a schedule in time with timing circuit", source=str(file))
    if not _right(read.instance, read.answer, file):
        return int(ExitStatus.VERIFICATION_FAILED)
    better = justified(read.instance, read.answer)
    if not _right(read.instance, better, output):
        return int(ExitStatus.VERIFICATION_FAILED)
    write_schedule(output, read.instance, better, read.certificate, read.extra)
    before, after = (float(answer.end_s.max(initial=0)) for answer in (read.answer, better))
    echo(f"{output}: {after:.9g} s, before {before:.9g} s" if after < before else f"{output}: {after:.9g} s, as before")
    return int(ExitStatus.OK)


def _right(instance: Instance, answer: Schedule, file: Path) -> bool:
    """Verify a schedule, and tell the first violation if it is wrong."""
    from ..schedules.verify import verify

    report = verify(instance, answer)
    if not report.ok:
        echo(f"{file}: wrong: {report.violations[0]}", err=True)
    return report.ok
