"""``cwb repair`` and ``cwb resilience``: schedules after failures, and failures ranked by their cost."""

from __future__ import annotations

import json
from fractions import Fraction
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, locate_errors
from ..core.option_names import FAILURES, FLOW_COLLECTIVES
from ..core.units import TIMES, amount
from . import completion
from . import options as common
from .streams import INTERRUPTED, console, echo, notice

if TYPE_CHECKING:
    from ..studies.repair import RepairedSchedule
    from ..studies.resilience import Failure, Resilience


@click.command(cls=common.Command)
@click.argument("plan", type=common.PATH)
@click.option(
    "--change", "-c", "change", multiple=True, metavar="A-B=NOW", help="New bandwidth of the links between two sites."
)
@click.option("--solver", "-s", default="highs", help="highs, highs-pdlp, gurobi, scip or pyomo:NAME.")
@common.options_of("mtree-repair", "--option")
@common.time_limit
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0)
@click.option("--output", "-o", type=common.OUTPUT_FILE, help="Write the new plan to this file.")
@common.json_flag("the record as one JSON object on stdout")
@common.quiet_flag
@common.network_options
def repair(plan: Path, as_json: bool, quiet: bool, ranks: str | None, **options: Any) -> int:
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
    from ..api.runs import Run
    from ..api.schedules import repair as mend
    from ..studies.solve import shown_answer
    from .display import show_record
    from .solve import print_end

    if ranks is not None:
        raise click.UsageError("ranks are lost with their nodes; expected --without-rank")
    with common.working_on_stderr(quiet=quiet) as progress:
        result = mend(plan, progress=progress, notice=notice, **options)
    if not isinstance(result, Run):
        common.print_found(result, _show_repair, as_json=as_json)
        return int(ExitStatus.OK)
    if as_json:
        echo(json.dumps({**result.to_json(), "answer": shown_answer(result, result.finished_run)}, allow_nan=False))
    else:
        show_record(result.problem, result)
    print_end(result)
    return result.exit_status


def _show_repair(result: RepairedSchedule) -> None:
    from .display import new_form

    table = new_form(result.instance.name, "left", "left")
    nodes = ", ".join(result.nodes[:6]) + (f" and {len(result.nodes) - 6:,} more" if len(result.nodes) > 6 else "")
    for name, value in (
        ("sends or edges of trees", f"{result.transfers:,}"),
        ("that used what is lost", f"{result.losses:,}, {100 * result.lost_part:.1f} % of the bytes on links"),
        ("what the old schedule still brings", f"{100 * result.served:.1f} % of what the ranks that are left need"),
        ("ranks with another path or partner", f"{len(result.nodes):,}" + (f": {nodes}" if nodes else "")),
        ("completion time before", amount(result.before_s, TIMES)),
        ("completion time now", amount(result.after_s, TIMES)),
        ("bound on every schedule now", amount(result.bound_s, TIMES)),
        ("verified", "yes" if result.report.ok else "NO"),
    ):
        table.add_row(name, value)
    console().print(table)


@click.command(cls=common.Command)
@click.argument("instance", shell_complete=completion.complete("instances", files=True))
@click.option("--collective", type=click.Choice(FLOW_COLLECTIVES), help="Collective, instead of the instance's.")
@click.option("--size", metavar="SIZE", help="Size, instead of the collective's.")
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(FAILURES),
    multiple=True,
    help="Kind of failure; may be repeated.  [default: all]",
)
@click.option("--slow", metavar="FACTOR", default="0", help="Fraction of its bandwidth that a link keeps, such as 1/2.")
@click.option("--top", type=click.IntRange(1), default=20, help="Rows of the table.")
@common.duration_option("time-limit", "Time limit of all failures together.", "5 min")
@common.json_flag("all failures as one JSON object")
@common.quiet_flag
@common.network_edits
@common.plugin_option
def resilience(
    instance: str,
    kinds: tuple[str, ...],
    top: int,
    time_limit_s: float | None,
    as_json: bool,
    quiet: bool,
    edits: common.Edits,
    **options: Any,
) -> int:
    """Rank all single failures of INSTANCE by their cost: links, ranks and switches, one lost at a time.

    \b
    cwb resilience "a100(boxes=8)" --collective all_gather
    cwb resilience my.json --collective all_reduce --kind link --slow 1/2 --json

    For each failure the optimum of the remaining network is computed, in the flow model of trees, without latency. No
    schedule of the changed network is faster than its bound, whose certificate is recomputed. Of links that a symmetry
    of the network exchanges, one is examined. A collective of fewer ranks keeps its size.
    """
    from ..studies.resilience import resilience as examine

    with common.working_on_stderr(quiet=quiet) as progress, locate_errors(source=instance):
        problem = common.load_edited(instance, edits)
        study = examine(problem, kind=kinds or FAILURES, time_limit_s=time_limit_s, progress=progress, **options)
    common.print_found(study, lambda study: _show_failures(study, top), as_json=as_json)
    return INTERRUPTED if not study.complete and time_limit_s is None else int(ExitStatus.OK)


def _show_failures(study: Resilience, top: int) -> None:
    from .display import collective_text, new_table

    groups: dict[tuple[str, Fraction | None, bool], list[Failure]] = {}
    problem, whole = study.instance, study.optimum
    for failure in study.failures:
        time = None if failure.optimum is None else failure.optimum.time_s
        groups.setdefault((failure.kind, time, failure.is_cut_off), []).append(failure)
    # Failures of unknown loss stand first: they may cost everything.
    losses = [(loss is not None, -(loss or 0.0)) for loss in (study.loss(group[0]) for group in groups.values())]
    ranking = [group for _, group in sorted(zip(losses, groups.values(), strict=True), key=itemgetter(0))]
    title = f"{collective_text(problem)} on {problem.name}: {amount(whole.time_s, TIMES)} without any"
    headings = ("fails", "such as", "number", "flow time", "bound", "throughput lost")
    table = new_table(title, *headings, right=headings[2:])
    for group in ranking[:top]:
        first = group[0]
        alike = sum(len(failure.names) for failure in group)
        loss = study.loss(first)
        if first.optimum is None or loss is None:
            numbers: tuple[str, ...] = ("cut off", "", "100 %") if first.is_cut_off else ("not known", "", "")
        else:
            times = (amount(value, TIMES) for value in (first.optimum.time_s, first.optimum.bound_s))
            numbers = (*times, f"{100 * loss:.1f} %")
        table.add_row(first.kind, first.names[0], f"{alike:,}", *numbers)
    console().print(table)
    if not study.complete:
        echo("the time was over before all failures had been looked at", err=True)
