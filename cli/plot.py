"""``cwb plot``: draw records, a schedule, or a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..core.errors import InputError, locate_errors
from ..core.option_names import PLOT_KINDS, SIMULATION_MODES
from . import completion
from .edits import load_edited, network_edits
from .options import OUTPUT_FILE, PATH, Command
from .streams import echo
from .table import selecting


@click.command(cls=Command)
@click.argument(
    "name",
    metavar="NAME|SCHEDULE|NETWORK",
    required=False,
    shell_complete=completion.complete_names(completion.plots, files=True),
)
@click.argument("records", nargs=-1, type=PATH)
@selecting
@click.option("--kind", type=click.Choice(PLOT_KINDS), help="Plot of a schedule.  [default: heatmap]")
@click.option(
    "--mode",
    type=click.Choice(SIMULATION_MODES),
    help="Time model.  [default: that of all completion times]",
)
@click.option("--tree", type=click.IntRange(0), multiple=True, help="Tree to draw, from 0; may be repeated.")
@click.option(
    "--places",
    type=PATH,
    help="JSON file {site: [longitude, latitude]} for --kind map.  [default: computed from the links]",
)
@click.option("--output", "-o", type=OUTPUT_FILE, help="A .svg, .pdf or .png file; for a schedule also .html.")
@network_edits
def plot(
    name: str | None,
    records: tuple[Path, ...],
    output: Path | None,
    edits: tuple[tuple[str, str], ...],
    **given: Any,
) -> None:
    """Draw the plot NAME from RECORDS, the SCHEDULE in a .json, .json.gz or .npz file, or a NETWORK.

    RECORDS are JSONL files, or folders of them (./results). Without NAME the known plots are listed. The plot of a
    file is written beside it unless -o is given. An .html file is the page of 'cwb view'. NETWORK is an instance
    as for 'cwb solve'.

    \b
    cwb plot libra-allocation results/ -o allocation.svg
    cwb plot libra-speedup results/ -o speedup.pdf
    cwb plot schedule.json --kind gantt -o gantt.png
    cwb plot schedule.json -o schedule.html
    cwb plot forest.json --kind network --tree 3 -o tree.pdf
    cwb plot plan.json --kind map -o trees.svg
    cwb plot my-topology.json
    cwb plot "h100(4)" --without-link box0.gpu0:ib0 -o h100.svg
    """
    from ..api.plots import SCHEDULES, is_network, path_beside
    from ..api.plots import plot as draw
    from ..reports.plots import PLOTS, get, plot_format

    if name is None:
        raise InputError(f"NAME: missing; expected one of {', '.join(PLOTS)}, a schedule file or a network")
    of_network, of_schedule = not records and is_network(name), name.endswith((".json", *SCHEDULES))
    if edits and not of_network:
        raise InputError("only for the plot of a network", source=edits[0][0])
    if not of_network and not of_schedule:
        get(name)
    target = output or path_beside(name, ".svg")
    if target is None:
        raise InputError("give the file to write: a .svg, .pdf or .png", source="-o")
    if of_network:
        plot_format(target)
        with locate_errors(source=name):
            draw(load_edited(name, edits), output=target, **given)
    else:
        draw(name, *records, output=target, **given)
    if output is None:
        echo(str(target))
