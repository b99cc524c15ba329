"""Tables of a record for the terminal."""

from collections.abc import Collection
from typing import Any, Literal

from rich.table import Table

from ..core.errors import ExitStatus
from ..core.fabric import Fabric
from ..core.instance import Instance
from ..core.record import ATTESTED, RunRecord
from ..core.units import TIMES, size_text, unit_for
from .streams import console

_PERCENT = 1e-4  #: Gaps of at least this are written in percent.


def show_record(instance: Instance | None, record: RunRecord, size: str | None = None) -> None:
    """Print the answer of a record, its measures and its bound.

    Parameters
    ----------
    instance : Instance or None
        The instance; None if it was not loaded in time.
    size : str, optional
        Size of the collective as the user wrote it.
    """
    terminal = console()
    network = None if instance is None else instance.network
    if record.answer is not None and isinstance(network, Fabric) and "bandwidth_GBps" in record.metrics:
        terminal.print(allocation_table(network, record))
    terminal.print(summary_table(record, collective_text(instance, size)))
    if record.pool:
        terminal.print(pool_table(record))


def collective_text(instance: Instance | None, size: str | None = None) -> str:
    """Return the collective with its size, as written or in the largest unit that gives a whole number."""
    if instance is None or not instance.collectives:
        return ""
    demand = instance.collectives[0]
    chunks = f", {demand.chunks:,} chunks" if demand.chunks > 1 else ""
    return f"{demand.collective.name} of {size or size_text(demand.size_bytes)}{chunks}"


def new_table(title: str, *headings: str, right: Collection[str] = (), fold: bool = False) -> Table:
    """Make an empty table; columns named in ``right`` are aligned there, long texts are folded or cut."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        justify: Literal["left", "right"] = "right" if heading in right else "left"
        table.add_column(heading, justify=justify, overflow="fold" if fold else "ellipsis")
    return table


def new_form(title: str, *justify: Literal["left", "right"]) -> Table:
    """Make an empty table of names and values, without headings; by default values are to the right."""
    table = Table(show_header=False, title=title, title_justify="left")
    for each in justify or ("left", "right"):
        table.add_column(justify=each)
    return table


def pool_table(record: RunRecord) -> Table:
    """Tabulate the best distinct answers with the model's and the verifier's objective."""
    numbers = ("rank", "model's objective", f"objective ({record.objective_unit})", "verified")
    table = new_table("pool", *numbers, "answer", right=numbers)
    for row in record.pool:
        verified, answer = {True: "yes", False: "NO", None: "n/a"}[row["verified"]], row["answer"]
        sizes = ", ".join(f"{value:,} {name}" for name, value in answer.items() if isinstance(value, int))
        text = answer.get("path", sizes)
        model, objective = (_with_unit(row[name], "", "{:.9g}") for name in ("model_objective", "objective"))
        table.add_row(str(row["rank"]), model, objective, verified, text)
    return table


def allocation_table(fabric: Fabric, record: RunRecord) -> Table:
    """Tabulate the bandwidth of every dimension beside EqualBW's."""
    title, rates = f"{record.instance}: bandwidth per NPU of {fabric}, {fabric.npus:,} NPUs", ("GB/s", "EqualBW GB/s")
    headings = ("dimension", "block", "tier", rates[0], "share", rates[1])
    table = new_table(title, *headings, right=("share", *rates))
    bandwidths: list[float] = record.metrics["bandwidth_GBps"]
    total = sum(bandwidths)
    equal = record.metrics.get("equal_bandwidth_GBps")
    for index, (dimension, bandwidth) in enumerate(zip(fabric.dimensions, bandwidths, strict=True), start=1):
        share = f"{bandwidth / total:.1%}" if total else "n/a"
        table.add_row(str(index), str(dimension), dimension.tier, f"{bandwidth:.3f}", share, number(equal))
    table.add_section()
    count = len(fabric.dimensions)
    table.add_row("total", "", "", f"{total:.3f}", "", number(None if equal is None else equal * count))
    return table


