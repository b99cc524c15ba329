"""``cwb plot``: records to a picture."""

from __future__ import annotations

from pathlib import Path

import click

from ..core.errors import InputError
from ..core.files import write_whole
from .table import RECORDS


@click.command()
@click.argument("name", required=False)
@click.argument("records", nargs=-1, type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Path(path_type=Path), help="The picture: a .svg, .pdf or .png file.")
def plot(name: str | None, records: tuple[Path, ...], output: Path | None) -> None:
    """Draw the plot NAME from RECORDS: JSONL files, or folders of them (./results).

    Without NAME the known plots are listed.

    \b
    cwb plot libra-allocation results/ -o allocation.svg
    cwb plot libra-speedup results/ -o speedup.pdf
    """
    from ..reports.plots import PLOTS, get, picture_format
    from ..reports.records import load_records

    if name is None:
        raise InputError(f"which plot? expected one of {', '.join(PLOTS)}")
    draw = get(name)
    if output is None:
        raise InputError("give the file to write: a .svg, .pdf or .png", source="-o")
    form = picture_format(output)
    write_whole(output, draw(load_records(records or RECORDS), form))
