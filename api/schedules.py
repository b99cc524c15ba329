"""Answers of runs and files: verified, simulated, executed on real processes, and repaired."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..algorithms.trees.network import to_wan
from ..core.answers import Answer, ChunkOrders
from ..core.bounds import Certificate
from ..core.budget import Progress, ignore
from ..core.errors import InputError, locate_errors, show_value
from ..core.files import write_whole
from ..core.instance import Instance
from ..core.option_names import SIMULATION_MODES, WrongUse, check_name, verb
from ..core.outcome import Verdict
from ..core.pipelining import LatencyModel
from ..core.trace import Routing, SimulationMode, Trace, routing_named
from ..core.trees import TreePacking
from ..core.units import UnitKind, exact_number, parse
from ..harness import Request
from ..harness import run as run_method
from ..harness.clock import WallClock
from ..harness.execution.mpi import is_started_by_mpi, shared_errors
from ..harness.execution.player import Job
from ..harness.execution.values import DTYPES
from ..harness.interrupt import command_limits
from ..instances.edits import edit_instance
from ..models.mtree.repair_input import describe_trees
from ..schedules import verdict_of
from ..schedules.files import ScheduleFile, Written, is_schedule, read_schedule, write_schedule
from ..schedules.multirail import to_sends
from ..studies.execution import Execution, ExecutionOptions, execute
from ..studies.inputs import Spec, edits_of, load, seconds_or_none, whole
from ..studies.simulate import SimulationOptions, describe_simulation, simulate_file, write_trace
from ..studies.solve import write_answer
from .runs import Run

if TYPE_CHECKING:
    from ..studies.repair import RepairedSchedule


@verb
def verify(
    run: Run | ScheduleFile | Spec, answer: Answer | None = None, certificate: Certificate | None = None
) -> Verdict:
    """Verify an answer: find violations, recompute the objective, and compute the bound that the certificate proves.

    Parameters
    ----------
    run : Run, ScheduleFile or Instance
        A solved problem; or an instance, or what :func:`load` takes, with its answer.
    answer, certificate : optional
        Answer to verify, and certificate of its bound, instead of the run's.
    """
    if answer is None:
        certificate = certificate or (run.proved_by if isinstance(run, Run) else getattr(run, "certificate", None))
    return verdict_of(*instance_and_answer(run, answer), certificate)


def instance_and_answer(run: Run | ScheduleFile | Spec, answer: Answer | None) -> tuple[Instance, Answer]:
    """Return the problem and the answer of a run, a schedule file, or an instance with an answer."""
    if isinstance(run, Run):
        return run.problem, run.schedule if answer is None else answer
    if isinstance(run, ScheduleFile):
        return run.instance, run.answer if answer is None else answer
    if answer is None:
        raise InputError(f"expected the result of cwb.solve, or an answer with {type(run).__name__}", source="answer")
    return load(run), answer


def instance_and_sends(run: Run | ScheduleFile | Spec, answer: Answer | None) -> tuple[Instance, Answer]:
    """Return problem and answer like :func:`instance_and_answer`; chunk orders become sends on links."""
    instance, answer = instance_and_answer(run, answer)
    return to_sends(instance, answer) if isinstance(answer, ChunkOrders) else (instance, answer)


class Simulation(Trace):
    """A simulated schedule, with the measures that ``cwb simulate`` prints."""

    _measures: Callable[[], dict[str, Any]]

    @classmethod
    def of(cls, trace: Trace, measures: Callable[[], dict[str, Any]]) -> Simulation:
        """Return the trace with its measures, which are computed on demand."""
        simulation = cls(**{each.name: getattr(trace, each.name) for each in fields(Trace)})
        object.__setattr__(simulation, "_measures", measures)
        return simulation

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
    run : Run, ScheduleFile, file of a schedule, or Instance
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
        ``propagation``: latency only delays a chunk; ``occupancy``, or ``hold_latency``: it also occupies the link.
    reserve, chunk_overhead : optional
        Reserve the best rate for every tree, as MTree does, with this time per chunk on a link beside its bytes.
    routing : str, optional
        ``fixed``: paths of the schedule; ``ecmp``: a shortest one, by a hash of the flow; ``spray``: equal parts over
        all shortest ones. By default the instance's.
    trace : str or Path, optional
        File for a Chrome trace, which Perfetto opens.

    Returns
    -------
    Simulation
        The trace; ``to_json()`` has bandwidths, a bound and the busiest links.
    """
    read = _schedule_of(run, answer)
    check_name(latency_model, tuple(model.value for model in LatencyModel), "--latency-model")
    latency = LatencyModel.OCCUPANCY if hold_latency else LatencyModel(latency_model)
    options = SimulationOptions(
        None if mode is None else SimulationMode(check_name(mode, SIMULATION_MODES, "--mode")),
        barrier,
        pieces,
        latency,
        reserve,
        chunk_overhead,
        None if routing is None else routing_named(routing),
    )
    simulation, cut = simulate_file(read, options)
    if trace is not None:
        if options.routing_on(read.instance) is not Routing.FIXED:
            raise InputError("a trace has the paths of the schedule; expected routing='fixed'", source="trace")
        write_trace(Path(trace), read.instance, read.answer, simulation, cut)
    return Simulation.of(simulation, lambda: describe_simulation(read, options))


