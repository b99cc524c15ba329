"""``cwb view``: a page that plays a schedule."""

from __future__ import annotations

from pathlib import Path

import click

from ..core.option_names import SIMULATION_MODES
from .options import OUTPUT_FILE, PATH, Command
from .streams import echo


@click.command(cls=Command)
@click.argument("file", type=PATH)
@click.option(
    "--mode", type=click.Choice(SIMULATION_MODES), help="Time model.  [default: that of all completion times]"
)
@click.option("--output", "-o", type=OUTPUT_FILE, metavar="FILE", help="The .html page.  [default: beside FILE]")
def view(file: Path, mode: str | None, output: Path | None) -> None:
    """Write an HTML page that plays the schedule in FILE.

    \b
    cwb solve --model tacos "torus(4,4)" --collective all_gather -o s.json
    cwb view s.json -o view.html

    The page needs no network. Chunks move over links, which are coloured by load; ranks fill with what they receive. A
    click on a rank, a link or a chunk tells what it has done and what it waits for. The Gantt chart and the heat maps
    of 'cwb plot s.json -o s.html' follow below.
    """
    from ..api.plots import view as play

    echo(str(play(file, mode=mode, output=output)))
