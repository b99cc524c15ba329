"""A node that is lost, replaced chunk by chunk by one that has exchanged the chunk with it.

What was sent to the lost node is sent to its *stand-in*, and what it sent on the stand-in sends. So only those that had
to do with the lost node send or receive anything else than before. Which node stands in is chosen by what its links
carry already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...core.errors import Unsupported
from ...core.schedule import Schedule, StepSchedule
from .changes import Change
from .contributions import Move, Way, mended, ways
from .loads import Loads

#: Nodes that are tried in place of a lost one, for every chunk.
MOST_CANDIDATES = 16


def stand_in(change: Change, answer: StepSchedule | Schedule, loads: Loads) -> Iterator[list[Move]]:
    """Sends of every chunk once others stand in for lost nodes.

    Parameters
    ----------
    change : Change
        Of the network.
    answer : StepSchedule or Schedule
        The schedule, right on the old network.
    loads : Loads
        What links carry with the sends that stay.

    Yields
    ------
    list of Move
        For one chunk after the other; none where all who had it, or all who lacked it, are gone.

    Raises
    ------
    Unsupported
        If sums of a chunk would count a contribution twice whoever stands in.
    """
    lost, sizes = change.lost, answer.chunks.sizes_bytes
    for way in ways(answer, change.old.rank_nodes):
        if not way.without(set(lost)).lacking:
            yield []
            continue
        left = way
        for node in lost:
            left = _replaced(left.without({node}), node, float(sizes[way.chunk]), loads)
        yield left.moves


def _replaced(way: Way, lost: int, size: float, loads: Loads) -> Way:
    """A chunk whose sends are made without one node."""
    if not any(lost in (move.source, move.target) for move in way.moves):
        return way
    rest = [move for move in way.moves if lost not in (move.source, move.target)]
    if (found := mended(way, rest)) is not None:
        return replace(way, moves=found)
    best: tuple[float, list[Move], list[Move]] | None = None
    for node in _candidates(way, lost):
        moves = [move for move in (_moved(move, lost, node) for move in way.moves) if move.source != move.target]
        found = mended(way, moves)
        if found is None:
            continue
        stay = {move.send: move for move in rest}
        new = [move for move in found if move.send not in stay]
        seconds = loads.seconds(((move.source, move.target) for move in new), size)
        if best is None or seconds < best[0]:
            best = seconds, found, new
    if best is None:
        raise Unsupported(f"sums of chunk {way.chunk} count a contribution twice whichever node stands in for it")
    loads.add(((move.source, move.target) for move in best[2]), size)
    return replace(way, moves=best[1])


def _candidates(way: Way, lost: int) -> list[int]:
    """Nodes that have sent the chunk to the lost one or got it from there, and others that had it at the start."""
    near = [move.source for move in way.moves if move.target == lost]
    near += [move.target for move in way.moves if move.source == lost]
    near += [] if way.reduced else list(way.held)
    return list(dict.fromkeys(near))[:MOST_CANDIDATES]


def _moved(move: Move, lost: int, node: int) -> Move:
    return replace(
        move,
        source=node if move.source == lost else move.source,
        target=node if move.target == lost else move.target,
    )
