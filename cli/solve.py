"""``cwb solve``: one method on one instance."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..core.errors import ExitStatus, InputError, locate_errors
from ..core.option_names import BOUND_LEVELS
from . import completion
from . import options as common
from .streams import INTERRUPTED, echo, notice

if TYPE_CHECKING:
    from ..core.record import RunRecord


@click.command(cls=common.Command)
@click.argument("instance", shell_complete=completion.complete("instances", files=True))
@click.option(
    "--model",
    "--method",
    "-m",
    "model",
    shell_complete=completion.complete("models"),
    help="Method to use; 'cwb list models' lists all.",
)
@click.option(
    "--formulation",
    shell_complete=completion.complete("formulations"),
    help="Instead of a method, a formulation to solve as declared; see 'cwb list formulations'.",
)
@click.option(
    "--solver",
    "-s",
    default="highs",
    shell_complete=completion.complete("solvers"),
    help="highs, highs-pdlp, gurobi, scip or pyomo:NAME.",
)
@common.options_of("the method", "--option", shell_complete=completion.method_options)
@click.option(
    "--solver-option",
    "-S",
    "solver_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the solver, by the solver's name for it; see the page on solvers.",
)
@common.time_limit
@click.option(
    "--gap", type=click.FloatRange(0, 1, max_open=True), callback=common.not_nan, help="Relative gap at which to stop."
)
@common.collective_option("Collective such as all_reduce, instead of the instance's.")
@click.option("--size", metavar="SIZE", help="Full buffer of the collective.  [default: the instance's, else 1 GiB]")
@click.option("--chunks", type=click.IntRange(1, 10**9), help="Number of equal chunks of each rank's part.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0)
@click.option("--threads", type=click.IntRange(1, 1024), default=1)
@click.option("--log-file", type=click.Path(dir_okay=False), help="File for the solver's log; - is stderr.")
@click.option("--output", "-o", type=common.OUTPUT_FILE, help="Write the answer to this file.")
@click.option(
    "--write-model",
    type=common.OUTPUT_FILE,
    help="Write the last model passed to the solver to this file, .mps or .lp.",
)
@click.option(
    "--pool",
    type=click.IntRange(2, 1000),
    metavar="K",
    help="The K best different answers of --formulation; -o out.json writes out-1.json to out-K.json.",
)
@click.option(
    "--bounds", type=click.Choice(BOUND_LEVELS), default="cheap", help="Bounds of other methods, for the gap."
)
@click.option("--start", type=common.PATH, metavar="FILE", help="Schedule from which --formulation starts its search.")
@click.option("--append", type=common.OutputFile(appended=True), help="Append the record to this JSONL file.")
@common.json_flag("the record as one JSON object on stdout")
@click.option("--explain", is_flag=True, help="If infeasible, report conflicting conditions.")
@click.option("--sensitivity", is_flag=True, help="Report the value of more bandwidth, by solving again.")
@click.option(
    "--picture",
    type=common.OUTPUT_FILE,
    help="Draw the network with its sensitivities to this file, .svg, .pdf or .png.",
)
@common.quiet_flag
@common.network_edits
@common.plugin_option
@click.pass_context
def solve(
    context: click.Context,
    /,
    instance: str,
    model: str | None,
    formulation: str | None,
    solver: str,
    options: dict[str, Any],
    solver_options: tuple[str, ...],
    time_limit_s: float | None,
    gap: float | None,
    collective: str | None,
    size: str | None,
    chunks: int | None,
    seed: int,
    threads: int,
    log_file: str | None,
    write_model: Path | None,
    pool: int | None,
    bounds: str,
    start: Path | None,
    as_json: bool,
    quiet: bool,
    edits: common.Edits,
    **to_finish: Any,
) -> int:
    """Solve INSTANCE with one method and verify the answer.

    INSTANCE is a file, the name of a shipped instance (4d), building blocks (RI(4)_SW(8)), or a generator
    expression ("torus(8,8)").

    \b
    cwb solve --model libra instances/4d.json
    cwb solve --model ring "torus(8,8)" --collective all_reduce --size "1 GiB" -o s.json
    cwb solve --model pccl "torus(4,4)" --collective all_gather --without-link 0:1 --link 2:3=25GB/s
    cwb solve --model libra gpt-3-4d -O total_bandwidth="500 GB/s" -O objective=perf-per-cost --json
    """
    from ..harness import Request, registry
    from ..harness.interrupt import stop_on_interrupt
    from ..harness.plan import Cell
    from ..harness.request import LastModel, Listener
    from ..harness.task import load_and_run, load_cell
    from ..studies.solve import effective_times, finish_run, shown_answer, start_of

    if (model is None) == (formulation is None):
        raise click.UsageError("expected either --model or --formulation")
    model = registry.formulation(formulation).name if formulation else model or ""
    if to_finish["picture"] is not None and not to_finish["sensitivity"]:
        raise InputError("expected together with --sensitivity", source="--picture")
    stop = threading.Event()
    context.with_resource(stop_on_interrupt(stop))  # also while the file and the record are written
    own = common.parse_pairs(solver_options, "-S")
    begin = None if start is None else start_of(start)
    request = Request(model, solver, options, seed, threads, time_limit_s, gap, None, own, pool or 1, begin, bounds)
    with (
        locate_errors(source=instance),
        common.libraries_on_stderr(),
        common.log_of_solver(log_file) as log,
        common.progress_on_stderr(quiet=quiet or log_file == "-") as progress,
    ):
        request = replace(request, log_file=log)
        last_model = None if write_model is None else LastModel(write_model)
        listener = Listener(progress) if last_model is None else Listener(progress, on_model=last_model)
        cell = Cell(instance, request, collective, size, chunks, edits=edits)
        run = load_and_run(cell, stop, listener)
        record, studies = finish_run(
            run, request, lambda: load_cell(cell), **to_finish, progress=progress, notice=notice
        )
    if record.solver is None and (own or context.get_parameter_source("solver") is ParameterSource.COMMANDLINE):
        flags = " ".join([f"--solver {solver}", *(f"-S {pair}" for pair in solver_options)])
        echo(f"cwb: {flags}: {model} has called no solver", err=True)
    if last_model is not None and not last_model.write():
        echo(f"cwb: {write_model} is not written: {model} has solved no model", err=True)
    if as_json:
        echo(json.dumps({**record.to_json(), "answer": shown_answer(record, run)}, allow_nan=False))
    else:
        from .display import show_record

        show_record(run.instance, replace(record, metrics={**record.metrics, **effective_times(run)}), size)
        for text in studies.texts:
            echo(text)
    print_end(record, interrupted=stop.is_set())
    if studies.error is not None and (context.obj or {}).get("debug"):
        raise studies.error
    return record.exit_status or (INTERRUPTED if studies.interrupted else studies.exit_status)


def print_end(record: RunRecord, *, interrupted: bool = False) -> None:
    """Print on stderr the results kept at an interrupt and the reason for a missing answer."""
    if interrupted:
        echo(f"cwb: interrupted: {kept_text(record)}", err=True)
    if record.exit_status != ExitStatus.OK:
        reason = "; ".join(record.violations) or record.message or record.status
        echo(f"cwb: {record.shown_status}: {reason}", err=True)


def kept_text(record: RunRecord) -> str:
    """Return the kept answer and bound of an interrupted run in words."""
    bound = "" if record.bound is None else f"the bound {record.bound:.9g} {record.objective_unit or ''}".rstrip()
    if record.answer is None:
        return f"{bound} is kept, and no answer" if bound else "there was nothing to keep yet"
    best = (
        f"the best answer, {record.objective:.9g} {record.objective_unit or ''}".rstrip()
        if record.objective
        else "an answer"
    )
    return f"{best}{f', and {bound}' if bound else ''}, kept"
