"""The command line in this process: its commands are run, or parsed."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from cwb.cli.main import cwb as program
from cwb.cli.main import run


def cwb(*arguments: str | Path) -> int:
    """Run the command line in this process and give its exit status."""
    with pytest.raises(SystemExit) as caught:
        run([str(argument) for argument in arguments])
    return int(str(caught.value.code))


def parse_command(arguments: list[str], *, partial: bool = False) -> click.Context | None:
    """Parse a command line with the program's own parser, down to the last command; None for the program alone."""
    command: click.Command = program
    while isinstance(command, click.Group):
        options = []
        while arguments and arguments[0].startswith("-"):
            options.append(arguments.pop(0))
        command.make_context("cwb", options, resilient_parsing=True)
        if not arguments or arguments[0].isupper():
            return None
        name = arguments.pop(0)
        found = command.get_command(click.Context(command), name)
        assert found is not None, f"no command {name!r}"
        command = found
    return command.make_context(command.name, list(arguments), resilient_parsing=partial)
