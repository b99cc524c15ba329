"""The clock of a run, which stands still while loops are compiled."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from ..core.budget import Budget, Lap
from ..core.instance import Instance
from ..core.kernel import Allowance, compilation_observed, prefer_interpreted
from .environment import spare_bytes
from .request import Listener

_SMALL = 32  #: Instances of up to this many NPUs begin without compiled loops.
ALLOWANCE = Allowance(3.0)  #: Seconds of the processor that loops may take uncompiled, in all runs of a process.


class WallClock:
    """Wall clock that can be stopped; measures phases, and the time until a run should end (None for no limit)."""

    def __init__(self, time_limit_s: float | None = None) -> None:
        self._excluded_s = self._excluded_cpu_s = 0.0
        self._stopped_at: float | None = None
        self._start = self._now()
        self.limit_s = time_limit_s
        self._reserved_s = 0.0
        self._phases: dict[str, float] = {}
        self.broken_in: str | None = None  #: The first phase that an exception has ended.

    def _now(self) -> float:
        return (time.perf_counter() if self._stopped_at is None else self._stopped_at) - self._excluded_s

    def cpu_s(self) -> float:
        """Return the processor seconds, without phases timed apart."""
        return time.process_time() - self._excluded_cpu_s

    @contextmanager
    def phase(self, name: str) -> Iterator[Lap]:
        """Time a phase; phases of the same name add up."""
        lap, start, cpu_start = Lap(), self._now(), self.cpu_s()
        try:
            yield lap
        except BaseException:
            self.broken_in = self.broken_in or name
            raise
        finally:
            lap.seconds, lap.cpu_seconds = self._now() - start, self.cpu_s() - cpu_start
            self._phases[name] = self._phases.get(name, 0.0) + lap.seconds

    @contextmanager
    def apart(self, name: str) -> Iterator[None]:
        """Time a phase while the clock stands still: it counts toward no other phase, limit or total."""
        start, cpu_start = time.perf_counter(), time.process_time()
        self._stopped_at = start
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            self._excluded_s += seconds
            self._stopped_at = None
            self._excluded_cpu_s += time.process_time() - cpu_start
            self._phases[name] = self._phases.get(name, 0.0) + seconds

    def elapsed_s(self) -> float:
        """Return the seconds since the start, without phases timed apart."""
        return self._now() - self._start

    def remaining_s(self) -> float | None:
        """Return the unreserved seconds until the time limit, at least 0; None without a limit."""
        return None if self.limit_s is None else max(0.0, self.limit_s - self._reserved_s - self.elapsed_s())

    def reserve_seconds(self, seconds: float) -> float | None:
        """Reserve at least some seconds for later phases; return those left to the limit, reserved ones included."""
        self._reserved_s = max(self._reserved_s, seconds)
        return None if self.limit_s is None else max(0.0, self.limit_s - self.elapsed_s())

    def budget(self, **fields: Any) -> Budget:
        """Return a budget with this clock and its limit, and with the memory that the machine has left."""
        return Budget(self.limit_s, clock=self, reserve_seconds=self.reserve_seconds, spare_bytes=spare_bytes, **fields)

    def seconds(self) -> dict[str, float]:
        """Return the seconds of every phase, and ``total``."""
        return {**self._phases, "total": self.elapsed_s()}


@contextmanager
def time_compiling_apart(instance: Instance, clock: WallClock, listener: Listener) -> Iterator[None]:
    """Stop the clock while loops are compiled, and notify the listener.

    Small instances start with interpreted loops. Compiled code is cached on disk, once per version of the code.
    """
    notified = False

    @contextmanager
    def apart() -> Iterator[None]:
        nonlocal notified
        if not notified:
            listener.progress("compiling loops, which takes some seconds once; 'cwb warm' does it ahead")
        notified = True
        listener.compiling(True)
        try:
            with clock.apart("compile"):
                yield
        finally:
            listener.compiling(False)

    small = prefer_interpreted(ALLOWANCE, clock.cpu_s) if instance.npus <= _SMALL else nullcontext()
    with compilation_observed(apart), small:
        yield
