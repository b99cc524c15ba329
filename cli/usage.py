"""Messages for wrong usage in the form of all errors: place, value, and expectation."""

from __future__ import annotations

import re

import click

from ..core.errors import did_you_mean, one_of

_RANGE = re.compile(r"(?P<value>\S+) is not in the range .+", re.DOTALL)
_TYPE = re.compile(r"(?P<value>.+) is not a valid [a-z ]+\.?\Z", re.DOTALL)
_CHOICE = re.compile(r"(?P<value>.+) is not one of .*", re.DOTALL)
_EXTRA = re.compile(r"Got unexpected extra arguments? \((?P<values>.*)\)\Z", re.DOTALL)

#: What stands in the places of arguments.
_ARGUMENTS = {
    "instance": "a file, the name of a shipped instance, or an expression such as torus(8,8)",
    "what": "the name of an instance, method, formulation or topology",
    "formulation": "one of 'cwb list formulations'",
    "name": "a name",
}

#: What a word of a type is.
_EXPECTED = {
    "integer": "a whole number",
    "integer range": "a whole number",
    "float": "a number",
    "float range": "a number",
}


def usage_text(error: click.ClickException) -> str:
    """Return click's error as one line."""
    match error:
        case click.MissingParameter(param=click.Parameter() as param):
            return f"{_place(param)}: missing; expected {_expected_text(param)}"
        case click.BadParameter(param=click.Parameter() as param):
            return f"{_place(param)}: {_wrong_value_text(error.message, param)}"
        case click.NoSuchOption(option_name=name):
            command = error.ctx.command_path if error.ctx else "cwb"
            return f"{name}: no such option; expected one of '{command} --help'{_nearest(error)}"
        case click.UsageError():
            return _unknown_word_text(error)
        case _:
            return error.format_message()


def _place(param: click.Parameter) -> str:
    """Return an option's longest name, or an argument's name in the help."""
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.human_readable_name


def _expected_text(param: click.Parameter) -> str:
    """Describe the accepted values of a parameter."""
    match param.type:
        case click.Choice(choices=choices):
            return f"one of {', '.join(map(str, choices))}"
        case click.IntRange() | click.FloatRange() as limits:
            return _limits(limits)
        case click.Path() | click.File():
            return "a file or folder" if param.nargs != 1 else "a file"
        case kind:
            if isinstance(param, click.Argument) and param.name in _ARGUMENTS:
                return _ARGUMENTS[param.name]
            described = getattr(param, "help", None)
            return _EXPECTED.get(kind.name, "a value") + (f": {_first(described)}" if described else "")


def _limits(kind: click.IntRange | click.FloatRange) -> str:
    """Describe a range in words."""
    what = "a whole number" if isinstance(kind, click.IntRange) else "a number"
    least = "" if kind.min is None else f"{'above' if kind.min_open else 'of at least'} {kind.min:,}"
    most = "" if kind.max is None else f"{'below' if kind.max_open else 'at most'} {kind.max:,}"
    return f"{what} {' and '.join(filter(None, (least, most)))}".strip()


def _first(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")


def _wrong_value_text(message: str, param: click.Parameter) -> str:
    """Return the value and the expectation, if click's message has them."""
    if found := _RANGE.match(message) or _TYPE.match(message):
        return f"{found['value']} is wrong; expected {_expected_text(param)}"
    if (found := _CHOICE.match(message)) and isinstance(param.type, click.Choice):
        choices = [str(choice) for choice in param.type.choices]
        return f"{found['value']} is unknown{one_of(found['value'], choices)}"
    return message


def _nearest(error: click.NoSuchOption) -> str:
    known = [name for param in (error.ctx.command.params if error.ctx else []) for name in param.opts]
    return did_you_mean(error.option_name, [name for name in known if name.startswith("--")])


def _unknown_word_text(error: click.UsageError) -> str:
    """Describe an error about unknown or missing commands and extra arguments."""
    if (found := _EXTRA.match(error.message)) and error.ctx is not None:
        names = [param.human_readable_name for param in error.ctx.command.params if isinstance(param, click.Argument)]
        after = f"nothing after {names[-1]}" if names else "options alone"
        return f"{found['values']!r}: unexpected; expected {after}"
    if isinstance(group := error.ctx.command if error.ctx else None, click.Group) and error.ctx is not None:
        known = group.list_commands(error.ctx)
        if error.message.startswith("Missing command"):
            return f"COMMAND: missing; expected one of {', '.join(known)}"
        if found := re.match(r"No such command '(?P<name>.*)'", error.message):
            return f"no such command {found['name']!r}{one_of(found['name'], known)}"
    return error.message
