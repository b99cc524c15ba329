"""Limits and services of one run: time, seed, clock, progress, and the request to stop."""

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
    from .instance import Instance


@dataclass
class Lap:
    """Wall and processor seconds of one timed phase; known when the phase has ended."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0


class Clock(Protocol):
    """Clock that is passed to a run; methods and solvers have none of their own."""

    def phase(self, name: str) -> AbstractContextManager[Lap]:
        """Time a phase; seconds of phases with the same name add up."""
        ...

    def remaining_s(self) -> float | None:
        """Return the seconds until the time limit, never negative; None without a limit."""
        ...


class Progress(Protocol):
    """Receiver of a run's progress messages."""

    def __call__(self, message: str, /) -> None:
        """Show one short line."""


@dataclass(frozen=True)
class Incumbent:
    """Best result of a run so far, reported early so that a stopped run keeps it."""

    objective: float | None = None  #: Objective of the best answer, in the unit of the method; not verified.
    bound: float | None = None  #: Bound on the objective that the method has proved.
    of_solver: bool = False  #: If the numbers belong to a solver's model, which may differ from the method's problem.
    #: Returns the answer, if the method can; called at once, when the run is interrupted, or never.
    answer: Callable[[], Answer | None] | None = None
    certificate: Certificate | None = None


def ignore(*arguments: object) -> None:
    """Do nothing: the default of a budget's services."""
    del arguments


class NoClock:
    """Clock that stands still, for solvers called by hand."""

    @contextmanager
    def phase(self, name: str) -> Iterator[Lap]:
        """Time nothing."""
        del name
        yield Lap()

    def remaining_s(self) -> float | None:
        """Return None: there is no limit."""
        return None


@dataclass(frozen=True)
class PartClock:
    """Clock of a part of a run, which has less time."""

    whole: Clock
    seconds: float  #: Time limit of the part.
    begun_s: float  #: Seconds that the run had left when the part began.

    def phase(self, name: str) -> AbstractContextManager[Lap]:
        """Time a phase of the run."""
        return self.whole.phase(name)

    def remaining_s(self) -> float | None:
        """Return the seconds until the part or the run should end, whichever is first."""
        left = self.whole.remaining_s()
        return None if left is None else max(0.0, min(left, self.seconds - (self.begun_s - left)))


@dataclass(frozen=True)
class Start:
    """Answer from which the search of a declared model starts, and the instance that it solves."""

    instance: Instance
    answer: Answer


@dataclass(frozen=True)
class Budget:
    """Limits and services of one run."""

    time_limit_s: float | None = None  #: Seconds for the whole run; None is no limit.
    threads: int = 1
    seed: int = 0
    gap: float | None = None  #: Relative gap at which a search may stop; None is the method's own default.
    log_file: str | None = None
    pool: int = 1  #: Number of different solutions wanted of a declared model, best first.
    start: Start | None = None  #: Answer to start from, of a declared model that takes one.
    clock: Clock = field(default_factory=NoClock)  #: Measures phases and knows the time that is left.
    progress: Progress = ignore  #: Receives progress messages during the run.
    tell: Callable[[Incumbent], None] = ignore  #: Receives an :class:`Incumbent` whenever there is a better one.
    #: Called before every solve with a function that returns the arrays of the model
    #: (:class:`~cwb.solvers.matrix.MatrixModel`).
    on_model: Callable[[Callable[[], Any]], None] = ignore
    #: Reserves seconds of the limit for the steps after the method; returns those left, reserved ones included, None
    #: without a limit.
    reserve_seconds: Callable[[float], float | None] = ignore
    spare_bytes: Callable[[], int | None] = ignore  #: Returns the free memory of the machine in bytes, None if unknown.
    #: Set when the user asks to stop (Ctrl-C): finish with the best answer so far.
    stop: threading.Event = field(default_factory=threading.Event)

    def tell_bound(self, bound: Fraction | float, certificate: Certificate | None) -> None:
        """Report a bound in the method's unit and its proof, so that a stopped run keeps them."""
        self.tell(Incumbent(bound=float(bound), certificate=certificate))

    def part(self, share: float) -> Budget:
        """Return this budget with a share of the remaining time, such as 0.5; without a limit, none."""
        left = self.clock.remaining_s()
        return self if left is None else replace(self, clock=PartClock(self.clock, share * left, left))

    @property
    def is_exhausted(self) -> bool:
        """True if the time is up or the user has asked to stop."""
        remaining = self.clock.remaining_s()
        return self.stop.is_set() or (remaining is not None and remaining <= 0)

    @property
    def why_exhausted(self) -> str:
        """Reason why the run ended, as the beginning of a message."""
        return "the run was stopped" if self.stop.is_set() else f"the time limit of {self.time_limit_s:g} s ran out"
