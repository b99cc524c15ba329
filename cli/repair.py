"""``cwb repair``: links of a planned network have failed or changed; keep most of the trees."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..core.errors import ExitStatus, InputError, located
from .options import libraries_on_stderr, parse_duration, parse_options, progress_on_stderr
from .streams import echo


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "--change", "-c", "changes", multiple=True, metavar="A-B=NOW", help="What links between two sites have now."
)
@click.option(
    "--solver", "-s", default="highs", show_default=True, help="highs, highs-pdlp, gurobi, scip or pyomo:NAME."
)
@click.option("--option", "-O", "options", multiple=True, metavar="NAME=VALUE", help="An option of mtree-repair.")
@click.option("--time-limit", metavar="DURATION", help="Such as 60 (seconds) or '5 min'.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write the new plan to this file."
)
@click.option("--json", "as_json", is_flag=True, help="Print the record as one JSON object on stdout.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
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
) -> int:
    """Repair PLAN, trees that 'cwb solve --model mtree ... -o PLAN' has written, after changes of its network.

    \b
    cwb repair plan.json -c 3-7=0 -c 0-1=0.5
    cwb repair plan.json -c "New York-London=80 Mb/s" -O new_trees=2 -O height=4 -o new.json
    cwb repair plan.json -c "5-7=-20 Mb/s" -O new_trees=0
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

    if output is not None and not output.parent.is_dir():
        raise InputError("its folder does not exist", source=str(output))
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
