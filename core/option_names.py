"""Choices for options of commands and verbs, and names of options in errors: of commands, or keyword arguments."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import getdoc
from typing import ParamSpec, TypeVar

from .errors import InputError, one_of

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

FINDER_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")  #: Those of the topology finder's schedules.

#: Collectives that nccl-tests and the method ``nccl`` have, which are those whose optimum in the flow model is known.
NCCL_COLLECTIVES = FLOW_COLLECTIVES = (*FINDER_COLLECTIVES, "broadcast", "reduce", "all_to_all")

MSCCL_COLLECTIVES = (*NCCL_COLLECTIVES, "gather", "scatter")  #: Collectives that files of MSCCL know.

DIALECTS = ("msccl", "msccl-executor", "rccl")  #: Runtimes of MSCCL files.
RUNTIMES = (*DIALECTS, "mscclpp")  #: Runtimes of the programs that ``cwb select`` writes.
PLACEMENTS = ("out", "in", "both")  #: Memory of output and input in MSCCL files: different, the same, or either.
PROTOCOLS = ("Simple", "LL", "LL128")  #: Protocols of MSCCL files.
FAILURES = ("link", "rank", "switch")  #: Parts of a network that may fail.

#: Models of time on links, as :class:`~cwb.core.trace.SimulationMode` has them.
SIMULATION_MODES = ("congestion-aware", "alpha-beta", "cut-through", "fair-share", "shares")

PLOT_KINDS = ("heatmap", "gantt", "utilization", "trees", "network", "map")  #: Plots of a schedule.
BOUND_LEVELS = ("cheap", "all", "none")  #: Bounds of other methods that an answer is compared with.
RETRIES = ("failed", "limit", "all")  #: Recorded runs that a comparison makes again.

#: Whether errors speak of options of the command line.
_OF_COMMANDS: ContextVar[bool] = ContextVar("of_commands", default=False)

#: Keyword arguments that are no option's name with underscores.
_KEYWORDS = {"-O": "options", "-S": "solver_options", "-o": "output", "--capacity-unit": "bandwidth_unit"}

_DURATIONS = ("limit", "grace")  #: Options whose keyword argument is a number of seconds.


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


def verb(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate a function of the API: errors name its keyword arguments, and its docstring says that they are raised.

    See :func:`keyword_names`; a docstring with an entry of ``InputError`` stays as it is.
    """

    @wraps(function)
    def speaking(*arguments: _Parameters.args, **keywords: _Parameters.kwargs) -> _Result:
        with keyword_names():
            return function(*arguments, **keywords)

    text = getdoc(function)
    if text is not None and "\nInputError\n" not in text:
        heading = "" if "\nRaises\n------\n" in text else "\n\nRaises\n------"
        speaking.__doc__ = f"{text}{heading}\nInputError\n    If a file or an option is wrong.\n"
    return speaking


def keyword_of(option: str) -> str:
    """Return the keyword argument of an option, such as ``time_limit_s`` of ``--time-limit``."""
    name = _KEYWORDS.get(option) or option.removeprefix("--").replace("-", "_")
    return f"{name}_s" if name.endswith(_DURATIONS) else name


def check_name(name: str, names: tuple[str, ...], option: str) -> str:
    """Return the name if it is known; raise InputError with the option otherwise."""
    if name not in names:
        raise InputError(f"{name!r} is unknown{one_of(str(name), names)}", source=option)
    return name
