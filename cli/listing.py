"""``cwb list``: everything that has a name; imports neither modelling nor solver libraries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files

import click

from ..core import collective as core
from ..core.errors import InputError
from ..core.solver import Capability
from . import completion
from .options import plugin_option
from .streams import echo

Row = dict[str, str]  #: One line of a listing; the keys are the headings.


def models() -> Iterator[Row]:
    """Yield methods by family with the type of their objective and the supported problems."""
    from ..studies.support_matrix import methods

    yield from methods()


def models_for(spec: str, collective: str | None) -> Iterator[Row]:
    """Yield the methods that support an instance, then the others with the reason."""
    from ..core.errors import locate_errors
    from ..instances import load
    from ..instances.demand import with_demand
    from ..studies.support_matrix import methods_for

    instance = load(spec)
    with locate_errors(source=spec):
        instance = with_demand(instance, collective, None, None)
    if instance.is_network_only:
        echo(f"cwb: {spec} asks for no collective; name one with --collective", err=True)
    yield from methods_for(instance)


def formulations() -> Iterator[Row]:
    """Yield declared models with class, method of equal optimum, and source."""
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
    """Yield the instances shipped with cwb."""
    from ..instances.loader import shipped_instances

    yield from _describe_files(shipped_instances(), "")


def workloads() -> Iterator[Row]:
    """Yield the workloads that instances can refer to by name."""
    from ..instances.loader import shipped_workloads

    yield from _describe_files(shipped_workloads(), "workloads/")


def _describe_files(names: tuple[str, ...], folder: str) -> Iterator[Row]:
    """Yield the description in every file of a folder of instances."""
    for name in names:
        data = json.loads(files("cwb.instances").joinpath(f"{folder}{name}.json").read_bytes())
        yield {"name": name, "summary": data.get("description", "").partition(". ")[0].rstrip(".")}


def solvers() -> Iterator[Row]:
    """Yield solvers with their capabilities and their state of installation."""
    from .. import solvers as adapters
    from ..harness import registry

    for name in registry.solver_names():
        solver = registry.solver(name)
        found = solver.installation()
        version = (found.version or "unknown version") if found.ok else "not installed"
        yield {"name": name, "version": version, "capabilities": _words(solver.capabilities)}
    # Only the programs know their versions, and starting one takes too long here.
    there = ", ".join(name.removeprefix("pyomo:") for name in adapters.pyomo_solver_names())
    version = f"found: {there}" if there else "none found"
    yield {"name": "pyomo:NAME", "version": version, "capabilities": _words(adapters.get("pyomo:NAME").capabilities)}


def _words(capabilities: Capability) -> str:
    """Return capabilities in the words of the page on solvers."""
    return ", ".join(c.name.lower().replace("_", "-") for c in capabilities if c.name)


def topologies() -> Iterator[Row]:
    """Yield generators of named networks."""
    from ..instances import generators

    for name in generators.names():
        described = generators.describe(name)
        yield {"name": name, "summary": described.summary.rstrip(".").replace("``", ""), "call": described.signature}


def suites() -> Iterator[Row]:
    """Yield the suites of ``cwb compare``."""
    from ..harness.suite_file import load_suite, shipped_suites

    for name in shipped_suites():
        yield {"name": name, "summary": load_suite(name).file.description.partition(". ")[0].rstrip(".")}


def collectives() -> Iterator[Row]:
    """Yield collectives with their final condition."""
    for each in core.collectives():
        yield {"name": each.name, "summary": each.summary}


def tables() -> Iterator[Row]:
    """Yield the tables of ``cwb table`` with the records that they use."""
    from ..reports.tables import TABLES

    for name, spec in TABLES.items():
        yield {"name": name, "summary": spec.title, "made from": spec.expects}


def plots() -> Iterator[Row]:
    """Yield the plots of ``cwb plot``."""
    from ..reports.plots import PLOTS

    for name, (_, summary) in PLOTS.items():
        yield {"name": name, "summary": summary}


LISTINGS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "models": models,
    "formulations": formulations,
    "instances": instances,
    "solvers": solvers,
    "topologies": topologies,
    "workloads": workloads,
    "suites": suites,
    "collectives": collectives,
    "tables": tables,
    "plots": plots,
}


@click.command(name="list")
@click.argument(
    "what",
    type=click.Choice([*LISTINGS, "methods"]),
    metavar="WHAT",
    callback=lambda _, __, what: "models" if what == "methods" else what,
)
@click.option(
    "--for",
    "instance",
    shell_complete=completion.complete("instances", files=True),
    metavar="INSTANCE",
    help="With models: those that support this instance, and the reasons why others do not.",
)
@click.option(
    "--collective",
    shell_complete=completion.complete("collectives"),
    metavar="NAME",
    help="With --for: collective, instead of the instance's.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects on stdout.")
@plugin_option
def listing(what: str, instance: str | None, collective: str | None, as_json: bool) -> None:
    """List everything of one kind.

    WHAT is models (also called methods), formulations, instances, solvers, topologies, workloads, suites,
    collectives, tables or plots.

    \b
    cwb list models
    cwb list models --for "torus(4,4)" --collective all_reduce
    cwb list instances --json
    """
    if what != "models" and instance is not None:
        raise InputError(f"only for models, not for {what}", source="--for")
    if instance is None and collective is not None:
        raise InputError("expected together with --for INSTANCE", source="--collective")
    rows = list(LISTINGS[what]() if instance is None else models_for(instance, collective))
    if as_json:
        echo(json.dumps(rows))
        return
    # One line for each name suits grep and cut, and needs no library for tables.
    for line in columns(rows):
        echo(line)


def columns(rows: Sequence[Row]) -> Iterator[str]:
    """Yield aligned lines of a heading and rows; the last column is not padded."""
    first, last = list(rows[0])[:-1], {list(row)[-1]: None for row in rows}
    width = {key: max(len(key), *(len(row[key]) for row in rows)) for key in first}
    heading = {key: key for key in first}
    for row in ([*heading.values(), " / ".join(last)], *(list(row.values()) for row in rows)):
        yield "  ".join([*(f"{text:<{width[key]}}" for key, text in zip(first, row, strict=False)), row[-1]])
