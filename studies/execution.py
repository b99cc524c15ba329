"""Execution of schedules on real processes, with the result, the measured times and the predicted one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np

from ..core.answers import Answer, ChunkOrders
from ..core.errors import Unsupported
from ..core.instance import Instance
from ..core.schedule import Schedule, StepSchedule
from ..core.streamed_steps import StreamedSteps
from ..core.trees import TreePacking
from ..harness.execution.local import execute_locally
from ..harness.execution.mpi import execute_with_mpi
from ..harness.execution.player import Job, Report
from ..harness.execution.program import Program, lower, require_few_messages
from ..harness.execution.results import interval_of
from ..schedules.chunk_orders import to_sends
from ..schedules.completion import Completion, completion_if_any
from ..schedules.files import Written
from ..schedules.streamed_sends import store_sends
from ..schedules.verify.answers import Whole, write_out

#: Wrong regions of data that are told one by one.
LISTED = 20


@dataclass(frozen=True)
class ExecutionOptions:
    """Options of an execution.

    Parameters
    ----------
    mpi : bool
        Processes are those of an MPI program; otherwise they are started here.
    job : Job
        Options that all processes share.
    size_bytes : Fraction or None
        Size of the first collective, by which all data is scaled; None keeps it.
    pieces : int or None
        Pieces of every tree; by default those of the schedule, else chosen.
    """

    mpi: bool
    job: Job
    size_bytes: Fraction | None = None
    pieces: int | None = None


@dataclass(frozen=True, eq=False)
class Execution:
    """Result of an execution.

    Parameters
    ----------
    names : tuple of str
        Ranks, then switches that store data: one process for each.
    messages, sent_bytes : int
        Messages of one repetition, and their bytes.
    seconds : tuple of float
        Time of every repetition: of the process that took longest, from the common start.
    wrong : tuple of str
        Wrong data, one line for each part of a rank's data; empty if all of it is right.
    predicted : Completion
        Time on the network of the instance.
    """

    instance: Instance
    options: ExecutionOptions
    names: tuple[str, ...]
    messages: int
    sent_bytes: int
    seconds: tuple[float, ...]
    wrong: tuple[str, ...]
    predicted: Completion

    @property
    def ok(self) -> bool:
        """True if every rank had the collective's result after every repetition."""
        return not self.wrong

    @property
    def median_s(self) -> float:
        """Median of the repetitions in seconds."""
        return float(median(self.seconds))

    def to_json(self) -> dict[str, Any]:
        """Return the execution as ``cwb run --json`` prints it."""
        low, high, confidence = interval_of(list(self.seconds))
        (first, *_) = self.instance.collectives
        return {
            "schema": "cwb-execution/1",
            "instance": self.instance.name,
            "instance_sha256": self.instance.sha256,
            "collective": first.collective.name,
            "size_bytes": float(first.size_bytes),
            "dtype": self.options.job.dtype,
            "processes": "mpi" if self.options.mpi else "local",
            "nodes": list(self.names),
            "messages": self.messages,
            "sent_bytes": self.sent_bytes,
            "repeat": self.options.job.repeat,
            "warmup": self.options.job.warmup,
            "right": self.ok,
            "wrong": list(self.wrong),
            "seconds": list(self.seconds),
            "median_s": self.median_s,
            "interval_s": [low, high],
            "confidence": confidence,
            "predicted_s": self.predicted.seconds,
            "predicted_by": self.predicted.model if self.predicted.seconds is not None else self.predicted.why,
            "pieces": self.predicted.pieces,
        }


def execute(instance: Instance, answer: Answer, asked: ExecutionOptions) -> Execution:
    """Execute a schedule with real data, and predict its time.

    Raises
    ------
    Unsupported
        If the answer has no sends, or too many.
    InputError
        If it is not about the data of the instance's collective.
    OutOfTime
        If the data needs more memory than there is.
    """
    instance, whole = _whole(instance, answer)
    if asked.size_bytes is not None:
        instance, whole = _resize(instance, whole, asked.size_bytes / instance.collectives[0].size_bytes)
    is_forest = isinstance(whole, TreePacking)
    require_few_messages(whole, asked.pieces or 1)
    predicted = completion_if_any(instance, whole, asked.pieces if is_forest else None)
    itemsize = np.dtype(asked.job.dtype).itemsize
    programs = lower(instance, whole, itemsize, (asked.pieces or predicted.pieces or 1) if is_forest else 1)
    run = execute_with_mpi if asked.mpi else execute_locally
    reports = run(programs, asked.job, itemsize)
    sends = [operation.length for program in programs for queue in program.sends.values() for operation in queue]
    return Execution(
        instance,
        asked,
        tuple(program.name for program in programs),
        len(sends),
        sum(sends) * itemsize,
        tuple(max(times) for times in zip(*(report.seconds for report in reports), strict=True)),
        tuple(_faults(programs, reports)),
        predicted,
    )


def _whole(instance: Instance, answer: Answer) -> tuple[Instance, Whole]:
    """Return an answer with all its sends or trees, on a network of links."""
    if isinstance(answer, ChunkOrders):
        return to_sends(instance, answer)
    if isinstance(answer, StreamedSteps):
        return instance, store_sends(instance, answer)
    if not isinstance(answer, Written):
        raise Unsupported(f"a {type(answer).__name__} has no sends; only schedules and trees are executed")
    return instance, write_out(answer, instance)


def _resize(instance: Instance, whole: Whole, factor: Fraction) -> tuple[Instance, Whole]:
    """Multiply all data by a factor."""
    demands = [replace(demand, size_bytes=demand.size_bytes * factor) for demand in instance.demands]
    changed = instance.with_changes(demand=demands[0], also=tuple(demands[1:]))
    if isinstance(whole, StepSchedule | Schedule):
        chunks = replace(whole.chunks, unit_bytes=whole.chunks.unit_bytes * factor)
        return changed, replace(whole, instance_sha256=changed.sha256, chunks=chunks)
    first, *others = (
        replace(part, instance_sha256=changed.sha256, unit_bytes=part.unit_bytes * factor) for part in whole.passes
    )
    return changed, replace(others[0], kind=whole.kind, reduction=first) if others else first


def _faults(programs: list[Program], reports: list[Report]) -> list[str]:
    """Return a line for each part of a rank's data that is wrong."""
    found = []
    for program, report in zip(programs, reports, strict=True):
        for fault in report.wrong:
            first = f"the first is element {fault.first:,}: {fault.found}, expected {fault.expected}"
            found.append(f"{program.name} has {fault.count:,} wrong elements; {first}")
    more = len(found) - LISTED
    return found if more <= 0 else [*found[:LISTED], f"{more:,} more"]
