"""Entry point of the command line.

Commands are imported when called; an error becomes one line (place, value, expectation) and the documented exit status.
"""

import gc
import re
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from ..core.errors import CwbError, ExitStatus, did_you_mean, one_of
from .streams import INTERRUPTED, StdoutError, echo, flush_streams, open_closed, stop_on_signals

#: Commands by what a user wants to do, as ``name=module``, or ``name=module:function`` if that is called otherwise.
_PLACES = {
    "Design": "solve=solve select=machines polish=schedules find-topology=find_topology repair=failures",
    "Understand": "advise=machines predict=machines calibrate=machines train=train resilience=failures show=show "
    "list=listing:listing check=schedules simulate=schedules view=schedules",
    "Compare": "compare=compare table=records plot=records report=records reproduce=reproduce cite=reproduce "
    "library=schedules",
    "Exchange": "import=importing:importing export=export export-instances=export run=schedules",
    "Extend": "formulate=formulate new-method=formulate doctor=doctor warm=doctor",
}
GROUPS = {title: dict(entry.split("=") for entry in entries.split()) for title, entries in _PLACES.items()}
COMMANDS = {name: place for group in GROUPS.values() for name, place in group.items()}


class _CarriedException(Exception):
    """An interrupt or a failed stream on its way past click, which would print a message of its own."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


class LazyGroup(click.Group):
    """Group of commands, each imported from its own module when called."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, OSError) as error:
            raise _CarriedException(error) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order of their groups."""
        del ctx
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for every group of commands."""
        for title, group in GROUPS.items():
            commands = {name: self.get_command(ctx, name) for name in group}
            room = formatter.width - 6 - max(map(len, COMMANDS))
            rows = [(name, command.get_short_help_str(room)) for name, command in commands.items() if command]
            with formatter.section(title):
                formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS and ctx.resilient_parsing:  # at the tab key
            return None
        if cmd_name not in COMMANDS:
            raise click.UsageError(f"no such command {cmd_name!r}{one_of(cmd_name, COMMANDS)}", ctx)
        module, _, function = COMMANDS[cmd_name].partition(":")
        code = import_module(f".{module}", __package__)
        command: click.Command = getattr(code, function or cmd_name.replace("-", "_"))
        return command


@click.group(cls=LazyGroup, context_settings=_SETTINGS)
@click.option("--debug", is_flag=True, help="Show tracebacks instead of one-line errors.")
@click.version_option(package_name="cwb")
@click.pass_context
def cwb(ctx: click.Context, debug: bool) -> None:
    """Optimization models for collective communication: solve, compare, verify, report.

    \b
    cwb solve --model libra instances/4d.json
    cwb compare suites/paper-libra.toml -o results/
    cwb table libra-perf results/
    """
    ctx.obj = {"debug": debug}


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with the documented status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    open_closed()
    gc.set_threshold(20_000, 20, 50)  # a tenth of a short command went to cycles of what lives on
    with stop_on_signals() as signals:
        status = _run_command(arguments)
    if signals and status == INTERRUPTED:
        status = 128 + signals[-1]
    flush_streams()
    gc.freeze()  # nobody waits until a large model has been looked through for garbage
    sys.exit(status)


def _run_command(arguments: list[str]) -> int:
    """Run a command, report an error in one line, and return the exit status."""
    debug = "--debug" in arguments
    try:
        result: Any = cwb.main(args=arguments, prog_name="cwb", standalone_mode=False)
        return int(result) if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        _print_error(usage_text(error), error.ctx if isinstance(error, click.UsageError) else None)
        return error.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        return _report_failure(error, debug=False)
    except _CarriedException as ended:
        return _report_failure(ended.error, debug=debug)
    except Exception as error:
        return _report_failure(error, debug=debug)


