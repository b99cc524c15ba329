"""Schedules of more sends than are written down: made step by step, counted, and made again for whoever looks."""

from __future__ import annotations

from dataclasses import dataclass

from ...algorithms.matching.network import RankNetwork, reversed_arcs
from ...algorithms.matching.step_matching import GatherStream, bytes_of
from ...core.budget import Budget
from ...core.collective import Collective
from ...core.equal_steps import Digest
from ...core.limits import require_streamable
from ...core.schedule import Bools, Ints

#: Chunks of all ranks up to which several words are looked at for a chunk that no other neighbour has.
_FEW_CHUNKS = 4096

#: Blocks between two lines of progress.
_TOLD = 50


@dataclass(frozen=True, eq=False)
class StreamedGather:
    """An all-gather that has been made once, and can be repeated.

    Parameters
    ----------
    stream : GatherStream
        Generator that makes it again.
    """

    stream: GatherStream
    steps: int
    sends: int
    digest: str


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


def streamed_gather(arcs: RankNetwork, owner: Ints, kind: Collective, budget: Budget) -> StreamedGather | None:
    """Make all steps once and count them; None if not every rank gets everything, or the budget ends before."""
    sends = len(owner) * (arcs.ranks - 1)
    require_streamable(sends, 2 * bytes_of(arcs.ranks, len(owner)))
    stream = stream_of(reversed_arcs(arcs) if kind is Collective.REDUCE_SCATTER else arcs, owner, budget.seed)
    digest, steps, made = Digest(), 0, 0
    for number, block in enumerate(stream()):
        digest.add(block)
        steps, made = steps + len(block), made + int((block >= 0).sum())
        if number % _TOLD == _TOLD - 1:
            budget.progress(f"{steps:,} steps, {made:,} of {sends:,} sends")
        if budget.is_exhausted:
            return None
    return StreamedGather(stream, steps, made, digest.hex()) if made == sends else None
