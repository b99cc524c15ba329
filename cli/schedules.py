"""Commands on files of schedules: ``cwb check``, ``simulate``, ``view``, ``run``, ``polish`` and ``library``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import CwbError, ExitStatus
from ..core.option_names import DIALECTS, SIMULATION_MODES
from ..core.pipelining import LatencyModel
from ..core.trace import Routing, SimulationMode
from ..core.units import SIZES, TIMES, amount
from ..core.units import show as quantity
from . import options as common
from .streams import console, echo

if TYPE_CHECKING:
    from ..studies.check import Check
    from ..studies.execution import Execution


@click.command(cls=common.Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--instance", metavar="SPEC", help="Reject a schedule that is for another instance.")
@click.option("--topology", metavar="SPEC", help="Network of MSCCL files, plans and traces; its links must exist.")
@click.option("--dialect", type=click.Choice(DIALECTS), help="Runtime of MSCCL files.  [default: any]")
@common.json_flag("the verdict as one JSON object on stdout")
@common.duration_option("time-limit", "Stop after this time: 60 (seconds), '5 min'.")
@common.plugin_option
def check(file: Path, as_json: bool, **options: Any) -> int:
    """Verify the schedule in FILE and its certificate, if any; or MSCCL algorithms, MSCCL++ plans, Chakra traces.

    \b
    cwb check s.json
    cwb check s.npz --instance "torus(4,4)" --json
    cwb check a.xml --topology "dgx_a100()"
    cwb check folder/ --dialect rccl
    cwb check placement.json
    cwb check plan.json --topology "dgx_a100()"
    cwb check traces/ --topology "torus(4,4)"

    A FILE that ends in .xml is an MSCCL algorithm, and a folder may have several. Each is checked by the rules of the
    runtimes and executed symbolically; for a folder, gaps and overlaps of sizes are reported.
    A JSON file with the keys of an MSCCL++ execution plan is checked by the rules of the executor and executed
    symbolically, in several successive calls.
    A JSON file with the experts of all slots is a placement; the loads of all GPUs are recomputed.
    A folder of files PREFIX.RANK.et is one Chakra execution trace, which is run without data.

    A schedule that ends before the bound that its own certificate proves is a contradiction, and counts as invalid.

    For trees, the time of the most loaded link is compared with the certificate's bound, in exact fractions. If
    they are equal, the trees are optimal.

    SPEC is a file, the name of a shipped instance or an expression such as "torus(8,8)"; one without a collective is
    compared by its network. --topology also takes the file of a schedule, whose network it is then. The exit status is
    5 if the schedule is invalid, and 2 if it cannot be read or is for another instance.
    """
    from ..studies.check import check as verdict_on

    with common.progress_on_stderr(quiet=False) as progress:
        verdict = verdict_on(file, progress=progress, **options)
    return _print_verdict(verdict, as_json=as_json)


def _print_verdict(verdict: Check, *, as_json: bool) -> int:
    common.print_found(verdict, lambda verdict: echo(verdict.text()), as_json=as_json)
    return int(ExitStatus.OK if verdict.ok else ExitStatus.VERIFICATION_FAILED)


@click.command(cls=common.Command)
@click.argument("file", type=common.PATH)
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in SimulationMode]),
    help="Time model.  [default: shares for trees, cut-through with routing spray, else congestion-aware]",
)
@click.option("--barrier", is_flag=True, help="Start a step only when the whole previous step has ended.")
@click.option(
    "--pieces",
    type=click.IntRange(1),
    help="Pieces per tree, pipelined.  [default: those of the file, else computed; with --reserve the best for each "
    "tree]",
)
@click.option(
    "--latency-model",
    type=click.Choice([model.value for model in LatencyModel]),
    help="Latency only delays a chunk, or also occupies the link.  [default: propagation]",
)
@click.option("--reserve", is_flag=True, help="Reserve the best rate for every tree, as in MTree.")
@click.option(
    "--chunk-overhead", metavar="DURATION", help="With --reserve, time per chunk on a link in addition to its bytes."
)
@click.option(
    "--routing",
    type=click.Choice([routing.value for routing in Routing]),
    help="Paths of the schedule; a shortest one by a hash of the flow; or equal parts over all shortest ones.  "
    "[default: the instance's]",
)
@common.json_flag("one JSON object on stdout")
@click.option(
    "--trace", "trace_file", type=common.OUTPUT_FILE, metavar="JSON", help="Write a Chrome trace (Perfetto opens it)."
)
@common.plugin_option
@common.time_limit_option
def simulate(
    file: Path,
    mode: str | None,
    latency_model: str | None,
    routing: str | None,
    as_json: bool,
    trace_file: Path | None,
    **options: Any,
) -> int:
    """Simulate the schedule in FILE on its network.

    Without options, the time is that of 'cwb solve' and of every table: link by link, store and forward. Latency delays
    a piece but does not occupy the link. A link serves one piece at a time, and every tree has a share of every link.

    The options select other time models. alpha-beta ignores congestion. In congestion-aware a link serves one chunk
    at a time, which is stored before it is forwarded; in cut-through it is forwarded at once. In fair-share, chunks
    share links; in shares, every tree has a fixed share of every link.

    The file is not verified; 'cwb check' does that. A schedule that ends before the bound that its own certificate
    proves is reported, and the exit status is 5.

    \b
    cwb simulate schedule.json
    cwb simulate trees.json.gz --mode cut-through --pieces 64 --trace trace.json
    cwb simulate trees.json.gz --reserve --latency-model occupancy
    cwb simulate schedule.json --routing spray
    """
    from ..schedules.files import read_schedule
    from ..studies.simulate import SimulationOptions, describe_simulation

    model = LatencyModel(latency_model or LatencyModel.PROPAGATION)
    settings = SimulationOptions(
        SimulationMode(mode) if mode else None,
        latency_model=model,
        routing=Routing(routing) if routing else None,
        **options,
    )
    data = describe_simulation(read_schedule(file), settings, trace_file)
    common.print_found(data, _show_simulation, as_json=as_json)
    return int(ExitStatus.VERIFICATION_FAILED if data["violations"] else ExitStatus.OK)


def _show_simulation(data: dict[str, Any]) -> None:
    from .display import new_form, new_table

    def format_number(key: str, form: str) -> str:
        return "n/a" if data[key] is None else form.format(data[key])

    summary = new_form(f"{data['instance']}: {data['model']}")
    size = data["size_bytes"]
    summary.add_row("sends", f"{data['sends']:,}")
    time = data["completion_time_s"]
    summary.add_row("completion time", f"n/a: {data['no_completion_time']}" if time is None else amount(time, TIMES))
    if size is not None:
        summary.add_row(f"{data['collective']}: {data['size_of']}", quantity(size, "MiB"))
    summary.add_row("algbw (size / time)", format_number("algbw_GBps", "{:.6g} GB/s"))
    summary.add_row("busbw (algbw times the collective's factor)", format_number("busbw_GBps", "{:.6g} GB/s"))
    if (bound := data["lower_bound_s"]) is not None:
        summary.add_row(f"lower bound ({data['certificate']})", amount(bound, TIMES))
        summary.add_row("time / lower bound", f"{time / bound:.4f}" if bound and time is not None else "n/a")
    summary.add_row("mean utilization of all links", format_number("mean_utilization", "{:.1%}"))
    headings = ("link", "from", "to", "busy us", "utilization")
    busiest = new_table("busiest links", *headings, right=("link", *headings[3:]))
    for link in data["busiest_links"]:
        share = "n/a" if link["utilization"] is None else f"{link['utilization']:.1%}"
        busiest.add_row(str(link["link"]), link["source"], link["target"], f"{link['busy_s'] * 1e6:,.6g}", share)
    terminal = console()
    terminal.print(summary)
    terminal.print(busiest)
    for line in data["violations"]:
        terminal.print(line, soft_wrap=True)


@click.command(cls=common.Command)
@click.argument("file", type=common.PATH)
@click.option("--repeat", type=click.IntRange(1), default=5, help="Measured repetitions.")
@click.option("--warmup", type=click.IntRange(0), default=1, help="Repetitions before them.")
@click.option(
    "--processes",
    type=click.Choice(("local", "mpi")),
    help="Processes that are started here, or those of mpirun.  [default: mpi if mpirun has started several]",
)
@click.option(
    "--dtype",
    type=click.Choice(("int64", "float32")),
    default="int64",
    help="Type of the elements; integers are compared exactly.",
)
@click.option("--size", metavar="SIZE", help="Size of the collective, by which all data is scaled, such as '1 MiB'.")
@click.option("--pieces", type=click.IntRange(1), help="Pieces per tree.  [default: as in cwb simulate]")
@click.option(
    "--emulate",
    is_flag=True,
    help="Emulate the network on this machine: a network namespace for each node, a shaped link for each link.",
)
@click.option("--scale", metavar="FACTOR", help="Factor of the rates of emulated links, such as 1/1000.  [default: 1]")
@common.json_flag("one JSON object on stdout")
@click.option("--output", "-o", type=common.OUTPUT_FILE, help="Write the JSON object to a file.")
@common.quiet_flag
@common.plugin_option
@common.duration_option("time-limit", "Stop after this time: 60 (seconds), '5 min'.")
def run(file: Path, as_json: bool, quiet: bool, **options: Any) -> int:
    """Execute the schedule in FILE with real data, and compare the result with the collective's definition.

    Every rank is a process, and so is every switch that stores data. Each sends, receives, copies and adds as the
    schedule says. The data is compared after every repetition, integers exactly.

    Without mpirun, processes are started on this machine. Their times are those of this machine; the predicted time
    is that of the network of the schedule.

    With --emulate, processes talk over links with the rates and latencies of the network; this takes root on Linux.
    The measured time is then compared with the predicted one, also with the bytes of TCP's headers.

    The file is not verified; 'cwb check' does that. If any data is wrong, the exit status is 5.

    \b
    cwb run schedule.json
    cwb run schedule.json --size "16 MiB" --repeat 20 --json
    cwb run schedule.json --emulate --scale 1/1000
    mpirun -n 16 cwb run schedule.json
    """
    from ..api.schedules import run as execute
    from ..harness.execution.mpi import is_first_process

    first = is_first_process()
    try:
        with common.progress_on_stderr(quiet=quiet or not first) as progress:
            execution = execute(file, progress=progress, **options if first else {**options, "output": None})
    except CwbError as error:
        if first:
            raise
        return int(error.exit_status)  # the first process reports what all have found
    if first:
        common.print_found(execution, _show_execution, as_json=as_json)
    return int(ExitStatus.OK if execution.ok else ExitStatus.VERIFICATION_FAILED)


def _show_execution(execution: Execution) -> None:
    """Print the result as a table, and what is wrong below it."""
    from .display import new_form

    data = execution.to_json()
    where = "MPI" if data["processes"] == "mpi" else data["processes"]
    size = amount(data["size_bytes"], SIZES)
    title = f"{data['collective']} of {size} on {len(execution.names)} {where} processes: {data['instance']}"
    table = new_form(title)
    low, high = data["interval_s"]
    table.add_row("messages", f"{execution.messages:,}")
    table.add_row("sent", amount(execution.sent_bytes, SIZES))
    table.add_row(f"median of {data['repeat']}", amount(execution.median_s, TIMES))
    if data["confidence"]:
        table.add_row(f"{data['confidence']:.1%} interval", f"{amount(low, TIMES)} to {amount(high, TIMES)}")
    time = data["predicted_s"]
    table.add_row("predicted on its network", f"n/a: {data['predicted_by']}" if time is None else amount(time, TIMES))
    if data["ratio"] is not None:
        table.add_row("measured / predicted", f"{data['ratio']:.3f}")
        table.add_row("predicted with headers of TCP", amount(data["predicted_with_headers_s"], TIMES))
        table.add_row("measured / predicted with headers", f"{data['ratio_with_headers']:.3f}")
    exact = "equal to the definition" if data["dtype"] == "int64" else "within the tolerance"
    table.add_row("result", exact if execution.ok else "WRONG")
    terminal = console()
    terminal.print(table)
    for line in execution.wrong:
        terminal.print(line, soft_wrap=True)


@click.command(cls=common.Command)
@click.argument("file", type=common.PATH)
@click.option("--output", "-o", type=common.OUTPUT_FILE, required=True, metavar="FILE", help="Output file.")
@common.time_limit
def polish(file: Path, output: Path, time_limit_s: float | None) -> int:
    """Shorten the schedule in FILE: move sends into earlier gaps, and take late copies from other ranks.

    \b
    cwb solve --model tacos "rfs3d(2,4,4)" --collective all_gather -O unwind=0 -o s.json
    cwb polish s.json -o shorter.json

    Only timed circuit schedules are supported, such as those of tacos and ten-ilp. The result is verified and never
    longer; without improvement, it is the same schedule. At the time limit, or at Ctrl-C, the best schedule so far is
    written. The exit status is 5 if the schedule in FILE is invalid, 2 if it cannot be read or is of another kind.
    """
    from ..studies.polish import polish as shorten

    result = shorten(file, output=output, time_limit_s=time_limit_s)
    if result.message:
        echo(f"cwb: {result.message}; the schedule stays as it is", err=True)
    if result.wrong:
        echo(result.wrong, err=True)
        return int(ExitStatus.VERIFICATION_FAILED)
    before = f", before {result.before_s:.9g} s" if result.after_s < result.before_s else ", as before"
    echo(f"{output}: {result.after_s:.9g} s{before}")
    return int(ExitStatus.OK)


@click.command(cls=common.Command)
@click.argument("file", type=common.PATH)
@click.option(
    "--mode", type=click.Choice(SIMULATION_MODES), help="Time model.  [default: that of all completion times]"
)
@click.option("--output", "-o", type=common.OUTPUT_FILE, metavar="FILE", help="The .html page.  [default: beside FILE]")
def view(file: Path, mode: str | None, output: Path | None) -> None:
    """Write an HTML page that plays the schedule in FILE.

    \b
    cwb solve --model tacos "torus(4,4)" --collective all_gather -o s.json
    cwb view s.json -o view.html

    The page needs no network. Chunks move over links, which are coloured by load; ranks fill with what they receive. A
    click on a rank, a link or a chunk tells what it has done and what it waits for. The Gantt chart and the heat maps
    of 'cwb plot s.json -o s.html' follow below.
    """
    from ..api.plots import path_beside
    from ..api.plots import view as play

    target = output or path_beside(str(file), ".html") or Path(f"{file}.html")
    common.OUTPUT_FILE.check_replaceable(target)
    echo(str(play(file, mode=mode, output=target)))


@click.group(no_args_is_help=False)
def library() -> None:
    """Compare schedules with the best known ones of small problems."""


@library.command(name="list", cls=common.Command)
@common.collective_option("Only problems of this collective.")
@common.json_flag("a JSON list of objects on stdout")
def list_problems(collective: str | None, as_json: bool) -> None:
    """List the problems with their best known times and bounds."""
    from ..studies.best_known import library_list
    from .listing import columns

    cases = library_list(collective)
    numbers = ("time_s", "bound_s", "gap")
    rows = [{"name": row["name"], **{key: f"{row[key]:.6g}" for key in numbers}, "by": row["method"]} for row in cases]
    for line in [json.dumps(cases)] if as_json else columns(rows):
        echo(line)


@library.command(cls=common.Command)
@click.argument("name")
@click.option("--output", "-o", type=common.OUTPUT_FILE, required=True, metavar="FILE", help="File for the schedule.")
def get(name: str, output: Path) -> None:
    """Write the best known schedule of the problem NAME, with its instance and certificate."""
    from ..studies.best_known import library_get

    library_get(name, output=output)


@library.command(cls=common.Command)
@click.argument("schedule", type=common.PATH)
@common.json_flag("the verdict as one JSON object on stdout")
def submit(schedule: Path, as_json: bool) -> int:
    """Verify the schedule in SCHEDULE, and tell if it is faster than the best known one.

    The exit status is 5 if the schedule is invalid, and 2 if its problem is not in the library.
    """
    from ..studies.best_known import library_submit

    return _print_verdict(library_submit(schedule), as_json=as_json)
