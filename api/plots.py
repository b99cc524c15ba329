"""Plots of records, schedules and networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.answers import Answer, BandwidthPlan, ChunkOrders
from ..core.bounds import Certificate
from ..core.errors import InputError, locate_errors, one_of
from ..core.fabric import Fabric, expanded_size, looks_like_fabric
from ..core.files import write_whole
from ..core.instance import Instance
from ..core.network_views import links_of
from ..core.option_names import PLOT_KINDS, SIMULATION_MODES, check_name, keyword_names, verb
from ..core.record import RunRecord
from ..core.schedule import StepSchedule
from ..core.trace import Routing, SimulationMode
from ..core.trees import TreePacking
from ..core.units import SIZES, amount
from ..instances.expression import is_expression
from ..instances.generators import GENERATORS
from ..instances.loader import read_json, shipped_instances
from ..reports.plots import PLOTS, get, plot_format
from ..schedules.collective import proof_of
from ..schedules.completion import completion_of, mode_of
from ..schedules.files import ScheduleFile, Written, read_schedule
from ..schedules.multirail import to_sends
from ..schedules.simulate import utilization
from ..schedules.simulate.run import simulate
from ..schedules.simulate.transfers import sends_of
from ..schedules.verify.answers import write_out
from ..studies.inputs import load
from ..studies.record_files import chosen_records
from ..studies.simulate import measure_simulation

if TYPE_CHECKING:
    from ..reports.plots.schedule_traffic import Traffic

TREE_KINDS = ("trees", "network", "map")  #: Those of :data:`PLOT_KINDS` that only tree packings have.
PAGE_KINDS = ("heatmap", "gantt")  #: Those that the interactive page shows, all in one.
SCHEDULE_SUFFIXES = (".json.gz", ".npz")  #: How names end of files that can only be schedules.
_HEAD_BYTES = 65536  #: Bytes at the start of a file that tell what it is.
_INTERVALS, _CELLS = 200, 20_000_000  #: Most intervals in a plot of utilization, and most intervals times links.


class Plot:
    """A plot that is drawn in the requested format: ``svg``, ``pdf`` or ``png``, with ``pages`` also ``html``."""

    def __init__(self, draw: Callable[[str], bytes], *, pages: bool = False) -> None:
        self._draw, self._pages = draw, pages

    def save(self, path: str | Path) -> Path:
        """Write a .svg, .pdf or .png file, for a schedule also an .html page, and return its path."""
        path = Path(path)
        write_whole(path, self._draw(self.format_of(path)))
        return path

    def format_of(self, path: Path) -> str:
        """Return the format that a file's suffix names."""
        if not self._pages:
            return plot_format(path)
        if path.suffix.lower() == ".html":
            return "html"
        try:
            return plot_format(path)
        except InputError as error:
            raise InputError(f"{error.problem}, .html", source=error.source) from None

    def _repr_svg_(self) -> str:
        return self._draw("svg").decode()


@verb
def plot_of_answer(
    record: RunRecord,
    problem: Instance,
    answer: Answer,
    certificate: Certificate | None,
    kind: str | None,
    mode: str | None,
) -> Plot:
    """Draw the answer of a run; see :meth:`cwb.api.runs.Run.plot`."""
    if isinstance(answer, ChunkOrders):
        problem, answer = to_sends(problem, answer)
    name = kind or ("libra-allocation" if isinstance(answer, BandwidthPlan) else PLOT_KINDS[0])
    names = (*PLOT_KINDS, *PLOTS) if isinstance(answer, Written) else tuple(PLOTS)
    if name not in names:
        raise InputError(f"there is no {name!r} of it{one_of(name, names)}", source="kind")
    model = None if mode is None else SimulationMode(check_name(mode, SIMULATION_MODES, "--mode"))

    def draw(form: str) -> bytes:
        if name in PLOTS or not isinstance(answer, Written):
            return get(name)([record], form)
        schedule = ScheduleFile(problem, answer, certificate, {"model": record.model}, record.metrics.get("pieces"))
        with keyword_names():
            return draw_schedule(schedule, name, model, form)

    return Plot(draw)


