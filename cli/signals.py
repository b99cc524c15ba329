"""SIGTERM and SIGHUP end a command as Ctrl-C does: what runs is stopped, and claims and temporary folders are removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Exit status after Ctrl-C; after another signal it is 128 and the signal's number.
INTERRUPTED = 128 + signal.SIGINT

#: By which batch systems and closed terminals end programs, where the system has them.
_SIGNALS = [signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if name in signal.Signals.__members__]


@contextmanager
def stopped_by_signals() -> Iterator[list[int]]:
    """Let what is done at Ctrl-C also be done at SIGTERM and SIGHUP, unless somebody has them ignored or handled.

    Yields
    ------
    list of int
        The signals that were received, as they come.
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
