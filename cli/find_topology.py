"""``cwb find-topology``: the best network of a size and degree for a job, and its schedule."""

from fractions import Fraction
from typing import Any

import click

from ..core.errors import ExitStatus
from ..core.option_names import FINDER_COLLECTIVES
from .options import OUTPUT_FILE, Command, duration_option, json_flag, libraries_on_stderr, print_found
from .streams import echo, table_console

WIDTH = 120  #: Columns of the table where it is not shown on a terminal.


@click.command(cls=Command)
@click.option("--nodes", type=int, required=True, help="Number of nodes.")
@click.option("--degree", type=int, required=True, help="Ports of a node in each direction.")
@click.option("--alpha", default="10 us", help="Latency of a step.")
@click.option(
    "--size",
    multiple=True,
    default=("1 MiB",),
    help="Size of a collective; several, each with its weight: --size '1 MiB:9' --size '1 GiB:1'.",
)
@click.option(
    "--all-to-all-share",
    default="0",
    help="Share of all-to-alls among the collectives, from 0 to 1; the others are all-reduces.",
)
@click.option("--bandwidth", default="100 Gb/s", help="Bandwidth of all ports of a node together.")
@click.option(
    "--bidirectional", is_flag=True, help="Only networks in which every link has one in the opposite direction."
)
@click.option("--spare-ports", is_flag=True, help="Allow idle ports if fewer links are better.")
@click.option(
    "--no-circulants", is_flag=True, help="Exclude circulants by theorem 22 or by search, as in the paper's tables."
)
@click.option(
    "--all-to-all-limit",
    "all_to_all_limit_s",
    type=click.FloatRange(min=0),
    default=60.0,
    help="Seconds per linear program; 0 solves none.",
)
@click.option(
    "--collective", type=click.Choice(FINDER_COLLECTIVES), default="all_reduce", help="Collective of the schedule."
)
@click.option("--no-schedule", is_flag=True, help="Do not build and verify the schedule of the best network.")
@duration_option("time-limit", "Time limit of the whole command: 60 (seconds), '5 min'.")
@json_flag("one JSON object on stdout")
@click.option("--output", "-o", type=OUTPUT_FILE, metavar="JSON", help="Write the best network as an instance file.")
@click.option("--schedule", type=OUTPUT_FILE, metavar="JSON", help="Write its schedule (.json, .json.gz, .npz).")
@click.option("--plot", type=OUTPUT_FILE, help="Draw the frontier: a .svg, .pdf or .png file.")
def find_topology(as_json: bool, **options: Any) -> int:
    """Find good networks of a size and degree, and the best of them for a job.

    The search covers the base networks of the direct-connect paper and its expansions: line graphs, degree expansions,
    Cartesian powers and products, unions with the transpose, and parallel links. It also covers circulants, two-way and
    directed, whose offsets are searched. The networks shown form the Pareto frontier of latency and
    bandwidth. Other networks may be better, at most by the gap to the lower bound.

    \b
    cwb find-topology --nodes 1024 --degree 4 --alpha "10 us" --size "1 MiB" --bandwidth "100 Gb/s"
    cwb find-topology --nodes 64 --degree 4 --bidirectional -o best.json --schedule schedule.json.gz

    The schedule of the best network is built and verified; the exit status is 5 if it is wrong. When the time is up, or
    at Ctrl-C, before there is a schedule, the networks are still shown, and the exit status is 4.
    """
    from ..studies.find_topology import find_topology as find

    with libraries_on_stderr():
        search = find(**options)
    print_found(search, lambda search: show(search.to_json()), as_json=as_json)
    if search.stopped:
        echo(f"cwb: limit: {search.stopped}; there is no schedule", err=True)
        return int(ExitStatus.LIMIT)
    return int(ExitStatus.OK if search.is_right else ExitStatus.VERIFICATION_FAILED)


def show(data: dict[str, Any]) -> None:
    """Print the frontier as a table with the lower bound below it, and the best networks."""
    from .display import new_table

    title = f"{data['nodes']:,} nodes of degree {data['degree']}: the best of the families searched"
    has_share = data["all_to_all_share"] != "0"
    numbers = ("T_L", "T_B", "", "all-reduce us", "diameter", "all-to-all rate", "us", *["average us"] * has_share)
    table = new_table(title, "topology", *numbers, right=numbers)
    table.columns[0].overflow = "fold"
    for row in data["frontier"]:
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
            *[f"{row['average_s'] * 1e6:,.1f}"] * has_share,
        )
    bound = data["lower_bound"]
    ratio = f"{float(Fraction(bound['T_B'])):.3f}"
    table.add_section()
    table.add_row(
        "lower bound", str(bound["T_L"]), bound["T_B"], ratio, f"{bound['all_reduce_s'] * 1e6:,.1f}", "", "", ""
    )
    terminal = table_console(WIDTH)
    terminal.print(table)
    for row in data["frontier"]:
        if row["also"]:
            terminal.print(f"as good as {row['topology']}: {', '.join(row['also'])}")
    terminal.print(f"* best of these for {_job(data)}; networks of other kinds may be better")
    if schedule := data.get("schedule"):
        verdict = "verified" if schedule["verified"] else f"WRONG: {schedule['violations'][0]}"
        terminal.print(f"{schedule['collective']}: {schedule['steps']} steps, {schedule['sends']:,} sends, {verdict}")


def _job(data: dict[str, Any]) -> str:
    from ..core.units import SIZES, amount

    size = amount(Fraction(data["size_bytes"]), SIZES)
    if len(sizes := data["sizes"]) > 1:
        total = sum(Fraction(one["weight"]) for one in sizes)
        parts = [
            f"{amount(Fraction(one['size_bytes']), SIZES)} ({float(100 * Fraction(one['weight']) / total):.3g} %)"
            for one in sizes
        ]
        size = ", ".join(parts)
    rate = float(Fraction(data["bandwidth_Bps"])) * 8e-9
    share = Fraction(data["all_to_all_share"])
    kind = f"collectives, {float(share):.0%} of them all-to-alls," if share else "an all-reduce"
    return f"{kind} of {size}, alpha = {float(Fraction(data['alpha_s'])) * 1e6:g} us, B = {rate:g} Gb/s"