@verb
def plot(
    name: str | Path | Instance,
    *records: str | Path,
    where: str | Sequence[str] = (),
    only: str | None = None,
    kind: str | None = None,
    mode: str | None = None,
    tree: int | Sequence[int] = (),
    places: str | Path | None = None,
    output: str | Path | None = None,
) -> Plot:
    """Draw records, a schedule or a network, as ``cwb plot`` does; a notebook displays the plot.

    Parameters
    ----------
    name : str, Path or Instance
        Name of a plot of records, file of a schedule, or an instance whose network is drawn.
    *records : str or Path
        JSONL files and folders of them; by default ``results``.
    where, only : str or sequence of str
        Selected records: conditions such as ``"model=ring"``, and methods such as ``"ring,teccl*"``.
    kind, mode : str, optional
        Plot of a schedule, by default ``heatmap``, and its model of time on links.
    tree : int or sequence of int
        Trees to draw, counted from 0.
    places : str or Path, optional
        JSON file with longitude and latitude of sites, for the kind ``map``.
    output : str or Path, optional
        File for the plot, .svg, .pdf or .png; for a schedule also .html.
    """
    target = None if output is None else Path(output)
    trees = (tree,) if isinstance(tree, int) else tuple(tree)
    conditions = (where,) if isinstance(where, str) else tuple(where)
    of_schedule = {"--kind": kind, "--mode": mode, "--tree": trees or None, "--places": places}
    if isinstance(name, Instance) or (not records and names_network(str(name))):
        _refuse_schedule_options(of_schedule)
        image = _network_plot(name)
    elif str(name).endswith((".json", *SCHEDULE_SUFFIXES)):
        if records:
            raise InputError("a schedule is drawn from its own file; expected no records", source=str(records[0]))
        if conditions or only:
            place = "--where" if conditions else "--only"
            raise InputError("only for plots of records, not for a schedule", source=place)
        image = _schedule_plot(Path(str(name)), kind, mode, trees, places, target)
    else:
        draw = get(str(name))
        _refuse_schedule_options(of_schedule)
        if target is not None:
            plot_format(target)
        some = chosen_records(records, conditions, only)
        image = Plot(lambda form: draw(some, form))
    if target is not None:
        image.save(target)
    return image


@verb
def view(file: str | Path, *, mode: str | None = None, output: str | Path | None = None) -> Path:
    """Write a page that plays a schedule, as ``cwb view`` does, and return its path.

    Parameters
    ----------
    file : str or Path
        A schedule as ``cwb solve -o`` writes it.
    mode : str, optional
        Model of time on links, by default that of completion times.
    output : str or Path, optional
        The .html page, by default beside the file.
    """
    path = Path(output or path_beside(str(file), ".html") or f"{file}.html")
    if path.suffix.lower() != ".html":
        raise InputError("expected a name that ends in .html", source=str(path))
    return _schedule_plot(Path(file), None, mode, (), None, path).save(path)


def path_beside(name: str, suffix: str) -> Path | None:
    """Return the default path of the plot of a network or schedule file, beside it; None for other names."""
    stem = name.removesuffix(".gz").removesuffix(".json").removesuffix(".npz")
    return None if stem == name else Path(f"{stem}{suffix}")


def _refuse_schedule_options(options: Mapping[str, object]) -> None:
    for option, value in options.items():
        if value is not None:
            raise InputError("only for the plot of a schedule, a .json, .json.gz or .npz file", source=option)


def names_network(text: str) -> bool:
    """Return True if a text names an instance, whose network is drawn, and neither a plot nor a schedule file."""
    if text in PLOTS or text.endswith(SCHEDULE_SUFFIXES):
        return False
    if text.endswith(".json"):
        return Path(text).is_file() and not _begins_as_schedule(Path(text))
    return looks_like_fabric(text) or is_expression(text) or text in GENERATORS or text in shipped_instances()


