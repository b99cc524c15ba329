"""Options shared by commands: ``-O``, durations, changes of networks, and progress on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from math import isnan
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from ..core.budget import Budget, Progress, ignore, limited_by
from ..core.errors import InputError, locate_errors, locate_os_errors, show_value
from ..core.files import is_replaceable
from ..core.option_names import PLACEMENTS, WrongUse, option_names
from ..core.stdout import stdout_to
from ..core.strict_json import parse_json
from ..core.text import escape_unprintable
from ..core.units import UnitKind, parse
from . import completion
from .streams import console, echo

if TYPE_CHECKING:
    from ..core.instance import Instance

Edits: TypeAlias = tuple[tuple[str, str], ...]  #: Changes of a network: options and their values.

_Command = TypeVar("_Command", bound=Callable[..., Any])

MAX_KEYS = 1000  #: Keys of an object in the value of an option.


class OutputFile(click.Path):
    """Path of an output file.

    A folder, or a file in a folder that does not exist, is rejected before any computation. So is a file that cwb did
    not write, without ``--force``, unless it is appended to.
    """

    def __init__(self, *, appended: bool = False) -> None:
        super().__init__(path_type=Path)
        self.name, self.appended = "file", appended

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert and check a path."""
        path: Any = super().convert(value, param, ctx)
        with locate_os_errors("cannot be written", show_value(str(path))):  # such as a name that is too long
            is_folder, has_folder = path.is_dir(), path.parent.is_dir()
        if is_folder:
            raise InputError("is a directory", source=str(path))
        if not has_folder:
            raise InputError("its folder does not exist; expected a file in one that does", source=str(path))
        if not self.appended:
            self.check_replaceable(path)
        return path

    def check_replaceable(self, path: Path) -> None:
        """Reject a file that cwb did not write, unless the command has ``--force``."""
        context = click.get_current_context()
        writes_instance = not _INSTANCE_WRITERS.isdisjoint(context.command_path.split())
        with locate_os_errors("cannot be written", show_value(str(path))):
            if not context.meta.get(_FORCE) and not is_replaceable(path, with_instance=writes_instance):
                raise InputError("cwb did not write this file; expected another name, or --force", source=str(path))


class Duration(click.ParamType[float]):
    """Duration such as ``60`` or ``5 min``, converted to seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert a duration to seconds."""
        del ctx
        option = max(param.opts, key=len) if param is not None else ""
        return parse_duration(value, option) if isinstance(value, str) else value


class Command(click.Command):
    """Command with ``--force`` if it writes files, whose errors name options, also those of Python verbs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if any(isinstance(param.type, OutputFile) and not param.type.appended for param in self.params):
            self.params.append(_force)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with option_names():
            try:
                return super().invoke(ctx)
            except WrongUse as error:
                raise click.UsageError(str(error), ctx) from None


PATH, OUTPUT_FILE, DURATION = click.Path(path_type=Path), OutputFile(), Duration()

_INSTANCE_WRITERS = {"import", "calibrate", "find-topology"}  #: Commands whose outputs are instances.
_FORCE = "cwb.force"  #: Key of the context where ``--force`` is kept.

_force = click.Option(
    ["--force"],
    is_flag=True,
    is_eager=True,  # read before any path
    expose_value=False,
    callback=lambda ctx, param, value: ctx.meta.setdefault(_FORCE, value),
    help="Overwrite an output file that cwb did not write.",
)

placement_option = click.option(
    "--placement", type=click.Choice(PLACEMENTS), default="out", help="Out-of-place, in-place, or both."
)

quiet_flag = click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")


def duration_option(name: str, text: str, default: str | None = None) -> Callable[[_Command], _Command]:
    """Add an option for a duration, which the command receives in seconds as ``NAME_s``."""
    parameter = f"{name.replace('-', '_')}_s"
    return click.option(f"--{name}", parameter, type=DURATION, metavar="DURATION", default=default, help=text)


def collective_option(text: str) -> Callable[[_Command], _Command]:
    """Add ``--collective``, whose names the shell completes."""
    return click.option("--collective", metavar="NAME", shell_complete=completion.complete("collectives"), help=text)


def folder_option(name: str, text: str) -> Callable[[_Command], _Command]:
    """Add ``--output`` for a folder with a default name."""
    folder = click.Path(file_okay=False, path_type=Path)
    return click.option("--output", "-o", type=folder, default=Path(name), help=text)


def format_option(*formats: str, otherwise: str) -> Callable[[_Command], _Command]:
    """Add ``--format``, by default that of the output's suffix."""
    text = f"By default that of the output's suffix, else {otherwise}."
    return click.option("--format", "-f", "form", type=click.Choice(formats), help=text)


