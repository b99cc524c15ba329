"""``cwb solve``: one method on one instance."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ..core.errors import ExitStatus, InputError, located
from ..core.files import write_whole
from . import completion
from .edits import network_edits
from .options import (
    OUTPUT_FILE,
    libraries_on_stderr,
    log_of_solver,
    not_nan,
    parse_duration,
    parse_options,
    parse_solver_options,
    plugged,
    progress_on_stderr,
)
from .streams import echo
from .studies import studied

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..core.answers import ChunkOrders, Placement
    from ..core.instance import Instance
    from ..core.record import RunRecord
    from ..core.schedule import StepSchedule
    from ..harness import FinishedRun

#: A forest with more edges is printed as a number of trees; ``-o`` writes it whole.
MAX_PRINTED_EDGES = 100_000

#: A placement with more slots is printed as their number; ``-o`` writes it whole.
MAX_PRINTED_SLOTS = 100_000


@click.command()
@click.argument("instance", shell_complete=completion.of(completion.instances, files=True))
@click.option(
    "--model", "-m", shell_complete=completion.of(completion.models), help="Method to use; 'cwb list models' lists all."
)
@click.option(
    "--formulation",
    shell_complete=completion.of(completion.formulations),
    help="In place of a method, a declared model to solve as it is; see 'cwb list formulations'.",
)
@click.option(
    "--solver",
    "-s",
    default="highs",
    shell_complete=completion.of(completion.solvers),
    show_default=True,
    help="highs, highs-pdlp, gurobi, scip or pyomo:NAME.",
)
@click.option(
    "--option",
    "-O",
    "options",
    multiple=True,
    shell_complete=completion.method_options,
    metavar="NAME=VALUE",
    help="An option of the method.",
)
@click.option(
    "--solver-option",
    "-S",
    "solver_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the solver, by its own name; see the page on solvers.",
)
@click.option("--time-limit", metavar="DURATION", help="Such as 60 (seconds) or '5 min'.")
@click.option(
    "--gap", type=click.FloatRange(0, 1, max_open=True), callback=not_nan, help="Relative gap at which to stop."
)
@click.option(
    "--collective",
    shell_complete=completion.of(completion.collectives),
    metavar="NAME",
    help="Such as all_reduce; replaces the instance's.",
)
@click.option("--size", metavar="SIZE", help="Full buffer of the collective.  [default: the instance's, else 1 GiB]")
@click.option("--chunks", type=click.IntRange(1, 10**9), help="Equal chunks that each rank's part is cut into.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True)
@click.option("--log-file", type=click.Path(dir_okay=False), help="Where the solver writes its log; - is stderr.")
@click.option("--output", "-o", type=OUTPUT_FILE, help="Write the answer to this file.")
@click.option(
    "--write-model",
    type=OUTPUT_FILE,
    help="Write the last model that was passed to the solver to this file, .mps or .lp.",
)
@click.option(
    "--pool",
    type=click.IntRange(2, 1000),
    metavar="K",
    help="The K best different answers of --formulation; -o out.json writes out-1.json to out-K.json.",
)
@click.option("--append", type=OUTPUT_FILE, help="Append the record to this JSONL file.")
@click.option("--json", "as_json", is_flag=True, help="Print the record as one JSON object on stdout.")
@click.option("--explain", "explained", is_flag=True, help="Where there is no answer, name conditions that clash.")
@click.option("--sensitivity", "sensitive", is_flag=True, help="Report what more bandwidth is worth, by solving again.")
@click.option(
    "--picture",
    type=OUTPUT_FILE,
    help="Draw the network with --sensitivity into this file, .svg, .pdf or .png.",
)
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@network_edits
@plugged
@click.pass_context
def solve(
    context: click.Context,
    instance: str,
    model: str | None,
    formulation: str | None,
    solver: str,
    options: tuple[str, ...],
    solver_options: tuple[str, ...],
    time_limit: str | None,
    gap: float | None,
    collective: str | None,
    size: str | None,
    chunks: int | None,
    seed: int,
    threads: int,
    log_file: str | None,
    output: Path | None,
    write_model: Path | None,
    pool: int | None,
    append: Path | None,
    as_json: bool,
    explained: bool,
    sensitive: bool,
    picture: Path | None,
    quiet: bool,
    edits: tuple[tuple[str, str], ...],
) -> int:
    """Solve INSTANCE with one method and verify the answer.

    INSTANCE is a file, the name of a shipped instance (4d), building blocks (RI(4)_SW(8)), or a generator
    expression ("torus(8,8)").

    \b
    cwb solve --model libra instances/4d.json
    cwb solve --model ring "torus(8,8)" --collective all_reduce --size "1 GiB" -o s.json
    cwb solve --model bfb "torus(4,4)" --collective all_gather --without-link 0:1 --link 2:3=25GB/s
    cwb solve --model libra gpt-3-4d -O total_bandwidth="500 GB/s" -O objective=perf-per-cost --json
    """
    from ..core.record import append_record
    from ..harness import Request, registry
    from ..harness.cell import run_loading
    from ..harness.clock import WallClock
    from ..harness.interrupt import stop_on_interrupt
    from ..harness.last_model import LastModel
    from ..harness.plan import Cell
    from ..harness.request import Listener

    if (model is None) == (formulation is None):
        raise click.UsageError("expected --model or --formulation, one of the two")
    model = registry.formulation(formulation).name if formulation else model or ""
    if picture is not None and not sensitive:
        raise InputError("the picture of --sensitivity; expected that beside it", source="--picture")
    stop = threading.Event()
    context.with_resource(stop_on_interrupt(stop))  # also while the file and the record are written
    limit_s, own = parse_duration(time_limit, "--time-limit"), parse_solver_options(solver_options)
    request = Request(model, solver, parse_options(options), seed, threads, limit_s, gap, None, own, pool or 1)
    with (
        located(source=instance),
        libraries_on_stderr(),
        log_of_solver(log_file) as log,
        progress_on_stderr(quiet=quiet or log_file == "-") as progress,
    ):
        request = replace(request, log_file=log)
        kept = None if write_model is None else LastModel(write_model)
        listener = Listener(progress) if kept is None else Listener(progress, handed=kept)
        cell = Cell(instance, request, collective, size, chunks, edits=edits)
        done = run_loading(cell, stop, listener)
        found = studied(cell, done, progress, explained=explained, sensitive=sensitive, picture=picture)
    record = found.noted(done.record)
    if record.solver is None and (own or context.get_parameter_source("solver") is ParameterSource.COMMANDLINE):
        asked = " ".join([f"--solver {solver}", *(f"-S {pair}" for pair in solver_options)])
        echo(f"cwb: {asked}: {model} has called no solver", err=True)
    if kept is not None and not kept.write():
        echo(f"cwb: {write_model} is not written: {model} has solved no model", err=True)
    if output is not None and done.answer is not None:
        with (clock := WallClock()).phase("write"):
            record = with_files(output, replace(done, record=record))
        record = replace(record, seconds={**clock.seconds(), **record.seconds})
    if append is not None:  # before anything is printed: a closed stdout loses nothing
        append_record(append, record)
    if as_json:
        echo(json.dumps({**record.to_json(), "answer": shown_answer(record, done)}, allow_nan=False))
    else:
        from .display import show_record

        show_record(done.instance, record, size)
        for text in found.texts:
            echo(text)
    tell_end(record, interrupted=stop.is_set())
    return record.exit_status


def tell_end(record: RunRecord, *, interrupted: bool) -> None:
    """Print on stderr what was kept at an interrupt, and why there is no answer."""
    if interrupted:
        echo(f"cwb: interrupted: {what_is_kept(record)}", err=True)
    if record.exit_status != ExitStatus.OK:
        reason = "; ".join(record.violations) or record.message or record.status
        echo(f"cwb: {record.shown_status}: {reason}", err=True)


def what_is_kept(record: RunRecord) -> str:
    """What of a run that was interrupted the record has."""
    bound = "" if record.bound is None else f"the bound {record.bound:.9g} {record.objective_unit or ''}".rstrip()
    if record.answer is None:
        return f"{bound} is kept, and no answer" if bound else "there was nothing to keep yet"
    best = (
        f"the best answer, {record.objective:.9g} {record.objective_unit or ''}".rstrip()
        if record.objective
        else "an answer"
    )
    return f"{best}{f', and {bound}' if bound else ''}, kept"


def shown_answer(record: RunRecord, done: FinishedRun) -> Mapping[str, Any] | None:
    """Answer as it is printed; a forest that is not written to a file includes all trees, if they are not too many."""
    from ..core.answers import Placement
    from ..core.trees import TreePacking

    packing = done.answer
    if isinstance(packing, Placement):
        return _shown_placement(record, packing)
    if not isinstance(packing, TreePacking) or record.answer is None or "path" in record.answer:
        return record.answer
    if len(packing.parent) > MAX_PRINTED_EDGES:
        return record.answer
    from ..schedules.files import forest_data

    return {**record.answer, "forest": forest_data(packing)}


def _shown_placement(record: RunRecord, answer: Placement) -> Mapping[str, Any] | None:
    """A placement as it is printed: the experts of all slots, if they are not too many and in no file."""
    if record.answer is None or "path" in record.answer or record.answer["slots"] > MAX_PRINTED_SLOTS:
        return record.answer
    return {**record.answer, "experts": [[list(gpu) for gpu in layer] for layer in answer.experts]}


def with_files(path: Path, done: FinishedRun) -> RunRecord:
    """Write the answer, or those of a pool with their ranks in the names, and give the record that names the files."""
    from ..core.answers import to_json

    record = done.record
    if done.instance is None or done.answer is None:
        return record
    if not record.pool:
        return replace(record, answer=write_answer(path, done.instance, done))
    files: list[dict[str, str]] = []
    for rank, answer in enumerate(done.pool, start=1):
        one = replace(done, answer=answer, record=replace(record, answer=to_json(answer)))
        stem, dot, endings = path.name.partition(".")
        files.append(write_answer(path.with_name(f"{stem}-{rank}{dot}{endings}"), done.instance, one))
    rows = [{**row, "answer": file} for row, file in zip(record.pool, files, strict=True)]
    return replace(record, pool=rows, answer=files[0])


def write_answer(path: Path, instance: Instance, done: FinishedRun) -> dict[str, str]:
    """Write the answer to a file, whole or not at all, and give its path and digest.

    A schedule is written in the format that ``cwb check`` and ``cwb simulate`` read (compressed if the name ends in
    ``.gz``).
    So are orders of chunks, as sends on the links of their fabric, where these are not too many.
    """
    record = done.record
    from ..core.answers import ChunkOrders, Placement
    from ..core.orbits import TreeOrbits
    from ..core.schedule import Schedule, StepSchedule
    from ..core.streamed import StreamedSteps
    from ..core.translated import TranslatedTrees
    from ..core.trees import TreePacking
    from ..schedules.files import ANSWER_SCHEMA

    if isinstance(done.answer, StepSchedule | Schedule | TreePacking | TreeOrbits | TranslatedTrees):
        from ..schedules.files import write_schedule

        certificate = done.certificate
        extra = {"model": record.model, "bound_s": record.bound}
        pieces = record.metrics.get("pieces") if isinstance(done.answer, TreePacking | TreeOrbits) else None
        return {
            "path": str(path),
            "sha256": write_schedule(path, instance, done.answer, certificate, extra, pieces),
        }
    if isinstance(done.answer, Placement):
        from ..schedules.placement_file import write_placement

        extra = {"model": record.model, "bound": record.bound}
        return {"path": str(path), "sha256": write_placement(path, instance, done.answer, done.certificate, extra)}
    if isinstance(done.answer, ChunkOrders) and (sends := as_sends(instance, done.answer)) is not None:
        from ..schedules.files import write_schedule

        return {"path": str(path), "sha256": write_schedule(path, *sends, None, {"model": record.model})}
    if isinstance(done.answer, StreamedSteps):
        echo(f"cwb: {done.answer.sends:,} sends are not kept; the file has their number and digest", err=True)
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
    return {"path": str(path), "sha256": hashlib.sha256(text.encode()).hexdigest()}


def as_sends(instance: Instance, orders: ChunkOrders) -> tuple[Instance, StepSchedule] | None:
    """Orders of chunks as sends on links; None, said on stderr, where they cannot be written as such."""
    from ..schedules.chunk_orders import lowered

    try:
        return lowered(instance, orders)
    except InputError as error:
        echo(f"cwb: the orders are written, and not as sends on links: {error}", err=True)
        return None
