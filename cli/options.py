"""What several commands share: reading ``-O``, durations, and progress on stderr."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from functools import wraps
from math import isnan
from pathlib import Path
from threading import Thread
from typing import Any

import click

from ..core.budget import Progress, silent
from ..core.errors import InputError, located, shown
from ..core.stdout import stdout_to
from ..core.strict_json import parse_json
from ..core.text import printable
from ..core.units import UnitKind, parse
from .streams import console, echo

#: Keys of an object in the value of an option.
MAX_KEYS = 1000

#: Exact numbers of few digits: what ``Fraction`` makes of ``1e999999999`` fills the memory.
_NUMBER = re.compile(
    r"(?=\.?[0-9])[0-9]{0,20}(\.[0-9]{0,20})?(e[+-]?[0-9]{1,3})?|[0-9]{1,20}/[0-9]{1,20}", re.IGNORECASE | re.ASCII
)


class OutputFile(click.Path):
    """A file to be written: rejected before anything is computed if it is a folder, or its folder does not exist."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)
        self.name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read and check a path."""
        path: Any = super().convert(value, param, ctx)
        if path.is_dir():
            raise InputError("is a directory", source=str(path))
        if not path.parent.is_dir():
            raise InputError("its folder does not exist; expected a file in one that does", source=str(path))
        return path


PATH, OUTPUT_FILE = click.Path(path_type=Path), OutputFile()


def parse_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Read ``name=value`` pairs; a value that begins like a JSON list is one, everything else is text.

    Raises
    ------
    InputError
        If a pair has no name or value, or a name is given twice.
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not name or not equals:
            raise InputError(f"{pair!r} is not an option; expected name=value", source="-O")
        if name in options:
            raise InputError(f"option {name!r} is given twice; expected once", source="-O")
        value: Any = text.strip()
        if value.startswith("["):
            with located(name, source="-O"):
                try:
                    value = parse_json(value.encode(errors="surrogatepass"), MAX_KEYS)
                except InputError as error:
                    raise InputError(f"{shown(value)} is not a JSON list: {error}") from None
        options[name] = value
    return options


def exact_number(text: str) -> Fraction | None:
    """Read an exact number of at least 0 such as ``0.3``, ``1e-3`` or ``1/3``; None if it is none."""
    if not _NUMBER.fullmatch(text := text.strip()):
        return None
    try:
        return Fraction(text)
    except ZeroDivisionError:
        return None


def parse_solver_options(pairs: Sequence[str]) -> dict[str, str]:
    """Read ``name=value`` pairs of the solver's own options; the solver reads the values.

    Raises
    ------
    InputError
        If a pair has no name, or a name is given twice.
    """
    options: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not name or not equals:
            raise InputError(f"{pair!r} is not an option; expected name=value", source="-S")
        if name in options:
            raise InputError(f"option {name!r} is given twice; expected once", source="-S")
        options[name] = text
    return options


def not_nan(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Reject NaN, which is in no range and out of none."""
    if value is not None and isnan(value):
        raise click.BadParameter("nan is wrong; expected a number", ctx=ctx, param=param)
    return value


def parse_duration(text: str | None, option: str) -> float | None:
    """Read a duration such as ``60``, ``60 s`` or ``5 min``; a bare number is in seconds.

    Raises
    ------
    InputError
        If it is not a positive duration.
    """
    if text is None:
        return None
    seconds = re.fullmatch(r"\s*[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*", text) is not None
    try:
        return float(parse(f"{text} s" if seconds else text, UnitKind.TIME, allow_zero=False))
    except InputError as error:
        problem = error.problem.replace(shown(f"{text} s"), shown(text)) if seconds else error.problem
        wrong = problem.partition("; ")[0]
        raise InputError(f"{wrong}; expected a time such as 60 (seconds), '60 s' or '5 min'", source=option) from None


def libraries_on_stderr() -> AbstractContextManager[None]:
    """Send to stderr what libraries print on stdout, also from C, so that stdout has the result alone."""
    return stdout_to(2)


@contextmanager
def log_of_solver(path: str | None) -> Iterator[str | None]:
    """Where the solver writes its log: a file; for ``-`` a pipe whose text goes to stderr.

    Raises
    ------
    InputError
        If there is no name for a pipe on this system.
    """
    if path != "-":
        yield path
        return
    if not Path("/dev/fd").is_dir():
        raise InputError("'-' needs /dev/fd, which this system lacks; expected a file", source="--log-file")
    reading, writing = os.pipe()

    def pass_on() -> None:
        with open(reading, errors="replace") as lines:  # noqa: PTH123 - of a pipe
            for line in lines:
                print(line, end="", file=sys.stderr, flush=True)

    thread = Thread(target=pass_on, name="cwb-log", daemon=True)
    thread.start()
    try:
        yield f"/dev/fd/{writing}"
    finally:
        os.close(writing)
        thread.join(timeout=1.0)  # an abandoned solver still holds its end


@contextmanager
def progress_on_stderr(*, quiet: bool) -> Iterator[Progress]:
    """Show progress: a status line on a terminal, plain lines elsewhere, nothing if quiet."""
    if quiet:
        yield silent
        return
    if not sys.stderr.isatty():
        yield lambda message: echo(message, err=True)
        return
    from rich.text import Text

    with console(err=True).status("") as status:
        yield lambda message: status.update(Text(printable(message)))  # a text alone would be taken for markup


@contextmanager
def telling_on_stderr() -> Iterator[None]:
    """Show on stderr how far the loading of an instance is, where it takes long and nothing else is shown."""
    from ..core.budget import Budget
    from ..core.watch import watched

    with progress_on_stderr(quiet=False) as progress, watched(Budget(progress=progress)):
        yield


def limited(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--time-limit``, after which a command that leaves nothing half done is given up."""

    @wraps(command)
    def timed(*arguments: Any, time_limit: str | None, **given: Any) -> Any:
        from ..harness.clock import WallClock
        from ..harness.interrupt import within

        with within(WallClock(parse_duration(time_limit, "--time-limit"))):
            return command(*arguments, **given)

    return click.option("--time-limit", metavar="DURATION", help="Stop after this time: 60 (seconds), '5 min'.")(timed)


def plugged(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--plugin``, which makes known what Python files of the user's own declare, before anything else is read."""

    def plug(ctx: click.Context, param: click.Parameter, paths: tuple[str, ...]) -> None:
        del ctx, param
        if paths:
            from ..harness.plugins import plug_in

            for path in paths:
                plug_in(path)

    return click.option(
        "--plugin",
        multiple=True,
        type=click.Path(dir_okay=False),
        callback=plug,
        is_eager=True,
        expose_value=False,
        help="Python file with methods, formulations or solvers of your own.",
    )(command)
