"""``cwb export``: what cwb knows, for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from .chakra import export_astra, export_chakra
from .goal import export_goal
from .msccl import export_msccl
from .mscclpp import export_mscclpp
from .options import OUTPUT_FILE
from .streams import echo


@click.group(no_args_is_help=False)
def export() -> None:
    """Write schedules and formats for other programs."""


@export.command()
@click.option("--of", "name", type=click.Choice(["instance", "workload"]), default="instance", show_default=True)
@click.option("--output", "-o", type=OUTPUT_FILE, metavar="JSON", help="Write to this file.")
def schema(name: str, output: Path | None) -> None:
    """Print the JSON Schema of a file format, for editors and other programs.

    \b
    cwb export schema -o instance.schema.json
    """
    from ..core.files import write_whole
    from ..instances.schema_export import schema_text

    text = schema_text(name)
    if output is None:
        echo(text, nl=False)
        return
    write_whole(output, text.encode())


export.add_command(export_msccl)
export.add_command(export_mscclpp)
export.add_command(export_goal)
export.add_command(export_chakra)
export.add_command(export_astra)
