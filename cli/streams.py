"""stdout and stderr: everything that is printed goes through here.

What comes from files cannot tell a terminal to do anything, since it is printed escaped; and a stream that is closed or
full neither loses a file nor ends in an internal error.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import CwbError, ExitStatus
from ..core.text import printable

if TYPE_CHECKING:
    from rich.console import Console


class StdoutError(CwbError):
    """What was to be printed on stdout was not taken."""

    exit_status = ExitStatus.FAILURE

    def __init__(self, error: OSError) -> None:
        reason = "is closed" if error.errno == errno.EBADF else (error.strerror or "cannot be written").lower()
        super().__init__(f"standard output: {reason}")
        #: Whether its reader has ended, who has seen enough.
        self.seen_enough = error.errno == errno.EPIPE


def open_closed() -> None:
    """Let no file that is opened later take the number of a standard stream that was closed.

    In the place of stdout is then something that cannot be written to, and is told as such; what goes to a closed
    stderr is lost.
    """
    for descriptor, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)  # it gets the lowest number that is free
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # where the terminal lacks a character


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text, escaped.

    Parameters
    ----------
    text : object
        One or more lines.
    err : bool
        Whether on stderr, where nothing that fails matters.
    nl : bool
        Whether a newline follows.

    Raises
    ------
    StdoutError
        If stdout does not take it.
    """
    with _taken(err=err):
        click.echo(printable(str(text), lines=True), err=err, nl=nl)


@contextmanager
def _taken(*, err: bool) -> Iterator[None]:
    """Report that stdout has not taken what the block prints; of stderr nobody can be told."""
    try:
        yield
    except OSError as error:
        if not err:
            raise StdoutError(error) from None


def console(*, err: bool = False) -> Console:
    """A console for tables, which takes no text for markup and prints everything escaped."""
    from rich.console import Console

    class Escaping(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            with _taken(err=err):
                super().print(*map(_Escaped, objects), **options)

    return Escaping(stderr=err, highlight=False, markup=False, emoji=False)


class _Escaped:
    """What a console prints, with the text in it escaped; a console's own control codes stay."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: Any) -> Iterable[Any]:
        from rich.segment import Segment

        for segment in console.render(self._inner, options):
            safe = segment.control or segment.text == printable(segment.text, lines=True)
            yield segment if safe else Segment(printable(segment.text, lines=True), segment.style)


def give_up() -> None:
    """Throw away what a stream has not taken, so that the end of the program does not stumble over it."""
    for descriptor, stream, standard in ((1, sys.stdout, sys.__stdout__), (2, sys.stderr, sys.__stderr__)):
        try:
            stream.flush()
        except (OSError, ValueError):
            if stream is standard or standard is None:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
