"""The portfolio: which engine is tried on which network in which order, until the bound or the last attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice, product

import numpy as np

from ...algorithms.graphs.bits import ANY, RARE_OF_64, RAREST
from ...algorithms.matching.events import IGNORE, INSIST, PREFER, ChoiceRule, gather_by_events, match_in_turns
from ...algorithms.matching.network import RankNetwork, reaches_all, restrict_to_members
from ...algorithms.matching.step_matching import TransferRows, gather_in_steps, room_for
from ...core.budget import Budget
from ...core.schedule import Bools, Ints
from .stream import stream_of

#: Chunks of all ranks up to which the rarest chunk is looked for among all.
_RAREST_UP_TO = 1024

#: Attempts with random chunks before the rarest ones come first.
_RANDOM_FIRST = 3

#: Beyond every tick.
_NEVER = 2**62


@dataclass(frozen=True, eq=False)
class SynthesizedGather:
    """An all-gather over arcs.

    Parameters
    ----------
    arcs : RankNetwork
        Network whose arcs the rows number.
    rows : TransferRows
        Transfers, with starts in ticks.
    ticks : int
        Tick at which the last chunk arrives.
    """

    arcs: RankNetwork
    rows: TransferRows
    ticks: int
    engine: str
    attempts: int


#: Makes an attempt that may be given up where it is not below a number of ticks: ``(ticks, rows)``, 0 ticks if it was.
Engine = Callable[[int, TransferRows], tuple[int, int]]


def gather(
    networks: list[tuple[str, RankNetwork]],
    owner: Ints,
    members: Bools,
    bound: int,
    budget: Budget,
    *,
    variant: str,
    restarts: int,
) -> SynthesizedGather | None:
    """Find a short all-gather.

    Parameters
    ----------
    networks : list of (str, RankNetwork)
        The network in several forms, with their names.
    bound : int
        Lower bound in ticks; a schedule that meets it ends the search.
    budget : Budget
        Checked before every attempt but the first one; gives the seed.
    variant : str
        Search to run, ``paper`` or ``portfolio``.
    restarts : int
        Number of attempts to make.

    Returns
    -------
    SynthesizedGather or None
        The shortest; None if no attempt succeeded.
    """
    usable = [(name, arcs) for name, arcs in networks if reaches_all(arcs, members, through_members=False)]
    rows: TransferRows | None = None
    best: SynthesizedGather | None = None
    made = 0
    for arcs, engine, attempt in islice(_attempts(usable, owner, members, bound, budget.seed, variant), restarts):
        if best is not None and budget.is_exhausted:
            break
        made += 1
        rows = rows or room_for((len(members) - 1) * len(owner))
        ticks, used = attempt(best.ticks if best else _NEVER, rows)
        if ticks and (best is None or ticks < best.ticks):
            best = SynthesizedGather(arcs, TransferRows(*(column[:used] for column in rows)), ticks, engine, made)
            rows = None  # the next attempt has room of its own
            if ticks <= bound:
                break
    return None if best is None else SynthesizedGather(best.arcs, best.rows, best.ticks, best.engine, made)


def _attempts(
    networks: list[tuple[str, RankNetwork]], owner: Ints, members: Bools, bound: int, seed: int, variant: str
) -> Iterator[tuple[RankNetwork, str, Engine]]:
    """Yield attempts without end, those most likely to meet the bound first."""
    if not networks:
        return
    forms: list[tuple[str, RankNetwork]] = []
    for name, arcs in networks:
        if not members.all() and reaches_all(arcs, members, through_members=True):
            forms.append((name, restrict_to_members(arcs, members)))
        forms.append((name, arcs))
    if variant == "paper":
        for turn in count():
            name, arcs = forms[turn % len(forms)]
            yield arcs, f"paper {name}", _turn_engine(arcs, owner, members, _mix_seed(seed, turn))
    if all(arcs.has_equal_arcs for _, arcs in forms):
        if members.all() and len(forms) == 1:
            yield forms[0][1], "steps, as they come", _stream_engine(forms[0][1], owner, _mix_seed(seed, 0))
        for turn in count():
            name, arcs = forms[turn // (2 * _RANDOM_FIRST) % len(forms)]
            how = ANY if turn < _RANDOM_FIRST else RAREST if len(owner) <= _RAREST_UP_TO else RARE_OF_64
            word = ("any", "rarest", "rare of 64")[how]
            yield arcs, f"steps, {word}", _step_engine(arcs, owner, members, how, _mix_seed(seed, turn))
    rules = list(product((RAREST, ANY), (True, False), (PREFER, INSIST, IGNORE)))
    for turn in count():
        for (how, deadline, groups), (name, arcs) in product(rules, forms):
            if (groups != IGNORE and arcs.tables.islands == 0) or (deadline and not arcs.alone):
                continue
            rule = ChoiceRule(how, groups, deadline, True, _mix_seed(seed, turn))
            words = ("no islands", "new to islands first", "new to islands alone")[groups]
            yield arcs, f"events, {name}, {words}", _event_engine(arcs, owner, members, rule, bound)


def _mix_seed(seed: int, turn: int) -> int:
    """Combine two seeds into one."""
    return (seed * 1_000_003 + turn) & 0x7FFFFFFF


def _step_engine(arcs: RankNetwork, owner: Ints, members: Bools, how: int, seed: int) -> Engine:
    tick = int(arcs.ticks[0])

    def run(limit: int, rows: TransferRows) -> tuple[int, int]:
        steps, used = gather_in_steps(arcs.incoming, owner, members, how, seed, -(-limit // tick), rows)
        rows.start[:used] *= tick
        return steps * tick, used

    return run


def _stream_engine(arcs: RankNetwork, owner: Ints, seed: int) -> Engine:
    tick = int(arcs.ticks[0])

    def run(limit: int, rows: TransferRows) -> tuple[int, int]:
        steps, used = 0, 0
        for block in stream_of(arcs, owner, seed)():
            step, arc = np.nonzero(block >= 0)
            here = slice(used, used + len(arc))
            rows.arc[here], rows.chunk[here], rows.head[here] = arc, block[step, arc], arcs.head[arc]
            rows.start[here] = (steps + step) * tick
            steps, used = steps + len(block), here.stop
        complete = used == (arcs.ranks - 1) * len(owner) and steps * tick < limit
        return (steps * tick if complete else 0), used

    return run


def _turn_engine(arcs: RankNetwork, owner: Ints, members: Bools, seed: int) -> Engine:
    return lambda limit, rows: match_in_turns(arcs.tables, owner, members, seed, limit, rows)


def _event_engine(arcs: RankNetwork, owner: Ints, members: Bools, rule: ChoiceRule, bound: int) -> Engine:
    return lambda limit, rows: gather_by_events(arcs.tables, owner, members, rule, bound, limit, rows)
