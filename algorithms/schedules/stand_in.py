"""Replacement of a lost node, chunk by chunk, by one that has exchanged the chunk with it.

Data sent to the lost node goes to its *stand-in*, which also makes the lost node's sends. So only the lost node's
partners send or receive anything different. The stand-in is chosen by the present loads of its links. Sends of a chunk
are replayed to find the contributions that every node has when some are missing: bits of an integer; a chunk that is
only copied has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ...core.errors import InputError, Unsupported
from ...core.schedule import Chunks, Ints, Schedule, StepSchedule
from .changes import Change, Loads


@dataclass(frozen=True)
class Move:
    """Send of a chunk."""

    source: int  #: sending and receiving node of the chunk
    target: int
    reduce: bool  #: True if the target adds the data to its own
    read: float  #: times at which the source is read and the target written; at equal times writes come before reads
    write: float
    send: int  #: index of this send, or of the send that it replaces, in the schedule


@dataclass(frozen=True)
class ChunkMoves:
    """One chunk of a schedule with its sends."""

    chunk: int
    reduced: bool  #: True if contributions are summed
    held: Mapping[int, int]  #: contributions of nodes at the start
    needed: tuple[int, ...]  #: nodes that need all contributions at the end
    moves: list[Move]

    @property
    def whole(self) -> int:
        """All contributions together."""
        found = 0
        for contribution in self.held.values():
            found |= contribution
        return found

    @property
    def lacking(self) -> list[int]:
        """Nodes that need contributions they do not have at the start; none without holders."""
        whole = self.whole
        return [node for node in self.needed if self.held.get(node, 0) != whole] if whole else []

    def without(self, lost: set[int]) -> ChunkMoves:
        """Return the chunk without some nodes as holders and receivers, with the same sends."""
        held = {node: what for node, what in self.held.items() if node not in lost}
        return replace(self, held=held, needed=tuple(node for node in self.needed if node not in lost))


def ways(answer: StepSchedule | Schedule, node_of: tuple[int, ...]) -> Iterator[ChunkMoves]:
    """Yield every chunk with its sends; ``node_of`` is the node of every rank."""
    sends, chunks = answer.sends, answer.chunks
    if isinstance(answer, StepSchedule):
        read, write = 2.0 * answer.step, 2.0 * answer.step + 1
    else:
        read, write = answer.start_s, answer.end_s
    order = np.argsort(sends.chunk, kind="stable")
    ends = np.searchsorted(sends.chunk[order], np.arange(len(chunks) + 1))
    columns = sends.source, sends.target, sends.reduce, read, write
    rows = list(zip(*(column[order].tolist() for column in columns), order.tolist(), strict=True))
    for chunk, (first, last) in enumerate(pairwise(ends.tolist())):
        yield _way(chunks, chunk, node_of, [Move(*row) for row in rows[first:last]])


def _way(chunks: Chunks, chunk: int, node_of: tuple[int, ...], moves: list[Move]) -> ChunkMoves:
    reduced = bool(chunks.reduced[chunk])
    holders = chunks.groups[int(chunks.held_by[chunk])]
    held = {node_of[rank]: 1 << place if reduced else 1 for place, rank in enumerate(holders)}
    needed = tuple(node_of[rank] for rank in chunks.groups[int(chunks.needed_by[chunk])])
    return ChunkMoves(chunk, reduced, held, needed, moves)


def replay(way: ChunkMoves, moves: Iterable[Move] | None = None) -> dict[int, int]:
    """Return the final contributions of every node; by default all sends are made."""
    has = dict(way.held)
    for move, what in _writes(way.moves if moves is None else moves, has):
        if what:
            has[move.target] = has.get(move.target, 0) | what if move.reduce else what
    return has


def drop_repeated_sums(way: ChunkMoves, moves: Iterable[Move]) -> list[Move] | None:
    """Return the useful ones of some sends, adjusted to count no contribution twice; None if impossible.

    A send that brings nothing new is left out. One that brings all that its target has, and more, becomes a copy;
    an adding send to a target without data still adds, so that it may come in any order with others. None if a
    contribution would count twice, or not all receivers are served.
    """
    has = dict(way.held)
    kept: list[Move] = []
    for move, what in _writes(moves, has):
        there = has.get(move.target, 0)
        if what | there == there:
            continue
        adds = bool(what & there != there) or (move.reduce and not there)
        if adds and what & there:
            return None
        kept.append(replace(move, reduce=adds))
        has[move.target] = there | what
    whole = way.whole
    return kept if all(has.get(node, 0) == whole for node in way.needed) else None


def depths(answer: StepSchedule | Schedule, node_of: tuple[int, ...]) -> Ints:
    """Return the length of the longest chain of sends of the same chunk before each send."""
    depth = np.zeros(len(answer.sends), dtype=np.int64)
    for way in ways(answer, node_of):
        after: dict[int, int] = {}
        for move, deep in _writes(way.moves, after):
            depth[move.send] = deep
            after[move.target] = max(after.get(move.target, 0), deep + 1)
    return depth


def _writes(moves: Iterable[Move], has: dict[int, int]) -> Iterator[tuple[Move, int]]:
    """Yield sends in the order of their writes, with the data they have read."""
    given = list(moves)
    events = sorted(
        [(move.read, 1, number) for number, move in enumerate(given)]
        + [(move.write, 0, number) for number, move in enumerate(given)]
    )
    carried: dict[int, int] = {}
    for _, reads, number in events:
        if reads:
            carried[number] = has.get(given[number].source, 0)
        elif number in carried:
            yield given[number], carried[number]
        else:
            raise InputError("a send has zero duration; expected a positive one", place="sends")


def served_share(answer: StepSchedule | Schedule, node_of: tuple[int, ...], lost: set[int], gone: set[int]) -> float:
    """Return the fraction, by bytes, of lacking data that ranks still receive without lost nodes and ``gone`` sends."""
    wanted = came = 0
    for way in ways(answer, node_of):
        left = way.without(lost)
        whole, lacking = left.whole, left.lacking
        if not lacking:
            continue
        has = replay(
            left, [m for m in way.moves if m.send not in gone and m.source not in lost and m.target not in lost]
        )
        units = int(answer.chunks.units[way.chunk])
        wanted += units * len(lacking)
        came += units * sum(has.get(node, 0) == whole for node in lacking)
    return came / wanted if wanted else 1.0


MOST_CANDIDATES = 16  #: nodes that are tried in place of a lost one, for every chunk


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
        move, source=node if move.source == lost else move.source, target=node if move.target == lost else move.target
    )
