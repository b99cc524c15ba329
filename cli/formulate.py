"""``cwb formulate``: a declared model of an instance; ``cwb new-method``: the template of a method."""

import json
import re
import sys
from importlib.resources import files
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Any

import click

from ..core.errors import InputError, locate_errors
from ..core.files import new_folder, write_whole
from . import completion
from . import options as common
from .streams import echo

MAX_PRINTED = 2000  #: Rows and columns up to which a model is printed.


@click.command(cls=common.Command)
@click.argument("formulation", shell_complete=completion.complete("formulations"))
@click.argument("instance", shell_complete=completion.complete("instances", files=True))
@common.options_of("the formulation", "--option", shell_complete=completion.method_options)
@common.collective_option("Collective such as all_reduce, instead of the instance's.")
@click.option("--size", "data", metavar="SIZE", help="Full buffer of the collective.")
@click.option("--chunks", type=click.IntRange(1, 10**9), help="Number of equal chunks of each rank's part.")
@click.option("--output", "-o", type=common.OUTPUT_FILE, help="File to write: .lp or .mps.")
@click.option("--print", "to_stdout", is_flag=True, help="Print the model as an LP file.")
@click.option("--names", "with_names", is_flag=True, help="Use the model's names instead of x1, x2, ….")
@click.option("--json", "as_json", is_flag=True, help="Print the size as one JSON object on stdout.")
@common.network_edits
@common.time_limit_option
@common.plugin_option
def formulate(
    formulation: str,
    instance: str,
    options: dict[str, Any],
    collective: str | None,
    data: str | None,
    chunks: int | None,
    output: Path | None,
    to_stdout: bool,
    with_names: bool,
    as_json: bool,
    edits: Any,
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
    entry = registry.formulation(formulation)
    with locate_errors(source=instance):
        problem = with_demand(common.load_edited(instance, edits), collective, data, chunks)
        model = entry.build(problem, **options)
    matrix = compile_matrix(model)
    size = matrix.size
    if to_stdout:
        if max(size.variables, size.constraints) > MAX_PRINTED:
            raise InputError(
                f"a model of {size.variables:,} variables and {size.constraints:,} constraints; "
                f"expected at most {MAX_PRINTED:,} of each, or use -o",
                source="--print",
            )
        echo(write_model(model, ".lp", with_names=with_names).decode(), nl=False)
        return
    if output is not None:
        write_whole(output, write_model(model, output.suffix, with_names=with_names))
    about = {"formulation": entry.name, "class": entry.model_class, "instance": instance, **vars(size)}
    if matrix.row_by_row:
        about["row_by_row"] = matrix.row_by_row
    if as_json:
        echo(json.dumps(about))
        return
    echo(
        f"{entry.name}: {entry.model_class}, {size.variables:,} variables ({size.integers:,} integer), "
        f"{size.constraints:,} constraints, {size.nonzeros:,} nonzeros" + (f"; {output}" if output else "")
    )
    for name, reason in matrix.row_by_row.items():
        echo(f"{name} is written row by row: {reason}")


#: The folder that is copied, under ``examples/``, and its files: a method of that name.
TEMPLATE = "my-flow"
FILES = ("README.md", "compare.toml", "my_flow.lp", "my_flow.py", "pyproject.toml", "sites.json", "test_my_flow.py")

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 40


@click.command(name="new-method")
@click.argument("name")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
def new_method(name: str, folder: Path | None) -> None:
    """Write a FOLDER with a method NAME of your own: a declared model that can be solved, tested and changed.

    It has the formulation NAME/lp, a linear program with one function a constraint, its page, an instance, a test that
    passes, a suite that compares it, and a pyproject.toml with its entry points. FOLDER is NAME by default.

    \b
    cwb new-method my-flow
    cwb solve --plugin my-flow/my_flow.py --formulation my-flow/lp my-flow/sites.json
    """
    _check_name(name)
    folder = Path(name) if folder is None else folder
    if folder.exists():
        raise InputError("it already exists; expected the name of a new folder", source=str(folder))
    if not folder.parent.is_dir():
        raise InputError("its folder does not exist", source=str(folder))
    write_template(name, folder)
    echo(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


def _check_name(name: str) -> None:
    """Reject a name that is invalid for a method or for the module that declares it."""
    from ..harness import registry

    module = name.replace("-", "_")
    if _NAME.fullmatch(name) is None or len(name) > _LONGEST or iskeyword(module):
        expected = f"expected at most {_LONGEST} lowercase letters, digits and single hyphens, a letter first"
        raise InputError(f"{name!r} is no name for a method; {expected}", source="NAME")
    if name in registry.names():
        raise InputError(f"{name!r} is the name of another method; expected a new one", source="NAME")
    if module in sys.stdlib_module_names or ((spec := find_spec(module)) is not None and spec.origin is not None):
        raise InputError(f"{module!r} is the name of a Python module; expected a new one", source="NAME")


def write_template(name: str, folder: Path) -> None:
    """Copy the template under another name, completely or not at all."""
    module = TEMPLATE.replace("-", "_")

    def rename(text: str) -> str:
        return text.replace(TEMPLATE, name).replace(module, name.replace("-", "_"))

    template = files("cwb").joinpath("examples", module)
    with new_folder(folder) as target:
        for file in FILES:
            text = template.joinpath(file).read_text(encoding="utf-8")
            (target / rename(file)).write_text(rename(text), encoding="utf-8")
