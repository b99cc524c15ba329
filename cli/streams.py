"""Standard streams, escaped and safe if closed; signals that end a program.

Text is printed escaped, so that text from files cannot send control codes to the terminal. A closed or full stream
neither loses a file nor causes an internal error. SIGTERM and SIGHUP stop a command as Ctrl-C does.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import CwbError, ExitStatus
from ..core.text import escape_unprintable

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 160  #: Letters of a line where the output is no terminal.


class StdoutError(CwbError):
    """Failed write to stdout."""

    exit_status = ExitStatus.FAILURE

    def __init__(self, error: OSError) -> None:
        reason = "is closed" if error.errno == errno.EBADF else (error.strerror or "cannot be written").lower()
        super().__init__(f"standard output: {reason}")
        self.seen_enough = error.errno == errno.EPIPE  #: Whether its reader has ended, who has seen enough.


def open_closed() -> None:
    """Reopen standard streams that were closed, so that no file opened later gets their descriptors.

    Reading a closed stdin fails, writing to a closed stdout fails and is reported; output to a closed stderr is lost.
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
    err : bool
        True for stderr, where failures are ignored.
    """
    with _report_stdout_errors(err=err):
        click.echo(escape_unprintable(str(text), lines=True), err=err, nl=nl)


def notice(text: object) -> None:
    """Print a notice to the user on stderr."""
    echo(f"cwb: {text}", err=True)


@contextmanager
def _report_stdout_errors(*, err: bool) -> Iterator[None]:
    """Raise StdoutError if printing to stdout fails; ignore failures of stderr."""
    try:
        yield
    except OSError as error:
        if not err:
            raise StdoutError(error) from None


def console(*, err: bool = False) -> Console:
    """Return a console for tables that interprets no markup and escapes everything."""
    from rich.console import Console

    class Escaping(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            with _report_stdout_errors(err=err):
                super().print(*map(_EscapedRenderable, objects), **options)

    return Escaping(stderr=err, highlight=False, markup=False, emoji=False)


def table_console(width: int = WIDTH) -> Console:
    """Return a console for wide tables; if it is no terminal, lines have at least ``width`` characters."""
    terminal = console()
    if not terminal.is_terminal:
        terminal.width = max(terminal.width, width)
    return terminal


class _EscapedRenderable:
    """Renderable whose text is escaped, while the console's own control codes are kept."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: Any) -> Iterable[Any]:
        from rich.segment import Segment

        for segment in console.render(self._inner, options):
            safe = segment.control or segment.text == escape_unprintable(segment.text, lines=True)
            yield segment if safe else Segment(escape_unprintable(segment.text, lines=True), segment.style)


def flush_streams() -> None:
    """Flush stdout and stderr, discarding what cannot be written, so that the interpreter does not fail at exit."""
    for descriptor, stream, standard in ((1, sys.stdout, sys.__stdout__), (2, sys.stderr, sys.__stderr__)):
        try:
            stream.flush()
        except (OSError, ValueError):
            if stream is standard or standard is None:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)


INTERRUPTED = 128 + signal.SIGINT  #: Exit status after Ctrl-C; after another signal it is 128 and the signal's number.

#: By which batch systems and closed terminals end programs, where the system has them.
_SIGNALS = [signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if name in signal.Signals.__members__]


@contextmanager
def stop_on_signals() -> Iterator[list[int]]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, unless they are ignored or already handled.

    Yields
    ------
    list of int
        Signals received so far, in order.
    """
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return

    def handle(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        at_interrupt = signal.getsignal(signal.SIGINT)
        if not callable(at_interrupt):  # of a program in the background, which ignores Ctrl-C
            raise KeyboardInterrupt
        at_interrupt(number, frame)

    numbers = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, handle)
    try:
        yield signals
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
