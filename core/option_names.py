"""Names of options in errors: those of the command line, or Python keyword arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import getdoc
from typing import ParamSpec, TypeVar

from .errors import InputError
from .text import one_of

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

#: Whether errors speak of options of the command line.
_OF_COMMANDS: ContextVar[bool] = ContextVar("of_commands", default=False)

#: Keyword arguments that are no option's name with underscores.
_KEYWORDS = {"-O": "options", "-S": "solver_options", "-o": "output", "--capacity-unit": "bandwidth_unit"}

#: Options whose keyword argument is a number of seconds.
_DURATIONS = ("limit", "grace")


class WrongUse(InputError):
    """Invalid combination of options; the command line adds a hint at its help."""


@contextmanager
def option_names() -> Iterator[None]:
    """Make API functions called in the block name options of the command line in errors."""
    token = _OF_COMMANDS.set(True)
    try:
        yield
    finally:
        _OF_COMMANDS.reset(token)


@contextmanager
def keyword_names() -> Iterator[None]:
    """Name keyword arguments instead of options in errors of the block, except on the command line."""
    if _OF_COMMANDS.get():
        yield
        return
    try:
        yield
    except InputError as error:
        source = error.source
        if source is not None and (source in _KEYWORDS or source.startswith("--")):
            source = keyword_of(source)
        problem = re.sub(r"(?<![\w'])--[a-z][a-z-]*", lambda option: f"{keyword_of(option[0])}=", error.problem)
        raise InputError(problem, source=source, place=error.place) from None


def verb(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Decorate a function of the API: errors name its keyword arguments, and its docstring says that they are raised.

    See :func:`keyword_names`; a docstring with an entry of ``InputError`` stays as it is.
    """

    @wraps(function)
    def speaking(*arguments: _Given.args, **given: _Given.kwargs) -> _Result:
        with keyword_names():
            return function(*arguments, **given)

    text = getdoc(function)
    if text is not None and "\nInputError\n" not in text:
        heading = "" if "\nRaises\n------\n" in text else "\n\nRaises\n------"
        speaking.__doc__ = f"{text}{heading}\nInputError\n    If a file or an option is wrong.\n"
    return speaking


def keyword_of(option: str) -> str:
    """Return the keyword argument of an option, such as ``time_limit_s`` of ``--time-limit``."""
    name = _KEYWORDS.get(option) or option.removeprefix("--").replace("-", "_")
    return f"{name}_s" if name.endswith(_DURATIONS) else name


def check_name(name: str, known: tuple[str, ...], option: str) -> str:
    """Return the name if it is known; raise InputError with the option otherwise."""
    if name not in known:
        raise InputError(f"{name!r} is unknown{one_of(str(name), known)}", source=option)
    return name