def _schedule_of(run: Run | ScheduleFile | Spec, answer: Answer | None) -> ScheduleFile:
    """Return a schedule with its problem in the form of a schedule file."""
    if answer is None and isinstance(run, ScheduleFile):
        return run
    if answer is None and isinstance(run, str | Path) and is_schedule(Path(run)):
        return read_schedule(Path(run))
    instance, schedule = instance_and_sends(run, answer)
    if not isinstance(schedule, Written):
        raise InputError(f"a {type(schedule).__name__} is no schedule", source="answer")
    if not isinstance(run, Run) or answer is not None:
        return ScheduleFile(instance, schedule, None, {}, None)
    return ScheduleFile(instance, schedule, run.proved_by, {"model": run.model}, run.metrics.get("pieces"))


#: Largest factor of rates, and the inverse of the smallest: beyond them no link has a rate that can be emulated.
MOST_SCALE = 10**12

PROCESSES = ("local", "mpi")  #: Processes: started here, or those of an MPI program.
MOST_REPETITIONS = 1_000_000  #: Repetitions at most.


@verb
def run(
    schedule: Run | ScheduleFile | Spec,
    answer: Answer | None = None,
    *,
    processes: str | None = None,
    repeat: int = 5,
    warmup: int = 1,
    dtype: str = "int64",
    size: str | None = None,
    pieces: int | None = None,
    emulate: bool = False,
    scale: str | None = None,
    output: str | Path | None = None,
    time_limit_s: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Execution:
    """Execute a schedule with real data, one process for each rank, as ``cwb run`` does.

    Parameters
    ----------
    schedule : Run, ScheduleFile, file of a schedule, or Instance
        A solved problem; or an instance, or what :func:`load` takes, with its answer.
    answer : Answer, optional
        Schedule to execute instead of the run's.
    processes : str, optional
        ``local``: processes of this machine, started here; ``mpi``: those of the MPI program that calls this. By
        default ``mpi`` if mpirun has started several.
    repeat, warmup : int
        Number of measured repetitions, and of those before, whose times do not count.
    dtype : str
        Type of the elements: ``int64``, compared exactly, or ``float32``, sums of which have a tolerance.
    size, pieces : optional
        Size of the first collective, such as ``"1 MiB"``, with which all data is scaled; pieces of every tree, by
        default those of its completion time.
    emulate, scale : optional
        Emulate the network: every node is a process in a network namespace of its own; and the factor of the rates of
        all emulated links, such as ``"1/1000"``.
    output, time_limit_s : optional
        File for the result as JSON, and seconds after which the processes are ended.
    progress : callable, optional
        Called with a short line at most once a second.

    Raises
    ------
    Unsupported
        If the answer has no sends, or too many, or no network can be emulated here.
    OutOfTime
        If there is too little memory, or the time limit is reached.
    """
    job = Job(
        check_name(dtype, DTYPES, "--dtype"),
        whole(repeat, "repeat", 1, MOST_REPETITIONS),
        whole(warmup, "warmup", 0, MOST_REPETITIONS),
    )
    mpi = is_started_by_mpi() if processes is None else check_name(processes, PROCESSES, "--processes") == "mpi"
    if is_started_by_mpi() and not mpi:
        raise InputError("mpirun has started several, each of which would start its own", source="--processes local")
    size_bytes = None if size is None else parse(size, UnitKind.SIZE, allow_zero=False, source="--size")
    if emulate and processes is not None:
        raise InputError("an emulated network has processes of its own", source="--processes")
    if scale is not None and not emulate:
        raise InputError("only the rates of an emulated network are scaled; expected --emulate", source="--scale")
    factor = exact_number(scale or "1") if emulate else None
    if emulate and not (factor and 1 / MOST_SCALE <= factor <= MOST_SCALE):
        raise InputError(f"{show_value(scale)}; expected a number from 1e-12 to 1e12, such as 1/1000", source="--scale")
    limits = command_limits(WallClock(seconds_or_none(time_limit_s, "time_limit_s")), progress or ignore)
    with shared_errors() if mpi else nullcontext(), limits:
        if answer is None and isinstance(schedule, str | Path):
            schedule = read_schedule(Path(schedule))
        instance, answer = instance_and_answer(schedule, answer)
        per_tree = schedule.metrics.get("pieces") if isinstance(schedule, Run) else getattr(schedule, "pieces", None)
        if pieces is not None:
            per_tree = whole(pieces, "pieces", 1, 2**20)
            if not hasattr(answer, "trees"):
                raise InputError("only trees are divided into pieces", source="--pieces")
        result = execute(instance, answer, ExecutionOptions(mpi, job, size_bytes, per_tree, factor))
    if output is not None:
        write_whole(Path(output), f"{json.dumps(result.to_json(), allow_nan=False)}\n".encode())
    return result


@verb
def repair(
    plan: str | Path,
    *,
    change: str | Sequence[str] = (),
    solver: str = "highs",
    options: Mapping[str, Any] | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
    output: str | Path | None = None,
    without_link: str | Sequence[str] = (),
    without_node: str | Sequence[str] = (),
    without_rank: str | Sequence[str] = (),
    link: str | Sequence[str] = (),
    progress: Progress = ignore,
    notice: Progress = ignore,
) -> Run | RepairedSchedule:
    """Repair a plan or a schedule after changes of its network, as ``cwb repair`` does.

    Parameters
    ----------
    plan : str or Path
        File of a plan of mtree, or of any schedule.
    change : str or sequence of str
        New bandwidths between two sites of a plan, such as ``"3-7=0"``.
    solver, seed, options, time_limit_s : optional
        Solver, seed, options and limit of mtree-repair, such as ``{"new_trees": 2}``.
    output : str or Path, optional
        File for the new plan or schedule.
    without_link, without_node, without_rank, link : str or sequence of str
        Changes of the network of a schedule, as in :func:`load`.
    notice : callable
        Called with a remark on anything that the output file leaves out.

    Returns
    -------
    Run or RepairedSchedule
        For a plan the run of mtree-repair; for a schedule the repaired one, with its times and a bound.

    Raises
    ------
    Unsupported
        If the form of the schedule has no paths that could be changed.
    """
    path, clock = Path(plan), WallClock(seconds_or_none(time_limit_s, "time_limit_s"))
    target = None if output is None else Path(output)
    changes = [change] if isinstance(change, str) else list(change)
    if edits := edits_of(None, without_link, without_node, without_rank, link):
        from ..studies.repair import repair_schedule  # half of its libraries are its own

        if changes or options:
            raise WrongUse("-c and -O apply to plans of mtree only; expected them without changes of links and nodes")
        with command_limits(clock), locate_errors(source=str(path)):
            file = read_schedule(path)
            schedule = repair_schedule(file.instance, file.answer, edit_instance(file.instance, edits), file.pieces)
        if target is not None:
            bound_s, certificate = schedule.of_objective or (None, None)
            extra = {**file.extra, "bound_s": None if bound_s is None else float(bound_s)}
            write_schedule(target, schedule.instance, schedule.answer, certificate, extra, file.pieces)
        return schedule
    with command_limits(clock):
        file = read_schedule(path)
        if not isinstance(file.answer, TreePacking):
            raise InputError("it has no trees; expected a plan of mtree", source=str(path))
        with locate_errors(source=str(path)):
            previous = describe_trees(to_wan(file.instance), file.answer, changes)
    for name in {"previous", "changes"} & {*(options or ())}:
        raise InputError("is set by PLAN and --change", source="-O", place=name)
    all_options = {**(options or {}), "previous": [tree.model_dump() for tree in previous], "changes": changes}
    request = Request("mtree-repair", solver, all_options, whole(seed, "seed", 0, 2**31 - 1), 1, clock.limit_s)
    with locate_errors(source=str(path)):
        result = run_method(file.instance, request, progress, clock=clock)
    if target is not None and result.instance is not None and result.answer is not None:
        write_answer(target, result.instance, result, notice)
    return Run.of(result)
