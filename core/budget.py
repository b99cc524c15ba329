"""What a run may use and how it reports its state: limits, seed, clock, progress, and the request to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from fractions import Fraction

    from .answers import Answer
    from .bounds import Certificate


@dataclass
class Lap:
    """Seconds that one timed phase took, by the wall and of the processor; known when the phase has ended."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0


class Clock(Protocol):
    """The clock that is passed to a run; methods and solvers have none of their own."""

    def phase(self, name: str) -> AbstractContextManager[Lap]:
        """Time a phase; the seconds of phases of the same name add up."""
        ...

    def remaining_s(self) -> float | None:
        """Seconds until the time limit, never negative; None without a limit."""
        ...


class Progress(Protocol):
    """Where a run reports its progress."""

    def __call__(self, message: str, /) -> None:
        """Show one short line."""
        ...


@dataclass(frozen=True)
class Incumbent:
    """The best result of a run so far, reported during the run, so that it is not lost when the run is stopped.

    Parameters
    ----------
    objective : float or None
        Objective of the best answer, in the unit of the method; nobody has checked it.
    bound : float or None
        Bound on the objective that the method has proved.
    of_solver : bool
        Whether the numbers are those of a solver's own model, which may be another one than the method's problem.
    answer : callable or None
        Gives the answer itself, where the method can; called at once, when the run is broken off, or never.
    certificate : Certificate or None
        What proves the bound.
    """

    objective: float | None = None
    bound: float | None = None
    of_solver: bool = False
    answer: Callable[[], Answer | None] | None = None
    certificate: Certificate | None = None


def unheard(incumbent: Incumbent) -> None:
    """Report nothing."""
    del incumbent


def unkept(model: Callable[[], Any]) -> None:
    """Keep no model."""
    del model


def unlimited(seconds: float) -> None:
    """Keep nothing: there is no limit."""
    del seconds


def unknown() -> int | None:
    """Report that the value is unknown."""


class NoClock:
    """A clock that stands still, for solvers called by hand."""

    @contextmanager
    def phase(self, name: str) -> Iterator[Lap]:
        """Time nothing."""
        del name
        yield Lap()

    def remaining_s(self) -> float | None:
        """There is no limit."""
        return None


@dataclass(frozen=True)
class PartClock:
    """The clock of a part of a run, which has less time.

    Parameters
    ----------
    whole : Clock
        The clock of the run.
    seconds : float
        What the part may take.
    begun_s : float
        What the run had left when the part began.
    """

    whole: Clock
    seconds: float
    begun_s: float

    def phase(self, name: str) -> AbstractContextManager[Lap]:
        """Time a phase of the run."""
        return self.whole.phase(name)

    def remaining_s(self) -> float | None:
        """Seconds until the part should end, or the run."""
        left = self.whole.remaining_s()
        return None if left is None else max(0.0, min(left, self.seconds - (self.begun_s - left)))


def silent(message: str) -> None:
    """Show nothing."""
    del message


@dataclass(frozen=True)
class Budget:
    """Limits and services of one run.

    Parameters
    ----------
    time_limit_s : float or None
        Seconds for the whole run.
    threads : int
        Threads that a solver may use.
    seed : int
        Seed of everything random.
    gap : float or None
        Relative gap at which a search may stop; None is the method's own default.
    log_file : str or None
        Where a solver writes its log.
    pool : int
        How many different solutions of a declared model are wanted, the best first.
    clock : Clock
        Measures phases and knows the time that is left.
    progress : Progress
        Shows lines while the run goes on.
    tell : callable
        Takes in an :class:`Incumbent` whenever there is a better one.
    handed : callable
        Called before every solve with a function that gives the arrays of the model that is solved
        (:class:`~cwb.solvers.matrix.MatrixModel`).
    keep : callable
        Keeps so many seconds of the limit for what comes after the method; gives what was left with those that are
        kept, None without a limit.
    spare_bytes : callable
        Gives the memory that the machine has left, None where it is unknown.
    stop : threading.Event
        Set when the user asks to stop (Ctrl-C): finish with the best answer so far.
    """

    time_limit_s: float | None = None
    threads: int = 1
    seed: int = 0
    gap: float | None = None
    log_file: str | None = None
    pool: int = 1
    clock: Clock = field(default_factory=NoClock)
    progress: Progress = silent
    tell: Callable[[Incumbent], None] = unheard
    handed: Callable[[Callable[[], Any]], None] = unkept
    keep: Callable[[float], float | None] = unlimited
    spare_bytes: Callable[[], int | None] = unknown
    stop: threading.Event = field(default_factory=threading.Event)

    def tell_bound(self, bound: Fraction | float, certificate: Certificate | None) -> None:
        """Report a bound in the unit of the method and its proof, so that it is not lost when the run is stopped."""
        self.tell(Incumbent(bound=float(bound), certificate=certificate))

    def part(self, share: float) -> Budget:
        """The same budget with a share of the remaining time, such as 0.5; without a limit the part has none either."""
        left = self.clock.remaining_s()
        return self if left is None else replace(self, clock=PartClock(self.clock, share * left, left))

    @property
    def exhausted(self) -> bool:
        """Whether the run should end: the time is up or the user has asked to stop."""
        remaining = self.clock.remaining_s()
        return self.stop.is_set() or (remaining is not None and remaining <= 0)

    @property
    def why_exhausted(self) -> str:
        """The reason why the run ended, as the beginning of a message."""
        return "the run was stopped" if self.stop.is_set() else f"the time limit of {self.time_limit_s:g} s ran out"
