"""``cwb show``: what an instance asks for, or what a method or a generator of networks takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command()
@click.argument("what")
def show(what: str) -> None:
    """Show an instance, a model or a named topology.

    WHAT is an instance as 'cwb solve' takes it, or a name that 'cwb list models' or 'cwb list topologies' gives.

    \b
    cwb show 4d
    cwb show libra
    cwb show torus
    """
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    for part in _parts(what):
        console.print(part)


def _parts(what: str) -> list[RenderableType]:
    """Find out what is meant, and give what there is to print."""
    from ..models import registry

    if what in registry.names():
        return describe_method(registry.get(what))
    from ..instances import generators, load
    from ..instances.loader import shipped
    from .options import telling_on_stderr
    from .show_instance import describe_instance

    made = generators.describe(what) if what in generators.names() else None
    described: list[RenderableType] = [] if made is None else [made.signature, made.summary]
    if made is None or what in shipped():  # a name may be both: the instance first, then how its network is made
        with telling_on_stderr():
            return [*describe_instance(load(what)), *described]
    return described


def describe_method(method: Any) -> list[RenderableType]:
    """Give what a method is, and its options."""
    from rich.table import Table

    solver = "needs a solver" if method.needs_solver else "needs no solver"
    table = Table("option", "default", "what it does", title="options (-O NAME=VALUE)", title_justify="left")
    for name, field in method.options.model_fields.items():
        default = "not set" if field.default is None else str(field.default)
        table.add_row(name, default, field.description or "")
    return [
        f"{method.name}: {method.summary}",
        f"{method.kind.value}, {solver}; answers with a {method.answer_type.__name__}",
        f"paper: {method.paper}",
        table,
    ]
