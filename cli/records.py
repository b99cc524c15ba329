"""Commands on records: ``cwb table``, ``cwb plot`` (also of schedules and networks) and ``cwb report``."""

import sys
from pathlib import Path
from typing import Any

import click

from ..core.errors import InputError, locate_errors
from ..core.option_names import PLOT_KINDS, SIMULATION_MODES
from . import completion
from .options import OUTPUT_FILE, PATH, Command, Edits, combine, format_option, load_edited, network_edits
from .streams import echo

selecting = combine(
    click.option(
        "--where",
        multiple=True,
        metavar="CONDITION",
        help="Only records with model=ring, instance=torus*, seconds.total<1.",
    ),
    click.option(
        "--only",
        shell_complete=completion.complete("models", is_list=True),
        metavar="MODELS",
        help="Only records of these methods, such as 'ring,teccl*'.",
    ),
)


@click.command(cls=Command)
@click.argument("name", required=False, shell_complete=completion.complete("tables"), metavar="NAME")
@click.argument("records", nargs=-1, type=PATH)
@selecting
@click.option("--columns", metavar="NAMES", help="Columns to show, in this order, such as 'method,size,busbw'.")
@click.option("--pivot", metavar="ROWS×COLUMNS", help="A column for each value of a label, such as method×size.")
@format_option("latex", "md", "csv", "text", "html", otherwise="text on a terminal and latex elsewhere")
@click.option("--output", "-o", type=OUTPUT_FILE, help="Write to this file (.tex, .md, .csv, .txt, .html).")
@click.option("--standalone", is_flag=True, help="Write a complete LaTeX document.")
def table(
    name: str | None, records: tuple[Path, ...], form: str | None, output: Path | None, standalone: bool, **options: Any
) -> None:
    """Make the table NAME from RECORDS: JSONL files, or folders of them (./results).

    LaTeX needs the packages booktabs, longtable and siunitx. If a run was repeated, its latest record is used. Runs
    without a number have a mark that is explained below the table. 'cwb list tables' lists all tables.

    \b
    cwb table libra-perf
    cwb table libra-perf results/ -o libra.md
    cwb table sizes results/ --only ring,forestcoll --pivot method×size --columns busbw
    """
    from ..reports.tables import TABLES
    from ..studies.record_files import table as make

    if name is None:
        raise InputError(f"NAME: missing; expected one of {', '.join(TABLES)}")
    if form is None and output is None:
        form = "text" if sys.stdout.isatty() and not standalone else "latex"
    text = make(name, *records, format=form, output=output, standalone=standalone, **options)
    if output is None:
        echo(text, nl=False)


@click.command(cls=Command)
@click.argument(
    "name", metavar="NAME|SCHEDULE|NETWORK", required=False, shell_complete=completion.complete("plots", files=True)
)
@click.argument("records", nargs=-1, type=PATH)
@selecting
@click.option("--kind", type=click.Choice(PLOT_KINDS), help="Plot of a schedule.  [default: heatmap]")
@click.option(
    "--mode", type=click.Choice(SIMULATION_MODES), help="Time model.  [default: that of all completion times]"
)
@click.option("--tree", type=click.IntRange(0), multiple=True, help="Tree to draw, from 0; may be repeated.")
@click.option(
    "--places",
    type=PATH,
    help="JSON file {site: [longitude, latitude]} for --kind map.  [default: computed from the links]",
)
@click.option("--output", "-o", type=OUTPUT_FILE, help="A .svg, .pdf or .png file; for a schedule also .html.")
@network_edits
def plot(name: str | None, records: tuple[Path, ...], output: Path | None, edits: Edits, **options: Any) -> None:
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
    from ..api.plots import SCHEDULE_SUFFIXES, names_network, path_beside
    from ..api.plots import plot as draw
    from ..reports.plots import PLOTS, get, plot_format

    if name is None:
        raise InputError(f"NAME: missing; expected one of {', '.join(PLOTS)}, a schedule file or a network")
    of_network, of_schedule = not records and names_network(name), name.endswith((".json", *SCHEDULE_SUFFIXES))
    if edits and not of_network:
        raise InputError("only for the plot of a network", source=edits[0][0])
    if not of_network and not of_schedule:
        get(name)
    target = output or path_beside(name, ".svg")
    if target is None:
        raise InputError("give the file to write: a .svg, .pdf or .png", source="-o")
    OUTPUT_FILE.check_replaceable(target)
    if of_network:
        plot_format(target)
        with locate_errors(source=name):
            draw(load_edited(name, edits), output=target, **options)
    else:
        draw(name, *records, output=target, **options)
    if output is None:
        echo(str(target))


@click.command(cls=Command)
@click.argument("records", nargs=-1, type=PATH)
@click.option("--output", "-o", type=OUTPUT_FILE, default=Path("report.html"), help="Write to this .html file.")
@click.option("--title", default="cwb report", help="Heading of the page.")
def report(records: tuple[Path, ...], output: Path, title: str) -> None:
    """Make a page of RECORDS: JSONL files, or folders of them (./results).

    The page has plots, every table that fits the records, every failure with its reason, and the machines and
    versions. It is self-contained: it needs no network connection and no other file. It plays the fastest answer of
    each problem that 'cwb compare --schedules' kept.

    \b
    cwb report results/ -o report.html
    """
    from ..api.report import report as make

    echo(str(make(*records, output=output, title=title)))
