"""``cwb cite``: BibTeX entries."""

from __future__ import annotations

import click

from . import completion
from .options import Command
from .streams import echo


@click.command(cls=Command)
@click.argument("methods", nargs=-1, metavar="[METHOD]...", shell_complete=completion.complete_names(completion.models))
def cite(methods: tuple[str, ...]) -> None:
    """Print BibTeX entries of cwb and of the papers of each METHOD, by default of all methods.

    \b
    cwb cite forestcoll teccl-milp > references.bib
    """
    from ..studies.cite import cite as entries

    echo(entries(*methods), nl=False)
