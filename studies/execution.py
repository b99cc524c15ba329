"""Execution of schedules on real processes, with the result, the measured times and the predicted ones."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb
from statistics import median
from typing import Any, cast

import numpy as np

from ..core.answers import Answer, ChunkOrders
from ..core.equal_steps import StreamedSteps
from ..core.errors import Unsupported
from ..core.instance import Instance
from ..core.schedule import Schedule
from ..core.trace import SimulationMode
from ..core.trees import TreePacking
from ..harness.execution.emulation import execute_emulated
from ..harness.execution.local import execute_locally
from ..harness.execution.mpi import execute_with_mpi
from ..harness.execution.player import Job, Report
from ..harness.execution.program import Program, lower, require_few_messages
from ..schedules.completion import Completion, completion_if_any
from ..schedules.files import Written
from ..schedules.lowering import store_sends
from ..schedules.multirail import to_sends
from ..schedules.simulate import simulate
from ..schedules.verify.answers import Whole, write_out
from .schedule_candidates import resize_schedule, scale_answer
from .sensitivity import scale_links

LISTED = 20  #: Wrong regions of data that are told one by one.

#: Part of a full Ethernet frame that is data: of 1514 bytes TCP, with its time stamps, IP and Ethernet take 66.
DATA_PART = Fraction(1448, 1514)


@dataclass(frozen=True)
class ExecutionOptions:
    """Options of an execution."""

    mpi: bool  #: Processes are those of an MPI program; otherwise they are started here.
    job: Job
    size_bytes: Fraction | None = None  #: Size of the first collective, by which all data is scaled; None keeps it.
    pieces: int | None = None  #: Pieces of every tree; by default those of the schedule, else chosen.
    scale: Fraction | None = None  #: Factor of the rates of the links that are emulated; None emulates none.

    @property
    def processes(self) -> str:
        """Kind of processes: ``emulated``, ``mpi`` or ``local``."""
        return "emulated" if self.scale is not None else "mpi" if self.mpi else "local"


@dataclass(frozen=True, eq=False)
class Execution:
    """Result of an execution."""

    instance: Instance
    options: ExecutionOptions
    names: tuple[str, ...]  #: Ranks, then switches that store data: one process for each.
    messages: int
    sent_bytes: int
    seconds: tuple[float, ...]  #: Time of every repetition: of the process that took longest, from the common start.
    wrong: tuple[str, ...]  #: Wrong data, one line for each part of a rank's data; empty if all of it is right.
    predicted: Completion  #: Time on the network of the instance, at the rates that are emulated.
    framed: Completion | None = None  #: The same at rates less the bytes of headers; None if no network is emulated.

    @property
    def ok(self) -> bool:
        """True if every rank had the collective's result after every repetition."""
        return not self.wrong

    @property
    def median_s(self) -> float:
        """Median of the repetitions in seconds."""
        return float(median(self.seconds))

    def ratio_to(self, predicted: Completion | None) -> float | None:
        """Return the median over a predicted time; None if there is none."""
        return self.median_s / predicted.seconds if predicted is not None and predicted.seconds else None

    def to_json(self) -> dict[str, Any]:
        """Return the execution as ``cwb run --json`` prints it."""
        low, high, confidence = interval_of(list(self.seconds))
        (first, *_) = self.instance.collectives
        emulated = self.options.scale is not None
        return {
            "schema": "cwb-execution/1",
            "instance": self.instance.name,
            "instance_sha256": self.instance.sha256,
            "collective": first.collective.name,
            "size_bytes": float(first.size_bytes),
            "dtype": self.options.job.dtype,
            "processes": self.options.processes,
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
            "scale": str(self.options.scale) if emulated else None,
            "ratio": self.ratio_to(self.predicted) if emulated else None,
            "predicted_with_headers_s": self.framed.seconds if self.framed else None,
            "ratio_with_headers": self.ratio_to(self.framed),
        }


