"""The portfolio: which engine is tried on which network in which order, until a schedule meets the bound or the attempts are used up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice, product

from ...core.budget import Budget
from ...core.schedule import Bools, Ints
from .bits import ANY, RARE_OF_64, RAREST
from .events import IGNORE, INSIST, PREFER, Taste, gather_by_events
from .network import Arcs, reaches_all, restricted
from .paper import match_in_turns
from .stepped import Rows, gather_in_steps, rows_for

#: Chunks of all ranks up to which the rarest chunk is looked for among all.
_RAREST_UP_TO = 1024

#: Attempts with random chunks before the rarest ones come first.
_RANDOM_FIRST = 3

#: Beyond every tick.
_NEVER = 2**62


@dataclass(frozen=True, eq=False)
class Gather:
    """An all-gather over arcs.

    Parameters
    ----------
    arcs : Arcs
        What the rows' arcs are the numbers of.
    rows : Rows
        Transfers, with starts in ticks.
    ticks : int
        When the last chunk arrives.
    engine : str
        What made it.
    attempts : int
        Attempts that were made in all.
    """

    arcs: Arcs
    rows: Rows
    ticks: int
    engine: str
    attempts: int


#: Makes an attempt that may be given up where it is not below a number of ticks: ``(ticks, rows)``, 0 ticks if it was.
Attempt = Callable[[int, Rows], tuple[int, int]]


def gather(
    networks: list[tuple[str, Arcs]],
    owner: Ints,
    members: Bools,
    bound: int,
    budget: Budget,
    *,
    variant: str,
    restarts: int,
) -> Gather | None:
    """Find a short all-gather.

    Parameters
    ----------
    networks : list of (str, Arcs)
        The network in several forms, with their names.
    owner : array of int, shape (chunks,)
        The rank that has each chunk.
    members : array of bool, shape (ranks,)
        The process group.
    bound : int
        Ticks that no schedule undercuts; a schedule of so many ends the search.
    budget : Budget
        Asked before every attempt but the first one; gives the seed.
    variant : str
        ``paper`` or ``portfolio``.
    restarts : int
        Number of attempts.

    Returns
    -------
    Gather or None
        The shortest; None if no attempt succeeded.
    """
    usable = [(name, arcs) for name, arcs in networks if reaches_all(arcs, members, through_members=False)]
    rows: Rows | None = None
    best: Gather | None = None
    made = 0
    for arcs, engine, attempt in islice(_attempts(usable, owner, members, bound, budget.seed, variant), restarts):
        if best is not None and budget.exhausted:
            break
        made += 1
        rows = rows or rows_for((len(members) - 1) * len(owner))
        ticks, used = attempt(best.ticks if best else _NEVER, rows)
        if ticks and (best is None or ticks < best.ticks):
            best = Gather(arcs, Rows(*(column[:used] for column in rows)), ticks, engine, made)
            rows = None  # the next attempt has room of its own
            if ticks <= bound:
                break
    return None if best is None else Gather(best.arcs, best.rows, best.ticks, best.engine, made)


def _attempts(
    networks: list[tuple[str, Arcs]], owner: Ints, members: Bools, bound: int, seed: int, variant: str
) -> Iterator[tuple[Arcs, str, Attempt]]:
    """Give attempts without end, those first that are the most likely to meet the bound soon."""
    if not networks:
        return
    forms: list[tuple[str, Arcs]] = []
    for name, arcs in networks:
        if not members.all() and reaches_all(arcs, members, through_members=True):
            forms.append((name, restricted(arcs, members)[0]))
        forms.append((name, arcs))
    if variant == "paper":
        for turn in count():
            name, arcs = forms[turn % len(forms)]
            yield arcs, f"paper {name}", _in_turns(arcs, owner, members, _mixed(seed, turn))
    if all(arcs.equal for _, arcs in forms):
        for turn in count():
            name, arcs = forms[turn // (2 * _RANDOM_FIRST) % len(forms)]
            how = ANY if turn < _RANDOM_FIRST else RAREST if len(owner) <= _RAREST_UP_TO else RARE_OF_64
            word = ("any", "rarest", "rare of 64")[how]
            yield arcs, f"steps, {word}", _in_steps(arcs, owner, members, how, _mixed(seed, turn))
    tastes = list(product((RAREST, ANY), (True, False), (PREFER, INSIST, IGNORE)))
    for turn in count():
        for (how, deadline, groups), (name, arcs) in product(tastes, forms):
            if (groups != IGNORE and arcs.roads.islands == 0) or (deadline and not arcs.alone):
                continue
            taste = Taste(how, groups, deadline, True, _mixed(seed, turn))
            words = ("no islands", "new to islands first", "new to islands alone")[groups]
            yield arcs, f"events, {name}, {words}", _by_events(arcs, owner, members, taste, bound)


def _mixed(seed: int, turn: int) -> int:
    """Make one seed of two."""
    return (seed * 1_000_003 + turn) & 0x7FFFFFFF


def _in_steps(arcs: Arcs, owner: Ints, members: Bools, how: int, seed: int) -> Attempt:
    tick = int(arcs.ticks[0])

    def run(limit: int, rows: Rows) -> tuple[int, int]:
        steps, used = gather_in_steps(arcs.inwards, owner, members, how, seed, -(-limit // tick), rows)
        rows.start[:used] *= tick
        return steps * tick, used

    return run


def _in_turns(arcs: Arcs, owner: Ints, members: Bools, seed: int) -> Attempt:
    return lambda limit, rows: match_in_turns(arcs.roads, owner, members, seed, limit, rows)


def _by_events(arcs: Arcs, owner: Ints, members: Bools, taste: Taste, bound: int) -> Attempt:
    return lambda limit, rows: gather_by_events(arcs.roads, owner, members, taste, bound, limit, rows)