def _begins_as_schedule(path: Path) -> bool:
    """Return True if a file begins with the format name of schedules, or without a network."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    return b'"cwb-schedule' in head or b'"network"' not in head


def _network_plot(spec: str | Path | Instance) -> Plot:
    from ..reports.plots.look import draw_as
    from ..reports.plots.topology import check_size, draw

    instance = load(spec)
    network = instance.network
    if isinstance(network, Fabric):
        nodes, links = expanded_size(network)
        check_size(nodes, links // 2)
        network = links_of(network)

    return Plot(lambda form: draw_as(form, draw, instance.name, network))


def _schedule_plot(
    file: Path,
    kind: str | None,
    mode: str | None,
    trees: tuple[int, ...],
    places: str | Path | None,
    target: Path | None,
) -> Plot:
    if trees and kind not in TREE_KINDS:
        raise InputError(f"only for --kind {', '.join(TREE_KINDS)}", source="--tree")
    if places is not None and kind != "map":
        raise InputError("only for --kind map", source="--places")
    if target is not None and target.suffix.lower() == ".html" and kind not in (None, *PAGE_KINDS):
        raise InputError(f"the page shows {' and '.join(PAGE_KINDS)}; expected .svg, .pdf or .png", source=str(target))
    name = PLOT_KINDS[0] if kind is None else check_name(kind, PLOT_KINDS, "--kind")
    model = None if mode is None else SimulationMode(check_name(mode, SIMULATION_MODES, "--mode"))
    coordinates = None if places is None else _read_places(Path(places))

    def draw(form: str) -> bytes:
        with locate_errors(source=str(file)), keyword_names():
            return draw_schedule(schedule, name, model, form, trees, coordinates)

    image = Plot(draw, pages=True)
    if target is not None:
        image.format_of(target)
    with locate_errors(source=str(file)):
        schedule = read_schedule(file)
    return image


def _read_places(path: Path) -> dict[str, tuple[float, float]]:
    places: dict[str, tuple[float, float]] = {}
    with locate_errors(source=str(path)):
        data = read_json(path)
        if not isinstance(data, dict):
            raise InputError('expected an object such as {"London": [-0.1, 51.5]}')
        for name, pair in data.items():
            numbers = isinstance(pair, list) and all(type(part) in (int, float) for part in pair)
            if not numbers or len(pair) != 2 or abs(pair[0]) > 180 or abs(pair[1]) > 90:
                raise InputError("expected [longitude, latitude] in degrees", place=name)
            places[name] = (float(pair[0]), float(pair[1]))
    return places


def draw_schedule(
    schedule: ScheduleFile,
    kind: str,
    mode: SimulationMode | None,
    form: str,
    trees: tuple[int, ...] = (),
    places: dict[str, tuple[float, float]] | None = None,
) -> bytes:
    """Draw one plot of a schedule, of :data:`PLOT_KINDS`, or its page.

    Parameters
    ----------
    mode : SimulationMode or None
        Model of the simulation that is drawn; None is the model of all completion times.
    places : dict, optional
        Longitude and latitude of sites in degrees, by name.
    """
    from ..reports.plots import html_page, schedule_map, schedule_time, schedule_traffic, schedule_trees
    from ..reports.plots.look import draw_as

    instance, answer = schedule.instance, schedule.answer
    if kind in TREE_KINDS:
        if not isinstance(answer := write_out(answer, instance), TreePacking):
            raise InputError("it has no trees; expected a tree-packing, or another --kind")
        args = (_title(instance, schedule), instance.topology, answer, trees)
        if kind == "map":
            return draw_as(form, schedule_map.draw, *args, places)
        return draw_as(form, schedule_trees.draw_trees if kind == "trees" else schedule_trees.draw_over_network, *args)
    if kind == "heatmap" and form != "html":
        return draw_as(form, schedule_traffic.draw_heatmap, _traffic(schedule, 1))
    pieces = schedule.pieces or completion_of(instance, answer).pieces or 1
    routing = Routing.FIXED  # plots show the paths of the schedule
    trace = simulate(instance, answer, mode or mode_of(answer, routing), pieces=pieces, routing=routing)
    traffic = _traffic(schedule, pieces)
    if form == "html":
        measures = measure_simulation(instance, trace.mode, 0, trace.completion_s, trace.link_busy_s)
        bounds = [measures["lower_bound_s"]]
        if mode is None and instance.timing is None:  # bounds in epochs say nothing about completion times
            bounds.append(proof_of(schedule, right=True, completion_s=trace.completion_s)[0].bound_s)
        return html_page.page(traffic, trace, max((float(b) for b in bounds if b is not None), default=None))
    if kind == "gantt":
        return draw_as(form, schedule_time.draw_gantt, traffic, trace)
    parts = min(_INTERVALS, max(20, _CELLS // max(1, len(traffic.topology.links))))
    edges, shares = utilization(instance, answer, trace, parts, pieces=pieces)
    title = traffic.title if mode is None else f"{traffic.title}, {mode.value}"
    return draw_as(form, schedule_time.draw_utilization, title, edges, shares)


def _traffic(schedule: ScheduleFile, pieces: int) -> Traffic:
    from ..reports.plots.schedule_traffic import Traffic

    instance, answer = schedule.instance, schedule.answer
    sends, chunk_bytes = sends_of(instance, answer, pieces=pieces)
    step = answer.step if isinstance(answer, StepSchedule) else None
    whole = write_out(answer, instance)
    root = whole.root[sends.chunk % len(whole.root)] if isinstance(whole, TreePacking) and len(whole.root) else None
    return Traffic(_title(instance, schedule), instance.topology, sends, chunk_bytes, step, root)


def _title(instance: Instance, schedule: ScheduleFile) -> str:
    """Return the instance of a schedule and its method, if the file names one."""
    method = schedule.extra.get("model", schedule.extra.get("method"))
    words = [method] if isinstance(method, str) else []
    words += [f"{each.collective.name} of {amount(each.size_bytes, SIZES)}" for each in instance.collectives[:1]]
    return f"{' '.join(words)} on {instance.name}" if words else instance.name
