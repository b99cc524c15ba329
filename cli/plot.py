"""``cwb plot``: records, or a schedule, to a picture."""

from __future__ import annotations

from pathlib import Path

import click

from ..api.pictures import KINDS, OF_TREES, PAGE, drawn
from ..core.errors import InputError, located
from ..core.files import write_whole
from .table import selected, selecting

#: Simulation modes; not taken from their class, which would load numpy.
MODES = ("congestion-aware", "alpha-beta", "cut-through", "fair-share", "shares")


@click.command()
@click.argument("name", metavar="NAME|SCHEDULE", required=False)
@click.argument("records", nargs=-1, type=click.Path(path_type=Path))
@selecting
@click.option("--kind", type=click.Choice(KINDS), help="Picture of a schedule.  [default: heatmap]")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    help="Model of time on links.  [default: the model of all completion times]",
)
@click.option("--tree", "trees", type=click.IntRange(0), multiple=True, help="Tree to draw, from 0; may be repeated.")
@click.option(
    "--places",
    type=click.Path(path_type=Path),
    help="JSON file {site: [longitude, latitude]} for --kind map.  [default: places follow from the links]",
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="A .svg, .pdf or .png file; of a schedule also .html."
)
def plot(
    name: str | None,
    records: tuple[Path, ...],
    where: tuple[str, ...],
    only: str | None,
    kind: str | None,
    mode: str | None,
    trees: tuple[int, ...],
    places: Path | None,
    output: Path | None,
) -> None:
    """Draw the plot NAME from RECORDS, or a picture of the schedule in a .json or .json.gz file.

    RECORDS are JSONL files, or folders of them (./results). Without NAME the known plots are listed. A schedule's
    picture is written beside it unless -o says where; an .html file is a page with the heat map and the Gantt chart
    to zoom into, which needs nothing else.

    \b
    cwb plot libra-allocation results/ -o allocation.svg
    cwb plot libra-speedup results/ -o speedup.pdf
    cwb plot schedule.json --kind gantt -o gantt.png
    cwb plot schedule.json -o schedule.html
    cwb plot forest.json --kind network --tree 3 -o tree.pdf
    cwb plot plan.json --kind map -o trees.svg
    """
    if name is not None and name.endswith((".json", ".json.gz")):
        if records:
            raise InputError("a schedule is drawn from its own file alone; expected no records", source=str(records[0]))
        if where or only:
            raise InputError("only for plots of records, not for a schedule", source="--where" if where else "--only")
        plot_schedule(Path(name), kind, mode, output, trees, places)
        return
    from ..reports.plots import PLOTS, get, picture_format

    if name is None:
        raise InputError(f"which plot? expected one of {', '.join(PLOTS)}, or a schedule file")
    draw = get(name)
    for option, given in (("--kind", kind), ("--mode", mode), ("--tree", trees or None), ("--places", places)):
        if given is not None:
            raise InputError("only for the picture of a schedule, a .json or .json.gz file", source=option)
    if output is None:
        raise InputError("give the file to write: a .svg, .pdf or .png", source="-o")
    form = picture_format(output)
    write_whole(output, draw(selected(records, where, only), form))


def plot_schedule(
    file: Path,
    kind: str | None,
    mode: str | None,
    output: Path | None,
    trees: tuple[int, ...] = (),
    places: Path | None = None,
) -> None:
    """Draw a schedule file; by default its heat map, beside it.

    Raises
    ------
    InputError
        If it is no schedule, there is no such picture of it, or the picture cannot be written.
    """
    from ..core.trace import SimulationMode
    from ..reports.plots import picture_format
    from ..schedules.files import read_schedule

    if output is None:
        output = file.with_name(file.name.removesuffix(".gz").removesuffix(".json") + ".svg")
    if trees and kind not in OF_TREES:
        raise InputError(f"only for --kind {', '.join(OF_TREES)}", source="--tree")
    if places is not None and kind != "map":
        raise InputError("only for --kind map", source="--places")
    paged = output.suffix.lower() == ".html"
    if paged and kind not in (None, *PAGE):
        raise InputError(f"the page shows {' and '.join(PAGE)}; expected .svg, .pdf or .png", source=str(output))
    try:
        form = "html" if paged else picture_format(output)
    except InputError as error:
        raise InputError(f"{error.problem}, .html", source=error.source) from None
    if not output.parent.is_dir():
        raise InputError("its folder does not exist", source=str(output))
    coordinates = None if places is None else read_places(places)
    chosen = None if mode is None else SimulationMode(mode)
    with located(source=str(file)):
        content = drawn(read_schedule(file), kind or KINDS[0], chosen, form, trees, coordinates)
    write_whole(output, content)


def read_places(path: Path) -> dict[str, tuple[float, float]]:
    """Read longitude and latitude of sites, in degrees.

    Raises
    ------
    InputError
        If it is no JSON object of pairs of such numbers.
    """
    from ..instances.loader import read_json

    found: dict[str, tuple[float, float]] = {}
    with located(source=str(path)):
        data = read_json(path)
        if not isinstance(data, dict):
            raise InputError('expected an object such as {"London": [-0.1, 51.5]}')
        for name, pair in data.items():
            numbers = isinstance(pair, list) and all(type(part) in (int, float) for part in pair)
            if not numbers or len(pair) != 2 or abs(pair[0]) > 180 or abs(pair[1]) > 90:
                raise InputError("expected [longitude, latitude] in degrees", place=name)
            found[name] = (float(pair[0]), float(pair[1]))
    return found
