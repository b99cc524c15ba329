"""Plots of answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InputError
from ..core.text import one_of

if TYPE_CHECKING:
    from ..core.instance import Instance
    from ..core.trace import SimulationMode, Trace
    from ..reports.plots.schedule_view import Traffic
    from ..schedules.files import ScheduleFile
    from .runs import Run

#: Plots of a schedule.
KINDS = ("heatmap", "gantt", "utilization", "trees", "network", "map")

#: Those of tree packings alone.
OF_TREES = ("trees", "network", "map")

#: Those that the interactive page has, all in one.
PAGE = ("heatmap", "gantt")

#: Intervals of time for which utilization is shown; fewer where links are many.
_PARTS, _CELLS = 200, 20_000_000


class Plot:
    """A plot, drawn in the requested format.

    Parameters
    ----------
    draw : callable
        Takes ``svg``, ``pdf`` or ``png`` and gives the file's bytes.
    """

    def __init__(self, draw: Callable[[str], bytes]) -> None:
        self._draw = draw

    def save(self, path: str | Path) -> Path:
        """Write a .svg, .pdf or .png file, and give its path.

        Raises
        ------
        InputError
            If it has another suffix, or cannot be written.
        """
        from ..core.files import write_whole
        from ..reports.plots import plot_format

        path = Path(path)
        write_whole(path, self._draw(plot_format(path)))
        return path

    def _repr_svg_(self) -> str:
        return self._draw("svg").decode()


def plot_of(run: Run, kind: str | None, mode: str | None) -> Plot:
    """Draw the answer of a run; see :meth:`cwb.api.runs.Run.plot`."""
    from ..core.answers import BandwidthPlan
    from ..reports.plots import PLOTS, get
    from ..schedules.files import ScheduleFile, Written
    from .answers import mode_named, sent
    from .inputs import keyword_names

    problem, answer = (run.problem, run.schedule) if isinstance(run.schedule, BandwidthPlan) else sent(run, None)
    chosen = kind or ("libra-allocation" if isinstance(answer, BandwidthPlan) else KINDS[0])
    known = (*KINDS, *PLOTS) if isinstance(answer, Written) else tuple(PLOTS)
    if chosen not in known:
        raise InputError(f"there is no {chosen!r} of it{one_of(chosen, known)}", source="kind")
    simulated = None if mode is None else mode_named(mode)

    def draw(form: str) -> bytes:
        if chosen in PLOTS or not isinstance(answer, Written):
            return get(chosen)([run], form)
        read = ScheduleFile(problem, answer, run.proved_by, {"model": run.model}, run.metrics.get("pieces"))
        with keyword_names():
            return drawn(read, chosen, simulated, form)

    return Plot(draw)


def drawn(
    read: ScheduleFile,
    kind: str,
    mode: SimulationMode | None,
    form: str,
    trees: tuple[int, ...] = (),
    places: dict[str, tuple[float, float]] | None = None,
) -> bytes:
    """Draw one plot of a schedule, or the page.

    Parameters
    ----------
    read : ScheduleFile
        The schedule with its instance.
    kind : str
        One of :data:`KINDS`.
    mode : SimulationMode or None
        Of the simulation that is drawn; None is the model of all completion times.
    form : str
        ``svg``, ``pdf``, ``png`` or ``html``.
    trees : tuple of int
        Trees to draw.
    places : dict, optional
        Longitude and latitude of sites, by their names.

    Raises
    ------
    InputError
        If there is no such plot of it.
    """
    from ..core.orbits import TreeOrbits, written_out
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
    from ..schedules.simulate.run import utilization

    instance, answer = read.instance, read.answer
    if isinstance(answer, TreeOrbits):
        answer = written_out(answer, instance.topology)
    if kind in OF_TREES:
        if not isinstance(answer, TreePacking):
            raise InputError("it has no trees; expected a tree-packing, or another --kind")
        if kind == "map":
            with look():
                return to_bytes(
                    schedule_map.draw(_title(instance, read), instance.topology, answer, trees, places), form
                )
        plot = schedule_trees if kind == "trees" else schedule_network
        with look():
            return to_bytes(plot.draw(_title(instance, read), instance.topology, answer, trees), form)
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
    """Return what a schedule sends, in the order of a simulation of it."""
    from ..core.schedule import StepSchedule
    from ..reports.plots.schedule_view import Traffic
    from ..schedules.simulate.transfers import sends_of

    instance, answer = read.instance, read.answer
    sends, chunk_bytes = sends_of(instance, answer, pieces=pieces)
    step = answer.step if isinstance(answer, StepSchedule) else None
    return Traffic(_title(instance, read), instance.topology, sends, chunk_bytes, step)


def _title(instance: Instance, read: ScheduleFile) -> str:
    """Return what a schedule is for, and which method it is by, if its file says so."""
    from ..reports.plots.schedule_view import bytes_unit

    method = read.extra.get("model", read.extra.get("method"))
    words = [method] if isinstance(method, str) else []
    if (demand := instance.demand) is not None:
        unit, size = bytes_unit(float(demand.size_bytes))
        words.append(f"{demand.collective.value} of {float(demand.size_bytes) / size:.6g} {unit}")
    return f"{' '.join(words)} on {instance.name}" if words else instance.name
