"""``cwb plot``: draw records, a schedule, or a network."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from ..api.plots import KINDS, OF_TREES, PAGE, drawn
from ..core.errors import InputError, located
from ..core.files import write_whole
from . import completion
from .edits import load_edited, network_edits
from .options import OUTPUT_FILE, PATH
from .streams import echo
from .table import selected, selecting

#: Simulation modes; not taken from their class, which would load numpy.
MODES = ("congestion-aware", "alpha-beta", "cut-through", "fair-share", "shares")

#: How names of files end that hold schedules and nothing else.
_SCHEDULES = (".json.gz", ".npz")

#: Bytes of a file that tell what it is.
_HEAD = 65536


@click.command()
@click.argument(
    "name", metavar="NAME|SCHEDULE|NETWORK", required=False, shell_complete=completion.of(completion.plots, files=True)
)
@click.argument("records", nargs=-1, type=PATH)
@selecting
@click.option("--kind", type=click.Choice(KINDS), help="Plot of a schedule.  [default: heatmap]")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    help="Model of time on links.  [default: the model of all completion times]",
)
@click.option("--tree", "trees", type=click.IntRange(0), multiple=True, help="Tree to draw, from 0; may be repeated.")
@click.option(
    "--places",
    type=PATH,
    help="JSON file {site: [longitude, latitude]} for --kind map.  [default: places follow from the links]",
)
@click.option("--output", "-o", type=OUTPUT_FILE, help="A .svg, .pdf or .png file; of a schedule also .html.")
@network_edits
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
    edits: tuple[tuple[str, str], ...],
) -> None:
    """Draw the plot NAME from RECORDS, the SCHEDULE in a .json, .json.gz or .npz file, or a NETWORK.

    RECORDS are JSONL files, or folders of them (./results). Without NAME the known plots are listed. The plot of a
    file is written beside it unless -o is given. An .html file is a self-contained page with the heat map and a Gantt
    chart of a schedule that can be zoomed. NETWORK is an instance as 'cwb solve' takes it.

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
    of_schedule = (("--kind", kind), ("--mode", mode), ("--tree", trees or None), ("--places", places))
    if name is not None and not records and is_network(name):
        refuse(of_schedule)
        plot_network(name, output, edits)
        return
    if edits:
        raise InputError("only for the plot of a network", source=edits[0][0])
    if name is not None and name.endswith((".json", *_SCHEDULES)):
        if records:
            raise InputError("a schedule is drawn from its own file alone; expected no records", source=str(records[0]))
        if where or only:
            raise InputError("only for plots of records, not for a schedule", source="--where" if where else "--only")
        plot_schedule(Path(name), kind, mode, output, trees, places)
        return
    from ..reports.plots import PLOTS, get, plot_format

    if name is None:
        raise InputError(f"NAME: missing; expected one of {', '.join(PLOTS)}, a schedule file or a network")
    draw = get(name)
    refuse(of_schedule)
    if output is None:
        raise InputError("give the file to write: a .svg, .pdf or .png", source="-o")
    form = plot_format(output)
    write_whole(output, draw(selected(records, where, only), form))


def refuse(given: Iterable[tuple[str, object]]) -> None:
    """Reject options that apply only to the plot of a schedule.

    Raises
    ------
    InputError
        If one is given.
    """
    for option, value in given:
        if value is not None:
            raise InputError("only for the plot of a schedule, a .json, .json.gz or .npz file", source=option)


def is_network(name: str) -> bool:
    """Whether a text names an instance, and neither a plot nor a schedule file."""
    from ..core.fabric import looks_like_fabric
    from ..instances.expression import is_expression
    from ..instances.generators import GENERATORS
    from ..instances.loader import shipped
    from ..reports.plots import PLOTS

    if name in PLOTS or name.endswith(_SCHEDULES):
        return False
    if name.endswith(".json"):
        return Path(name).is_file() and not _begins_as_schedule(Path(name))
    return looks_like_fabric(name) or is_expression(name) or name in GENERATORS or name in shipped()


def _begins_as_schedule(path: Path) -> bool:
    """Whether a file has no network before it says that it is a schedule, as files of schedules say first."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    return b'"cwb-schedule' in head or b'"network"' not in head


def plot_network(what: str, output: Path | None, edits: tuple[tuple[str, str], ...]) -> None:
    """Draw the network of an instance; by default that of a file beside it.

    Raises
    ------
    InputError
        If it cannot be loaded or is too large to be looked at, or the plot cannot be written.
    """
    from ..core.fabric import Fabric, expanded_size
    from ..core.network_views import links_of
    from ..reports.plots import plot_format
    from ..reports.plots.look import look, to_bytes
    from ..reports.plots.topology import check_size, draw

    named = output is not None
    if not named and what.endswith(".json"):
        output = Path(what).with_suffix(".svg")
    if output is None:
        raise InputError("give the file to write: a .svg, .pdf or .png", source="-o")
    form = plot_format(output)
    with located(source=what):
        instance = load_edited(what, edits)
        network = instance.network
        if isinstance(network, Fabric):
            nodes, links = expanded_size(network)
            check_size(nodes, links // 2)
            network = links_of(network)
        with look():
            content = to_bytes(draw(instance.name, network), form)
    _write(output, content, named)


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
        If it is no schedule, there is no such plot of it, or the plot cannot be written.
    """
    from ..core.trace import SimulationMode
    from ..reports.plots import plot_format
    from ..schedules.files import read_schedule

    named = output is not None
    if output is None:
        output = file.with_name(file.name.removesuffix(".gz").removesuffix(".json").removesuffix(".npz") + ".svg")
    if trees and kind not in OF_TREES:
        raise InputError(f"only for --kind {', '.join(OF_TREES)}", source="--tree")
    if places is not None and kind != "map":
        raise InputError("only for --kind map", source="--places")
    paged = output.suffix.lower() == ".html"
    if paged and kind not in (None, *PAGE):
        raise InputError(f"the page shows {' and '.join(PAGE)}; expected .svg, .pdf or .png", source=str(output))
    try:
        form = "html" if paged else plot_format(output)
    except InputError as error:
        raise InputError(f"{error.problem}, .html", source=error.source) from None
    coordinates = None if places is None else read_places(places)
    chosen = None if mode is None else SimulationMode(mode)
    with located(source=str(file)):
        content = drawn(read_schedule(file), kind or KINDS[0], chosen, form, trees, coordinates)
    _write(output, content, named)


def _write(output: Path, content: bytes, named: bool) -> None:
    """Write a plot; say where if nobody has said it."""
    write_whole(output, content)
    if not named:
        echo(str(output))


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
