"""The way of one chunk from node to node, replayed: who has which contributions to it when a schedule lacks some sends.

What a node has of a chunk is a set of contributions, as bits of an integer; of a chunk that is only copied there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ...core.errors import InputError
from ...core.schedule import Chunks, Ints, Schedule, StepSchedule


@dataclass(frozen=True)
class Move:
    """A send of a chunk.

    Parameters
    ----------
    source, target : int
        Nodes.
    reduce : bool
        Whether the target adds what comes to what it has.
    read, write : float
        When the source's data is read, and the target's written; what is written when another one reads comes first.
    send : int
        The send of the schedule that it is, or takes the place of.
    """

    source: int
    target: int
    reduce: bool
    read: float
    write: float
    send: int


@dataclass(frozen=True)
class Way:
    """One chunk of a schedule.

    Parameters
    ----------
    chunk : int
        Which one.
    reduced : bool
        Whether contributions are summed.
    held : mapping of int to int
        What nodes have at the start.
    needed : tuple of int
        Nodes that need all contributions at the end.
    moves : list of Move
        Its sends.
    """

    chunk: int
    reduced: bool
    held: Mapping[int, int]
    needed: tuple[int, ...]
    moves: list[Move]

    @property
    def whole(self) -> int:
        """All contributions."""
        found = 0
        for contribution in self.held.values():
            found |= contribution
        return found

    @property
    def lacking(self) -> list[int]:
        """Nodes that need contributions which they do not have at the start; none if there are no holders."""
        whole = self.whole
        return [node for node in self.needed if self.held.get(node, 0) != whole] if whole else []

    def without(self, lost: set[int]) -> Way:
        """The same chunk and sends, where nodes neither hold nor need it any more."""
        held = {node: what for node, what in self.held.items() if node not in lost}
        return replace(self, held=held, needed=tuple(node for node in self.needed if node not in lost))


def ways(answer: StepSchedule | Schedule, node_of: tuple[int, ...]) -> Iterator[Way]:
    """The ways of all chunks; ``node_of`` is the node of every rank."""
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


def _way(chunks: Chunks, chunk: int, node_of: tuple[int, ...], moves: list[Move]) -> Way:
    reduced = bool(chunks.reduced[chunk])
    holders = chunks.groups[int(chunks.held_by[chunk])]
    held = {node_of[rank]: 1 << place if reduced else 1 for place, rank in enumerate(holders)}
    needed = tuple(node_of[rank] for rank in chunks.groups[int(chunks.needed_by[chunk])])
    return Way(chunk, reduced, held, needed, moves)


def replay(way: Way, moves: Iterable[Move] | None = None) -> dict[int, int]:
    """What every node has of a chunk at the end; sends are as they are written."""
    has = dict(way.held)
    for move, what in _writes(way.moves if moves is None else moves, has):
        if what:
            has[move.target] = has.get(move.target, 0) | what if move.reduce else what
    return has


def mended(way: Way, moves: Iterable[Move]) -> list[Move] | None:
    """The sends that are left of some when none adds what its target has; None if they do not serve all who need it.

    A send that brings nothing new is left out. One that brings all that its target has, and more, is copied.
    """
    has = dict(way.held)
    kept: list[Move] = []
    for move, what in _writes(moves, has):
        there = has.get(move.target, 0)
        if what | there == there:
            continue
        adds = bool(what & there != there)
        if adds and what & there:
            return None
        kept.append(replace(move, reduce=adds))
        has[move.target] = there | what
    whole = way.whole
    return kept if all(has.get(node, 0) == whole for node in way.needed) else None


def depths(answer: StepSchedule | Schedule, node_of: tuple[int, ...]) -> Ints:
    """How many sends of its chunk at most come one after the other before each send can leave."""
    depth = np.zeros(len(answer.sends), dtype=np.int64)
    for way in ways(answer, node_of):
        after: dict[int, int] = {}
        for move, deep in _writes(way.moves, after):
            depth[move.send] = deep
            after[move.target] = max(after.get(move.target, 0), deep + 1)
    return depth


def _writes(moves: Iterable[Move], has: dict[int, int]) -> Iterator[tuple[Move, int]]:
    """Sends in the order in which they write, with what they have read."""
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
            raise InputError("a send ends when it starts; expected that it takes time", place="sends")


def served(answer: StepSchedule | Schedule, node_of: tuple[int, ...], lost: set[int], gone: set[int]) -> float:
    """The part of what ranks lack at the start that still comes to them, by bytes.

    Parameters
    ----------
    answer : StepSchedule or Schedule
        The schedule.
    node_of : tuple of int
        The node of every rank.
    lost : set of int
        Nodes that are gone; what they alone have, or need, is not counted.
    gone : set of int
        Sends that are not made; those of lost nodes are not either.
    """
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
