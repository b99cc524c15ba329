"""What takes long and is no method: making networks, reading files, digests.

It asks the budget of its caller.

Generators of networks and what they call have arguments that users write, and no budget among them. Who waits sets it
with :func:`watched`; nobody else has to, and then there is no limit and nothing is reported. Threads have their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count, islice
from typing import TypeVar

from .budget import Budget
from .errors import OutOfTime

_T = TypeVar("_T")

_BUDGET: ContextVar[Budget] = ContextVar("budget")
_FREE = Budget()

#: So many things are made between two questions; it takes some milliseconds.
STEP = 2**14

#: Number of things between two progress reports; they take a second or two.
TOLD = 2**19

_ticks = count(1)


@contextmanager
def watched(budget: Budget) -> Iterator[None]:
    """Let what the block calls ask this budget, and report its progress."""
    token = _BUDGET.set(budget)
    try:
        yield
    finally:
        _BUDGET.reset(token)


def say(message: str) -> None:
    """Show one short line to who waits."""
    _BUDGET.get(_FREE).progress(message)


def ask(doing: str) -> None:
    """Go on, if there is time.

    Parameters
    ----------
    doing : str
        What is going on, for the message.

    Raises
    ------
    OutOfTime
        If the budget is exhausted.
    """
    budget = _BUDGET.get(_FREE)
    if budget.exhausted:
        raise OutOfTime(f"{budget.why_exhausted} while loading the instance: {doing}")


def tick(doing: str) -> None:
    """Ask now and then, where one thing of very many is made."""
    if next(_ticks) % STEP == 0:
        ask(doing)


def counted(items: Iterable[_T], total: int, what: str) -> Iterator[_T]:
    """Pass items on; ask now and then whether to stop, and report the progress.

    Parameters
    ----------
    items : iterable
        What is made.
    total : int
        How many there will be.
    what : str
        What they are called.

    Raises
    ------
    OutOfTime
        If the budget is exhausted.
    """
    rest, done = iter(items), 0
    while some := tuple(islice(rest, STEP)):
        yield from some
        done += len(some)
        if len(some) == STEP:  # what is small is made whatever the limit: its method may still tell a bound
            ask(f"{done:,} of {total:,} {what}")
        if done % TOLD == 0:
            say(f"{done:,} of {total:,} {what}")
