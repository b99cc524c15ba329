"""The entry point.

Commands are imported when they are called; errors become one line and the documented exit status.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from ..core.errors import CwbError, ExitStatus

#: Command name to module and attribute.
COMMANDS = {
    "solve": "solve:solve",
    "compare": "compare:compare",
    "table": "table:table",
    "plot": "plot:plot",
    "report": "report:report",
    "check": "check:check",
    "simulate": "simulate:simulate",
    "repair": "repair:repair",
    "reproduce": "reproduce:reproduce",
    "polish": "polish:polish",
    "formulate": "formulate:formulate",
    "new-method": "new_method:new_method",
    "find-topology": "find_topology:find_topology",
    "show": "show:show",
    "list": "listing:listing",
    "import": "importing:importing",
    "export": "export:export",
    "export-instances": "export_instances:export_instances",
    "doctor": "doctor:doctor",
}


class LazyGroup(click.Group):
    """A group whose commands live in modules of their own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order of a user's work."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(import_module(f".{module}", __package__), attribute)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--debug", is_flag=True, help="Show a traceback where an error would be one line.")
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
    debug = "--debug" in arguments
    try:
        result: Any = cwb.main(args=arguments, prog_name="cwb", standalone_mode=False)
        status = int(result) if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        status = error.exit_code
    except click.ClickException as error:
        _say(error.format_message(), error.ctx if isinstance(error, click.UsageError) else None)
        status = error.exit_code
    except click.exceptions.Abort:
        status = 130
    except CwbError as error:
        if debug:
            raise
        _say(str(error))
        status = int(error.exit_status)
    except KeyboardInterrupt:
        _say("interrupted")
        status = 130
    except BrokenPipeError:
        status = int(ExitStatus.FAILURE)
        sys.stderr.close()
    except Exception as error:
        if debug:
            raise
        _say(f"internal error: {type(error).__name__}: {error} (--debug shows where)")
        status = int(ExitStatus.FAILURE)
    sys.exit(status)


def _say(message: str, ctx: click.Context | None = None) -> None:
    """Print one error line, and for a wrong use how to find the right one."""
    line = " ".join(message.split())
    hint = f" (see '{ctx.command_path} --help')" if ctx is not None else ""
    click.echo(f"cwb: error: {line}{hint}", err=True)
