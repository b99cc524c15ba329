"""``cwb train``: a simulated training iteration on a network, with collectives timed by any method."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import InputError, locate_errors
from ..core.units import SIZES, TIMES, UnitKind, amount, parse
from . import completion
from . import options as common
from .streams import console

if TYPE_CHECKING:
    from ..core.training import TrainingOptions

_LISTED = 20  #: Collectives that are listed; the JSON has all.


@click.command(cls=common.Command)
@click.argument("instance", shell_complete=completion.complete("instances", files=True))
@click.option("--workload", "-w", metavar="WORKLOAD", help="Name or file.  [default: the instance's only one]")
@click.option(
    "--group",
    "-g",
    multiple=True,
    metavar="NAME=DEGREE",
    help="Process group: a degree, innermost first; a span such as 4x4x1x1; or all.",
)
@click.option(
    "--method",
    "-m",
    multiple=True,
    metavar="[KEY=]METHOD",
    help="Source of collectives' times: a method, auto, analytical, ideal, or 'LATENCY + ALGBW'. KEY is a collective, "
    "a group, or GROUP/COLLECTIVE.  [default: analytical on dimensions]",
)
@click.option(
    "--option", "-O", "options", multiple=True, metavar="METHOD.NAME=VALUE", help="An option of one of the methods."
)
@click.option("--chunks", type=click.IntRange(1, 10**9), default=1, help="Chunks of each rank's part.")
@click.option("--bandwidth", metavar="RATES", help="Bandwidths of the dimensions, per NPU: '250 GB/s, 50 GB/s'.")
@click.option("--latency", metavar="TIMES", help="Latencies of a link of each dimension: '0.5 us, 2 us'.")
@click.option("--design", metavar="METHOD", help="Method that designs the bandwidths, such as libra.")
@click.option(
    "--loop",
    type=click.Choice(["no-overlap", "tp-dp-overlap", "ddp"]),
    help="Overlap of computation and communication.  [default: ddp with --bucket, else the workload's]",
)
@click.option(
    "--bucket", multiple=True, metavar="SIZE", help="Size of gradient buckets; if several are given, the best is used."
)
@click.option(
    "--streams",
    type=click.Choice(["one", "group", "unlimited"]),
    default="one",
    help="Concurrent collectives: one, one per group, or all.",
)
@click.option("--microbatches", type=click.IntRange(1, 10_000), default=1)
@click.option("--pipeline", type=click.Choice(["1f1b", "gpipe"]), default="1f1b")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0)
@common.duration_option("time-limit", "Time limit of each run of a method, such as '60 s'.")
@click.option("--timeline", type=common.OUTPUT_FILE, help="Draw the tasks over time to this file, .svg, .pdf or .png.")
@common.json_flag("one JSON object on stdout")
@common.quiet_flag
@common.network_edits
@common.plugin_option
def train(
    instance: str,
    chunks: int,
    seed: int,
    time_limit_s: float | None,
    timeline: Path | None,
    as_json: bool,
    quiet: bool,
    edits: common.Edits,
    **options: Any,
) -> int:
    """Simulate a training iteration on the network of INSTANCE.

    \b
    cwb train gpt-3-4d --design libra -m all_reduce=themis --chunks 64
    cwb train "torus(4,4)" -w resnet-50 -m bfb --bucket 1MB --bucket 25MiB
    cwb train "torus(8,8)" -w gpt-3 -g tp=16 -g dp=4 -m "100 us + 40 GB/s"
    """
    from ..reports.plots import plot_format
    from ..studies.training import draw_timeline, measures
    from ..studies.training import train as simulated

    if timeline is not None:
        plot_format(timeline)
    setup = _options_of(**options)
    with common.progress_on_stderr(quiet=quiet) as progress:
        problem = common.load_edited(instance, edits)
        with locate_errors(source=instance):
            iteration = simulated(problem, setup, progress, chunks=chunks, seed=seed, time_limit_s=time_limit_s)
    if timeline is not None:
        draw_timeline(timeline, iteration)
    common.print_found(measures(iteration), show, as_json=as_json)
    return 0


def _options_of(
    group: Sequence[str],
    method: Sequence[str],
    options: Sequence[str],
    bandwidth: str | None,
    latency: str | None,
    loop: str | None,
    bucket: Sequence[str],
    **rest: Any,
) -> TrainingOptions:
    from ..core.training import TrainingOptions

    if bucket and loop not in (None, "ddp"):
        raise InputError(f"given in the loop {loop}; expected --loop ddp", source="--bucket")
    rates, times = (None if text is None else text.split(",") for text in (bandwidth, latency))
    return TrainingOptions.model_construct(
        **rest,
        group=common.parse_pairs(group, "--group"),
        method=common.parse_pairs([text if "=" in text else f"all={text}" for text in method], "--method"),
        options=_options(options),
        bandwidth=None if rates is None else _quantities(rates, UnitKind.RATE, "--bandwidth", positive=True),
        latency=None if times is None else _quantities(times, UnitKind.TIME, "--latency"),
        loop=loop,
        bucket=_quantities(bucket, UnitKind.SIZE, "--bucket", positive=True),
    )


def _quantities(texts: Sequence[str], kind: UnitKind, source: str, *, positive: bool = False) -> list[Fraction]:
    with locate_errors(source=source):
        return [parse(text, kind, allow_zero=not positive) for text in texts]


def _options(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    by_method: dict[str, list[str]] = {}
    for text in texts:
        method, dot, pair = text.partition(".")
        if not dot or "=" in method:
            raise InputError(f"{text!r} names no method; expected such as themis.queue=fifo", source="-O")
        by_method.setdefault(method.strip(), []).append(pair)
    return {method: common.parse_options(pairs) for method, pairs in by_method.items()}


def show(data: dict[str, Any]) -> None:
    """Print the results as tables."""
    from .display import new_form, new_table

    total = data["iteration_s"]
    summary = new_form(f"{data['workload']} on {data['instance']}", "left", "right", "right")
    summary.add_row("NPUs", f"{data['npus']:,}", ", ".join(f"{g} {n:,}" for g, n in data["groups"].items()))
    if data["bandwidth_GBps"] is not None:
        summary.add_row("bandwidths", ", ".join(f"{rate:.6g}" for rate in data["bandwidth_GBps"]), "GB/s")
    streams = {"one": "one collective at a time", "group": "one of each group", "unlimited": "any collectives"}
    summary.add_row("loop", data["loop"], streams[data["streams"]])
    if data["bucket_bytes"] is not None:
        choice = f"best of {len(data['tried_s'])}" if len(data["tried_s"]) > 1 else ""
        summary.add_row("bucket", amount(data["bucket_bytes"], SIZES), choice)
    if data["stages"] > 1 or data["microbatches"] > 1:
        summary.add_row("stages, micro-batches", f"{data['stages']}, {data['microbatches']}", data["pipeline"] or "")
    summary.add_row("iteration", amount(total, TIMES), "100.0 %")
    for what, seconds in data["spent_s"].items():
        suffix = " (exposed)" if what in data["communication_s"] else ""
        summary.add_row(f"  {what}{suffix}", amount(seconds, TIMES), _share(seconds, total))
    bound = data["lower_bound_s"]
    by = "critical path" if data["critical_path_s"] == bound else "busiest stream"
    summary.add_row(f"lower bound ({by})", amount(bound, TIMES), _share(bound, total))
    headings = ("collective", "group", "ranks", "size", "method", "time", "verified")
    collectives = new_table("collectives", *headings, right=("ranks", "size", "time"))
    for each in data["collectives"][:_LISTED]:
        verdict = {True: "yes", None: "-"}[each["verified"]]
        size, time = amount(each["size_bytes"], SIZES), amount(each["seconds"], TIMES)
        ranks = f"{each['ranks']:,}"
        collectives.add_row(each["collective"], each["group"], ranks, size, each["method"], time, verdict)
    if (more := len(data["collectives"]) - _LISTED) > 0:
        collectives.caption = f"and {more:,} more (--json has all)"
    terminal = console()
    terminal.print(summary)
    if data["collectives"]:
        terminal.print(collectives)


def _share(part: float, total: float) -> str:
    return f"{part / total:.1%}".replace("%", " %") if total else ""