def _report_failure(error: BaseException, *, debug: bool) -> int:
    if isinstance(error, KeyboardInterrupt | click.exceptions.Abort):
        _print_error("interrupted")
        return INTERRUPTED
    if debug:
        raise error
    if isinstance(error, StdoutError) and error.seen_enough:
        return int(error.exit_status)
    if isinstance(error, CwbError):
        _print_error(str(error))
        return int(error.exit_status)
    if isinstance(error, OSError):
        where = "" if error.filename is None else f"{error.filename}: "
        _print_error(f"{where}{(error.strerror or str(error)).lower()}")
        return int(ExitStatus.FAILURE)
    _print_error(f"internal error: {type(error).__name__}: {error} (--debug shows where)")
    return int(ExitStatus.FAILURE)


def _print_error(message: str, ctx: click.Context | None = None) -> None:
    """Print an error in one line, and for wrong usage a hint at the help."""
    line = " ".join(message.split())
    hint = f" (see '{ctx.command_path} --help')" if ctx is not None and "--help" not in line else ""
    echo(f"cwb: error: {line}{hint}", err=True)


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
_EXPECTED = {"integer": "a whole number", "float": "a number"}


def usage_text(error: click.ClickException) -> str:
    """Return click's error as one line."""
    match error:
        case click.MissingParameter(param=click.Parameter() as param):
            return f"{_place(param)}: missing; expected {_expected_text(param)}"
        case click.BadParameter(param=click.Parameter() as param):
            return f"{_place(param)}: {_wrong_value_text(error.message, param)}"
        case click.NoSuchOption(option_name=name):
            params = error.ctx.command.get_params(error.ctx) if error.ctx else []
            names = [opt for param in params for opt in param.opts if opt.startswith("--")]
            return f"{name}: no such option{did_you_mean(name, names) or one_of(name, names)}"
        case click.UsageError():
            return _unknown_word_text(error)
        case _:
            return error.format_message()


def _place(param: click.Parameter) -> str:
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.human_readable_name


def _expected_text(param: click.Parameter) -> str:
    """Describe the accepted values of a parameter."""
    match param.type:
        case click.Choice(choices=choices):
            return f"one of {', '.join(map(str, choices))}"
        case click.IntRange() | click.FloatRange() as kind:
            what = "a whole number" if isinstance(kind, click.IntRange) else "a number"
            least = "" if kind.min is None else f"{'above' if kind.min_open else 'of at least'} {kind.min:,}"
            most = "" if kind.max is None else f"{'below' if kind.max_open else 'at most'} {kind.max:,}"
            return f"{what} {' and '.join(filter(None, (least, most)))}".strip()
        case click.Path() | click.File():
            return "a file or folder" if param.nargs != 1 else "a file"
        case kind:
            if isinstance(param, click.Argument) and param.name in _ARGUMENTS:
                return _ARGUMENTS[param.name]
            help_text = getattr(param, "help", None)
            return _EXPECTED.get(kind.name, "a value") + (
                f": {help_text.partition('. ')[0].rstrip('.')}" if help_text else ""
            )


def _wrong_value_text(message: str, param: click.Parameter) -> str:
    """Return the value and the expectation, if click's message has them."""
    if match := _RANGE.match(message) or _TYPE.match(message):
        return f"{match['value']} is wrong; expected {_expected_text(param)}"
    if (match := _CHOICE.match(message)) and isinstance(param.type, click.Choice):
        choices = [str(choice) for choice in param.type.choices]
        return f"{match['value']} is unknown{one_of(match['value'], choices)}"
    return message


def _unknown_word_text(error: click.UsageError) -> str:
    """Describe an error about unknown or missing commands and extra arguments."""
    if (match := _EXTRA.match(error.message)) and error.ctx is not None:
        names = [param.human_readable_name for param in error.ctx.command.params if isinstance(param, click.Argument)]
        after = f"nothing after {names[-1]}" if names else "options alone"
        return f"{match['values']!r}: unexpected; expected {after}"
    if isinstance(group := error.ctx.command if error.ctx else None, click.Group) and error.ctx is not None:
        commands = group.list_commands(error.ctx)
        if error.message.startswith("Missing command"):
            return f"COMMAND: missing; expected one of {', '.join(commands)}"
        if match := re.match(r"No such command '(?P<name>.*)'", error.message):
            return f"no such command {match['name']!r}{one_of(match['name'], commands)}"
    return error.message
