"""Termination of a run: Ctrl-C, and a watchdog that interrupts code that does not end by itself.

The first Ctrl-C and the time limit are requests: methods check their budget and finish with their current results.
Code that does not check it, such as the building of a model, is interrupted ``GRACE_S`` later by an exception
raised wherever the main thread is; so is a run that takes the machine's last memory. Native calls cannot be
interrupted; solvers have their own guard (:mod:`~cwb.solvers.guard`).
"""

import _thread
import _weakrefset
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

from ..core.budget import Budget, Progress, ignore, limited_by
from ..core.errors import OutOfTime
from ..solvers import guard
from .clock import WallClock
from .environment import memory_bytes, spare_bytes

#: Seconds of the processor that a run has to end by itself when its time is up, more than a solver has.
GRACE_S = 2 * guard.GRACE_S

MOST_S = 5.0  #: Seconds by the wall after which it is broken off, however few of them a busy machine gave it.

#: How often the budget is looked at, and after how many looks the memory is.
_TICK_S = 0.05
_MEMORY_TICKS = 10

_MOST_TIMES = 20  #: A run is broken off when it holds so many times the memory that the machine has left.

#: Files whose functions are not broken off: half an import is none, the guard keeps its own limit, blocks are left in
#: order, and locks that are taken by hand are given back. They are known by their names on the stack, since most are
#: not cwb's, and no context or decorator of cwb's can mark them. The file is all that a frame says of whose code it is.
_LOCKING = (logging, queue, subprocess, tempfile, threading, weakref, _weakrefset)
_WHOLE = (
    "<frozen importlib",
    guard.__file__,
    contextlib.__file__,
    __file__,
    *(str(module.__file__) for module in _LOCKING),
)

#: Nor is the compilation of kernels, which would leave numba's tables half filled for all that comes after.
_COMPILER = f"{os.sep}numba{os.sep}"


class RunInterrupted(BaseException):
    """The run was interrupted; like KeyboardInterrupt no Exception, so that no handler catches it.

    The message states the reason, unless it was the end of the budget.
    """


@contextlib.contextmanager
def stop_on_interrupt(stop: threading.Event) -> Iterator[None]:
    """Set the event on the first SIGINT in the block; raise KeyboardInterrupt on the second.

    Only the main thread can handle signals; elsewhere the block runs unchanged.
    """
    with _interrupts(stop, None):
        yield


@contextlib.contextmanager
def time_limited(budget: Budget, grace_s: float | None = None, stop: threading.Event | None = None) -> Iterator[None]:
    """Set ``budget.stop`` on the first SIGINT, raise KeyboardInterrupt on the second, and enforce the budget.

    Outside of the main thread the block runs unchanged, limited only by the method itself. ``grace_s`` are processor
    seconds after the budget is exhausted until the interruption, by default :data:`GRACE_S`; ``stop`` is what the first
    SIGINT sets instead of ``budget.stop``.
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
def command_limits(clock: WallClock, progress: Progress = ignore, *, asks: bool = False) -> Iterator[Budget]:
    """Limit a command's work outside of runs to a time limit and the available memory; interrupted, it is OutOfTime.

    With ``asks`` the block checks the budget, and ends by itself even on the first Ctrl-C; otherwise it is interrupted
    at once, and the first Ctrl-C raises KeyboardInterrupt.
    """
    budget = clock.budget(progress=progress)
    stop, doing = (budget.stop, "") if asks else (threading.Event(), "reading the input")
    if not asks:
        stop.set()
    try:
        with limited_by(budget, doing), time_limited(budget, None if asks else 0.0, stop):
            yield budget
    except RunInterrupted as error:
        raise OutOfTime(str(error) or budget.why_exhausted) from None


class _Watch:
    """Watchdog that interrupts the main thread some time after a budget is exhausted, until ended."""

    def __init__(self, budget: Budget, grace_s: float) -> None:
        self._budget, self._grace_s = budget, grace_s
        self.ended, self._lock = threading.Event(), threading.Lock()
        self.due = False  #: Whether it has begun to interrupt; from then on every SIGINT counts as its own.
        self.why = ""

    def start(self) -> None:
        threading.Thread(target=self._run, name="cwb-watch", daemon=True).start()

    def _run(self) -> None:
        since: tuple[float, float] | None = None
        for tick in itertools.count(1):
            if self.ended.wait(_TICK_S):
                return
            if tick % _MEMORY_TICKS == 0 and not self.why:
                resident, spare = memory_bytes(os.getpid()) or 0, spare_bytes()
                if resident > _MOST_TIMES * spare:
                    rest = f"the machine had {spare / 2**30:.1f} GiB left"
                    self.why = f"the run held {resident / 2**30:.1f} GiB of memory, and {rest}"
            if self.why:
                self.interrupt()
            if not self._budget.is_exhausted:
                continue
            now = time.monotonic(), _used_s()
            since = now if since is None else since
            if now[1] - since[1] >= self._grace_s or now[0] - since[0] >= MOST_S:
                self.interrupt()

    def interrupt(self) -> None:
        """Interrupt the main thread; without effect while it must not be interrupted."""
        with self._lock:
            if not self.ended.is_set():
                self.due = True
                _thread.interrupt_main()

    def end(self) -> None:
        """Stop interrupting, and ignore pending interrupts."""
        with self._lock:
            self.ended.set()


def _used_s() -> float:
    """Return the main thread's processor seconds, or wall time if the system reports none."""
    main = threading.main_thread().ident
    if main is None or not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic()
    return time.clock_gettime(time.pthread_getcpuclockid(main))


@contextlib.contextmanager
def _interrupts(stop: threading.Event, watch: _Watch | None) -> Iterator[bool]:
    """Handle SIGINT in the block, from the user and from the watchdog."""
    if threading.current_thread() is not threading.main_thread():
        yield False
        return

    def handle(number: int, frame: FrameType | None) -> None:
        del number
        if watch is not None and watch.due:
            if not watch.ended.is_set() and _is_interruptible(frame):
                logging.disable(logging.ERROR)  # nobody wants to read which rule of a model was broken off
                raise RunInterrupted(watch.why)
        elif stop.is_set():
            raise KeyboardInterrupt
        else:
            stop.set()

    previous, level = signal.signal(signal.SIGINT, handle), logging.root.manager.disable
    try:
        yield True
    finally:
        signal.signal(signal.SIGINT, previous)
        logging.disable(level)


def _is_interruptible(frame: FrameType | None) -> bool:
    """Return whether no code is running that must not be interrupted."""
    while frame is not None:
        place = frame.f_code.co_filename
        if place.startswith(_WHOLE) or _COMPILER in place:
            return False
        frame = frame.f_back
    return True
