"""Portfolio of engines: attempts on several forms of a network, until the bound is met or attempts run out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice, product
from math import prod

import numpy as np

from ...algorithms.graphs.bits import ANY, RARE_OF_64, RAREST
from ...algorithms.graphs.translations import ColouredNetwork, Motion, find_reflections
from ...algorithms.matching.events import IGNORE, INSIST, PREFER, ChoiceRule, gather_by_events, match_in_turns
from ...algorithms.matching.network import RankNetwork, reaches_all, restrict_to_members, reversed_arcs
from ...algorithms.matching.step_matching import GatherStream, TransferRows, gather_in_steps, room_for, stream_bytes
from ...core.budget import Budget, require_streamable
from ...core.collective import Collective
from ...core.equal_steps import Digest, StreamedSteps, send_images
from ...core.schedule import Bools, Ints
from ...core.trees import TreeKind

#: Words of 64 chunks that a link of a stream searches for a chunk that no other neighbour has; with many chunks, one.
_SEARCHED_WORDS, _FEW_CHUNKS = 4, 4096

_BLOCKS_PER_MESSAGE = 50  #: Blocks of a stream from one progress message to the next.

#: With more chunks than this, the rarest chunk is sought in a sample (``RARE_OF_64``), not among all.
_MAX_CHUNKS_FOR_RAREST = 1024

#: Attempts by symmetry: each takes a part of the time of one on all links, and meets the bound of a torus more often.
_SYMMETRIC_ATTEMPTS = 3

#: Attempts in steps with random chunks; later attempts prefer the rarest. Forms take turns of twice as many attempts.
_RANDOM_ATTEMPTS = 3

_NO_LIMIT = 2**62  #: Larger than any tick.


def make_stream(arcs: RankNetwork, copies: int, motions: Sequence[Motion], seed: int) -> GatherStream:
    """Return an all-gather whose steps are computed on demand, when it is iterated over."""
    words = _SEARCHED_WORDS if arcs.ranks * copies <= _FEW_CHUNKS else 1
    images = send_images(motions, arcs.head, arcs.ranks, copies)
    return GatherStream(arcs.incoming, images, copies, words, seed)


def can_stream(arcs: RankNetwork, links: int, members: Bools, kind: Collective) -> bool:
    """Return whether all ranks take part over equal links; for an all-reduce, every link needs a reverse."""
    is_streamable = bool(members.all()) and len(arcs.tail) == links and arcs.has_equal_arcs
    if not is_streamable or kind is not Collective.ALL_REDUCE:
        return is_streamable
    forward, reverse = arcs.tail * arcs.ranks + arcs.head, arcs.head * arcs.ranks + arcs.tail
    return bool((np.sort(forward) == np.sort(reverse)).all())


def run_stream(
    sha256: str, arcs: RankNetwork, copies: int, trees: TreeKind, motions: Sequence[Motion], budget: Budget
) -> StreamedSteps | None:
    """Count and hash all steps of a stream; None if a rank lacks a chunk or the budget runs out."""
    arcs, translations = reversed_arcs(arcs) if trees is TreeKind.IN else arcs, tuple(each for each, _ in motions)
    sends, images = arcs.ranks * copies * (arcs.ranks - 1), prod(each.order for each in translations)
    require_streamable(sends, images, 2 * stream_bytes(arcs, copies, translations))
    stream = make_stream(arcs, copies, motions, budget.seed)
    digest, steps, count = Digest(), 0, 0
    for number, block in enumerate(stream()):
        digest.add(block)
        steps, count = steps + len(block), count + images * int((block >= 0).sum())
        if number % _BLOCKS_PER_MESSAGE == _BLOCKS_PER_MESSAGE - 1:
            budget.progress(f"{steps:,} steps, {count:,} of {sends:,} sends")
        if budget.is_exhausted:
            return None
    return StreamedSteps(sha256, trees, steps, count, digest.hex(), stream, translations) if count == sends else None


@dataclass(frozen=True, eq=False)
class SynthesizedGather:
    """An all-gather over arcs."""

    arcs: RankNetwork
    rows: TransferRows  #: Transfers, with starts in ticks.
    ticks: int  #: Tick of the last arrival.
    engine: str  #: Engine and network that found it, in words.
    attempts: int


#: Makes an attempt: fills the given rows, and returns the tick of the last arrival and the number of rows. An attempt
#: that cannot end before the given tick may be given up; then it returns 0 ticks.
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
    """Return the shortest all-gather of several attempts; None if none succeeded.

    ``networks`` has the network in several forms, with their names. A schedule that meets the bound in ticks ends the
    search. The budget gives the seed, and is checked before every attempt but the first; ``variant`` is ``paper`` or
    ``portfolio``.
    """
    usable = [(name, arcs) for name, arcs in networks if reaches_all(arcs, members, through_members=False)]
    rows: TransferRows | None = None
    best: SynthesizedGather | None = None
    attempts = 0
    for arcs, name, engine in islice(_attempts(usable, owner, members, bound, budget.seed, variant), restarts):
        if best is not None and budget.is_exhausted:
            break
        attempts += 1
        rows = rows or room_for((len(members) - 1) * len(owner))
        ticks, rows_used = engine(best.ticks if best else _NO_LIMIT, rows)
        if ticks and (best is None or ticks < best.ticks):
            best = SynthesizedGather(
                arcs, TransferRows(*(column[:rows_used] for column in rows)), ticks, name, attempts
            )
            rows = None  # the best schedule keeps its rows
            if ticks <= bound:
                break
    return None if best is None else replace(best, attempts=attempts)


def _attempts(
    networks: list[tuple[str, RankNetwork]], owner: Ints, members: Bools, bound: int, seed: int, variant: str
) -> Iterator[tuple[RankNetwork, str, Engine]]:
    """Yield attempts without end: network, description, engine; those most likely to meet the bound first."""
    if not networks:
        return
    forms: list[tuple[str, RankNetwork]] = []
    for name, arcs in networks:
        if not members.all() and reaches_all(arcs, members, through_members=True):
            forms.append((name, restrict_to_members(arcs, members)))
        forms.append((name, arcs))
    if variant == "paper":
        for attempt in count():
            name, arcs = forms[attempt % len(forms)]
            yield arcs, f"paper {name}", partial(match_in_turns, arcs.tables, owner, members, _mix_seed(seed, attempt))
    if all(arcs.has_equal_arcs for _, arcs in forms):
        if members.all() and len(forms) == 1:
            (_, arcs), ranks = forms[0], np.arange(len(members))
            same = np.zeros_like(arcs.tail)
            motions = find_reflections(ColouredNetwork(np.zeros_like(ranks), arcs.tail, arcs.head, same, ranks))
            for attempt, group in enumerate([motions] * (_SYMMETRIC_ATTEMPTS if motions else 0) + [[]]):
                label = "steps, by symmetry" if group else "steps, as they come"
                yield arcs, label, _stream_engine(arcs, owner, group, _mix_seed(seed, attempt))
        for attempt in count():
            name, arcs = forms[attempt // (2 * _RANDOM_ATTEMPTS) % len(forms)]
            rarest = RAREST if len(owner) <= _MAX_CHUNKS_FOR_RAREST else RARE_OF_64
            choice = ANY if attempt < _RANDOM_ATTEMPTS else rarest
            label = ("any", "rarest", "rare of 64")[choice]
            yield arcs, f"steps, {label}", _step_engine(arcs, owner, members, choice, _mix_seed(seed, attempt))
    rules = list(product((RAREST, ANY), (True, False), (PREFER, INSIST, IGNORE)))
    for attempt in count():
        for (choice, deadline, islands), (name, arcs) in product(rules, forms):
            if (islands != IGNORE and arcs.tables.islands == 0) or (deadline and not arcs.has_own_ports):
                continue  # the rule does not apply to this network
            rule = ChoiceRule(choice, islands, deadline, True, _mix_seed(seed, attempt))
            label = ("no islands", "new to islands first", "new to islands alone")[islands]
            engine = partial(gather_by_events, arcs.tables, owner, members, rule, bound)
            yield arcs, f"events, {name}, {label}", engine


def _mix_seed(seed: int, attempt: int) -> int:
    return (seed * 1_000_003 + attempt) & 0x7FFFFFFF


def _step_engine(arcs: RankNetwork, owner: Ints, members: Bools, choice: int, seed: int) -> Engine:
    """Return an engine that matches in steps; limits and starts are converted between steps and ticks."""
    tick = int(arcs.ticks[0])

    def run(limit: int, rows: TransferRows) -> tuple[int, int]:
        steps, size = gather_in_steps(arcs.incoming, owner, members, choice, seed, -(-limit // tick), rows)
        rows.start[:size] *= tick
        return steps * tick, size

    return run


def _stream_engine(arcs: RankNetwork, owner: Ints, motions: Sequence[Motion], seed: int) -> Engine:
    """Return an engine that writes down the transfers of a stream, whose chunks are numbered rank by rank."""
    tick, numbers = int(arcs.ticks[0]), np.argsort(owner, kind="stable")

    def run(limit: int, rows: TransferRows) -> tuple[int, int]:
        steps, size, stream = 0, 0, make_stream(arcs, len(owner) // arcs.ranks, motions, seed)
        for block in stream():
            step, arc, chunk = stream.images.expand(block)
            here = slice(size, size + len(arc))
            rows.arc[here], rows.chunk[here], rows.head[here] = arc, numbers[chunk], arcs.head[arc]
            rows.start[here] = (steps + step) * tick
            steps, size = steps + len(block), here.stop
        complete = size == (arcs.ranks - 1) * len(owner) and steps * tick < limit
        return (steps * tick if complete else 0), size

    return run
