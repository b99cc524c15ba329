"""Entry point of the command line.

Commands are imported when called; an error becomes one line and the documented exit status.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from ..core.errors import CwbError, ExitStatus, one_of
from .signals import INTERRUPTED, stop_on_signals
from .streams import StdoutError, discard_stdout, echo, open_closed
from .usage import usage_text

#: Command name to module and attribute.
COMMANDS = {
    "solve": "solve:solve",
    "compare": "compare:compare",
    "table": "table:table",
    "plot": "plot:plot",
    "view": "view:view",
    "report": "report:report",
    "check": "check:check",
    "simulate": "simulate:simulate",
    "run": "run:run",
    "train": "train:train",
    "repair": "repair:repair",
    "resilience": "resilience:resilience",
    "reproduce": "reproduce:reproduce",
    "polish": "polish:polish",
    "formulate": "formulate:formulate",
    "new-method": "new_method:new_method",
    "find-topology": "find_topology:find_topology",
    "select": "select:select",
    "calibrate": "calibrate:calibrate",
    "predict": "predict:predict",
    "advise": "advise:advise",
    "show": "show:show",
    "list": "listing:listing",
    "import": "importing:importing",
    "export": "export:export",
    "export-instances": "export_instances:export_instances",
    "cite": "cite:cite",
    "doctor": "doctor:doctor",
    "warm": "warm:warm",
}


class _CarriedException(Exception):
    """An interrupt or a failed stream on its way past click, which would print a message of its own."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class LazyGroup(click.Group):
    """Group of commands, each imported from its own module when called."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, OSError) as error:
            raise _CarriedException(error) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order of a user's work."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS and ctx.resilient_parsing:  # at the tab key
            return None
        if cmd_name not in COMMANDS:
            raise click.UsageError(f"no such command {cmd_name!r}{one_of(cmd_name, COMMANDS)}", ctx)
        module, attribute = COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(import_module(f".{module}", __package__), attribute)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
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
    with stop_on_signals() as received:
        status = _run_command(arguments)
    if received and status == INTERRUPTED:
        status = 128 + received[-1]
    discard_stdout()
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
    """Report an error and return its exit status."""
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
