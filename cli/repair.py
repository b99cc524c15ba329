"""``cwb repair``: links or nodes of a network have failed or changed; keep most of a plan or of a schedule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, InputError, located
from .edits import network_edits
from .options import OUTPUT_FILE, PATH, libraries_on_stderr, parse_duration, parse_options, progress_on_stderr
from .streams import echo

if TYPE_CHECKING:
    from ..harness.rerouting import Repaired


@click.command()
@click.argument("plan", type=PATH)
@click.option(
    "--change", "-c", "changes", multiple=True, metavar="A-B=NOW", help="New bandwidth of the links between two sites."
)
@click.option(
    "--solver", "-s", default="highs", show_default=True, help="highs, highs-pdlp, gurobi, scip or pyomo:NAME."
)
@click.option("--option", "-O", "options", multiple=True, metavar="NAME=VALUE", help="An option of mtree-repair.")
@click.option("--time-limit", metavar="DURATION", help="Such as 60 (seconds) or '5 min'.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@click.option("--output", "-o", type=OUTPUT_FILE, help="Write the new plan to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the record as one JSON object on stdout.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@network_edits
def repair(
    plan: Path,
    changes: tuple[str, ...],
    solver: str,
    options: tuple[str, ...],
    time_limit: str | None,
    seed: int,
    output: Path | None,
    as_json: bool,
    quiet: bool,
    edits: tuple[tuple[str, str], ...],
) -> int:
    """Repair PLAN, a plan or a schedule that 'cwb solve ... -o PLAN' has written, after changes of its network.

    \b
    cwb repair plan.json -c 3-7=0 -c 0-1=0.5
    cwb repair plan.json -c "New York-London=80 Mb/s" -O new_trees=2 -O height=4 -o new.json
    cwb repair schedule.json --without-link box0.gpu0:ib0 -o new.json
    cwb repair schedule.json --without-rank 3 -o new.json
    cwb repair schedule.json --link "0:1=12.5 GB/s" --json

    With -c, PLAN has the trees of mtree over a wide-area network: trees that still work are kept, and few are added.

    With --without-link, --without-node or --link, PLAN is any schedule. Sends over a link that is gone take another path
    between the same two nodes. Ranks beside a lost node take over what it did, and all other sends stay. The command
    prints what the old schedule still brings, the new time, the nodes that have to be updated, and a bound on every
    schedule of the changed network.
    """
    from ..algorithms.trees.network import pose
    from ..core.record import RunRecord
    from ..core.trees import TreePacking
    from ..harness import Request
    from ..harness import run as run_method
    from ..harness.clock import WallClock
    from ..harness.interrupt import within
    from ..models.mtree.repair_input import described
    from ..schedules.files import read_schedule
    from .display import show_record
    from .solve import shown_answer, write_answer

    if edits:
        if changes or options:
            raise click.UsageError("-c and -O are of plans of mtree; expected them without changes of links and nodes")
        return reroute(plan, edits, parse_duration(time_limit, "--time-limit"), output, as_json=as_json)
    clock = WallClock(parse_duration(time_limit, "--time-limit"))
    with within(clock):
        read = read_schedule(plan)
        if not isinstance(read.answer, TreePacking):
            raise InputError("it has no trees; expected a plan of mtree", source=str(plan))
        with located(source=str(plan)):
            previous = described(pose(read.instance), read.answer)
    given = parse_options(options)
    for name in {"previous", "changes"} & set(given):
        raise InputError("comes from PLAN and --change", source="-O", place=name)
    asked = {**given, "previous": [tree.model_dump() for tree in previous], "changes": list(changes)}
    request = Request("mtree-repair", solver, asked, seed, 1, clock.limit_s)
    with located(source=str(plan)), libraries_on_stderr(), progress_on_stderr(quiet=quiet) as progress:
        done = run_method(read.instance, request, progress, clock=clock)
    record: RunRecord = done.record
    if output is not None and done.instance is not None and done.answer is not None:
        write_answer(output, done.instance, done)
    if as_json:
        echo(json.dumps({**record.to_json(), "answer": shown_answer(record, done)}, allow_nan=False))
    else:
        show_record(read.instance, record)
    if record.exit_status != ExitStatus.OK:
        reason = "; ".join(record.violations) or record.message or record.status
        echo(f"cwb: {record.status}: {reason}", err=True)
    return record.exit_status


def reroute(
    plan: Path, edits: tuple[tuple[str, str], ...], limit_s: float | None, output: Path | None, *, as_json: bool
) -> int:
    """Repair a schedule on a changed network, and print what that costs."""
    from ..harness.clock import WallClock
    from ..harness.interrupt import within
    from ..harness.rerouting import repaired
    from ..instances.edits import Edit, edited
    from ..schedules.files import read_schedule, write_schedule

    if any(option == "--ranks" for option, _ in edits):
        raise click.UsageError("ranks are lost with their nodes; expected --without-rank")
    with within(WallClock(limit_s)), located(source=str(plan)):
        read = read_schedule(plan)
        found = repaired(
            read.instance, read.answer, edited(read.instance, [Edit(*edit) for edit in edits]), read.pieces
        )
    if found.report.ok and output is not None:
        extra = {**read.extra, "bound_s": float(found.bound_s)}
        write_schedule(output, found.instance, found.answer, found.certificate, extra, read.pieces)
    if as_json:
        echo(json.dumps(plain(found), allow_nan=False))
    else:
        show(found)
    for violation in found.report.violations:
        echo(f"cwb: wrong: {violation}", err=True)
    return int(ExitStatus.OK if found.report.ok else ExitStatus.VERIFICATION_FAILED)


def plain(found: Repaired) -> dict[str, Any]:
    """A repair as JSON."""
    return {
        "instance": found.instance.name,
        "transfers": found.transfers,
        "lost": found.lost,
        "lost_part": found.lost_part,
        "served": found.served,
        "nodes": list(found.nodes),
        "before_s": found.before_s,
        "after_s": found.after_s,
        "bound_s": float(found.bound_s),
        "certificate": found.certificate.to_json(),
        "verified": found.report.ok,
    }


def show(found: Repaired) -> None:
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
