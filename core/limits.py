"""Limits of time and memory for code without a :class:`~cwb.core.budget.Budget` argument.

Generators of networks, readers of files, models and schedules are called with arguments that users write, and no
budget among them. The caller sets the limits with :func:`limited_by`. Without it, the only limit is that on the
size of a model. Limits are local to a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count, islice
from threading import Event
from typing import Protocol, TypeVar

from .errors import OutOfTime, Unsupported
from .units import SIZES, TIMES, amount

_T = TypeVar("_T")

ITEMS_PER_CHECK = 2**14  #: Items made between two checks of the time: some milliseconds.
ITEMS_PER_REPORT = 2**19  #: Items made between two progress reports: a second or two.
MOST_COLUMNS = 5_000_000  #: Columns of the largest model that is built.
COLUMN_BYTES, COLUMN_S = 1200, 2e-6  #: Least memory and time for a column of a model, with its part of the rows.
STOPPED_S = 2.0  #: Seconds that a step may take after the user has asked to stop.

#: Memory and time for making, verifying, simulating and writing a send, and each link of its path.
SEND_BYTES, SEND_S = 200, 1.4e-6
HOP_BYTES, HOP_S = 30, 1e-6

STREAMED_S = 1.5e-7  #: Least seconds for making a send once more and verifying it, where none is stored.


class Limits(Protocol):
    """Part of a budget that code without one needs."""

    @property
    def stop(self) -> Event:
        """Event that is set when the user asks to stop."""
        ...

    @property
    def is_exhausted(self) -> bool:
        """True if the time is up or the user has asked to stop."""
        ...

    @property
    def why_exhausted(self) -> str:
        """Reason of exhaustion, as the beginning of a message."""
        ...

    @property
    def progress(self) -> Callable[[str], None]:
        """Function that shows one short line."""
        ...

    @property
    def spare_bytes(self) -> Callable[[], int | None]:
        """Function that returns the free memory of the machine in bytes; None if unknown."""
        ...

    @property
    def reserve_seconds(self) -> Callable[[float], float | None]:
        """Function that reserves seconds for later steps and returns those left, these included, or None."""
        ...


_LIMITS: ContextVar[tuple[Limits, str] | None] = ContextVar("limits", default=None)
_made = count(1)


@contextmanager
def limited_by(limits: Limits, doing: str = "") -> Iterator[None]:
    """Apply limits to the code of the block.

    ``doing`` is the activity that is abandoned when the time is up, such as ``"loading the instance"``. Empty for a
    method, which checks its budget itself and ends with its best answer.
    """
    token = _LIMITS.set((limits, doing))
    try:
        yield
    finally:
        _LIMITS.reset(token)


def report_progress(message: str) -> None:
    """Show one short line to the waiting user."""
    if found := _LIMITS.get():
        found[0].progress(message)


def why_exhausted() -> str:
    """Return the reason for which the limits are exhausted; empty without limits."""
    found = _LIMITS.get()
    return found[0].why_exhausted if found else ""


def check_time(step: str) -> None:
    """Raise OutOfTime if the limits are exhausted and the block of :func:`limited_by` is one to abandon."""
    limits, doing = _LIMITS.get() or (None, "")
    if limits and doing and limits.is_exhausted:
        raise OutOfTime(f"{limits.why_exhausted} while {doing}: {step}")


def check_time_rarely(step: str) -> None:
    """Check the time at every 16,384th call, for loops over very many items."""
    if next(_made) % ITEMS_PER_CHECK == 0:
        check_time(step)


def iterate_in_time(items: Iterable[_T], total: int, noun: str) -> Iterator[_T]:
    """Yield items, a plural noun in messages, with occasional checks of the time and progress reports."""
    rest, done = iter(items), 0
    while some := tuple(islice(rest, ITEMS_PER_CHECK)):
        yield from some
        done += len(some)
        if len(some) == ITEMS_PER_CHECK:  # small networks are made whatever the limit: a method may still prove a bound
            check_time(f"{done:,} of {total:,} {noun}")
        if done % ITEMS_PER_REPORT == 0:
            report_progress(f"{done:,} of {total:,} {noun}")


def why_unbuildable(columns: int, what: str, column_s: float = COLUMN_S, most: int = MOST_COLUMNS) -> str:
    """Return the reason not to build a model named ``what``, such as ``"8 epochs"``; empty if there is none.

    ``column_s`` are its least seconds per column, with its share of the rows; beyond ``most`` columns it is never
    built.
    """
    has = f"a model of {what} has {columns:,} columns"
    if columns > most:
        return f"{has}; at most {most:,} are built"
    return _shortage(f"{has}, which take", "to build", columns * COLUMN_BYTES, columns * column_s)


def require_buildable(columns: int, what: str, column_s: float = COLUMN_S, most: int = MOST_COLUMNS) -> None:
    """Reject a model by the size of its index sets, before it is built; see :func:`why_unbuildable`.

    Raises Unsupported if it has too many columns for any machine, OutOfTime if it needs more memory or time than is
    left.
    """
    if why := why_unbuildable(columns, what, column_s, most):
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
        _reserve_seconds(seconds)
    return why


def require_schedulable(sends: int, hops: int | None = None) -> None:
    """Reject a schedule by its size, before it is created; parameters as of :func:`why_unschedulable`."""
    if why := why_unschedulable(sends, hops):
        raise OutOfTime(why)


def require_streamable(sends: int, size_bytes: int) -> None:
    """Reject a schedule whose sends are not stored, or reserve time for verifying it with ``size_bytes`` of state."""
    seconds = STREAMED_S * sends
    if why := _shortage(f"{sends:,} sends, step by step, take", "to make and verify", size_bytes, 2 * seconds):
        raise OutOfTime(why)
    _reserve_seconds(seconds)


def _reserve_seconds(seconds: float) -> None:
    if found := _LIMITS.get():
        found[0].reserve_seconds(seconds)


def _shortage(take: str, to: str, size: float, seconds: float) -> str:
    """Return the shortage of memory or time as text; empty if there is none."""
    if (found := _LIMITS.get()) is None:
        return ""
    limits = found[0]
    spare, left = limits.spare_bytes(), limits.reserve_seconds(0.0)
    if spare is not None and size > spare:
        return f"{take} some {_round_text(size, SIZES)} of memory {to}, and {_remaining_text(spare, SIZES)}"
    if left is not None and seconds > left:
        return f"{take} some {_round_text(seconds, TIMES)} {to}, and {_remaining_text(left, TIMES)}"
    if limits.stop.is_set() and seconds > STOPPED_S:
        return f"{take} some {_round_text(seconds, TIMES)} {to}, and the run was stopped"
    return ""


def _round_text(value: float, units: Sequence[str]) -> str:
    number, unit = amount(value, units).split()
    return f"{float(f'{float(number):.2g}'):.10g} {unit}"


def _remaining_text(value: float, units: Sequence[str]) -> str:
    return f"{_round_text(value, units)} are left" if value > 0 else "nothing is left"