time_limit = duration_option("time-limit", "Time limit such as 60 (seconds) or '5 min'.")


def combine(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Combine options into one decorator; help lists them in this order."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def json_flag(what: str) -> Callable[[_Command], _Command]:
    """Add ``--json``; ``what`` names its output in the help."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print {what}.")


def print_found(result: Any, show: Callable[[Any], object], *, as_json: bool) -> None:
    """Print what a verb has found, as one JSON object or as ``show`` prints it."""
    if as_json:
        echo(json.dumps(result if isinstance(result, dict) else result.to_json(), allow_nan=False))
    else:
        show(result)


def methods_option(text: str, metavar: str = "LIST", **more: Any) -> Callable[[_Command], _Command]:
    """Add ``--models``, which is also called ``--methods``."""
    return click.option("--models", "--methods", "models", metavar=metavar, help=text, **more)


def options_of(method: str, *names: str, text: str = "An option of {}.", **more: Any) -> Callable[[_Command], _Command]:
    """Add ``-O`` for options of a method, which the command receives as a mapping."""
    return click.option(
        *names,
        "-O",
        "options",
        multiple=True,
        metavar="NAME=VALUE",
        callback=lambda ctx, param, pairs: parse_options(pairs or ()),
        help=text.format(method),
        **more,
    )


def parse_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse ``name=value`` pairs; a value that begins like a JSON list is parsed as one, others are text."""
    options: dict[str, Any] = {}
    for name, text in parse_pairs(pairs, "-O", lambda name: name.replace("-", "_")).items():
        options[name] = text
        if text.startswith("["):
            with locate_errors(name, source="-O"):
                try:
                    options[name] = parse_json(text.encode(errors="surrogatepass"), MAX_KEYS)
                except InputError as error:
                    raise InputError(f"{show_value(text)} is not a JSON list: {error}") from None
    return options


def parse_pairs(pairs: Sequence[str], source: str, spell: Callable[[str], str] = str) -> dict[str, str]:
    """Parse ``name=value`` pairs as text."""
    options: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = spell(name.strip())
        if not name or not equals:
            raise InputError(f"{pair!r} is no pair; expected name=value", source=source)
        if name in options:
            raise InputError(f"{name!r} is given twice; expected once", source=source)
        options[name] = text.strip()
    return options


def not_nan(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Reject NaN, which click's range check does not."""
    if value is not None and isnan(value):
        raise click.BadParameter("nan is invalid; expected a number", ctx=ctx, param=param)
    return value


def parse_duration(text: str | None, option: str) -> float | None:
    """Convert a duration such as ``60``, ``60 s`` or ``5 min`` to seconds; a bare number is in seconds."""
    if text is None:
        return None
    expected = "a time such as 60 (seconds), '60 s' or '5 min'"
    return float(parse(text, UnitKind.TIME, allow_zero=False, bare_unit="s", expected=expected, source=option))


@contextmanager
def working_on_stderr(*, quiet: bool) -> Iterator[Progress]:
    """Show progress and the output of libraries on stderr; see :func:`progress_on_stderr`."""
    with libraries_on_stderr(), progress_on_stderr(quiet=quiet) as progress:
        yield progress


def libraries_on_stderr() -> AbstractContextManager[None]:
    """Redirect stdout of libraries, including C code, to stderr, so that stdout has only the result."""
    return stdout_to(2)


@contextmanager
def log_of_solver(path: str | None) -> Iterator[str | None]:
    """Yield the path of the solver's log; for ``-``, of a pipe that is copied to stderr.

    Raises
    ------
    InputError
        If this system has no named pipes.
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
        yield ignore
        return
    if not sys.stderr.isatty():
        yield lambda message: echo(message, err=True)
        return
    from rich.text import Text

    with console(err=True).status("") as status:
        yield lambda message: status.update(Text(escape_unprintable(message)))  # a text alone would be taken for markup


@contextmanager
def loading_progress_on_stderr() -> Iterator[None]:
    """Show on stderr the progress of loading an instance, if it is slow and nothing else is shown."""
    with progress_on_stderr(quiet=False) as progress, limited_by(Budget(progress=progress)):
        yield


def time_limit_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--time-limit`` to a command that leaves nothing unfinished when it is stopped."""

    @wraps(command)
    def with_time_limit(*arguments: Any, time_limit_s: float | None, **kwargs: Any) -> Any:
        from ..harness.clock import WallClock
        from ..harness.interrupt import command_limits

        with command_limits(WallClock(time_limit_s)):
            return command(*arguments, **kwargs)

    return duration_option("time-limit", "Stop after this time: 60 (seconds), '5 min'.")(with_time_limit)


def plugin_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--plugin``: Python files of the user whose declarations are registered before anything else is read."""

    def plug(ctx: click.Context, param: click.Parameter, paths: tuple[str, ...]) -> None:
        del ctx, param
        if paths:
            from ..harness.registry import load_plugin

            for path in paths:
                load_plugin(path)

    return click.option(
        "--plugin",
        multiple=True,
        type=click.Path(dir_okay=False),
        callback=plug,
        is_eager=True,
        expose_value=False,
        help="Python file with methods, formulations, solvers or collectives of your own.",
    )(command)


network_options = combine(
    click.option("--ranks", metavar="RANKS", help="Keep only these ranks of the network, such as 0-3 or 0,2,8-11."),
    click.option("--without-link", multiple=True, metavar="A:B", help="Remove the links between two nodes."),
    click.option("--without-rank", multiple=True, metavar="NODE", help="Same as --without-node."),
    click.option(
        "--without-node",
        multiple=True,
        metavar="NODE",
        help="Remove a rank, switch or NIC with its links; the collective is that of the other ranks.",
    ),
    click.option(
        "--link",
        multiple=True,
        metavar="A:B=RATE",
        help="Set the bandwidth of the links between two nodes (a:b=25GB/s, or a:b=50% of what each has), and latency"
        " (a:b=25GB/s,1us), or add them.",
    ),
)


def network_edits(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add options that change the network; the command receives ``edits``, pairs of an option and its value."""

    @wraps(command)
    def with_edits(*args: Any, ranks: str | None, rates: str | None, **kwargs: Any) -> Any:
        options = ("--without-link", "--without-node", "--without-rank", "--link")
        edits = [(option, text) for option in options for text in kwargs.pop(option[2:].replace("-", "_"))]
        single = [(option, text) for option, text in (("--ranks", ranks), ("--rates", rates)) if text is not None]
        return command(*args, edits=(*edits, *single), **kwargs)

    rating = click.option("--rates", type=click.Choice(["nominal", "effective"]), help="Rates of a generated machine.")
    return network_options(rating(with_edits))


def load_edited(what: str, edits: Edits) -> Instance:
    """Load an instance and change its network."""
    from ..instances import load
    from ..instances.edits import Edit, edit_instance

    return edit_instance(load(what), [Edit(*edit) for edit in edits])
