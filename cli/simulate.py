"""``cwb simulate``: completion time of a schedule on its network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..core.errors import ExitStatus
from ..core.pipelining import LatencyModel
from ..core.trace import Routing, SimulationMode
from .options import OUTPUT_FILE, PATH, Command, json_flag, plugin_option, time_limit_option
from .streams import console, echo


@click.command(cls=Command)
@click.argument("file", type=PATH)
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
    "--chunk-overhead",
    metavar="DURATION",
    help="With --reserve, time per chunk on a link in addition to its bytes.",
)
@click.option(
    "--routing",
    type=click.Choice([routing.value for routing in Routing]),
    help="Paths of the schedule; a shortest one by a hash of the flow; or equal parts over all shortest ones.  "
    "[default: the instance's]",
)
@json_flag("one JSON object on stdout")
@click.option(
    "--trace", "trace_file", type=OUTPUT_FILE, metavar="JSON", help="Write a Chrome trace (Perfetto opens it)."
)
@plugin_option
@time_limit_option
def simulate(
    file: Path,
    mode: str | None,
    latency_model: str | None,
    routing: str | None,
    as_json: bool,
    trace_file: Path | None,
    **given: Any,
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
    from ..studies.simulate import SimulationOptions, simulation_of

    model = LatencyModel(latency_model or LatencyModel.PROPAGATION)
    asked = SimulationOptions(
        SimulationMode(mode) if mode else None,
        latency_model=model,
        routing=Routing(routing) if routing else None,
        **given,
    )
    found = simulation_of(read_schedule(file), asked, trace_file)
    if as_json:
        echo(json.dumps(found, allow_nan=False))
    else:
        show(found)
    return int(ExitStatus.VERIFICATION_FAILED if found["violations"] else ExitStatus.OK)


def show(found: dict[str, Any]) -> None:
    """Print the measures as tables."""
    from rich.table import Table

    from ..core.units import TIMES, amount
    from ..core.units import show as quantity

    def format_number(key: str, form: str) -> str:
        return "n/a" if found[key] is None else form.format(found[key])

    summary = Table(show_header=False, title=f"{found['instance']}: {found['model']}", title_justify="left")
    summary.add_column()
    summary.add_column(justify="right")
    size = found["size_bytes"]
    summary.add_row("sends", f"{found['sends']:,}")
    time = found["completion_time_s"]
    summary.add_row("completion time", f"n/a: {found['no_completion_time']}" if time is None else amount(time, TIMES))
    if size is not None:
        summary.add_row(f"{found['collective']}: {found['size_of']}", quantity(size, "MiB"))
    summary.add_row("algbw (size / time)", format_number("algbw_GBps", "{:.6g} GB/s"))
    summary.add_row("busbw (algbw times the collective's factor)", format_number("busbw_GBps", "{:.6g} GB/s"))
    if (bound := found["lower_bound_s"]) is not None:
        summary.add_row(f"lower bound ({found['certificate']})", amount(bound, TIMES))
        summary.add_row("time / lower bound", f"{time / bound:.4f}" if bound and time is not None else "n/a")
    summary.add_row("mean utilization of all links", format_number("mean_utilization", "{:.1%}"))
    busiest = Table(title="busiest links", title_justify="left")
    for heading in ("link", "from", "to", "busy us", "utilization"):
        busiest.add_column(heading, justify="left" if heading in ("from", "to") else "right")
    for link in found["busiest_links"]:
        used = "n/a" if link["utilization"] is None else f"{link['utilization']:.1%}"
        busiest.add_row(str(link["link"]), link["source"], link["target"], f"{link['busy_s'] * 1e6:,.6g}", used)
    printed = console()
    printed.print(summary)
    printed.print(busiest)
    for line in found["violations"]:
        printed.print(line, soft_wrap=True)
