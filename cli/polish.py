"""``cwb polish``: shorten a timed schedule of any origin."""

from __future__ import annotations

from pathlib import Path

import click

from ..core.errors import ExitStatus
from .options import OUTPUT_FILE, PATH, Command, time_limit
from .streams import echo


@click.command(cls=Command)
@click.argument("file", type=PATH)
@click.option("--output", "-o", type=OUTPUT_FILE, required=True, metavar="FILE", help="Output file.")
@time_limit
def polish(file: Path, output: Path, time_limit_s: float | None) -> int:
    """Shorten the schedule in FILE: move sends into earlier gaps, and take late copies from other ranks.

    \b
    cwb solve --model tacos "rfs3d(2,4,4)" --collective all_gather -O unwind=0 -o s.json
    cwb polish s.json -o shorter.json

    Only timed circuit schedules are supported, such as those of tacos and ten-ilp. The result is verified and never
    longer; without improvement, it is the same schedule. At the time limit, or at Ctrl-C, the best schedule so far is
    written. The exit status is 5 if the schedule in FILE is invalid, 2 if it cannot be read or is of another kind.
    """
    from ..studies.polish import polish as shorten

    found = shorten(file, output=output, time_limit_s=time_limit_s)
    if found.message:
        echo(f"cwb: {found.message}; the schedule stays as it is", err=True)
    if found.wrong:
        echo(found.wrong, err=True)
        return int(ExitStatus.VERIFICATION_FAILED)
    before = f", before {found.before_s:.9g} s" if found.after_s < found.before_s else ", as before"
    echo(f"{output}: {found.after_s:.9g} s{before}")
    return int(ExitStatus.OK)
