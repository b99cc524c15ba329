"""Simulations of schedules, with their measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from ..core.option_names import check_name, verb
from ..core.trace import Trace
from ..studies.inputs import Spec
from .answers import instance_and_sends
from .runs import Run

if TYPE_CHECKING:
    from ..core.answers import Answer
    from ..schedules.files import ScheduleFile


class Simulation(Trace):
    """A simulated schedule, with the measures that ``cwb simulate`` prints."""

    _measures: Callable[[], dict[str, Any]]

    @classmethod
    def of(cls, trace: Trace, measures: Callable[[], dict[str, Any]]) -> Simulation:
        """Return the trace with its measures, which are computed on demand."""
        made = cls(**{each.name: getattr(trace, each.name) for each in fields(Trace)})
        object.__setattr__(made, "_measures", measures)
        return made

    def to_json(self) -> dict[str, Any]:
        """Return the measures as ``cwb simulate --json`` prints them."""
        return self._measures()


@verb
def simulate(
    run: Run | ScheduleFile | Spec,
    answer: Answer | None = None,
    mode: str | None = None,
    *,
    barrier: bool = False,
    pieces: int | None = None,
    latency_model: str = "propagation",
    reserve: bool = False,
    chunk_overhead: str | None = None,
    routing: str | None = None,
    trace: str | Path | None = None,
    hold_latency: bool = False,
) -> Simulation:
    """Simulate a schedule: compute start and end of each send, and the load of the links.

    Parameters
    ----------
    run : Run, ScheduleFile, file of a schedule, or instance
        A solved problem; or an instance, or what :func:`load` takes, with its answer.
    answer : StepSchedule, Schedule or TreePacking, optional
        Answer to simulate instead of the run's.
    mode : str, optional
        ``alpha-beta``, ``congestion-aware``, ``cut-through``, ``fair-share`` or, for trees, ``shares``. By default the
        model of all completion times: ``shares`` for trees, else ``cut-through`` where the network sprays and
        ``congestion-aware`` where it does not.
    barrier : bool
        Start a step only when the previous one has ended.
    pieces : int, optional
        Pipelined pieces of every tree; by default those of its completion time.
    latency_model : str
        ``propagation``: latency only delays a chunk; ``occupancy``: it also occupies the link.
    reserve : bool
        Reserve the best rate for every tree, as MTree does.
    chunk_overhead : str, optional
        Time per chunk on a link in addition to its bytes, with ``reserve``.
    routing : str, optional
        ``fixed``: paths of the schedule; ``ecmp``: a shortest one, by a hash of the flow; ``spray``: equal parts over
        all shortest ones. By default the instance's.
    trace : str or Path, optional
        File for a Chrome trace, which Perfetto opens.
    hold_latency : bool
        True is the same as ``latency_model="occupancy"``.

    Returns
    -------
    Simulation
        The trace; ``to_json()`` has bandwidths, a bound and the busiest links.

    Raises
    ------
    InputError
        If there is no such mode, the answer is no schedule, or an option does not apply to it.
    """
    from ..core.pipelining import LatencyModel
    from ..core.trace import Routing, mode_named, routing_named
    from ..studies.simulate import SimulationOptions, play, simulation_of, write_trace

    read = _schedule_of(run, answer)
    check_name(latency_model, tuple(model.value for model in LatencyModel), "--latency-model")
    held = LatencyModel.OCCUPANCY if hold_latency else LatencyModel(latency_model)
    asked = SimulationOptions(
        None if mode is None else mode_named(mode),
        barrier,
        pieces,
        held,
        reserve,
        chunk_overhead,
        None if routing is None else routing_named(routing),
    )
    played, cut = play(read, asked)
    if trace is not None:
        if asked.routing_on(read.instance) is not Routing.FIXED:
            raise InputError("a trace has the paths of the schedule; expected routing='fixed'", source="trace")
        write_trace(Path(trace), read.instance, read.answer, played, cut)
    return Simulation.of(played, lambda: simulation_of(read, asked))


def _schedule_of(run: Run | ScheduleFile | Spec, answer: Answer | None) -> ScheduleFile:
    """Return a schedule with its problem in the form of a schedule file."""
    from ..schedules.files import ScheduleFile, Written, is_schedule, read_schedule

    if answer is None and isinstance(run, ScheduleFile):
        return run
    if answer is None and isinstance(run, str | Path) and is_schedule(Path(run)):
        return read_schedule(Path(run))
    instance, played = instance_and_sends(run, answer)
    if not isinstance(played, Written):
        raise InputError(f"a {type(played).__name__} is no schedule", source="answer")
    if not isinstance(run, Run) or answer is not None:
        return ScheduleFile(instance, played, None, {}, None)
    return ScheduleFile(instance, played, run.proved_by, {"model": run.model}, run.metrics.get("pieces"))
