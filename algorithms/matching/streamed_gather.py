"""Matching on equal links, step by step, that stores only the state and no schedule.

In every step each rank goes through its links and lets each take a chunk that its tail has and it lacks, preferably
one that no other neighbour has. The search begins at the word where the link last found something and is decided by
the first words with something to take, so that a send costs a few words, however many chunks there are. A link that
found nothing looks only at what its tail has received since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Ints
from ..graphs.bits import draw, low_bit, seed_state
from .network import IncomingArcs

_BLOCK = 2**22  #: sends that a block has room for: some 16 MiB, and less than half a second


class StreamState(NamedTuple):
    """Chunks of every rank, and the places where links search first."""

    #: uint64 (words, ranks) chunks of every rank; the words of neighbours, which are read together, are adjacent
    have: Any
    lacking: Any
    word: Any  #: (arcs,) word in which each arc last found a chunk; arcs are ordered by the ranks that they enter
    dry: Any  #: bool (arcs,) True for arcs that found nothing
    #: (arcs,) the chunk that each takes in this step, and took in the one before; -1 for none
    given: Any
    last: Any
    random: Any


@dataclass(frozen=True, eq=False)
class GatherStream:
    """All-gather of all ranks, with steps made on demand."""

    into: IncomingArcs
    arcs: int
    owner: Ints  #: (chunks,) the rank that has each chunk at the start
    exclusive: int  #: nonempty words searched for a chunk that no other neighbour has
    seed: int

    def __call__(self) -> Iterator[Any]:
        """Yield blocks of shape (steps, arcs) with the chunk of each arc, until nothing more is sent."""
        state = _start(self.into, self.arcs, self.owner, self.seed)
        room = max(1, _BLOCK // max(self.arcs, 1))
        done = room
        while done == room:
            block = np.full((room, self.arcs), -1, dtype=np.int32)
            done = gather_block(self.into, state, self.exclusive, block)
            if done:
                yield block[:done]


def bytes_of(ranks: int, chunks: int) -> int:
    """Return the memory in bytes of a running stream."""
    return ranks * (chunks + 63) // 64 * 8 + 8 * _BLOCK


def _start(into: IncomingArcs, arcs: int, owner: Ints, seed: int) -> StreamState:
    """Return the state in which only owners have their chunks; every arc first searches its tail's."""
    ranks, chunks = len(into.first) - 1, len(owner)
    have = np.zeros(((chunks + 63) // 64, ranks), dtype=np.uint64)
    number = np.arange(chunks)
    np.bitwise_or.at(have, (number >> 6, owner), np.uint64(1) << (number & 63).astype(np.uint64))
    first_chunk = np.zeros(ranks, dtype=np.int64)
    first_chunk[owner[::-1]] = number[::-1]
    lacking = chunks - np.bincount(owner, minlength=ranks)
    nothing = np.full(arcs, -1, dtype=np.int64)
    word = first_chunk[into.tail] >> 6
    return StreamState(have, lacking, word, np.zeros(arcs, np.bool_), nothing, nothing.copy(), seed_state(seed))


@kernel
def gather_block(into: IncomingArcs, state: StreamState, exclusive: int, block: Any) -> int:
    """Make steps until the block is full or nothing is sent; return their number."""
    for step in range(len(block)):
        _match(into.first, into.tail, state, exclusive)
        if _pass_on(into.first, into.arc, state, block[step]) == 0:
            return step
    return len(block)


@kernel
def _match(first: Any, tail: Any, state: StreamState, exclusive: int) -> None:  # noqa: PLR0912 (one loop)
    """Let the arcs into every rank take chunks.

    This is one function, since calls in the inner loop take as long as the loop. A dry arc is tried again if its
    tail has since received something that its head lacks.
    """
    have, word, dry, given, last = state.have, state.word, state.dry, state.given, state.last
    one, none = np.uint64(1), np.uint64(0)
    words = len(have)
    for rank in range(len(state.lacking)):
        begin, end = first[rank], first[rank + 1]
        for place in range(begin, end):
            given[place] = -1
        if state.lacking[rank] == 0:
            continue
        turn, bit = draw(state.random, end - begin), draw(state.random, 64)
        right, left = np.uint64(bit), np.uint64((64 - bit) & 63)
        for index in range(end - begin):
            place = begin + (index + turn) % (end - begin)
            source = tail[place]
            if dry[place]:
                for other in range(first[source], first[source + 1]):
                    chunk = last[other]
                    if chunk >= 0 and not (have[chunk >> 6, rank] >> np.uint64(chunk & 63)) & one:
                        dry[place], word[place] = False, chunk >> 6
                if dry[place]:
                    continue
            at, best, looked, offered = word[place], -1, 0, False
            for _ in range(words):
                offer = have[at, source] & ~have[at, rank]
                if offer != none:
                    offered = True
                    for other in range(begin, end):
                        if given[other] >= 0 and given[other] >> 6 == at:
                            offer &= ~(one << np.uint64(given[other] & 63))
                if offer != none:
                    alone = offer
                    for other in range(begin, end):
                        if other != place:
                            alone &= ~have[at, tail[other]]
                    if best < 0 or alone != none:
                        some = alone if alone != none else offer
                        best = (at << 6) + ((low_bit((some >> right) | (some << left)) + bit) & 63)
                    looked += 1
                    if alone != none or looked >= exclusive:
                        break
                at += 1
                if at == words:
                    at = 0
            if best >= 0:
                given[place], word[place] = best, best >> 6
            elif not offered:
                dry[place] = True


@kernel
def _pass_on(first: Any, arc: Any, state: StreamState, row: Any) -> int:
    """Deliver the chunks and record them; return their number."""
    have, lacking, given, last = state.have, state.lacking, state.given, state.last
    sent = 0
    for rank in range(len(lacking)):
        for place in range(first[rank], first[rank + 1]):
            chunk = given[place]
            last[place] = chunk
            if chunk >= 0:
                have[chunk >> 6, rank] |= np.uint64(1) << np.uint64(chunk & 63)
                lacking[rank] -= 1
                row[arc[place]] = chunk
                sent += 1
    return sent
