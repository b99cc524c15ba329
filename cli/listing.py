"""``cwb list``: everything that has a name; imports no modelling and no solver library."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files

import click

from ..core.collective import CollectiveKind
from ..core.errors import InputError
from ..core.solver import Capability
from . import completion
from .options import plugged
from .streams import echo

#: One line of a listing; the keys are the headings.
Row = dict[str, str]


def models() -> Iterator[Row]:
    """Methods by family: what their objective is worth, and what they take."""
    from ..harness.takers import methods

    yield from methods()


def models_for(spec: str, collective: str | None) -> Iterator[Row]:
    """Methods that take an instance, then those that do not, with the reason."""
    from ..core.errors import located
    from ..harness.demand import with_demand
    from ..harness.takers import methods_for
    from ..instances import load

    instance = load(spec)
    with located(source=spec):
        instance = with_demand(instance, collective, None, None)
    if instance.asks_nothing:
        echo(f"cwb: {spec} asks for no collective; name one with --collective", err=True)
    yield from methods_for(instance)


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
        yield {"name": name, "summary": described.summary.rstrip(".").replace("``", ""), "call": described.signature}


def suites() -> Iterator[Row]:
    """Suites of ``cwb compare``."""
    from ..harness.suite_file import load_suite, shipped_suites

    for name in shipped_suites():
        yield {"name": name, "summary": load_suite(name).file.description.partition(". ")[0].rstrip(".")}


#: What holds when a collective is done.
_COLLECTIVES = {
    CollectiveKind.ALL_GATHER: "every rank has the parts of all",
    CollectiveKind.REDUCE_SCATTER: "every rank has its part of the sum of all buffers",
    CollectiveKind.ALL_REDUCE: "every rank has the sum of all buffers",
    CollectiveKind.LATE_ALL_REDUCE: "every rank has the sum of all buffers, of which all but the first had one part of theirs",
    CollectiveKind.ALL_TO_ALL: "every rank has the part that each other one had for it",
    CollectiveKind.BROADCAST: "every rank has the buffer of the first",
    CollectiveKind.REDUCE: "the first rank has the sum of all buffers",
    CollectiveKind.GATHER: "the first rank has the parts of all",
    CollectiveKind.SCATTER: "every rank has its part of the buffer of the first",
    CollectiveKind.POINT_TO_POINT: "the second of two ranks has the buffer of the first",
}


def collectives() -> Iterator[Row]:
    """Collectives, by what holds when they are done."""
    for kind, summary in _COLLECTIVES.items():
        yield {"name": kind.value, "summary": summary}


def tables() -> Iterator[Row]:
    """Tables of ``cwb table``, and what they are made from."""
    from ..reports.tables import TABLES, get

    for name in TABLES:
        spec = get(name)
        yield {"name": name, "summary": spec.title, "made from": spec.expects}


def plots() -> Iterator[Row]:
    """Plots of ``cwb plot``."""
    from ..reports.plots import PLOTS, summary

    for name in PLOTS:
        yield {"name": name, "summary": summary(name)}


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
@click.argument("what", type=click.Choice(list(LISTINGS)), metavar="WHAT")
@click.option(
    "--for",
    "instance",
    shell_complete=completion.of(completion.instances, files=True),
    metavar="INSTANCE",
    help="With models: those that take this instance, and why others do not.",
)
@click.option(
    "--collective",
    shell_complete=completion.of(completion.collectives),
    metavar="NAME",
    help="With --for: this collective instead of the instance's.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects on stdout.")
@plugged
def listing(what: str, instance: str | None, collective: str | None, as_json: bool) -> None:
    """List everything of one kind.

    WHAT is models, formulations, instances, solvers, topologies, workloads, suites, collectives, tables or plots.

    \b
    cwb list models
    cwb list models --for "torus(4,4)" --collective all_reduce
    cwb list instances --json
    """
    if what != "models" and instance is not None:
        raise InputError(f"only for models, not for {what}", source="--for")
    if instance is None and collective is not None:
        raise InputError("expected --for INSTANCE beside it", source="--collective")
    rows = list(LISTINGS[what]() if instance is None else models_for(instance, collective))
    if as_json:
        echo(json.dumps(rows))
        return
    # Plain columns: a line for each name is what grep and cut want, and costs no import.
    for line in columns(rows):
        echo(line)


def columns(rows: Sequence[Row]) -> Iterator[str]:
    """Lines of a heading and of rows; the last key of each row needs no width."""
    first, last = list(rows[0])[:-1], {list(row)[-1]: None for row in rows}
    width = {key: max(len(key), *(len(row[key]) for row in rows)) for key in first}
    heading = {key: key for key in first}
    for row in ([*heading.values(), " / ".join(last)], *(list(row.values()) for row in rows)):
        yield "  ".join([*(f"{text:<{width[key]}}" for key, text in zip(first, row, strict=False)), row[-1]])
