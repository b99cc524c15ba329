"""``cwb formulate``: a declared model of an instance as a file or text, or its size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..core.errors import InputError, locate_errors
from ..core.files import write_whole
from . import completion
from .options import OUTPUT_FILE, load_edited, network_edits, options_of, plugin_option, time_limit_option
from .streams import echo

MAX_PRINTED = 2000  #: Rows and columns up to which a model is printed.


@click.command()
@click.argument("formulation", shell_complete=completion.complete("formulations"))
@click.argument("instance", shell_complete=completion.complete("instances", files=True))
@options_of("the formulation", "--option", shell_complete=completion.method_options)
@click.option(
    "--collective",
    shell_complete=completion.complete("collectives"),
    metavar="NAME",
    help="Collective such as all_reduce, instead of the instance's.",
)
@click.option("--size", "data", metavar="SIZE", help="Full buffer of the collective.")
@click.option("--chunks", type=click.IntRange(1, 10**9), help="Number of equal chunks of each rank's part.")
@click.option("--output", "-o", type=OUTPUT_FILE, help="File to write: .lp or .mps.")
@click.option("--print", "printed", is_flag=True, help="Print the model as an LP file.")
@click.option("--names", "named", is_flag=True, help="Use the model's names instead of x1, x2, ….")
@click.option("--json", "as_json", is_flag=True, help="Print the size as one JSON object on stdout.")
@network_edits
@time_limit_option
@plugin_option
def formulate(
    formulation: str,
    instance: str,
    options: dict[str, Any],
    collective: str | None,
    data: str | None,
    chunks: int | None,
    output: Path | None,
    printed: bool,
    named: bool,
    as_json: bool,
    edits: tuple[tuple[str, str], ...],
) -> None:
    """Build the model FORMULATION of INSTANCE and print its size, or write it.

    'cwb list formulations' names all formulations; INSTANCE is as for 'cwb solve'.

    \b
    cwb formulate mtree/selection gscale -O trees=3 -o model.lp
    cwb formulate libra/allocation 4d --print --names
    """
    from ..exchange.models import FORMATS, write_model
    from ..harness import registry
    from ..instances.demand import with_demand
    from ..solvers.matrix import compile_matrix

    if output is not None and output.suffix not in FORMATS:
        raise InputError(f"a file that ends in {output.suffix!r}; expected {' or '.join(FORMATS)}", source="--output")
    declared = registry.formulation(formulation)
    with locate_errors(source=instance):
        posed = with_demand(load_edited(instance, edits), collective, data, chunks)
        model = declared.build(posed, **options)
    matrix = compile_matrix(model)
    size = matrix.size
    if printed:
        if max(size.variables, size.constraints) > MAX_PRINTED:
            raise InputError(
                f"a model of {size.variables:,} variables and {size.constraints:,} constraints; "
                f"expected at most {MAX_PRINTED:,} of each, or use -o",
                source="--print",
            )
        echo(write_model(model, ".lp", named=named).decode(), nl=False)
        return
    if output is not None:
        write_whole(output, write_model(model, output.suffix, named=named))
    about = {"formulation": declared.name, "class": declared.model_class, "instance": instance, **vars(size)}
    if matrix.row_by_row:
        about["row_by_row"] = matrix.row_by_row
    if as_json:
        echo(json.dumps(about))
        return
    echo(
        f"{declared.name}: {declared.model_class}, {size.variables:,} variables ({size.integers:,} integer), "
        f"{size.constraints:,} constraints, {size.nonzeros:,} nonzeros" + (f"; {output}" if output else "")
    )
    for name, reason in matrix.row_by_row.items():
        echo(f"{name} is written row by row: {reason}")
