"""``cwb list``: what there is, by name; imports no modelling and no solver library."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files

import click

from ..core.solver import Capability
from .options import plugged
from .streams import echo

#: One line of a listing; the keys are the headings.
Row = dict[str, str]


def models() -> Iterator[Row]:
    """Methods, with what their objective is worth."""
    from ..harness import registry

    for name in registry.names():
        method = registry.get(name)
        yield {"name": name, "kind": method.kind.value, "summary": method.summary}


def formulations() -> Iterator[Row]:
    """Declared models: their class, the method that has the same optimum, and where they come from."""
    from ..harness import registry

    for name in registry.formulation_names():
        declared = registry.formulation(name)
        yield {
            "name": name,
            "class": declared.model_class,
            "equations": declared.equations,
            "agrees with": declared.agrees_with or "none",
            "summary": declared.summary,
        }


def instances() -> Iterator[Row]:
    """Instances that come with cwb."""
    from ..instances.loader import shipped

    yield from _described(shipped(), "")


def workloads() -> Iterator[Row]:
    """Workloads that instances can use by name."""
    from ..instances.loader import shipped_workloads

    yield from _described(shipped_workloads(), "workloads/")


def _described(names: tuple[str, ...], folder: str) -> Iterator[Row]:
    """Description in every file of a folder of the instances."""
    for name in names:
        data = json.loads(files("cwb.instances").joinpath(f"{folder}{name}.json").read_bytes())
        yield {"name": name, "summary": data.get("description", "").partition(". ")[0].rstrip(".")}


def solvers() -> Iterator[Row]:
    """Solvers, whether they are installed, and what they can do."""
    from .. import solvers as adapters
    from ..harness import registry

    for name in registry.solver_names():
        solver = registry.solver(name)
        found = solver.installed()
        version = (found.version or "unknown version") if found.ok else "not installed"
        yield {"name": name, "version": version, "capabilities": _words(solver.capabilities)}
    # Their versions are known to the programs only, and to ask one takes too long here.
    from ..solvers.pyomo_driven import CAPABILITIES

    there = ", ".join(name.removeprefix("pyomo:") for name in adapters.driven())
    version = f"found: {there}" if there else "none found"
    yield {"name": "pyomo:NAME", "version": version, "capabilities": _words(CAPABILITIES)}


def _words(capabilities: Capability) -> str:
    """Capabilities as they are called on the page about solvers."""
    return ", ".join(c.name.lower().replace("_", "-") for c in capabilities if c.name)


def topologies() -> Iterator[Row]:
    """Generators of named networks."""
    from ..instances import generators

    for name in generators.names():
        described = generators.describe(name)
        yield {"name": name, "summary": described.summary.rstrip("."), "call": described.signature}


LISTINGS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "models": models,
    "formulations": formulations,
    "instances": instances,
    "solvers": solvers,
    "topologies": topologies,
    "workloads": workloads,
}


@click.command(name="list")
@click.argument("what", type=click.Choice(list(LISTINGS)), metavar="WHAT")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects on stdout.")
@plugged
def listing(what: str, as_json: bool) -> None:
    """List all of one kind; WHAT is models, formulations, instances, solvers, topologies or workloads.

    \b
    cwb list models
    cwb list instances --json
    """
    rows = list(LISTINGS[what]())
    if as_json:
        echo(json.dumps(rows))
        return
    # Plain columns: a line for each name is what grep and cut want, and costs no import.
    width = {key: max(len(key), *(len(row[key]) for row in rows)) for key in rows[0]}
    for row in ({key: key for key in width}, *rows):
        echo("  ".join(f"{row[key]:<{width[key]}}" for key in width).rstrip())
