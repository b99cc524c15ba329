"""Studies of a machine: ``cwb advise``, ``cwb predict``, ``cwb select`` and ``cwb calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.collective import collective_named
from ..core.errors import ExitStatus, locate_errors
from ..core.option_names import MSCCL_COLLECTIVES, NCCL_COLLECTIVES, PROTOCOLS, RUNTIMES
from ..core.units import TIMES, amount
from . import completion
from . import options as common
from .streams import INTERRUPTED, echo, table_console

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..studies.calibration import CalibratedMachine
    from ..studies.predict import Expectation
    from ..studies.selection import Selection


@click.command(cls=common.Command)
@click.argument("instance", shell_complete=completion.complete("instances", files=True))
@click.option("--collective", type=click.Choice(NCCL_COLLECTIVES), help="Collective, instead of the instance's.")
@click.option("--sizes", default="1KiB..8GiB", help="Rows by factors of 4; 1KiB..1GiB*2: of 2; '1MiB,1GiB': these.")
@click.option("--measured", type=common.PATH, metavar="FILE", help="Results of nccl-tests.")
@click.option("--against", metavar="VERSION", help="Another version of NCCL to compare with.")
@common.methods_option("Methods to compare with NCCL, such as 'ring, dbt, forestcoll k=2'.  [default: the fast ones]")
@click.option("--chunks", metavar="LIST", default="1, 4", help="Chunks of each rank's part.")
@common.options_of("the method nccl, such as version")
@click.option("--graphs", type=common.PATH, metavar="XML", help="NCCL's graph file, whose channels are used unchanged.")
@common.duration_option("time-limit", "Time limit of all but the start.", "5 min")
@common.duration_option("run-limit", "Time limit of one run.", "10")
@click.option(
    "--links-limit", metavar="DURATION", default="60", help="Time limit for the value of more bandwidth; 0 skips it."
)
@click.option("--output", "-o", type=common.OUTPUT_FILE, metavar="HTML", help="Write a page.")
@common.json_flag("one JSON object on stdout")
@common.quiet_flag
@common.plugin_option
def advise(instance: str, models: str | None, links_limit: str, as_json: bool, quiet: bool, **kwargs: Any) -> int:
    """Report the times to expect of a collective on INSTANCE, and the most effective improvements.

    \b
    cwb advise my.json --collective all_reduce -o advice.html
    cwb advise "dgx_h100(boxes=2)" --collective all_reduce --measured nccl-tests.txt -O version=2.27.3

    At every size: NCCL's choice and prediction, its schedule and a ring, the best schedule found, a proved bound, and
    measured times. All schedules are verified.
    """
    from ..instances import load
    from ..studies.advice import DEFAULT_MODELS
    from ..studies.advice import advise as report

    kwargs["models"] = DEFAULT_MODELS if models is None else models
    kwargs["links_limit_s"] = common.parse_duration(links_limit, "--links-limit") if links_limit.strip() != "0" else 0.0
    with common.loading_progress_on_stderr(), locate_errors(source=instance):
        machine = load(instance)
    with common.working_on_stderr(quiet=quiet) as progress, locate_errors(source=instance):
        advice = report(machine, progress=progress, **kwargs)
    common.print_found(advice, lambda advice: _show_advice(advice.to_json()), as_json=as_json)
    return INTERRUPTED if advice.results.interrupted else int(ExitStatus.OK)


def _show_advice(advice: Mapping[str, Any]) -> None:
    from ..reports.studies import advice_table, hints
    from .display import new_table

    against = f", against {advice['against']}" if advice["against"] else ""
    title = f"{advice['collective']} of {advice['ranks']:,} ranks, NCCL {advice['nccl']}{against}"
    headings, rows = advice_table(advice)
    numbers = {name for name in headings if not name.endswith((" takes", "best schedule"))}
    table = new_table(title, *headings, right=numbers, fold=True)
    for row in rows:
        table.add_row(*(f"{value:,.12g}" if isinstance(value, float) else str(value) for value in row))
    table_console().print(table)
    for text in hints(advice):
        echo(text)
    if advice["why_ended"]:
        echo(f"{advice['why_ended']}; the best is among those that were run", err=True)


@click.command(cls=common.Command)
@click.argument("instance", shell_complete=completion.complete("instances", files=True))
@click.option("--collective", type=click.Choice(MSCCL_COLLECTIVES), help="Collective, instead of the instance's.")
@click.option("--output", "-o", required=True, type=common.PATH, metavar="FOLDER", help="A new folder.")
@click.option("--min-bytes", metavar="SIZE", default="1 KiB", help="Smallest size.")
@click.option("--max-bytes", metavar="SIZE", default="1 GiB", help="Largest size.")
@common.methods_option("Methods such as 'ring, dbt, forestcoll k=2'.  [default: the fast ones]")
@click.option("--chunks", metavar="LIST", default="1, 4", help="Chunks of each rank's part.")
@click.option("--dialect", type=click.Choice(RUNTIMES), default="msccl", help="Runtime that loads the files.")
@click.option("--proto", type=click.Choice(PROTOCOLS), default="Simple", help="Protocol of the files.")
@common.placement_option
@click.option(
    "--instances", type=click.IntRange(1, 128), default=1, help="Parallel copies, each with its own channels."
)
@click.option("--files", type=click.IntRange(1, 1024), help="Largest number of files.  [default: 4 for msccl, else 8]")
@common.duration_option("time-limit", "Time limit of all but the start.", "5 min")
@common.duration_option("run-limit", "Time limit of one run.", "10")
@common.json_flag("what was chosen as one JSON object on stdout")
@common.quiet_flag
@common.plugin_option
def select(instance: str, models: str | None, output: Path, as_json: bool, quiet: bool, **options: Any) -> int:
    """Choose the best of several schedules for every size of a collective on INSTANCE, and write a folder for runtimes.

    \b
    cwb select my.json --collective all_reduce -o chosen
    cwb select "dgx_a100()" --collective all_gather --dialect rccl --placement both -o chosen
    cwb select my.json --collective all_reduce --models "ring, dbt, forestcoll k=2" -o chosen

    Every schedule is verified, and schedules are compared by the completion time that 'cwb simulate' computes, with the
    best number of pieces for trees. The folder has algorithms/ with a file for each range of sizes, the files that
    MSCCL_CONFIG and NCCL's tuner plugin read, the schedules, a table and a plot. At the time limit, or at Ctrl-C,
    the choice is made among the schedules found so far.
    """
    from ..instances import load
    from ..studies.schedule_candidates import DEFAULT_MODELS
    from ..studies.selection import select as choose

    with common.loading_progress_on_stderr(), locate_errors(source=instance):
        machine = load(instance)
    with common.working_on_stderr(quiet=quiet) as progress, locate_errors(source=instance):
        models = DEFAULT_MODELS if models is None else models
        selection = choose(machine, models=models, output=output, progress=progress, **options)
    common.print_found(selection, lambda selection: _show_selection(output, selection), as_json=as_json)
    return INTERRUPTED if selection.results.interrupted else int(ExitStatus.OK)


def _show_selection(folder: Path, selection: Selection) -> None:
    from ..reports.studies import SELECTION_HEADINGS, selection_rows
    from .display import new_table

    plain, search = selection.to_json(), selection.results
    title = f"{plain['collective']} of {plain['ranks']:,} ranks: the fastest of {len(selection.candidates)} schedules"
    table = new_table(title, *SELECTION_HEADINGS, right=set(SELECTION_HEADINGS) - {"schedule", "file"}, fold=True)
    for row in selection_rows(plain):
        table.add_row(*row)
    table_console().print(table)
    if selection.left_out:
        echo(f"{len(selection.left_out)} left out; select.json says why", err=True)
    if search.why_ended:
        echo(f"{search.why_ended}; the choice is among those that were run", err=True)
    count = len(selection.ranges)
    echo(f"{folder}: {count} file{'s' if count > 1 else ''} in algorithms/, for {selection.runtime}", err=True)


@click.command(cls=common.Command)
@click.argument("results", type=common.PATH, required=False)
@click.option(
    "--machine", required=True, metavar="INSTANCE", shell_complete=completion.complete("instances", files=True)
)
@click.option(
    "--collective", type=click.Choice(NCCL_COLLECTIVES), help="The measured collective, if the file does not name it."
)
@common.options_of("the method nccl, such as version")
@click.option("--output", "-o", type=common.OUTPUT_FILE, metavar="JSON", help="Write the machine to this file.")
@click.option("--plan", is_flag=True, help="Print the commands of nccl-tests that measure the machine, and end.")
@common.json_flag("what was fitted as one JSON object")
def calibrate(
    results: Path | None, machine: str, collective: str | None, plan: bool, as_json: bool, **options: Any
) -> int:
    """Fit latency and bandwidth to RESULTS of nccl-tests, and scale the links of a machine to them.

    \b
    cwb calibrate nccl-tests.txt --machine my.json -o calibrated.json
    cwb calibrate results.json --machine "dgx_h100(boxes=2)" -O version=2.27.3 --json
    cwb calibrate --plan --machine my.json

    RESULTS is the output of nccl-tests or rccl-tests, or the file of -J. The fit is time = latency + size / bandwidth,
    with intervals of 95 %; outliers are listed and excluded. Rates of links are scaled so that the schedule of NCCL has
    the fitted bandwidth, latencies so that it has the fitted latency.
    """
    from ..instances import load
    from ..reports.studies import faster_than_bound
    from ..studies.calibration import calibrate as fit
    from ..studies.calibration import measuring_plan

    with locate_errors(source=machine):
        instance = load(machine)
    if plan:
        echo("\n".join(measuring_plan(instance, collective_named(collective or "all_reduce"))))
        return int(ExitStatus.OK)
    if results is None:
        raise click.UsageError("Missing argument 'RESULTS'; --plan prints the commands that measure them.")
    result = fit(results, instance, collective=collective, **options)
    if result.below_bound:
        echo(f"cwb: {faster_than_bound(result.below_bound, result.suspects)}", err=True)
    elif result.rate > 1:
        text = f"cwb: the machine is measured {result.rate:.3g} times as fast as its links are described. "
        echo(text + " ".join(result.suspects), err=True)
    common.print_found(result, lambda result: _show_fit(result, machine), as_json=as_json)
    return int(ExitStatus.OK)


def _show_fit(result: CalibratedMachine, machine: str) -> None:
    fit, data = result.fit, result.measured
    alpha, rate = fit.latency_s, fit.bandwidth_Bps
    version = f", NCCL {data.version}" if data.version else ""
    echo(f"{result.collective.name}{version}: {len(data.samples)} samples, {fit.samples} of them fitted")
    echo(f"latency    {alpha.value * 1e6:.5g} us, {alpha.low * 1e6:.5g} to {alpha.high * 1e6:.5g}")
    echo(f"bandwidth  {rate.value / 1e9:.5g} GB/s, {rate.low / 1e9:.5g} to {rate.high / 1e9:.5g}")
    echo(f"between    up to {fit.misfit:.3g} times as long as latency + size / bandwidth")
    for one in fit.outliers:
        place = "in place" if one.sample.in_place else "out of place"
        echo(
            f"outlier    {one.sample.size:,} B {place}: {one.sample.seconds * 1e6:.5g} us, expected "
            f"{one.expected_s * 1e6:.5g} us"
        )
    if not fit.outliers:
        echo("outliers   none")
    if (over := result.overheads) is not None:
        echo("overheads  " + " ".join(f"-O '{option}'" for option in over.options) + " for cwb predict and cwb advise")
        echo(f"error      {over.error:.1%} of sizes left out of the fit; {over.published_error:.1%} by published ones")
    echo(
        f"{machine}: rates times {result.rate:.4g}, latencies times {result.latency:.4g}, by the schedule of "
        f"{result.schedule}"
    )


@click.command(cls=common.Command)
@click.argument("instance", shell_complete=completion.complete("instances", files=True))
@click.option("--collective", type=click.Choice(NCCL_COLLECTIVES), help="Collective, instead of the instance's.")
@click.option("--size", default="1 GiB", help="Size of the collective.")
@common.options_of("the method nccl, such as version")
@common.json_flag("one JSON object on stdout")
@common.plugin_option
def predict(instance: str, as_json: bool, **options: Any) -> None:
    """Predict the time of NCCL's collective on INSTANCE, without solving anything.

    \b
    cwb predict "dgx_h100(boxes=2)" --collective all_reduce --size "256 MiB"

    The time is NCCL's own prediction with the overheads that it leaves out, fitted to published results of nccl-tests.
    Nine of ten of these were within the interval; cwb calibrate fits one to your own. The lower bound is proved, in the
    time model of cwb.
    """
    from ..studies.predict import predict as expect

    common.print_found(expect(instance, **options), _show_expectation, as_json=as_json)


def _show_expectation(times: Expectation) -> None:
    echo(f"{_time(times.seconds)} expected, {_time(times.low_s)} to {_time(times.high_s)} in nine of ten cases")
    echo(f"{times.busbw_GBps:.4g} GB/s bus bandwidth, as nccl-tests has it")
    echo(f"{times.algorithm} with {times.protocol}: choice of NCCL {times.nccl}, which predicts {_time(times.nccl_s)}")
    echo(f"{_time(times.bound_s)} at least: proved lower bound")
    echo(f"source: {times.source}")


def _time(seconds: float) -> str:
    return amount(float(f"{seconds:.4g}"), TIMES)
