"""``cwb check``: verify schedules, placements, MSCCL algorithms, MSCCL++ plans and Chakra traces of any origin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..core.errors import ExitStatus
from ..core.option_names import DIALECTS
from .options import Command, duration_option, json_flag, plugin_option, progress_on_stderr
from .streams import echo


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--instance", metavar="SPEC", help="Reject a schedule that is for another instance.")
@click.option("--topology", metavar="SPEC", help="Network of MSCCL files, plans and traces; its links must exist.")
@click.option("--dialect", type=click.Choice(DIALECTS), help="Runtime of MSCCL files.  [default: any]")
@json_flag("the verdict as one JSON object on stdout")
@duration_option("time-limit", "Stop after this time: 60 (seconds), '5 min'.")
@plugin_option
def check(file: Path, as_json: bool, **given: Any) -> int:
    """Verify the schedule in FILE and its certificate, if any; or MSCCL algorithms, MSCCL++ plans, Chakra traces.

    \b
    cwb check s.json
    cwb check s.npz --instance instances/torus.json --json
    cwb check a.xml --topology "dgx_a100()"
    cwb check folder/ --dialect rccl
    cwb check placement.json
    cwb check plan.json --topology "dgx_a100()"
    cwb check traces/ --topology "torus(4,4)"

    A FILE that ends in .xml is an MSCCL algorithm, and a folder may have several. Each is checked by the rules of the
    runtimes and executed symbolically; for a folder, gaps and overlaps of sizes are reported.
    A JSON file with the keys of an MSCCL++ execution plan is checked by the rules of the executor and executed
    symbolically, in several successive calls.
    A JSON file with the experts of all slots is a placement; the loads of all GPUs are recomputed.
    A folder of files PREFIX.RANK.et is one Chakra execution trace, which is run without data.

    A schedule that ends before the bound that its own certificate proves is a contradiction, and counts as invalid.

    For trees, the time of the most loaded link is compared with the certificate's bound, in exact fractions. If
    they are equal, the trees are optimal.

    SPEC is a file, the name of a shipped instance or an expression such as "torus(8,8)"; one without a collective is
    compared by its network. --topology also takes the file of a schedule, whose network it is then. The exit status is
    5 if the schedule is invalid, and 2 if it cannot be read or is for another instance.
    """
    from ..studies.check import check as verdict_on

    with progress_on_stderr(quiet=False) as progress:
        found = verdict_on(file, progress=progress, **given)
    echo(json.dumps(found.to_json(), allow_nan=False) if as_json else found.text())
    return int(ExitStatus.OK if found.ok else ExitStatus.VERIFICATION_FAILED)
