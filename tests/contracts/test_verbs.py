"""Commands and the Python API: every command has a verb of its name, with its options."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator

import click
import cwb
import pytest
from cwb.cli.main import cwb as program
from cwb.core.option_names import keyword_of
from cwb.core.training import TrainingOptions
from cwb.studies.imports import _layout

#: Commands without a verb of their name, and what there is instead.
WITHOUT_VERB = {
    "formulate": "cwb.formulation(name).build(instance) is the model",
    "new-method": "writes files to begin with, for people",
    "show": "objects print themselves",
    "list": "cwb.models() lists methods; the rest is text for people",
    "doctor": "prints the state of the installation",
    "warm": "compiles ahead, which first uses do as well",
}

#: Options that no verb has, and what there is instead.
OF_NO_VERB = {
    "--json": "the result has to_json()",
    "--quiet": "progress is shown only if a callable is given",
    "--plugin": "cwb.register",
    "--force": "a verb overwrites the file that output names",
}

#: Changes of the network: options of cwb.load.
OF_LOAD = ("--ranks", "--without-link", "--without-node", "--without-rank", "--link", "--rates")

#: Options of a command that its verb lacks, and what there is instead.
OF_COMMANDS = {
    ("calibrate", "--plan"): "prints commands, and fits nothing",
    ("solve", "--formulation"): "model takes the name of a formulation too",
    ("compare", "--dry-run"): "prints a plan",
    ("resilience", "--top"): "rows that are printed",
    ("reproduce", "--list"): "prints names of tables",
    ("reproduce", "--unchecked"): "prints rows, and runs nothing",
    ("simulate", "--time-limit"): "ends a command that has nothing to keep",
}

#: Keyword arguments of ``**options`` that a verb checks itself.
FURTHER = {
    "train": set(TrainingOptions.model_fields),
    **{f"import_{name}": set(inspect.signature(_layout).parameters) for name in ("nccl", "nvidia_smi", "rocm_smi")},
}


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield all commands that are no groups, by their words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            if name not in WITHOUT_VERB:
                yield from commands(command, (*words, name))
        elif command is not None:
            yield " ".join((*words, name)), command


ALL = dict(commands(program))


@pytest.mark.parametrize("name", [name for name in ALL if name not in WITHOUT_VERB])
def test_every_command_has_its_verb_with_the_same_options(name):
    """A command's verb has its name, and a keyword argument for each of its options; exceptions have a reason."""
    verb = getattr(cwb, name.replace("-", "_").replace(" ", "_"))
    known = set(inspect.signature(verb).parameters) | FURTHER.get(verb.__name__, set())
    lacking = []
    for option in ALL[name].params:
        if not isinstance(option, click.Option):
            continue
        word = next((name for name in option.opts if name.startswith("--")), option.opts[0])  # the documented one
        excepted = word in OF_NO_VERB or word in OF_LOAD or (name, word) in OF_COMMANDS
        names = {keyword_of(word), f"{keyword_of(word)}s", word.removeprefix("--").replace("-", "_")}
        if not excepted and not names & known:
            lacking.append(word)
    assert lacking == []


def test_load_has_the_changes_of_networks():
    """Changes of a network are options of load."""
    assert {keyword_of(option) for option in OF_LOAD} <= set(inspect.signature(cwb.load).parameters)


def test_exceptions_are_commands_and_options():
    """Each exception is of a command or an option that there is."""
    assert set(WITHOUT_VERB) <= set(program.list_commands(click.Context(program)))
    for name, word in OF_COMMANDS:
        assert any(word in option.opts for option in ALL[name].params)


def test_all_names_are_offered_and_documented():
    """``cwb.__all__`` has every name of the package, sorted; each verb has a docstring with its sections."""
    assert set(cwb.__all__) == {*cwb._PLACES, "__version__", "models"}
    assert cwb.__all__ == sorted(cwb.__all__)
    for name in ALL:
        if name not in WITHOUT_VERB:
            text = inspect.getdoc(getattr(cwb, name.replace("-", "_").replace(" ", "_"))) or ""
            assert "Parameters\n---" in text, name
            assert "Raises\n---" in text, name


def test_importing_cwb_imports_no_library():
    """``import cwb`` imports no modelling library, neither pandas nor networkx nor matplotlib."""
    code = "import sys, cwb; print(*{'pyomo', 'pandas', 'networkx', 'matplotlib', 'numba'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""
