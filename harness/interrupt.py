"""How a run is brought to its end: Ctrl-C, and a watch that breaks off what does not end by itself.

The first Ctrl-C and the time limit ask: methods look at their budget and finish with what they have. What does not look,
such as the building of a model, is broken off ``GRACE_S`` later by an exception that is raised wherever the main thread
is; so is a run that takes the machine's last memory. Native calls cannot be broken off; solvers have a guard of their
own (:mod:`~cwb.solvers.guard`).
"""

from __future__ import annotations

import _thread
import contextlib
import itertools
import logging
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from types import FrameType

from ..core.budget import Budget, Progress, silent
from ..core.effort import spending
from ..core.errors import OutOfTime
from ..core.watch import watched
from ..solvers import guard
from .clock import WallClock
from .environment import memory_bytes, spare_bytes

#: Seconds of the processor that a run has to end by itself when its time is up, more than a solver has.
GRACE_S = 2 * guard.GRACE_S

#: Seconds by the wall after which it is broken off, however few of them a busy machine gave it.
MOST_S = 5.0

#: How often the budget is looked at, and after how many looks the memory is.
_TICK_S = 0.05
_MEMORY_TICKS = 10

#: A run is broken off when it holds so many times the memory that the machine has left.
_MOST_TIMES = 20

#: Files whose functions are not broken off: half an import is none, the guard keeps its own limit, blocks are left in
#: order, and locks that are taken by hand are given back.
_LOCKING = (logging, queue, subprocess, tempfile, threading, weakref)
_WHOLE = (
    "<frozen importlib",
    guard.__file__,
    contextlib.__file__,
    __file__,
    *(str(module.__file__) for module in _LOCKING),
)

#: Nor is the compilation of kernels, which would leave numba's tables half filled for all that comes after.
_COMPILER = f"{os.sep}numba{os.sep}"


class BrokenOff(BaseException):
    """The run did not end by itself; like KeyboardInterrupt no error, so that nobody takes it for one.

    The message says why, where it was not the end of the budget.
    """


@contextlib.contextmanager
def stop_on_interrupt(stop: threading.Event) -> Iterator[None]:
    """Set the event on the first SIGINT of the block and raise KeyboardInterrupt on the second.

    Signals can be handled in the main thread only; elsewhere the block runs as it is.
    """
    with _interrupts(stop, None):
        yield


@contextlib.contextmanager
def broken_off(budget: Budget, grace_s: float | None = None, stop: threading.Event | None = None) -> Iterator[None]:
    """Set ``budget.stop`` on the first SIGINT, raise KeyboardInterrupt on the second, and watch over the time.

    Outside of the main thread the block runs as it is, with the limit that the method itself keeps.

    Parameters
    ----------
    budget : Budget
        Whose end is kept.
    grace_s : float, optional
        Seconds of the processor after it is exhausted at which the block is broken off; by default :data:`GRACE_S`.
    stop : threading.Event, optional
        What the first SIGINT sets, if it is not ``budget.stop``.

    Raises
    ------
    BrokenOff
        Anywhere in the block.
    """
    watch = _Watch(budget, GRACE_S if grace_s is None else grace_s)
    with _interrupts(stop or budget.stop, watch) as is_main:
        if is_main:
            watch.start()
        try:
            yield
        finally:
            watch.end()


@contextlib.contextmanager
def within(clock: WallClock, progress: Progress = silent, *, asks: bool = False) -> Iterator[Budget]:
    """Hold what a command does beside runs to a time limit and to the memory that is left.

    Parameters
    ----------
    clock : WallClock
        Knows the limit.
    progress : callable
        Shows lines of what is loaded.
    asks : bool
        Whether the block looks at the budget, and ends by itself also at the first Ctrl-C; else it is broken off at
        once, and the first Ctrl-C raises KeyboardInterrupt.

    Raises
    ------
    OutOfTime
        If the block was broken off.
    """
    budget = Budget(clock.limit_s, clock=clock, progress=progress, keep=clock.keep, spare_bytes=spare_bytes)
    stop = budget.stop if asks else threading.Event()
    if not asks:
        stop.set()
    try:
        with watched(budget), spending(budget), broken_off(budget, None if asks else 0.0, stop):
            yield budget
    except BrokenOff as error:
        raise OutOfTime(str(error) or budget.why_exhausted) from None


class _Watch:
    """Interrupts the main thread when a budget has been exhausted for so long, until it is told that the block has ended."""

    def __init__(self, budget: Budget, grace_s: float) -> None:
        self._budget, self._grace_s = budget, grace_s
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._due = False
        self.why = ""

    def start(self) -> None:
        threading.Thread(target=self._run, name="cwb-watch", daemon=True).start()

    def _run(self) -> None:
        asked: tuple[float, float] | None = None
        for tick in itertools.count(1):
            if self._ended.wait(_TICK_S):
                return
            if tick % _MEMORY_TICKS == 0:
                self.why = self.why or _memory_is_short()
            if self.why:
                self.interrupt()
            if not self._budget.exhausted:
                continue
            now = time.monotonic(), _used_s()
            asked = now if asked is None else asked
            if now[1] - asked[1] >= self._grace_s or now[0] - asked[0] >= MOST_S:
                self.interrupt()

    def interrupt(self) -> None:
        """Interrupt the main thread; where it must not be broken off, nothing comes of it."""
        with self._lock:
            if not self._ended.is_set():
                self._due = True
                _thread.interrupt_main()

    def end(self) -> None:
        """After this nothing is interrupted; what is pending is ignored."""
        with self._lock:
            self._ended.set()

    def took(self) -> bool:
        """Whether an interrupt is the watch's own, and no longer waits to be taken."""
        due, self._due = self._due, False
        return due

    def has_ended(self) -> bool:
        return self._ended.is_set()


def _memory_is_short() -> str:
    """Return how much the run holds and how little is left, if it is too little; empty if not, or if nobody knows."""
    held, spare = memory_bytes(os.getpid()), spare_bytes()
    if held is None or spare is None or held < _MOST_TIMES * spare:
        return ""
    return f"the run held {held / 2**30:.1f} GiB of memory, and the machine had {spare / 2**30:.1f} GiB left"


def _used_s() -> float:
    """Processor seconds of the main thread; by the wall where the system does not tell them."""
    main = threading.main_thread().ident
    if main is None or not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic()
    return time.clock_gettime(time.pthread_getcpuclockid(main))


@contextlib.contextmanager
def _interrupts(stop: threading.Event, watch: _Watch | None) -> Iterator[bool]:
    """Handle SIGINT in the block, that of the user and that of the watch."""
    if threading.current_thread() is not threading.main_thread():
        yield False
        return

    def handle(number: int, frame: FrameType | None) -> None:
        del number
        if watch is not None and watch.took():
            if not watch.has_ended() and _may_end(frame):
                logging.disable(logging.ERROR)  # nobody wants to read which rule of a model was broken off
                raise BrokenOff(watch.why)
        elif stop.is_set():
            raise KeyboardInterrupt
        else:
            stop.set()

    previous, silenced = signal.signal(signal.SIGINT, handle), logging.root.manager.disable
    try:
        yield True
    finally:
        signal.signal(signal.SIGINT, previous)
        logging.disable(silenced)


def _may_end(frame: FrameType | None) -> bool:
    """Whether nothing is under way that has to be whole."""
    while frame is not None:
        place = frame.f_code.co_filename
        if place.startswith(_WHOLE) or _COMPILER in place:
            return False
        frame = frame.f_back
    return True
