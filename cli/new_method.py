"""``cwb new-method``: a folder with a template of a method."""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path

import click

from ..core.errors import InputError
from ..core.files import new_folder
from .options import PATH
from .streams import echo

#: The folder that is copied, under ``examples/``, and its files: a method of that name.
TEMPLATE = "my-flow"
FILES = ("README.md", "compare.toml", "my_flow.lp", "my_flow.py", "pyproject.toml", "sites.json", "test_my_flow.py")

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 40


@click.command(name="new-method")
@click.argument("name")
@click.argument("folder", required=False, type=PATH)
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
    if module in sys.stdlib_module_names or ((found := find_spec(module)) is not None and found.origin is not None):
        raise InputError(f"{module!r} is the name of a Python module; expected a new one", source="NAME")


def write_template(name: str, folder: Path) -> None:
    """Copy the template under another name, completely or not at all."""
    module = TEMPLATE.replace("-", "_")

    def rename(text: str) -> str:
        return text.replace(TEMPLATE, name).replace(module, name.replace("-", "_"))

    template = files("cwb").joinpath("examples", module)
    with new_folder(folder) as written:
        for file in FILES:
            text = template.joinpath(file).read_text(encoding="utf-8")
            (written / rename(file)).write_text(rename(text), encoding="utf-8")
