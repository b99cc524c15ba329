"""``cwb list``: what there is, by name; imports no method and no solver library."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files

import click

#: One line of a listing; the keys are the headings.
Row = dict[str, str]


def models() -> Iterator[Row]:
    """Methods, with what their objective is worth."""
    from ..models import registry

    for name in registry.names():
        declared = declaration(registry.METHODS[name])
        yield {"name": name, "kind": declared["kind"], "summary": declared["summary"]}


def declaration(entry: str) -> Mapping[str, str]:
    """Read texts and enumeration members of a method's declaration without importing it, as that would import Pyomo.

    Parameters
    ----------
    entry : str
        ``module:attribute``, as the registry has it; the attribute is assigned a call with keywords.
    """
    module, attribute = entry.split(":")
    path = files("cwb.models").joinpath(*module.split(".")[:-1], module.split(".")[-1] + ".py")
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(keywords=keywords)) if name == attribute:
                return dict(_texts(keywords))
    raise LookupError(f"{module} does not declare {attribute}")


def _texts(keywords: list[ast.keyword]) -> Iterator[tuple[str, str]]:
    for keyword in keywords:
        match keyword:
            case ast.keyword(arg=str(name), value=ast.Constant(value=str(text))):
                yield name, text
            case ast.keyword(arg=str(name), value=ast.Attribute(attr=member)):
                yield name, member.lower()


def instances() -> Iterator[Row]:
    """Instances that come with cwb."""
    from ..instances.loader import shipped

    yield from _described(shipped(), "")


def workloads() -> Iterator[Row]:
    """Workloads that instances can use by name."""
    from ..instances.loader import shipped_workloads

    yield from _described(shipped_workloads(), "workloads/")


def _described(names: tuple[str, ...], folder: str) -> Iterator[Row]:
    """Give the description in every file of a folder of the instances."""
    for name in names:
        data = json.loads(files("cwb.instances").joinpath(f"{folder}{name}.json").read_bytes())
        yield {"name": name, "summary": data.get("description", "").partition(". ")[0].rstrip(".")}


def solvers() -> Iterator[Row]:
    """Solvers, whether they are installed, and what they can do."""
    from .. import solvers as adapters

    for name in adapters.names():
        solver = adapters.get(name)
        found = solver.installed()
        capable = ", ".join(c.name.lower().replace("_", "-") for c in solver.capabilities if c.name)
        version = (found.version or "unknown version") if found.ok else "not installed"
        yield {"name": name, "version": version, "capabilities": capable}


def topologies() -> Iterator[Row]:
    """Generators of named networks."""
    from ..instances import generators

    for name in generators.names():
        described = generators.describe(name)
        yield {"name": name, "summary": described.summary.rstrip("."), "call": described.signature}


LISTINGS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "models": models,
    "instances": instances,
    "solvers": solvers,
    "topologies": topologies,
    "workloads": workloads,
}


@click.command(name="list")
@click.argument("what", type=click.Choice(list(LISTINGS)), metavar="WHAT")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects on stdout.")
def listing(what: str, as_json: bool) -> None:
    """List all of one kind; WHAT is models, instances, solvers, topologies or workloads.

    \b
    cwb list models
    cwb list instances --json
    """
    rows = list(LISTINGS[what]())
    if as_json:
        click.echo(json.dumps(rows))
        return
    # Plain columns: a line for each name is what grep and cut want, and costs no import.
    width = {key: max(len(key), *(len(row[key]) for row in rows)) for key in rows[0]}
    for row in ({key: key for key in width}, *rows):
        click.echo("  ".join(f"{row[key]:<{width[key]}}" for key in width).rstrip())
