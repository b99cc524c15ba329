"""What is to come, estimated by its size: nothing is begun for which the memory or the time that is left will not do.

Models and schedules are made by functions without a budget of their own; who runs a method sets it with
:func:`spending`. Elsewhere there is no limit but that of size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from .budget import Budget
from .errors import OutOfTime, Unsupported
from .units import SIZES, TIMES, amount

_BUDGET: ContextVar[Budget] = ContextVar("spending")
_FREE = Budget()

#: Columns of the largest model that is built.
MOST_COLUMNS = 5_000_000

#: What a column of a model takes at least, with its part of the rows.
COLUMN_BYTES, COLUMN_S = 1200, 2e-6

#: Seconds that what is to come may take after the user has asked to stop.
STOPPED_S = 2.0

#: What a send takes, and each link of its path, to be made, verified, simulated and written.
SEND_BYTES, SEND_S = 200, 1.4e-6
HOP_BYTES, HOP_S = 30, 1e-6

#: Seconds that a send takes, at least, to be made once more and verified where none is kept.
STREAMED_S = 1.5e-7


@contextmanager
def spending(budget: Budget) -> Iterator[None]:
    """Check what the block makes against this budget."""
    token = _BUDGET.set(budget)
    try:
        yield
    finally:
        _BUDGET.reset(token)


def too_large(columns: int, what: str, column_s: float = COLUMN_S, most: int = MOST_COLUMNS) -> str:
    """The reason why a model is not built; empty if it is.

    Parameters
    ----------
    columns : int
        How many it would have.
    what : str
        What model it is, such as ``"8 epochs"``.
    column_s : float
        Seconds that a column of such a model takes at least, with its part of the rows.
    most : int
        Columns beyond which it is not built at all.
    """
    has = f"a model of {what} has {columns:,} columns"
    if columns > most:
        return f"{has}; at most {most:,} are built"
    return _beyond(f"{has}, which take", "to build", columns * COLUMN_BYTES, columns * column_s)


def require_buildable(columns: int, what: str, column_s: float = COLUMN_S, most: int = MOST_COLUMNS) -> None:
    """Reject a model by the size of its index sets, before it is built; parameters are those of :func:`too_large`.

    Raises
    ------
    Unsupported
        If it has too many columns for any machine.
    OutOfTime
        If the memory or the time that is left will not do.
    """
    if why := too_large(columns, what, column_s, most):
        raise Unsupported(why) if columns > most else OutOfTime(why)


def too_long(sends: int, hops: int | None = None) -> str:
    """The reason why a schedule is not made; empty if it is, and then time is kept for verifying and writing it.

    Parameters
    ----------
    sends, hops : int
        How many sends and links of their paths it would have; a send has one unless given.
    """
    hops = sends if hops is None else hops
    seconds = SEND_S * sends + HOP_S * hops
    has = f"{sends:,} sends over {hops:,} hops take"
    why = _beyond(has, "to verify and write", SEND_BYTES * sends + HOP_BYTES * hops, seconds)
    if not why:
        _BUDGET.get(_FREE).keep(seconds)
    return why


def require_schedulable(sends: int, hops: int | None = None) -> None:
    """Reject a schedule by its size, before it is made; parameters are those of :func:`too_long`.

    Raises
    ------
    OutOfTime
        If the memory or the time that is left will not do.
    """
    if why := too_long(sends, hops):
        raise OutOfTime(why)


def require_streamable(sends: int, size_bytes: int) -> None:
    """Reject a schedule whose sends are not kept, before its steps are made; time is kept for verifying it.

    Parameters
    ----------
    sends : int
        How many it has.
    size_bytes : int
        Memory for who has what.

    Raises
    ------
    OutOfTime
        If the memory or the time that is left will not do.
    """
    seconds = STREAMED_S * sends
    if why := _beyond(f"{sends:,} sends, step by step, take", "to make and verify", size_bytes, 2 * seconds):
        raise OutOfTime(why)
    _BUDGET.get(_FREE).keep(seconds)


def _beyond(take: str, to: str, size: float, seconds: float) -> str:
    """Return what is missing, if memory or time is."""
    budget = _BUDGET.get(_FREE)
    spare, left = budget.spare_bytes(), budget.keep(0.0)
    if spare is not None and size > spare:
        return f"{take} some {_some(size, SIZES)} of memory {to}, and {_left(spare, SIZES)}"
    if left is not None and seconds > left:
        return f"{take} some {_some(seconds, TIMES)} {to}, and {_left(left, TIMES)}"
    if budget.stop.is_set() and seconds > STOPPED_S:
        return f"{take} some {_some(seconds, TIMES)} {to}, and the run was stopped"
    return ""


def _some(value: float, units: Sequence[str]) -> str:
    """An estimate, to two digits."""
    number, unit = amount(value, units).split()
    return f"{float(f'{float(number):.2g}'):.10g} {unit}"


def _left(value: float, units: Sequence[str]) -> str:
    return f"{_some(value, units)} are left" if value > 0 else "nothing is left"
