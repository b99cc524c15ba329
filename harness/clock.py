"""The clock of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..core.budget import Lap


class WallClock:
    """Measures phases by the wall, and knows the time that is left.

    Parameters
    ----------
    time_limit_s : float or None
        Seconds from now until the run should end.

    Attributes
    ----------
    limit_s : float or None
        The time limit.
    broken_in : str or None
        The phase that an exception has left first.
    """

    def __init__(self, time_limit_s: float | None = None) -> None:
        self._apart_s = self._apart_cpu_s = 0.0
        self._stands_at: float | None = None
        self._start = self._now()
        self.limit_s = time_limit_s
        self._kept_s = 0.0
        self._phases: dict[str, float] = {}
        self.broken_in: str | None = None

    def _now(self) -> float:
        return (time.perf_counter() if self._stands_at is None else self._stands_at) - self._apart_s

    def cpu_s(self) -> float:
        """Seconds of the processor, without what is timed apart."""
        return time.process_time() - self._apart_cpu_s

    @contextmanager
    def phase(self, name: str) -> Iterator[Lap]:
        """Time a phase; the seconds of phases of the same name add up."""
        lap, start, used = Lap(), self._now(), self.cpu_s()
        try:
            yield lap
        except BaseException:
            self.broken_in = self.broken_in or name
            raise
        finally:
            lap.seconds, lap.cpu_seconds = self._now() - start, self.cpu_s() - used
            self._phases[name] = self._phases.get(name, 0.0) + lap.seconds

    @contextmanager
    def apart(self, name: str) -> Iterator[None]:
        """Time a phase for which the clock stands still: it counts toward no other phase, limit or total."""
        start, used = time.perf_counter(), time.process_time()
        self._stands_at = start
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            self._apart_s += seconds
            self._stands_at = None
            self._apart_cpu_s += time.process_time() - used
            self._phases[name] = self._phases.get(name, 0.0) + seconds

    def elapsed_s(self) -> float:
        """Seconds since the clock was started, without what is timed apart."""
        return self._now() - self._start

    def remaining_s(self) -> float | None:
        """Seconds until the time limit, less those that are kept, never negative; None without a limit."""
        return None if self.limit_s is None else max(0.0, self.limit_s - self._kept_s - self.elapsed_s())

    def keep(self, seconds: float) -> float | None:
        """Keep at least so many seconds of the limit for what comes after; give those that are left with them."""
        self._kept_s = max(self._kept_s, seconds)
        return None if self.limit_s is None else max(0.0, self.limit_s - self.elapsed_s())

    def seconds(self) -> dict[str, float]:
        """Seconds of every phase, and in total."""
        return {**self._phases, "total": self.elapsed_s()}
