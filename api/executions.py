"""Schedules on real processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.budget import ignore
from ..core.errors import InputError, locate_errors, show_value
from ..core.option_names import check_name, verb
from ..studies.inputs import Spec, seconds_or_none, whole
from .answers import instance_and_answer
from .runs import Run

if TYPE_CHECKING:
    from ..core.answers import Answer
    from ..schedules.files import ScheduleFile
    from ..studies.execution import Execution

#: Largest factor of rates, and the inverse of the smallest: beyond them no link has a rate that can be emulated.
MOST_SCALE = 10**12

#: Processes: started here, or those of an MPI program.
PROCESSES = ("local", "mpi")

#: Repetitions at most.
MOST_REPETITIONS = 1_000_000


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
    schedule : Run, ScheduleFile, file of a schedule, or instance
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
    size : str, optional
        Size of the first collective, such as ``"1 MiB"``; all data is scaled with it.
    pieces : int, optional
        Pipelined pieces of every tree; by default those of its completion time.
    emulate : bool
        Emulate the network: every node is a process of this machine, in a network namespace of its own.
    scale : str, optional
        Factor of the rates of all emulated links, such as ``"1/1000"``.
    output : str or Path, optional
        File for the result as JSON.
    time_limit_s : float, optional
        Seconds after which the processes are ended.
    progress : callable, optional
        Called with a short line at most once a second.

    Returns
    -------
    Execution
        Measured times, the predicted one, and what is wrong in the data.

    Raises
    ------
    InputError
        If the file cannot be read, or an option does not apply to it.
    Unsupported
        If the answer has no sends, or too many, or no network can be emulated here.
    OutOfTime
        If there is too little memory, or the time limit is reached.
    """
    from fractions import Fraction

    from ..core.files import write_whole
    from ..core.units import UnitKind, exact_number, parse
    from ..harness.clock import WallClock
    from ..harness.execution.mpi import is_started_by_mpi
    from ..harness.execution.player import Job
    from ..harness.execution.values import DTYPES
    from ..harness.interrupt import command_limits
    from ..schedules.files import read_schedule
    from ..studies.execution import ExecutionOptions, execute

    job = Job(
        check_name(dtype, DTYPES, "--dtype"),
        whole(repeat, "repeat", 1, MOST_REPETITIONS),
        whole(warmup, "warmup", 0, MOST_REPETITIONS),
    )
    mpi = is_started_by_mpi() if processes is None else check_name(processes, PROCESSES, "--processes") == "mpi"
    if is_started_by_mpi() and not mpi:
        raise InputError("mpirun has started several, each of which would start its own", source="--processes local")
    wanted: Fraction | None = None
    if size is not None:
        with locate_errors(source="--size"):
            wanted = parse(size, UnitKind.SIZE, allow_zero=False)
    if emulate and processes is not None:
        raise InputError("an emulated network has processes of its own", source="--processes")
    if scale is not None and not emulate:
        raise InputError("only the rates of an emulated network are scaled; expected --emulate", source="--scale")
    factor = exact_number(scale or "1") if emulate else None
    if emulate and not (factor and 1 / MOST_SCALE <= factor <= MOST_SCALE):
        raise InputError(f"{show_value(scale)}; expected a number from 1e-12 to 1e12, such as 1/1000", source="--scale")
    with command_limits(WallClock(seconds_or_none(time_limit_s, "time_limit_s")), progress or ignore):
        if answer is None and isinstance(schedule, str | Path):
            schedule = read_schedule(Path(schedule))
        instance, found = instance_and_answer(schedule, answer)
        known = schedule.metrics.get("pieces") if isinstance(schedule, Run) else getattr(schedule, "pieces", None)
        if pieces is not None:
            known = whole(pieces, "pieces", 1, 2**20)
            if not hasattr(found, "trees"):
                raise InputError("only trees are divided into pieces", source="--pieces")
        result = execute(instance, found, ExecutionOptions(mpi, job, wanted, known, factor))
    if output is not None:
        write_whole(Path(output), f"{json.dumps(result.to_json(), allow_nan=False)}\n".encode())
    return result
