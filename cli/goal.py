"""``cwb export goal``: schedules for LogGOPSim and packet-level simulators."""

from __future__ import annotations

from pathlib import Path

import click

from ..core.errors import located
from .options import OUTPUT_FILE, PATH
from .programs import read_flow
from .streams import echo


@click.command("goal")
@click.argument("schedule", type=PATH, metavar="SCHEDULE")
@click.option("--output", "-o", required=True, type=OUTPUT_FILE, help="Where the text is written.")
@click.option(
    "--reduce-rate", metavar="RATE", help="How fast a rank adds, such as '1 TB/s'; adding takes no time by default."
)
def export_goal(schedule: Path, output: Path, reduce_rate: str | None) -> None:
    """Write the schedule in SCHEDULE as GOAL text: sends, receives, and what each requires.

    \b
    cwb export goal s.json -o s.goal

    The schedule is verified first.
    """
    from ..core.files import write_whole
    from ..core.units import UnitKind, parse
    from ..exchange.goal import goal_text

    with located(source="--reduce-rate"):
        rate = None if reduce_rate is None else parse(reduce_rate, UnitKind.RATE, allow_zero=False)
    flow = read_flow(schedule)
    text = goal_text(flow, rate)
    write_whole(output, text.encode())
    messages = sum(len(transfer.way) - 1 for transfer in flow.transfers)
    echo(f"{output}: {flow.ranks:,} ranks, {messages:,} messages", err=True)
