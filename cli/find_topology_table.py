"""How ``cwb find-topology`` shows what it found: a table, and the best network as an instance file."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from ..core.units import exact
from .streams import console

if TYPE_CHECKING:
    from ..core.instance import Instance
    from ..finder.finder import Choice, Job


#: Columns of the table where it is not shown on a terminal.
WIDTH = 120


def plain(
    job: Job,
    sizes: list[tuple[Fraction, Fraction]],
    choices: list[Choice],
    best: Choice,
    rates: list[float | None],
    seconds: list[Fraction],
) -> dict[str, Any]:
    """Results as plain data; exact numbers are texts. ``seconds`` are what a collective takes on average.

    The job's size is the average of the sizes by their weights.
    """
    from ..finder.finder import lower_bound

    steps, bandwidth = lower_bound(job)
    return {
        "schema": "cwb-topologies/1",
        "nodes": job.nodes,
        "degree": job.degree,
        "alpha_s": str(job.alpha_s),
        "size_bytes": str(job.size_bytes),
        "sizes": [{"size_bytes": str(size), "weight": str(weight)} for size, weight in sizes],
        "all_to_all_share": str(job.all_to_all_share),
        "bandwidth_Bps": str(job.bandwidth_Bps),
        "lower_bound": {
            "T_L": steps,
            "T_B": str(bandwidth),
            "all_reduce_s": float(2 * (steps * job.alpha_s + bandwidth * job.ratio_s)),
        },
        "frontier": [
            {**_row(job, choice, rate), "average_s": float(average), "best": choice is best}
            for choice, rate, average in zip(choices, rates, seconds, strict=True)
        ],
        "best": str(best.candidate),
    }


def _row(job: Job, choice: Choice, rate: float | None) -> dict[str, Any]:
    def pair_s(of: float | Fraction) -> float:
        return float(job.size_bytes / job.nodes / (job.bandwidth_Bps / job.degree)) / float(of)

    return {
        "topology": str(choice.candidate),
        "all_gather": "breadth-first" if choice.candidate.breadth_first else "expanded",
        "degree": choice.candidate.degree,
        "bidirectional": choice.candidate.bidirectional,
        "T_L": choice.steps,
        "T_B": str(choice.bandwidth),
        "reduce_scatter_T_L": choice.reduce_steps,
        "reduce_scatter_T_B": str(choice.reduce_bandwidth),
        "all_reduce_s": float(choice.all_reduce_s),
        "diameter": choice.diameter,
        "all_to_all_rate": rate,
        "all_to_all_s": None if rate is None else pair_s(rate),
        "all_to_all_rate_limit": float(choice.all_to_all_limit),
        "also": [str(candidate) for candidate in choice.also],
    }


def show(found: dict[str, Any]) -> None:
    """Print the frontier as a table, with the lower bound below and what is best."""
    from rich.table import Table

    title = f"{found['nodes']:,} nodes of degree {found['degree']}: the best of the families searched"
    table = Table(title=title, title_justify="left")
    table.add_column("topology", overflow="fold")
    shared = found["all_to_all_share"] != "0"
    for heading in ("T_L", "T_B", "", "all-reduce us", "diameter", "all-to-all rate", "us", *["average us"] * shared):
        table.add_column(heading, justify="right")
    for row in found["frontier"]:
        table.add_row(
            f"{row['topology']} *" if row["best"] else row["topology"],
            str(row["T_L"]),
            row["T_B"],
            f"{float(Fraction(row['T_B'])):.3f}",
            f"{row['all_reduce_s'] * 1e6:,.1f}",
            str(row["diameter"]),
            f"<= {row['all_to_all_rate_limit']:.2e}"
            if row["all_to_all_rate"] is None
            else f"{row['all_to_all_rate']:.2e}",
            "n/a" if row["all_to_all_s"] is None else f"{row['all_to_all_s'] * 1e6:,.1f}",
            *[f"{row['average_s'] * 1e6:,.1f}"] * shared,
        )
    bound = found["lower_bound"]
    ratio = f"{float(Fraction(bound['T_B'])):.3f}"
    table.add_section()
    table.add_row(
        "lower bound", str(bound["T_L"]), bound["T_B"], ratio, f"{bound['all_reduce_s'] * 1e6:,.1f}", "", "", ""
    )
    printed = console()
    if not printed.is_terminal:
        printed.width = max(printed.width, WIDTH)
    printed.print(table)
    for row in found["frontier"]:
        if row["also"]:
            printed.print(f"as good as {row['topology']}: {', '.join(row['also'])}")
    printed.print(f"* best of these for {_job(found)}; networks of other kinds may be better")
    if made := found.get("schedule"):
        verdict = "verified" if made["verified"] else f"WRONG: {made['violations'][0]}"
        printed.print(f"{made['collective']}: {made['steps']} steps, {made['sends']:,} sends, {verdict}")


def _job(found: dict[str, Any]) -> str:
    from ..core.units import SIZES, amount

    size = amount(Fraction(found["size_bytes"]), SIZES)
    if len(sizes := found["sizes"]) > 1:
        total = sum(Fraction(one["weight"]) for one in sizes)
        parts = [
            f"{amount(Fraction(one['size_bytes']), SIZES)} ({float(100 * Fraction(one['weight']) / total):.3g} %)"
            for one in sizes
        ]
        size = ", ".join(parts)
    rate = float(Fraction(found["bandwidth_Bps"])) * 8e-9
    share = Fraction(found["all_to_all_share"])
    kind = f"collectives, {float(share):.0%} of them all-to-alls," if share else "an all-reduce"
    return f"{kind} of {size}, alpha = {float(Fraction(found['alpha_s'])) * 1e6:g} us, B = {rate:g} Gb/s"


def instance_data(instance: Instance, found: dict[str, Any]) -> dict[str, Any]:
    """An instance file of the best network; all its links are alike.

    Raises
    ------
    InputError
        If a quantity has more digits than the format takes.
    """
    from ..core.topology import Topology

    network, demand = instance.network, instance.demand
    if not isinstance(network, Topology) or demand is None:
        raise InputError("expected a network of nodes and links, and a collective", place="instance")
    link = network.links[0]
    rate, latency = exact(link.bandwidth_Bps, "B/s"), exact(link.latency_s * 10**6, "us")
    return {
        "schema": "cwb-instance/1",
        "name": instance.name,
        "description": f"{found['nodes']} nodes of degree {found['degree']}: {instance.name}.",
        "source": "cwb find-topology",
        "network": {
            "nodes": [{"name": node.name} for node in network.nodes],
            "links": [
                {"source": e.source, "target": e.target, "bandwidth": rate, "latency": latency} for e in network.links
            ],
        },
        "collective": {"kind": demand.collective.value, "size": exact(demand.size_bytes, "B")},
    }
