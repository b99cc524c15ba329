"""Limits and services of one run: time, seed, clock, progress, and the request to stop.

Methods and solvers have a :class:`Budget` as an argument. Generators of networks, readers of files, models and
schedules are called with arguments that users write, and no budget among them: the caller sets theirs with
:func:`limited_by`, for this thread. Without it, the only limit is that on the size of a model.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count, islice
from threading import Event
from typing import Any, Protocol, TypeVar

from .errors import OutOfTime, Unsupported
from .units import SIZES, TIMES, amount


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
    answer: Callable[[], Any] | None = None
    certificate: Any = None  #: The :data:`~cwb.core.bounds.Certificate` of the bound, if there is one.


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
        rest_s = self.whole.remaining_s()
        return None if rest_s is None else max(0.0, min(rest_s, self.seconds - (self.begun_s - rest_s)))


@dataclass(frozen=True)
class Start:
    """Answer from which the search of a declared model starts, and the instance that it solves."""

    instance: Any
    answer: Any


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
    stop: Event = field(default_factory=Event)

    def tell_bound(self, bound: Fraction | float, certificate: Any) -> None:
        """Report a bound in the method's unit and its proof, so that a stopped run keeps them."""
        self.tell(Incumbent(bound=float(bound), certificate=certificate))

    def part(self, share: float) -> "Budget":
        """Return this budget with a share of the remaining time, such as 0.5; without a limit, none."""
        rest_s = self.clock.remaining_s()
        return self if rest_s is None else replace(self, clock=PartClock(self.clock, share * rest_s, rest_s))

    @property
    def is_exhausted(self) -> bool:
        """True if the time is up or the user has asked to stop."""
        remaining = self.clock.remaining_s()
        return self.stop.is_set() or (remaining is not None and remaining <= 0)

    @property
    def why_exhausted(self) -> str:
        """Reason why the run ended, as the beginning of a message."""
        return "the run was stopped" if self.stop.is_set() else f"the time limit of {self.time_limit_s:g} s ran out"


_T = TypeVar("_T")

ITEMS_PER_CHECK = 2**14  #: Items made between two checks of the time: some milliseconds.
ITEMS_PER_REPORT = 2**19  #: Items made between two progress reports: a second or two.
MOST_COLUMNS = 5_000_000  #: Columns of the largest model that is built.
COLUMN_BYTES, COLUMN_S = 1200, 2e-6  #: Least memory and time for a column of a model, with its part of the rows.
FEW_BYTES = 2**20  #: Memory that is taken to be there: to ask the system takes longer than to make a small schedule.
STOPPED_S = 2.0  #: Seconds that a step may take after the user has asked to stop.

#: Memory and time for making, verifying, simulating and writing a send, and each link of its path.
SEND_BYTES, SEND_S = 200, 1.4e-6
HOP_BYTES, HOP_S = 30, 1e-6

STREAMED_S = 1.5e-7  #: Least seconds for making a send once more and verifying it, where none is stored.

#: The limits of :func:`limited_by`, and the activity; without them, a budget without limits.
_LIMITS: ContextVar[tuple[Budget, str]] = ContextVar("limits", default=(Budget(), ""))
_calls = count(1)


@contextmanager
def limited_by(budget: Budget, doing: str = "") -> Iterator[None]:
    """Apply the limits of a budget to the code of the block.

    ``doing`` is the activity that is abandoned when the time is up, such as ``"loading the instance"``. Empty for a
    method, which checks its budget itself and ends with its best answer.
    """
    token = _LIMITS.set((budget, doing))
    try:
        yield
    finally:
        _LIMITS.reset(token)


def report_progress(message: str) -> None:
    """Show one short line to the waiting user."""
    _LIMITS.get()[0].progress(message)


def why_exhausted() -> str:
    """Return the reason for which the limits are exhausted; empty if they are not."""
    budget = _LIMITS.get()[0]
    return budget.why_exhausted if budget.is_exhausted else ""


def check_time(step: str) -> None:
    """Raise OutOfTime if the limits are exhausted and the block of :func:`limited_by` is one to abandon."""
    budget, doing = _LIMITS.get()
    if doing and budget.is_exhausted:
        raise OutOfTime(f"{budget.why_exhausted} while {doing}: {step}")


