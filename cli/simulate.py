"""``cwb simulate``: what a schedule takes on its network."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.collective import CollectiveKind
from ..core.errors import ExitStatus, InputError
from ..core.pipelining import LatencyModel
from ..core.trace import SimulationMode
from ..core.units import UnitKind, parse
from .options import OUTPUT_FILE, PATH, limited
from .streams import console, echo

if TYPE_CHECKING:
    from ..core.instance import Instance
    from ..core.schedule import Floats, Ints
    from ..core.trace import Trace
    from ..schedules.completion import Completion

#: Busiest links that are listed.
LISTED = 5

#: What the size of a collective is the size of.
SIZES = {
    CollectiveKind.ALL_GATHER: "output buffer of a rank",
    CollectiveKind.REDUCE_SCATTER: "input buffer of a rank",
    CollectiveKind.ALL_REDUCE: "buffer of a rank",
    CollectiveKind.LATE_ALL_REDUCE: "buffer of a rank",
    CollectiveKind.ALL_TO_ALL: "input buffer of a rank",
    CollectiveKind.GATHER: "output buffer of the root",
    CollectiveKind.SCATTER: "input buffer of the root",
    CollectiveKind.BROADCAST: "message",
    CollectiveKind.REDUCE: "message",
    CollectiveKind.POINT_TO_POINT: "message",
}


#: What the modes are, for the heading.
MODELS = {
    SimulationMode.ALPHA_BETA: "what if links served all sends at once, alpha-beta",
    SimulationMode.CONGESTION_AWARE: "what if links served sends as they come, congestion-aware",
    SimulationMode.CUT_THROUGH: "what if sends went on while they come, cut-through",
    SimulationMode.FAIR_SHARE: "what if sends shared links fairly, fair-share",
    SimulationMode.SHARES: "what if every tree had its share of every link, shares",
}

#: What ``--reserve`` is, for the heading.
RESERVED = "what if every tree kept the rate that is best for it"


@click.command()
@click.argument("file", type=PATH)
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in SimulationMode]),
    help="Model of time on links.  [default: shares for trees, congestion-aware for all else]",
)
@click.option("--barrier", is_flag=True, help="Start a step only when the whole step before has ended.")
@click.option(
    "--pieces",
    type=click.IntRange(1),
    help="Pieces per tree, pipelined.  [default: those of the file, else chosen; with --reserve the best for each tree]",
)
@click.option(
    "--latency-model",
    type=click.Choice([model.value for model in LatencyModel]),
    help="Whether latency only delays a chunk, or occupies the link too.  [default: propagation]",
)
@click.option("--reserve", is_flag=True, help="Reserve the best rate for every tree, as MTree does.")
@click.option(
    "--chunk-overhead",
    metavar="DURATION",
    help="Time that a chunk takes on a link in addition to its bytes, with --reserve.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option(
    "--trace", "trace_file", type=OUTPUT_FILE, metavar="JSON", help="Write a Chrome trace (Perfetto opens it)."
)
@limited
def simulate(
    file: Path,
    mode: str | None,
    barrier: bool,
    pieces: int | None,
    latency_model: str | None,
    reserve: bool,
    chunk_overhead: str | None,
    as_json: bool,
    trace_file: Path | None,
) -> int:
    """Simulate the schedule in FILE on its network.

    Without options, the time is that of 'cwb solve' and of every table: link by link, store and forward. Latency delays
    a piece but does not occupy the link. A link serves one piece at a time, and trees have their shares of every link.

    The options select other models of time. alpha-beta ignores congestion. In congestion-aware a link serves one chunk
    at a time, which is stored before it is forwarded; in cut-through it is forwarded at once. In fair-share, chunks
    share links; in shares, every tree has its part of every link.

    The file is not verified; 'cwb check' does that. A schedule that ends before the bound that its own certificate
    proves is reported, and the exit status is 5.

    \b
    cwb simulate schedule.json
    cwb simulate trees.json.gz --mode cut-through --pieces 64 --trace trace.json
    cwb simulate trees.json.gz --reserve --latency-model occupancy
    """
    from ..core.orbits import TreeOrbits
    from ..core.trees import TreePacking
    from ..schedules.completion import completion_if_any, completion_of, in_pieces, mode_of
    from ..schedules.files import read_schedule
    from ..schedules.proof import proof_of
    from ..schedules.simulate import simulate as run

    read = read_schedule(file)
    instance, answer = read.instance, read.answer
    model = LatencyModel(latency_model or LatencyModel.PROPAGATION)
    held = model is LatencyModel.OCCUPANCY
    chosen = mode_of(answer) if mode is None else SimulationMode(mode)
    trace: Trace | None = None
    known: Completion | None = None
    cut: int | Ints
    if reserve:
        trace, cut = _reserved(instance, answer, mode, barrier, pieces, model, chunk_overhead)
        found = _what_if(instance, trace, trace.mode, [RESERVED, model.value])
    elif chunk_overhead is not None:
        raise InputError("expected --reserve beside it", source="--chunk-overhead")
    else:
        trees = isinstance(answer, TreePacking | TreeOrbits)
        if pieces is not None and not trees:
            raise InputError("only trees are cut into pieces", source="--pieces")
        asked = chosen is not mode_of(answer) or barrier or held
        known = completion_of(instance, answer, pieces or read.pieces) if trees or not asked else None
        cut = 1 if known is None else known.pieces or 1
        if asked or trace_file is not None:
            trace = run(instance, answer, chosen, barrier=barrier, pieces=cut, hold_latency=held)
        if known is not None and not asked:
            found = measures(instance, chosen, known.sends, known.seconds, known.busy_s)
            found |= {"model": known.model, **({"no_completion_time": known.why} if known.why else {})}
        else:
            assert trace is not None  # noqa: S101 (something else is asked)
            found = _what_if(
                instance,
                trace,
                chosen,
                [MODELS[chosen], "with barriers" * barrier, model.value, in_pieces(cut) if trees else ""],
            )
    if trace_file is not None and trace is not None:
        _write_trace(trace_file, instance, answer, trace, cut)
    found |= {"barrier": barrier, "latency_model": model.value, "reserve": reserve}
    found |= {"pieces": cut if isinstance(cut, int) else cut.tolist()}
    # What is asked of another model of time is not what the certificate speaks of.
    if known is None or pieces not in (None, read.pieces):
        known = completion_if_any(instance, answer, read.pieces) if read.certificate or read.extra else None
    proof, violations = proof_of(read, right=True, completion_s=None if known is None else known.seconds)
    found |= {"proved_bound_s": None if proof.bound_s is None else float(proof.bound_s), "violations": violations}
    if as_json:
        echo(json.dumps(found, allow_nan=False))
    else:
        show(found)
    return int(ExitStatus.VERIFICATION_FAILED if violations else ExitStatus.OK)


def _write_trace(file: Path, instance: Instance, answer: object, trace: Trace, pieces: int | Ints) -> None:
    from ..core.files import write_whole
    from ..exchange.perfetto import chrome_trace

    content = "".join(chrome_trace(instance, _written(instance, answer), trace, pieces=pieces))
    write_whole(file, content.encode())


def _written(instance: Instance, answer: object) -> object:
    """The answer with all trees written out."""
    from ..core.orbits import TreeOrbits, written_out

    return written_out(answer, instance.topology) if isinstance(answer, TreeOrbits) else answer


def _what_if(instance: Instance, trace: Trace, mode: SimulationMode, told: list[str]) -> dict[str, Any]:
    """What a simulation in another model of time tells, and what the model is."""
    found = measures(instance, mode, len(trace.start_s), trace.completion_s, trace.link_busy_s)
    return found | {"model": ", ".join(filter(None, told))}


def _reserved(
    instance: Instance,
    answer: object,
    mode: str | None,
    barrier: bool,
    pieces: int | None,
    model: LatencyModel,
    chunk_overhead: str | None,
) -> tuple[Trace, Ints]:
    """Simulate trees at rates of their own; give the numbers of chunks too."""
    from ..core.reserved import reserve
    from ..core.trees import TreePacking
    from ..schedules.simulate.reserved import simulate_reserved

    if not isinstance(answer := _written(instance, answer), TreePacking):
        raise InputError("only trees keep rates of their own", source="--reserve")
    if barrier or mode not in (None, SimulationMode.CONGESTION_AWARE.value):
        raise InputError("expected the mode congestion-aware without barriers", source="--reserve")
    overhead_s = Fraction(0) if chunk_overhead is None else parse(chunk_overhead, UnitKind.TIME)
    plan = reserve(instance.topology, answer, model, overhead_s, pieces)
    return simulate_reserved(instance, answer, plan, model, overhead_s=overhead_s), plan.chunks


def measures(
    instance: Instance, mode: SimulationMode, sends: int, time: float | None, busy_s: Floats
) -> dict[str, Any]:
    """Results of a simulation, as plain data; None where something is unknown.

    Bandwidth bounds a schedule from below only where links are not used twice at once and never faster than their own:
    the congestion-unaware model, and links that are faster at times, are held against latency alone.
    """
    from ..algorithms.bounds.schedule_bounds import best_bound, latency_bound

    found: dict[str, Any] = {
        "schema": "cwb-simulation/1",
        "instance": instance.name,
        "instance_sha256": instance.sha256,
        "mode": mode.value,
        "sends": sends,
        "completion_time_s": time,
        **dict.fromkeys(("collective", "size_bytes", "size_of", "algbw_GBps", "busbw_GBps")),
        **dict.fromkeys(("lower_bound_s", "certificate")),
    }
    if (demand := instance.demand) is not None:
        ranks = instance.npus if demand.ranks is None else len(demand.ranks)
        algbw = float(demand.size_bytes) / time / 1e9 if time and not instance.also else None
        faster = instance.timing is not None and any(change.factor > 1 for change in instance.timing.changes)
        without_wire = faster or mode is SimulationMode.ALPHA_BETA
        bound, certificate = (latency_bound if without_wire else best_bound)(instance)
        found |= {
            "collective": demand.collective.value,
            "size_bytes": float(demand.size_bytes),
            "size_of": SIZES[demand.collective],
            "algbw_GBps": algbw,
            "busbw_GBps": None if algbw is None else algbw * float(demand.collective.busbw_factor(ranks)),
            "lower_bound_s": float(bound),
            "certificate": type(certificate).__name__.removesuffix("Certificate").lower(),
        }
    links = instance.topology.links
    busiest = sorted(range(len(links)), key=lambda index: (-busy_s[index], index))[:LISTED]
    found["busiest_links"] = [
        {
            "link": index,
            "source": links[index].source,
            "target": links[index].target,
            "busy_s": float(busy_s[index]),
            "utilization": float(busy_s[index]) / time if time else None,
        }
        for index in busiest
    ]
    found["mean_utilization"] = float(busy_s.mean()) / time if time and links else None
    return found


def show(found: dict[str, Any]) -> None:
    """Print the measures as tables."""
    from rich.table import Table

    from ..core.units import TIMES, amount
    from ..core.units import show as quantity

    def told(key: str, form: str) -> str:
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
    summary.add_row("algbw (size / time)", told("algbw_GBps", "{:.6g} GB/s"))
    summary.add_row("busbw (algbw times the collective's factor)", told("busbw_GBps", "{:.6g} GB/s"))
    if (bound := found["lower_bound_s"]) is not None:
        summary.add_row(f"lower bound ({found['certificate']})", amount(bound, TIMES))
        summary.add_row("time / lower bound", f"{time / bound:.4f}" if bound and time is not None else "n/a")
    summary.add_row("mean utilization of all links", told("mean_utilization", "{:.1%}"))
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
