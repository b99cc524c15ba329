"""``cwb repair``: adapt a plan or schedule to failed or changed links and nodes; keep most of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus
from .edits import keywords_of, network_edits
from .options import (
    OUTPUT_FILE,
    PATH,
    Command,
    json_flag,
    options_of,
    quiet_flag,
    time_limit,
    working_on_stderr,
)
from .streams import echo, notice

if TYPE_CHECKING:
    from ..studies.repair import RepairedSchedule


@click.command(cls=Command)
@click.argument("plan", type=PATH)
@click.option(
    "--change", "-c", "change", multiple=True, metavar="A-B=NOW", help="New bandwidth of the links between two sites."
)
@click.option(
    "--solver", "-s", default="highs", show_default=True, help="highs, highs-pdlp, gurobi, scip or pyomo:NAME."
)
@options_of("mtree-repair", "--option")
@time_limit
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@click.option("--output", "-o", type=OUTPUT_FILE, help="Write the new plan to this file.")
@json_flag("the record as one JSON object on stdout")
@quiet_flag
@network_edits
def repair(plan: Path, as_json: bool, quiet: bool, edits: tuple[tuple[str, str], ...], **given: Any) -> int:
    """Repair PLAN, a plan or a schedule written by 'cwb solve ... -o PLAN', after changes of its network.

    \b
    cwb repair plan.json -c 3-7=0 -c 0-1=0.5
    cwb repair plan.json -c "New York-London=80 Mb/s" -O new_trees=2 -O height=4 -o new.json
    cwb repair schedule.json --without-link box0.gpu0:ib0 -o new.json
    cwb repair schedule.json --without-rank 3 -o new.json
    cwb repair schedule.json --link "0:1=12.5 GB/s" --json

    With -c, PLAN has the trees of mtree over a wide-area network: trees that still work are kept, and few are added.

    With --without-link, --without-node or --link, PLAN is any schedule. Sends over a lost link are rerouted between the
    same two nodes. Neighbours take over the sends of a lost node, and all other sends stay. The command prints the
    share of the data still delivered by the old schedule, the new time, the nodes to update, and a bound on every
    schedule of the changed network.
    """
    from ..api.repair import repair as mend
    from ..api.runs import Run
    from ..studies.solve import shown_answer
    from .display import show_record

    if any(option == "--ranks" for option, _ in edits):
        raise click.UsageError("ranks are lost with their nodes; expected --without-rank")
    with working_on_stderr(quiet=quiet) as progress:
        found = mend(plan, progress=progress, notice=notice, **keywords_of(edits), **given)
    if not isinstance(found, Run):
        if as_json:
            echo(json.dumps(found.to_json(), allow_nan=False))
        else:
            show(found)
        return int(ExitStatus.OK)
    if as_json:
        echo(json.dumps({**found.to_json(), "answer": shown_answer(found, found.finished_run)}, allow_nan=False))
    else:
        show_record(found.problem, found)
    if found.exit_status != ExitStatus.OK:
        reason = "; ".join(found.violations) or found.message or found.status
        notice(f"{found.status}: {reason}")
    return found.exit_status


def show(found: RepairedSchedule) -> None:
    """Print a repair."""
    from rich.table import Table

    from ..core.units import TIMES, amount
    from .streams import console

    table = Table(show_header=False, title=found.instance.name, title_justify="left")
    nodes = ", ".join(found.nodes[:6]) + (f" and {len(found.nodes) - 6:,} more" if len(found.nodes) > 6 else "")
    for name, value in (
        ("sends or edges of trees", f"{found.transfers:,}"),
        ("that used what is lost", f"{found.lost:,}, {100 * found.lost_part:.1f} % of the bytes on links"),
        ("what the old schedule still brings", f"{100 * found.served:.1f} % of what the ranks that are left need"),
        ("ranks with another path or partner", f"{len(found.nodes):,}" + (f": {nodes}" if nodes else "")),
        ("completion time before", amount(found.before_s, TIMES)),
        ("completion time now", amount(found.after_s, TIMES)),
        ("bound on every schedule now", amount(found.bound_s, TIMES)),
        ("verified", "yes" if found.report.ok else "NO"),
    ):
        table.add_row(name, value)
    console().print(table)
