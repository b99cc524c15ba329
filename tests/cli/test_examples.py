"""Examples in the help of all commands."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator

import click
import pytest
from command_line import cwb
from cwb.cli.main import cwb as program


def examples(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the command lines in the help of a command and its subcommands."""
    for block in (command.help or "").split("\b\n")[1:]:
        text = block.split("\n\n")[0].replace("\\\n", " ")
        yield from (" ".join(line.split()) for line in text.splitlines() if line.strip())
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from examples(found, click.Context(found, parent=context))


EXAMPLES = sorted({line for line in examples(program, click.Context(program)) if line.startswith("cwb ")})

#: Examples that need no files of the user, or only those of :data:`MADE`: they are run.
RUN = [
    line
    for line in EXAMPLES
    if re.match(r"cwb (solve (?!.*(plugin|unwind))|show|list|cite|formulate|new-method|export schema)", line)
    or re.match(r"cwb (reproduce .*--(list|unchecked)|predict|compare .*--dry-run|plot \"h100|check s.npz)", line)
    or re.match(r"cwb (view|polish|check|export [a-z]+) s.json|cwb (report|table sizes) results/", line)
    or re.match(r"cwb (plot|simulate|run) schedule.json(?!.*(emulate|repeat))|cwb plot my-topology.json", line)
    or re.match(
        r"cwb repair schedule.json (--link|--without-rank)|cwb (resilience my.json|select my.json .*--models)", line
    )
]

_SCHEDULE = ("solve", "torus(4,4)", "-m", "tacos", "--collective", "all_gather", "--size", "1 MiB", "-q", "-o")
_MACHINE = ("import", "csv", "links.csv", "-o")

#: What makes the files that they name.
MADE = {
    "s.npz": ("solve", "torus(4,4)", "-m", "ring", "--collective", "all_gather", "-q", "-o", "s.npz"),
    "s.json": (*_SCHEDULE, "s.json"),
    "schedule.json": (*_SCHEDULE, "schedule.json"),
    "my.json": (*_MACHINE, "my.json"),
    "my-topology.json": (*_MACHINE, "my-topology.json"),
    "results/": ("compare", "--models", "ring,forestcoll", "--instances", "ring(4)", "--sizes", "1KiB,1MiB", "-q"),
}


def test_examples_are_found():
    """The help of most commands has examples, and a good part needs no files."""
    assert len(EXAMPLES) > 80
    assert len(RUN) >= 40


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_are_understood(line):
    """Every example has the arguments and options of its command, apart from files that do not exist here."""
    command: click.Command = program
    words = shlex.split(line.split(">")[0])[1:]
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None
        command = found
    values, _, _ = command.make_parser(click.Context(command)).parse_args(words)
    required = [param for param in command.params if param.required]
    assert all(values.get(str(param.name)) for param in required)


@pytest.mark.slow
@pytest.mark.parametrize("line", RUN)
def test_examples_end_well(line, tmp_path, monkeypatch):
    """The exit status is 0."""
    monkeypatch.delitem(sys.modules, "my_flow", raising=False)  # which pages of the documentation load
    monkeypatch.chdir(tmp_path)
    (tmp_path / "links.csv").write_text("source,target,bandwidth\n0,1,50 GB/s\n1,2,50 GB/s\n2,0,25 GB/s\n")
    words = shlex.split(line.split(">")[0])[1:]
    for name, command in MADE.items():
        assert name not in words or cwb(*command) == 0
    assert cwb(*words) == 0
