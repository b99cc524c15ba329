"""``cwb plot``: records, or a schedule, to a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.errors import InputError, located
from ..core.files import write_whole
from .table import RECORDS

if TYPE_CHECKING:
    from ..core.instance import Instance
    from ..core.trace import SimulationMode, Trace
    from ..reports.plots.schedule_view import Traffic
    from ..schedules.files import ScheduleFile

#: Simulation modes; not taken from their class, which would load numpy.
MODES = ("congestion-aware", "alpha-beta", "cut-through", "fair-share", "shares")

#: Pictures of a schedule.
KINDS = ("heatmap", "gantt", "utilization", "trees", "network", "map")

#: Those of tree packings alone.
OF_TREES = ("trees", "network", "map")

#: Those that the interactive page has, all in one.
PAGE = ("heatmap", "gantt")

#: Intervals of time for which utilization is shown; fewer where links are many.
_PARTS, _CELLS = 200, 20_000_000


@click.command()
@click.argument("name", metavar="NAME|SCHEDULE", required=False)
@click.argument("records", nargs=-1, type=click.Path(path_type=Path))
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
        plot_schedule(Path(name), kind, mode, output, trees, places)
        return
    from ..reports.plots import PLOTS, get, picture_format
    from ..reports.records import load_records

    if name is None:
        raise InputError(f"which plot? expected one of {', '.join(PLOTS)}, or a schedule file")
    draw = get(name)
    for option, given in (("--kind", kind), ("--mode", mode), ("--tree", trees or None), ("--places", places)):
        if given is not None:
            raise InputError("only for the picture of a schedule, a .json or .json.gz file", source=option)
    if output is None:
        raise InputError("give the file to write: a .svg, .pdf or .png", source="-o")
    form = picture_format(output)
    write_whole(output, draw(load_records(records or RECORDS), form))


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
    content = _drawn(read_schedule(file), kind or KINDS[0], chosen, form, file, trees, coordinates)
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


def _drawn(
    read: ScheduleFile,
    kind: str,
    mode: SimulationMode | None,
    form: str,
    file: Path,
    trees: tuple[int, ...],
    places: dict[str, tuple[float, float]] | None,
) -> bytes:
    """Draw one picture, or the page."""
    from ..core.trees import TreePacking
    from ..reports.plots import (
        html,
        schedule_gantt,
        schedule_heatmap,
        schedule_map,
        schedule_network,
        schedule_trees,
        schedule_utilization,
    )
    from ..reports.plots.look import look, to_bytes
    from ..schedules.simulate.network import network_of
    from ..schedules.simulate.run import utilization

    instance, answer = read.instance, read.answer
    if kind in OF_TREES:
        if not isinstance(answer, TreePacking):
            raise InputError("it has no trees; expected a tree-packing, or another --kind", source=str(file))
        if kind == "map":
            with look(), located(source=str(file)):
                drawn = schedule_map.draw(_title(instance, read), network_of(instance), answer, trees, places)
                return to_bytes(drawn, form)
        picture = schedule_trees if kind == "trees" else schedule_network
        with look(), located(source=str(file)):
            return to_bytes(picture.draw(_title(instance, read), network_of(instance), answer, trees), form)
    with look():
        if kind == "heatmap" and form != "html":
            return to_bytes(schedule_heatmap.draw(_traffic(read, 1)), form)
        trace, pieces = _played(read, mode)
        traffic = _traffic(read, pieces)
        if form == "html":
            return html.page(traffic, trace)
        if kind == "gantt":
            return to_bytes(schedule_gantt.draw(traffic, trace), form)
        parts = min(_PARTS, max(20, _CELLS // max(1, len(traffic.topology.links))))
        edges, used = utilization(instance, answer, trace, parts, pieces=pieces)
        title = traffic.title if mode is None else f"{traffic.title}, {mode.value}"
        return to_bytes(schedule_utilization.draw(title, edges, used), form)


def _played(read: ScheduleFile, mode: SimulationMode | None) -> tuple[Trace, int]:
    """Play a schedule in the model of all completion times, or in a mode; also give the pieces of a tree."""
    from ..schedules.completion import completion_of, mode_of
    from ..schedules.simulate.run import simulate

    instance, answer = read.instance, read.answer
    pieces = read.pieces or completion_of(instance, answer).pieces or 1
    return simulate(instance, answer, mode or mode_of(answer), pieces=pieces), pieces


def _traffic(read: ScheduleFile, pieces: int) -> Traffic:
    """Tell what a schedule sends, in the order of a simulation of it."""
    from ..core.schedule import StepSchedule
    from ..reports.plots.schedule_view import Traffic
    from ..schedules.simulate.network import network_of
    from ..schedules.simulate.transfers import sends_of

    instance, answer = read.instance, read.answer
    sends, chunk_bytes = sends_of(instance, answer, pieces=pieces)
    step = answer.step if isinstance(answer, StepSchedule) else None
    return Traffic(_title(instance, read), network_of(instance), sends, chunk_bytes, step)


def _title(instance: Instance, read: ScheduleFile) -> str:
    """Say what a schedule is for, and which method it is by, if its file says so."""
    from ..reports.plots.schedule_view import bytes_unit

    method = read.extra.get("model", read.extra.get("method"))
    words = [method] if isinstance(method, str) else []
    if (demand := instance.demand) is not None:
        unit, size = bytes_unit(float(demand.size_bytes))
        words.append(f"{demand.collective.value} of {float(demand.size_bytes) / size:.6g} {unit}")
    return f"{' '.join(words)} on {instance.name}" if words else instance.name
