"""``cwb list``: everything that has a name; imports neither modelling nor solver libraries."""

import json
from collections.abc import Iterator, Sequence
from importlib.resources import files

import click

from ..core import collective as core
from ..core.errors import InputError, locate_errors
from ..core.solver import Capability
from . import completion
from .options import collective_option, plugin_option
from .streams import echo

Row = dict[str, str]  #: One line of a listing; the keys are the headings.

KINDS = (
    "models",
    "formulations",
    "instances",
    "solvers",
    "topologies",
    "workloads",
    "suites",
    "collectives",
    "tables",
    "plots",
)


def rows_of(kind: str) -> Iterator[Row]:  # noqa: PLR0912 (one for each kind)
    """Yield a row for every name of a kind, one of :data:`KINDS`."""
    from ..harness import registry, suite_file
    from ..instances import generators, loader
    from ..reports.plots import PLOTS
    from ..reports.tables import TABLES

    match kind:
        case "models":
            from ..studies.support_matrix import methods

            yield from methods()
        case "formulations":
            for entry in map(registry.formulation, registry.formulation_names()):
                yield {
                    "name": entry.name,
                    "class": entry.model_class,
                    "equations": entry.equations,
                    "agrees with": entry.agrees_with or "none",
                    "summary": entry.summary,
                }
        case "instances":
            yield from _describe_files(loader.shipped_instances(), "")
        case "workloads":
            yield from _describe_files(loader.shipped_workloads(), "workloads/")
        case "solvers":
            yield from solvers()
        case "topologies":
            for name in generators.names():
                about = generators.describe(name)
                yield {"name": name, "summary": about.summary.rstrip(".").replace("``", ""), "call": about.signature}
        case "suites":
            for name in suite_file.shipped_suites():
                yield {"name": name, "summary": _first_sentence(suite_file.load_suite(name).file.description)}
        case "collectives":
            yield from ({"name": each.name, "summary": each.summary} for each in core.collectives())
        case "tables":
            for name, spec in TABLES.items():
                yield {"name": name, "summary": spec.title, "made from": spec.expects}
        case "plots":
            yield from ({"name": name, "summary": summary} for name, (_, summary) in PLOTS.items())


def models_for(spec: str, collective: str | None) -> Iterator[Row]:
    """Yield the methods that support an instance, then the others with the reason."""
    from ..instances import load
    from ..instances.demand import with_demand
    from ..studies.support_matrix import methods_for

    instance = load(spec)
    with locate_errors(source=spec):
        instance = with_demand(instance, collective, None, None)
    if instance.is_network_only:
        echo(f"cwb: {spec} asks for no collective; name one with --collective", err=True)
    yield from methods_for(instance)


def _describe_files(names: tuple[str, ...], folder: str) -> Iterator[Row]:
    """Yield the description in every file of a folder of instances."""
    for name in names:
        data = json.loads(files("cwb.instances").joinpath(f"{folder}{name}.json").read_bytes())
        yield {"name": name, "summary": _first_sentence(data.get("description", ""))}


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")


def solvers() -> Iterator[Row]:
    """Yield solvers with their capabilities and their state of installation."""
    from .. import solvers as adapters
    from ..harness import registry

    for name in registry.solver_names():
        solver = registry.solver(name)
        installation = solver.installation()
        version = (installation.version or "unknown version") if installation.ok else "not installed"
        yield {"name": name, "version": version, "capabilities": _words(solver.capabilities)}
    # Only the programs know their versions, and starting one takes too long here.
    there = ", ".join(name.removeprefix("pyomo:") for name in adapters.pyomo_solver_names())
    version = f"found: {there}" if there else "none found"
    yield {"name": "pyomo:NAME", "version": version, "capabilities": _words(adapters.get("pyomo:NAME").capabilities)}


def _words(capabilities: Capability) -> str:
    """Return capabilities in the words of the page on solvers."""
    return ", ".join(c.name.lower().replace("_", "-") for c in capabilities if c.name)


@click.command(name="list")
@click.argument(
    "what",
    type=click.Choice([*KINDS, "methods"]),
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
@collective_option("With --for: collective, instead of the instance's.")
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
    rows = list(rows_of(what) if instance is None else models_for(instance, collective))
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
