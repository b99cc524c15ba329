"""``cwb show``: descriptions of instances, methods, generators of networks, and formulations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import completion
from .options import Edits, load_edited, loading_progress_on_stderr, network_edits, plugin_option, time_limit_option
from .streams import console

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import RenderableType

    from ..core.formulation import Formulation


@click.command()
@click.argument("what", shell_complete=completion.complete("everything", files=True))
@network_edits
@plugin_option
@time_limit_option
def show(what: str, edits: Edits) -> None:
    """Show an instance, a model, a formulation or a named topology.

    WHAT is an instance as for 'cwb solve', or a name from 'cwb list models', 'cwb list formulations' or
    'cwb list topologies'.

    \b
    cwb show 4d
    cwb show libra
    cwb show bfb/lp
    cwb show torus
    """
    terminal = console()
    for part in _parts(what, edits):
        terminal.print(part)


def _parts(what: str, edits: Edits) -> list[RenderableType]:
    """Resolve a name and return its description."""
    from ..harness import registry

    if what in registry.names() and not edits:
        return describe_method(registry.get(what))
    if what in registry.formulation_names() and not edits:
        return describe_formulation(registry.formulation(what))
    from ..instances import generators
    from ..instances.loader import shipped_instances
    from .show_instance import describe_instance, describe_network

    generator = generators.describe(what) if what in generators.names() else None
    parts: list[RenderableType] = [] if generator is None else [generator.signature, generator.summary]
    # A name may be both: the instance first, then how its network is made.
    if generator is None or edits or what in shipped_instances():
        with loading_progress_on_stderr():
            instance = load_edited(what, edits)
            table = describe_network(instance)
            return [*describe_instance(instance), *([] if table is None else [table]), *parts]
    return parts


def describe_method(method: Any) -> list[RenderableType]:
    """Describe a method and its options."""
    solver = "needs a solver" if method.needs_solver else "needs no solver"
    return [
        f"{method.name}: {method.summary}",
        f"{method.kind.value}, {solver}; answers with a {method.answer_type.__name__}",
        f"paper: {method.paper}",
        options_table(method.options),
    ]


def describe_formulation(formulation: Formulation) -> list[RenderableType]:
    """Describe a declared model, its options and its source."""
    answers = "an answer" if formulation.answers else "no answer"
    bounds = "a bound" if formulation.bounds else "no bound"
    lines: list[RenderableType] = [
        f"{formulation.name}: {formulation.summary}",
        f"{formulation.model_class}, needs {', '.join(sorted(formulation.needs))}; gives {answers} and {bounds}",
        f"paper: {formulation.paper}",
        f"equations: {formulation.equations}",
    ]
    if formulation.agrees_with:
        lines.append(f"agrees with: {formulation.agrees_with}")
    lines += [f"{part}: {place}" for part, place in formulation.places.items()]
    return [*lines, options_table(formulation.options)] if formulation.options.model_fields else lines


def options_table(options: type[BaseModel]) -> RenderableType:
    """Tabulate options with their defaults."""
    from rich.table import Table

    from ..core.fields import default_in_words

    table = Table("option", "default", "what it does", title="options (-O NAME=VALUE)", title_justify="left")
    for name, field in options.model_fields.items():
        table.add_row(name, default_in_words(options, name) or "not set", field.description or "")
    return table
