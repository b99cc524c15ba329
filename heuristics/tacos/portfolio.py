"""The portfolio: which engine is tried on which network in which order, until the bound or the last attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count, islice, product

import numpy as np

from ...algorithms.graphs.bits import ANY, RARE_OF_64, RAREST
from ...algorithms.matching.events import IGNORE, INSIST, PREFER, ChoiceRule, gather_by_events, match_in_turns
from ...algorithms.matching.network import RankNetwork, reaches_all, restrict_to_members, reversed_arcs
from ...algorithms.matching.step_matching import GatherStream, TransferRows, bytes_of, gather_in_steps, room_for
from ...core.budget import Budget
from ...core.collective import Collective
from ...core.equal_steps import Digest, StreamedSteps
from ...core.limits import require_streamable
from ...core.schedule import Bools, Ints
from ...core.trees import TreeKind

#: Chunks of all ranks up to which several words are looked at for a chunk that no other neighbour has.
_FEW_CHUNKS = 4096

#: Blocks between two lines of progress.
_TOLD = 50


def stream_of(arcs: RankNetwork, owner: Ints, seed: int) -> GatherStream:
    """Make nothing yet: the steps come when they are asked for."""
    return GatherStream(arcs.incoming, len(arcs.tail), owner, 4 if len(owner) <= _FEW_CHUNKS else 1, seed)


def can_stream(arcs: RankNetwork, links: int, members: Bools, kind: Collective) -> bool:
    """Return whether all ranks take part over equal links; for an all-reduce, with equal reverse links."""
    fits = bool(members.all()) and len(arcs.tail) == links and arcs.has_equal_arcs
    if not fits or kind is not Collective.ALL_REDUCE:
        return fits
    ends = (arcs.tail, arcs.head), (arcs.head, arcs.tail)
    there, back = ((a * arcs.ranks + b) for a, b in ends)
    there.sort()
    back.sort()
    return bool((there == back).all())


def streamed_gather(
    sha256: str, arcs: RankNetwork, owner: Ints, trees: TreeKind, budget: Budget
) -> StreamedSteps | None:
    """Make all steps once and count them; None if not every rank gets everything, or the budget ends before."""
    sends = len(owner) * (arcs.ranks - 1)
    require_streamable(sends, 2 * bytes_of(arcs.ranks, len(owner)))
    stream = stream_of(reversed_arcs(arcs) if trees is TreeKind.IN else arcs, owner, budget.seed)
    digest, steps, made = Digest(), 0, 0
    for number, block in enumerate(stream()):
        digest.add(block)
        steps, made = steps + len(block), made + int((block >= 0).sum())
        if number % _TOLD == _TOLD - 1:
            budget.progress(f"{steps:,} steps, {made:,} of {sends:,} sends")
        if budget.is_exhausted:
            return None
    return StreamedSteps(sha256, trees, steps, made, digest.hex(), stream) if made == sends else None


#: Chunks of all ranks up to which the rarest chunk is looked for among all.
_RAREST_UP_TO = 1024

#: Attempts with random chunks before the rarest ones come first.
_RANDOM_FIRST = 3

#: Beyond every tick.
_NEVER = 2**62


@dataclass(frozen=True, eq=False)
class SynthesizedGather:
    """An all-gather over arcs. The rows' starts are in ticks; the last chunk arrives at tick ``ticks``."""

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

    Return the shortest; None if no attempt succeeded. ``networks`` has the network in several forms, with their names.
    A schedule that meets the bound in ticks ends the search. The budget is checked before every attempt but the first
    one, and gives the seed; ``variant`` is ``paper`` or ``portfolio``.
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
            yield arcs, f"paper {name}", partial(match_in_turns, arcs.tables, owner, members, _mix_seed(seed, turn))
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
            engine = partial(gather_by_events, arcs.tables, owner, members, rule, bound)
            yield arcs, f"events, {name}, {words}", engine


def _mix_seed(seed: int, turn: int) -> int:
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
