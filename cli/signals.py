"""Handling of SIGTERM and SIGHUP as of Ctrl-C: stop runs, remove claims and temporary folders."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

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
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        at_interrupt = signal.getsignal(signal.SIGINT)
        if not callable(at_interrupt):  # of a program in the background, which ignores Ctrl-C
            raise KeyboardInterrupt
        at_interrupt(number, frame)

    taken = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, handle)
    try:
        yield received
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
