"""Replacement of a lost node, chunk by chunk, by one that has exchanged the chunk with it.

Data sent to the lost node goes to its *stand-in*, which also makes the lost node's sends. So only the lost node's
partners send or receive anything different. The stand-in is chosen by the present loads of its links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...core.errors import Unsupported
from ...core.schedule import Schedule, StepSchedule
from .changes import Change
from .contributions import ChunkMoves, Move, drop_repeated_sums, ways
from .loads import Loads

#: Nodes that are tried in place of a lost one, for every chunk.
MOST_CANDIDATES = 16


def stand_in(change: Change, answer: StepSchedule | Schedule, loads: Loads) -> Iterator[list[Move]]:
    """Yield the sends of every chunk after others stand in for lost nodes.

    ``answer`` is correct on the old network; ``loads`` are those of the remaining sends. A chunk whose holders, or
    receivers, are all gone has none. Raise Unsupported if sums would count a contribution twice with any stand-in.
    """
    lost, sizes = change.lost, answer.chunks.sizes_bytes
    for way in ways(answer, change.old.rank_nodes):
        if not way.without(set(lost)).lacking:
            yield []
            continue
        left = way
        for node in lost:
            left = _replace_node(left.without({node}), node, float(sizes[way.chunk]), loads)
        yield left.moves


def _replace_node(way: ChunkMoves, lost: int, size: float, loads: Loads) -> ChunkMoves:
    """Return a chunk with sends that avoid one node."""
    if not any(lost in (move.source, move.target) for move in way.moves):
        return way
    rest = [move for move in way.moves if lost not in (move.source, move.target)]
    if (found := drop_repeated_sums(way, rest)) is not None:
        return replace(way, moves=found)
    best: tuple[float, list[Move], list[Move]] | None = None
    for node in _candidates(way, lost):
        moves = [move for move in (_move_ends(move, lost, node) for move in way.moves) if move.source != move.target]
        found = drop_repeated_sums(way, moves)
        if found is None:
            continue
        stay = {move.send: move for move in rest}
        new = [move for move in found if move.send not in stay]
        seconds = loads.seconds(((move.source, move.target) for move in new), size)
        if best is None or seconds < best[0]:
            best = seconds, found, new
    if best is None:
        raise Unsupported(f"sums of chunk {way.chunk} count a contribution twice with any replacement node")
    loads.add(((move.source, move.target) for move in best[2]), size)
    return replace(way, moves=best[1])


def _candidates(way: ChunkMoves, lost: int) -> list[int]:
    """List nodes that exchanged the chunk with the lost one, and other initial holders of copies."""
    near = [move.source for move in way.moves if move.target == lost]
    near += [move.target for move in way.moves if move.source == lost]
    near += [] if way.reduced else list(way.held)
    return list(dict.fromkeys(near))[:MOST_CANDIDATES]


def _move_ends(move: Move, lost: int, node: int) -> Move:
    return replace(
        move,
        source=node if move.source == lost else move.source,
        target=node if move.target == lost else move.target,
    )
