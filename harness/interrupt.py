"""Ctrl-C as a request: the first asks the run to finish with what it has, the second ends it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_interrupt(stop: threading.Event) -> Iterator[None]:
    """Set the event on the first SIGINT of the block and raise KeyboardInterrupt on the second.

    Signals can be handled in the main thread only; elsewhere the block runs as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        del number, frame
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