def execute(instance: Instance, answer: Answer, options: ExecutionOptions) -> Execution:
    """Execute a schedule with real data, and predict its time.

    An answer without sends, or with too many, is Unsupported; data that needs more memory than there is, OutOfTime.
    """
    instance, whole = _whole(instance, answer)
    if options.size_bytes is not None:
        instance, whole = cast("tuple[Instance, Whole]", resize_schedule(instance, whole, options.size_bytes))
    require_few_messages(whole, options.pieces or 1)
    framed = None
    if options.scale is not None:
        framed = _predict(*_scale_rates(instance, whole, options.scale * DATA_PART), options)
        instance, whole = _scale_rates(instance, whole, options.scale)
    predicted = _predict(instance, whole, options)
    itemsize = np.dtype(options.job.dtype).itemsize
    pieces = (options.pieces or predicted.pieces or 1) if isinstance(whole, TreePacking) else 1
    programs = lower(instance, whole, itemsize, pieces, hop_by_hop=options.scale is not None)
    if options.scale is not None:
        job = replace(options.job, first_come=not isinstance(whole, Schedule))  # as links of the simulator do
        reports = execute_emulated(programs, job, itemsize, instance.topology)
    else:
        reports = (execute_with_mpi if options.mpi else execute_locally)(programs, options.job, itemsize)
    sends = [operation.length for program in programs for queue in program.sends.values() for operation in queue]
    return Execution(
        instance,
        options,
        tuple(program.name for program in programs),
        len(sends),
        sum(sends) * itemsize,
        tuple(max(times) for times in zip(*(report.seconds for report in reports), strict=True)),
        tuple(_faults(programs, reports)),
        predicted,
        framed,
    )


def _predict(instance: Instance, whole: Whole, options: ExecutionOptions) -> Completion:
    """Predict the time of a schedule on the network of the instance.

    A link of an emulated network serves the pieces of all trees first come, first served: none has a share of its own.
    """
    completion = completion_if_any(instance, whole, options.pieces if isinstance(whole, TreePacking) else None)
    if options.scale is None or completion.seconds is None or completion.pieces is None:
        return completion
    trace = simulate(instance, whole, SimulationMode.CONGESTION_AWARE, pieces=completion.pieces)
    return replace(completion, seconds=trace.completion_s, shares=False)


def _whole(instance: Instance, answer: Answer) -> tuple[Instance, Whole]:
    """Return an answer with all its sends or trees, on a network of links."""
    if isinstance(answer, ChunkOrders):
        return to_sends(instance, answer)
    if isinstance(answer, StreamedSteps):
        return instance, store_sends(instance, answer)
    if not isinstance(answer, Written):
        raise Unsupported(f"a {type(answer).__name__} has no sends; only schedules and trees are executed")
    return instance, write_out(answer, instance)


def _scale_rates(instance: Instance, whole: Whole, factor: Fraction) -> tuple[Instance, Whole]:
    """Multiply the rates of all links by a factor, and leave out costs of ranks, which are not emulated."""
    if instance.timing is not None and instance.timing.changes:
        raise Unsupported("links whose bandwidth changes are not emulated")
    network = scale_links(instance.topology, instance.topology.link_ends, factor)
    changed = instance.with_changes(network=network, rank_costs=None)
    return changed, cast("Whole", scale_answer(whole, changed.sha256, Fraction(1)))


def _faults(programs: list[Program], reports: list[Report]) -> list[str]:
    lines = []
    for program, report in zip(programs, reports, strict=True):
        for fault in report.wrong:
            first = f"the first is element {fault.first:,}: {fault.actual}, expected {fault.expected}"
            lines.append(f"{program.name} has {fault.count:,} wrong elements; {first}")
    more = len(lines) - LISTED
    return lines if more <= 0 else [*lines[:LISTED], f"{more:,} more"]


CONFIDENCE = 0.95  #: Probability with which an interval of enough repetitions has the median of all possible ones.


def interval_of(seconds: list[float]) -> tuple[float, float, float]:
    """Return an interval for the median, and the probability that it contains it.

    Repetitions are taken for independent: each is below the median with probability 1/2, so that the number of those
    below is binomial. The narrowest pair of order statistics with enough probability is taken, or the two extremes.
    """
    ordered, count = sorted(seconds), len(seconds)

    def coverage(left_out: int) -> float:
        return 1.0 - 2 * sum(comb(count, k) for k in range(left_out + 1)) / float(2**count)

    left_out = 0
    while left_out + 1 < count / 2 and coverage(left_out + 1) >= CONFIDENCE:
        left_out += 1
    return ordered[left_out], ordered[-1 - left_out], max(0.0, coverage(left_out))