#: What a summary shows of the metrics: name, heading, unit, format. A metric that a record lacks has no row.
ROWS = (
    ("predicted_s", "time by the library's model", "s", "{:.4g}"),
    ("predicted_busbw_GBps", "busbw by the library's model", "GB/s", "{:.1f}"),
    ("effective_time_s", "time at effective rates", "s", "{:.9g}"),
    ("effective_busbw_GBps", "busbw at effective rates", "GB/s", "{:.4f}"),
    ("iteration_time_s", "iteration time", "s", "{:.9g}"),
    ("completion_time_s", "completion time", "s", "{:.9g}"),
    ("no_completion_time", "no completion time", "", "{}"),
    ("rank_costs", "costs of ranks", "", "{}"),
    ("routing", "paths", "", "{}"),
    ("pieces", "pieces of a tree", "", "{:,}"),
    ("links_time_s", "as sends on links", "s", "{:.9g}"),
    ("alpha_beta_time_s", "without congestion", "s", "{:.9g}"),
    ("algbw_GBps", "algbw (size / time)", "GB/s", "{:.4f}"),
    ("busbw_GBps", "busbw", "GB/s", "{:.4f}"),
    ("flow_time_s", "flow time, latency left out", "s", "{:.9g}"),
    ("flow_algbw_GBps", "flow algbw", "GB/s", "{:.4f}"),
    ("flow_busbw_GBps", "flow busbw", "GB/s", "{:.4f}"),
    ("T_L", "steps, T_L", "", "{}"),
    ("T_B", "bandwidth time, T_B", "M/B", "{}"),
    ("rate", "rate of every pair", "links", "{:.6g}"),
    ("inv_x", "bottleneck, 1/x*", "s/GB", "{}"),
    ("k", "trees from a rank, k", "", "{}"),
    ("trees", "different trees", "", "{:,}"),
    ("max_height", "largest height", "", "{}"),
    ("mean_height", "mean height", "", "{:.3g}"),
    ("balancedness", "average over largest load", "", "{:.6g}"),
    ("network_cost_usd", "network cost", "USD", "{:,.2f}"),
    ("perf_per_cost", "perf-per-cost", "1/(s USD)", "{:.6g}"),
    ("speedup", "speedup over EqualBW", "x", "{:.4f}"),
    ("perf_per_cost_gain", "perf-per-cost over EqualBW", "x", "{:.4f}"),
)


def summary_table(record: RunRecord, collective: str = "") -> Table:
    """Tabulate status, measures, objective, bound and seconds of a record."""
    title = f"{record.model} on {record.solver}" if record.solver else record.model
    table = new_form(title)
    question = "; ".join(record.metrics[name] for name in ("question", "restricted_to") if name in record.metrics)
    table.add_row("status", f"{record.shown_status} ({question})" if question else record.shown_status)
    if collective:
        table.add_row("collective", collective)
    for name, heading, unit, form in ROWS:
        if name in record.metrics:
            table.add_row(heading, _with_unit(record.metrics[name], unit, form))
    if record.objective is not None:
        table.add_row("objective", _with_unit(record.objective, record.objective_unit or "", "{:.9g}"))
    if record.objective is not None or record.bound is not None:
        heading = "bound (attested)" if record.proof == ATTESTED else "proved bound"
        heading += f" of {record.bound_of}" if record.bound_of not in (None, record.model) else ""
        table.add_row(heading, _with_unit(record.bound, record.objective_unit or "", "{:.9g}"))
    if record.objective is not None:
        gap = record.gap
        text = "n/a" if gap is None else f"{100 * gap:.3g} %" if gap >= _PERCENT else f"{gap:.3g}"
        table.add_row("gap", text)
    if record.verified is not None:
        table.add_row("verified", "yes" if record.verified else "NO")
    seconds = record.seconds
    phases = ("build", "transfer", "solve", "verify", "simulate")
    parts = ", ".join(f"{name} {seconds[name]:.3f}" for name in phases if name in seconds)
    table.add_row("seconds", f"{seconds.get('total', 0):.3f} ({parts})" if parts else f"{seconds.get('total', 0):.3f}")
    if record.message and (record.exit_status == ExitStatus.OK or record.violations):
        table.add_row("message", record.message)
    return table


def number(value: Any) -> str:
    """Format a number with three decimals; ``n/a`` if None."""
    return "n/a" if value is None else f"{value:.3f}"


def _with_unit(value: Any, unit: str, form: str) -> str:
    """Format a number with its unit; times in the unit in which they are at least 1."""
    if value is None:
        return "n/a"
    if unit == "s" and value > 0:
        unit, scale = unit_for(value, TIMES)
        value, unit = value / scale, unit.replace("us", "µs")
    values = value if isinstance(value, list) else [value]  # of several collectives, of each
    return f"{', '.join(map(form.format, values))} {unit}".rstrip()
