"""Files and studies after a run: answer, record, reasons for infeasibility, value of more bandwidth."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatch
from pathlib import Path
from typing import Any

from ..core.answers import Answer, ChunkOrders, Placement
from ..core.budget import Progress, Start, ignore
from ..core.equal_steps import StreamedSteps
from ..core.errors import CwbError, ExitStatus, InputError, OutOfTime, Unsupported, show_value
from ..core.explanation import Explanation
from ..core.files import write_whole
from ..core.instance import Instance
from ..core.record import RunRecord, append_record
from ..core.sensitivity import Sensitivity
from ..core.trees import TreePacking
from ..harness import FinishedRun
from ..harness.clock import WallClock
from ..harness.interrupt import command_limits
from ..harness.request import Request
from ..harness.run import write_found
from ..schedules.files import ANSWER_SCHEMA, ScheduleFile, Written, forest_data, read_schedule, write_schedule
from ..schedules.multirail import to_sends
from ..schedules.placement import write_placement

MAX_PRINTED_EDGES = 100_000  #: A forest with more edges is printed as a number of trees; ``-o`` writes it whole.
MOST_LINKS = 20_000  #: Machines with more links are simulated at their own rates alone.
MAX_PRINTED_SLOTS = 100_000  #: A placement with more slots is printed as their number; ``-o`` writes it whole.


def shown_answer(record: RunRecord, result: FinishedRun) -> Mapping[str, Any] | None:
    """Return the answer as printed.

    Unless they are in a file, it includes the trees of a forest of at most :data:`MAX_PRINTED_EDGES` edges, and the
    experts of a placement of at most :data:`MAX_PRINTED_SLOTS` slots.
    """
    answer, data = result.answer, record.answer
    if data is None or "path" in data:
        return data
    if isinstance(answer, Placement) and data["slots"] <= MAX_PRINTED_SLOTS:
        return {**data, "experts": [[list(gpu) for gpu in layer] for layer in answer.experts]}
    if isinstance(answer, TreePacking) and len(answer.parent) <= MAX_PRINTED_EDGES:
        return {**data, "forest": forest_data(answer)}
    return data


def with_files(path: Path, result: FinishedRun, notice: Progress = ignore) -> RunRecord:
    """Write the answer, or each of a pool with its rank in the name; return the record with the files."""
    record = result.record
    if result.instance is None or result.answer is None:
        return record
    if not record.pool:
        return replace(record, answer=write_answer(path, result.instance, result, notice))
    files: list[dict[str, str]] = []
    for rank, answer in enumerate(result.pool, start=1):
        one = replace(result, answer=answer, record=replace(record, answer=answer.to_json()))
        stem, dot, endings = path.name.partition(".")
        files.append(write_answer(path.with_name(f"{stem}-{rank}{dot}{endings}"), result.instance, one, notice))
    rows = [{**row, "answer": file} for row, file in zip(record.pool, files, strict=True)]
    return replace(record, pool=rows, answer=files[0])


def write_answer(path: Path, instance: Instance, result: FinishedRun, notice: Progress = ignore) -> dict[str, str]:
    """Write the answer to a file, completely or not at all, and return its path and digest.

    A schedule is written in the format that ``cwb check`` and ``cwb simulate`` read (compressed if the name ends in
    ``.gz``); chunk orders as sends on the links of their fabric, unless there are too many. Notices report omissions.
    """
    return {"path": str(path), "sha256": _write(result.answer, path, instance, result, notice)}


@singledispatch
def _write(answer: Answer | None, path: Path, instance: Instance, result: FinishedRun, notice: Progress) -> str:
    record = result.record
    data = {
        "schema": ANSWER_SCHEMA,
        "instance": record.instance,
        "instance_sha256": record.instance_sha256,
        "model": record.model,
        "options": dict(record.options),
        "answer": record.answer,
        "certificate": record.certificate,
    }
    text = json.dumps(data, indent=1, allow_nan=False) + "\n"
    write_whole(path, text.encode())
    return hashlib.sha256(text.encode()).hexdigest()


@_write.register(Written)
def _(answer: Written, path: Path, instance: Instance, result: FinishedRun, notice: Progress) -> str:
    return write_found(path, result)


@_write.register(Placement)
def _(answer: Placement, path: Path, instance: Instance, result: FinishedRun, notice: Progress) -> str:
    extra = {"model": result.record.model, "bound": result.record.bound}
    return write_placement(path, instance, answer, result.certificate, extra)


@_write.register(ChunkOrders)
def _(answer: ChunkOrders, path: Path, instance: Instance, result: FinishedRun, notice: Progress) -> str:
    try:
        sends = to_sends(instance, answer)
    except InputError as error:
        notice(f"the orders are written, and not as sends on links: {error}")
        return _write.dispatch(object)(answer, path, instance, result, notice)
    return write_schedule(path, *sends, None, {"model": result.record.model})


@_write.register(StreamedSteps)
def _(answer: StreamedSteps, path: Path, instance: Instance, result: FinishedRun, notice: Progress) -> str:
    notice(f"{answer.sends:,} sends are not kept; the file has their number and digest")
    return _write.dispatch(object)(answer, path, instance, result, notice)


def effective_times(result: FinishedRun) -> dict[str, float | None]:
    """Return completion time and bus bandwidth, if it has one, of a schedule at the effective rates of its machine.

    Nothing is returned for other networks, for rates that are effective already, for machines of more than
    :data:`MOST_LINKS` links, and without a completion time.
    """
    from ..instances.edits import machine_at
    from ..schedules.completion import completion_if_any
    from .schedule_candidates import scale_answer

    instance, answer, metrics = result.instance, result.answer, result.record.metrics
    if instance is None or not isinstance(answer, Written) or not metrics.get("completion_time_s"):
        return {}
    try:
        if instance.timing is not None or len(instance.topology.links) > MOST_LINKS:
            return {}
        network = machine_at(instance, "effective")
        other = instance.with_changes(network=network)
        seconds = completion_if_any(other, scale_answer(answer, other.sha256, Fraction(1))).seconds
    except InputError:  # no machine of a generator
        return {}
    if seconds is None or network == instance.network:
        return {}
    busbw = metrics["busbw_GBps"] and metrics["busbw_GBps"] * metrics["completion_time_s"] / seconds
    return {"effective_time_s": seconds, "effective_busbw_GBps": busbw}


@dataclass(frozen=True)
class Findings:
    """Findings on the answer of a run."""

    explanation: Explanation | None = None
    sensitivity: Sensitivity | None = None
    exit_status: int = ExitStatus.OK  #: Exit status of a study that failed, else 0; the answer of the run is kept.
    error: Exception | None = None  #: Error of a study that failed.
    interrupted: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """Texts to print, one for each study."""
        return tuple(one.text() for one in (self.explanation, self.sensitivity) if one is not None)


def start_of(source: ScheduleFile | str | Path) -> Start:
    """Return the answer of a schedule file as the start of a search."""
    file = read_schedule(Path(source)) if isinstance(source, str | Path) else source
    if not isinstance(file, ScheduleFile):
        raise InputError(f"{show_value(file)} is no schedule; expected a run or a schedule file", source="--start")
    return Start(file.instance, file.answer)


def finish_run(
    result: FinishedRun,
    request: Request,
    load: Callable[[], Instance],
    *,
    output: Path | None = None,
    append: Path | None = None,
    explain: bool = False,
    sensitivity: bool = False,
    picture: Path | None = None,
    progress: Progress = ignore,
    notice: Progress = ignore,
) -> tuple[RunRecord, Findings]:
    """Write the answer of a run, study it, and append its record, also where the study fails."""
    record, findings = result.record, Findings()
    try:
        if output is not None and result.answer is not None:
            with (writing := WallClock()).phase("write"):
                record = with_files(output, result, notice)
            record = replace(record, seconds={**writing.seconds(), **record.seconds})
        if (explain or sensitivity) and result.instance is not None:
            findings = _run_studies(result, request, load, explain, sensitivity, picture, progress, notice)
        why, worth = (None if one is None else one.to_json() for one in (findings.explanation, findings.sensitivity))
        record = replace(record, explanation=why, sensitivity=worth)
    finally:
        if append is not None:
            append_record(append, record)
    return record, findings


def _run_studies(
    result: FinishedRun,
    request: Request,
    load: Callable[[], Instance],
    explained: bool,
    sensitive: bool,
    picture: Path | None,
    progress: Progress,
    notice: Progress,
) -> Findings:
    from ..reports.plots import write_plot
    from .explain import explain
    from .sensitivity import sensitivity

    option = "--sensitivity" if sensitive else "--explain"
    findings = Findings()
    try:
        with command_limits(WallClock(request.time_limit_s)):
            instance = load()
        if explained and result.record.answer is not None:
            notice("--explain: there is an answer")
        elif explained:
            findings = replace(findings, explanation=explain(instance, request, progress))
        if sensitive:
            findings = replace(findings, sensitivity=sensitivity(instance, request, progress))
        if picture is not None and findings.sensitivity is not None and result.instance is not None:
            from ..reports.plots.schedule_trees import draw_sensitivity

            write_plot(picture, draw_sensitivity, result.instance.network, findings.sensitivity)
    except (OutOfTime, Unsupported) as error:
        notice(f"{option}: {error}")
    except CwbError as error:
        notice(f"error: {error}")
        findings = replace(findings, exit_status=error.exit_status, error=error)
    except Exception as error:  # the run itself is done, and is not lost
        notice(f"error: {option}: internal error: {type(error).__name__}: {error} (--debug shows where)")
        findings = replace(findings, exit_status=ExitStatus.FAILURE, error=error)
    except KeyboardInterrupt:
        notice("interrupted; what the run has found is kept")
        findings = replace(findings, interrupted=True)
    return findings