def check_time_rarely(step: str) -> None:
    """Check the time at every 16,384th call, for loops over very many items."""
    if next(_calls) % ITEMS_PER_CHECK == 0:
        check_time(step)


def iterate_in_time(items: Iterable[_T], total: int, noun: str) -> Iterator[_T]:
    """Yield items, a plural noun in messages, with occasional checks of the time and progress reports."""
    rest, number = iter(items), 0
    while some := tuple(islice(rest, ITEMS_PER_CHECK)):
        yield from some
        number += len(some)
        if len(some) == ITEMS_PER_CHECK:  # small networks are made whatever the limit: a method may still prove a bound
            check_time(f"{number:,} of {total:,} {noun}")
        if number % ITEMS_PER_REPORT == 0:
            report_progress(f"{number:,} of {total:,} {noun}")


def why_unbuildable(
    columns: int, what: str, column_s: float = COLUMN_S, most: int = MOST_COLUMNS, column_bytes: int = COLUMN_BYTES
) -> str:
    """Return the reason not to build a model named ``what``, such as ``"8 epochs"``; empty if there is none.

    ``column_s`` and ``column_bytes`` are its least seconds and memory per column, with its share of the rows; beyond
    ``most`` columns it is never built.
    """
    has = f"a model of {what} has {columns:,} columns"
    if columns > most:
        return f"{has}; at most {most:,} are built"
    return _shortage(f"{has}, which take", "to build", columns * column_bytes, columns * column_s)


def require_buildable(
    columns: int, what: str, column_s: float = COLUMN_S, most: int = MOST_COLUMNS, column_bytes: int = COLUMN_BYTES
) -> None:
    """Reject a model by the size of its index sets, before it is built; see :func:`why_unbuildable`.

    Raises Unsupported if it has too many columns for any machine, OutOfTime if it needs more memory or time than is
    left.
    """
    if why := why_unbuildable(columns, what, column_s, most, column_bytes):
        raise Unsupported(why) if columns > most else OutOfTime(why)


def why_unschedulable(sends: int, hops: int | None = None) -> str:
    """Return the reason not to create a schedule; if empty, reserve time for verifying and writing it.

    ``hops`` is the number of links on all paths, by default one per send.
    """
    hops = sends if hops is None else hops
    seconds = SEND_S * sends + HOP_S * hops
    has = f"{sends:,} sends over {hops:,} hops take"
    why = _shortage(has, "to verify and write", SEND_BYTES * sends + HOP_BYTES * hops, seconds)
    if not why:
        _LIMITS.get()[0].reserve_seconds(seconds)
    return why


def require_schedulable(sends: int, hops: int | None = None) -> None:
    """Reject a schedule by its size, before it is created; parameters as of :func:`why_unschedulable`."""
    if why := why_unschedulable(sends, hops):
        raise OutOfTime(why)


def require_streamable(sends: int, images: int, size_bytes: int) -> None:
    """Reject sends that are not stored, one made of so many images, or reserve time for verifying them."""
    seconds = STREAMED_S * sends / images
    if why := _shortage(f"{sends:,} sends, step by step, take", "to make and verify", size_bytes, 2 * seconds):
        raise OutOfTime(why)
    _LIMITS.get()[0].reserve_seconds(seconds)


def _shortage(take: str, to: str, size: float, seconds: float) -> str:
    """Return the shortage of memory or time as text; empty if there is none."""
    budget = _LIMITS.get()[0]
    spare, rest_s = budget.spare_bytes() if size > FEW_BYTES else None, budget.reserve_seconds(0.0)
    if spare is not None and size > spare:
        return f"{take} some {_round_text(size, SIZES)} of memory {to}, and {_remaining_text(spare, SIZES)}"
    if rest_s is not None and seconds > rest_s:
        return f"{take} some {_round_text(seconds, TIMES)} {to}, and {_remaining_text(rest_s, TIMES)}"
    if budget.stop.is_set() and seconds > STOPPED_S:
        return f"{take} some {_round_text(seconds, TIMES)} {to}, and the run was stopped"
    return ""


def _round_text(value: float, units: Sequence[str]) -> str:
    number, unit = amount(value, units).split()
    return f"{float(f'{float(number):.2g}'):.10g} {unit}"


def _remaining_text(value: float, units: Sequence[str]) -> str:
    return f"{_round_text(value, units)} are left" if value > 0 else "nothing is left"
