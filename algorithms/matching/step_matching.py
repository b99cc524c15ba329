"""Matching on equal links, in steps: a maximum matching at every destination, or as a stream without a schedule.

Destinations are independent within a step (docs/methods/tacos.md). The stream stores only the state and no schedule. A
link that found nothing looks only at what its tail has received since.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...core.equal_steps import SendImages
from ...core.kernel import kernel
from ...core.schedule import offsets
from ...core.trees import Translation, least_images
from ..graphs.bits import ZERO, choose, draw, drop, has, low_bit, put, seed_state, shuffle
from ..graphs.network import mask_of
from .network import IncomingArcs, RankNetwork


class TransferRows(NamedTuple):
    """Transfers: arc, chunk, receiving rank, and start."""

    arc: Any
    chunk: Any
    head: Any
    start: Any


def room_for(count: int) -> TransferRows:
    """Allocate rows for so many transfers; only times need 64 bits."""
    arc, chunk, head = (np.empty(count, dtype=np.int32) for _ in range(3))
    return TransferRows(arc, chunk, head, np.empty(count, dtype=np.int64))


class ChunkState(NamedTuple):
    """Chunks of every rank."""

    have: Any  #: uint64 (ranks, words) set of chunks of every rank
    lacking: Any
    copies: Any  #: (chunks,) number of ranks that have each chunk, or are about to get it
    full: Any  #: uint64 (words,) set of all the chunks


class _Matching(NamedTuple):
    """Matching in progress, with working arrays for one destination."""

    into: IncomingArcs
    state: ChunkState
    rows: TransferRows
    how: int
    random: Any

    #: uint64 (words,) chunks that it lacks, those that exactly one neighbour has, and those that an arc may take
    miss: Any
    single: Any
    offer: Any
    choice: Any  #: (arcs,) the chunk that each of its arcs takes, and the order in which they choose
    order: Any
    before: Any  #: (arcs,) for augmenting paths: the predecessor of each arc, and the queue of the search
    queue: Any


@kernel
def start_state(ranks: int, owner: Any) -> ChunkState:
    """Return the state in which only the owners have their chunks."""
    m = len(owner)
    size = (m + 63) >> 6
    have, full = np.zeros((ranks, size), np.uint64), np.zeros(size, np.uint64)
    lacking = np.full(ranks, m, np.int64)
    for chunk in range(m):
        put(full, chunk)
        put(have[owner[chunk]], chunk)
        lacking[owner[chunk]] -= 1
    return ChunkState(have, lacking, np.ones(m, np.int64), full)


@kernel
def gather_in_steps(
    into: IncomingArcs, owner: Any, member: Any, how: int, seed: int, limit: int, rows: TransferRows
) -> tuple[int, int]:
    """Schedule an all-gather: deliver every chunk, at first only at its owner, to every member.

    Ranks that are no members only relay. ``how`` is that of :func:`~cwb.algorithms.graphs.bits.choose`. ``rows``,
    filled with the transfers and their steps, has room for one of every chunk to every rank. Return the numbers of
    steps and of rows; no steps if given up at ``limit`` steps or nothing more can be sent.
    """
    n = len(member)
    state, random = start_state(n, owner), seed_state(seed)
    size, widest = len(state.full), max(1, np.diff(into.first).max())
    words, places = np.zeros((3, size), np.uint64), np.empty((4, widest), np.int64)
    matching = _Matching(
        into, state, rows, how, random, words[0], words[1], words[2], places[0], places[1], places[2], places[3]
    )
    ranks: Any = np.arange(n)
    step, count = ZERO, ZERO
    while is_unserved(state.lacking, member):
        if step + 1 >= limit:
            return 0, count
        shuffle(ranks, n, random)
        begin = count
        for rank in ranks:
            if state.lacking[rank] > 0:
                count = _serve(matching, rank, step, count)
        if count == begin:
            return 0, count
        for row in range(begin, count):
            put(state.have[rows.head[row]], rows.chunk[row])
            state.lacking[rows.head[row]] -= 1
        step += 1
    return step, count


@kernel
def is_unserved(lacking: Any, member: Any) -> bool:
    """Check if a member lacks a chunk."""
    return bool((member & (lacking > 0)).any())


@kernel
def _serve(matching: Any, rank: int, step: int, count: int) -> int:
    """Match the arcs into one rank with chunks that it lacks; return the new number of rows."""
    into, state, rows = matching.into, matching.state, matching.rows
    how, random = matching.how, matching.random
    first = into.first[rank]
    degree = into.first[rank + 1] - first
    _prepare(matching, rank, first, degree)
    for place in range(degree):
        matching.choice[place] = -1
        matching.order[place] = place
    shuffle(matching.order, degree, random)
    for turn in range(degree):
        place = matching.order[turn]
        have = state.have[into.tail[first + place]]
        for word in range(len(matching.miss)):
            matching.offer[word] = have[word] & matching.miss[word] & matching.single[word]
        chunk = choose(matching.offer, state.copies, how, random)
        if chunk < 0:
            for word in range(len(matching.miss)):
                matching.offer[word] = have[word] & matching.miss[word]
            chunk = choose(matching.offer, state.copies, how, random)
        if chunk < 0:
            chunk = _augment(matching, first, degree, place)
        else:
            matching.choice[place] = chunk
        if chunk >= 0:
            drop(matching.miss, chunk)
            state.copies[chunk] += 1
    for place in range(degree):
        if matching.choice[place] >= 0:
            rows.arc[count], rows.chunk[count] = into.arc[first + place], matching.choice[place]
            rows.head[count], rows.start[count] = rank, step
            count += 1
    return count


@kernel
def _prepare(matching: Any, rank: int, first: int, degree: int) -> None:
    """Compute the chunks that a rank lacks, and those that exactly one neighbour has."""
    into, state = matching.into, matching.state
    mine = state.have[rank]
    for word in range(len(mine)):
        once, twice = np.uint64(0), np.uint64(0)
        for place in range(degree):
            theirs = state.have[into.tail[first + place], word]
            twice |= once & theirs
            once |= theirs
        matching.single[word] = once & ~twice
        matching.miss[word] = state.full[word] & ~mine[word]


@kernel
def _augment(matching: Any, first: int, degree: int, start: int) -> int:
    """Match an arc by a shortest augmenting path; return the newly used chunk, or -1."""
    into, state = matching.into, matching.state
    for place in range(degree):
        matching.before[place] = -2
    matching.before[start] = -1
    matching.queue[0] = start
    head, tail = 0, 1
    while head < tail:
        place = matching.queue[head]
        head += 1
        have = state.have[into.tail[first + place]]
        if place != start:
            for word in range(len(matching.miss)):
                matching.offer[word] = have[word] & matching.miss[word]
            fresh = choose(matching.offer, state.copies, matching.how, matching.random)
            if fresh >= 0:
                chunk = fresh
                while place != -1:
                    chunk, matching.choice[place] = matching.choice[place], chunk
                    place = matching.before[place]
                return fresh
        for other in range(degree):
            if matching.before[other] == -2 and matching.choice[other] >= 0 and has(have, matching.choice[other]):
                matching.before[other] = place
                matching.queue[tail] = other
                tail += 1
    return -1


_BLOCK = 2**22  #: sends that a block has room for: some 16 MiB, and less than half a second


class FoldedArcs(NamedTuple):
    """Arcs into one rank of every orbit, a *root*, and the ranks at their tails, roots first."""

    first: Any  #: (roots + 1,) first position of each root's arcs
    tail: Any  #: (arcs,) position of each arc's tail among the roots and ghosts
    column: Any  #: (arcs,) column of each arc in a block, in the order of the numbers of arcs
    base: Any  #: (roots + ghosts,) root of which each one is the image, and the motion; of a root, itself by identity
    motion: Any
    image: Any  #: int32 (chunks, motions) images of every chunk


class StreamState(NamedTuple):
    """Chunks of every root and ghost, and the places where links search first."""

    have: Any  #: uint64 (roots + ghosts, words) chunks of every one
    lacking: Any  #: (roots,) number of chunks that each lacks
    word: Any  #: (arcs,) word in which each arc last found a chunk; arcs are ordered by the ranks that they enter
    dry: Any  #: bool (arcs,) True for arcs that found nothing
    choice: Any  #: (arcs,) the chunk that each takes in this step, and took in the one before; -1 for none
    last: Any
    random: Any


@dataclass(frozen=True, eq=False)
class GatherStream:
    """All-gather of all ranks, with steps made on demand.

    Motions move each send to others of its step (:class:`~cwb.core.trees.TreeOrbits`), so that only arcs into roots are
    matched. A *ghost* is a neighbour of a root that is no root: it has the images of its root's chunks.
    """

    into: IncomingArcs
    images: SendImages  #: images of sends and chunks under all motions, the identity first
    copies: int  #: chunks of each rank: at the start, rank r has those from ``r * copies`` on
    exclusive: int  #: nonempty words searched for a chunk that no other neighbour has
    seed: int

    def __call__(self) -> Iterator[Any]:
        """Yield blocks with the chunk of each arc into a root in each step, until nothing more is sent."""
        arcs, state = self._start()
        room = max(1, _BLOCK // max(len(self.into.tail), 1))
        steps = room
        while steps == room:
            block = np.empty((room, len(arcs.tail)), dtype=np.int32)
            steps = gather_block(arcs, state, self.exclusive, block)
            if steps:
                yield block[:steps]

    def _start(self) -> tuple[FoldedArcs, StreamState]:
        """Return the arcs into roots, and the state in which ranks have only their own chunks, where arcs search."""
        image, copies = self.images.chunk, self.copies
        orbit = image[::copies] // copies
        roots = np.flatnonzero(orbit.min(axis=1) == np.arange(len(orbit)))
        by, root, place = np.empty((3, len(orbit)), dtype=np.int64)
        by[orbit[roots]], root[orbit[roots]] = np.arange(orbit.shape[1]), np.arange(len(roots))[:, None]
        degree = np.diff(self.into.first)
        inward = np.repeat(mask_of(len(orbit), roots), degree)
        tail, arc = self.into.tail[inward], self.into.arc[inward]
        members = np.concatenate([roots, np.setdiff1d(tail, roots)])
        place[members] = np.arange(len(members))
        column, base, motion = np.argsort(np.argsort(arc)), root[members], by[members]
        arcs = FoldedArcs(offsets(degree[roots]), place[tail], column, base, motion, image)
        have = np.zeros((len(members), -(-len(image) // 64)), dtype=np.uint64)
        chunk = members[:, None] * copies + np.arange(copies)
        np.bitwise_or.at(have, (place[members, None], chunk >> 6), np.uint64(1) << (chunk & 63).astype(np.uint64))
        lacking, word = np.full(len(roots), len(image) - copies), tail * copies >> 6
        nothing, dry = np.full(len(arc), -1, dtype=np.int64), np.zeros(len(arc), np.bool_)
        return arcs, StreamState(have, lacking, word, dry, nothing, nothing.copy(), seed_state(self.seed))


def stream_bytes(arcs: RankNetwork, copies: int, translations: Sequence[Translation]) -> int:
    """Return the memory of a stream in bytes: sets and images of chunks, and a block."""
    orders, images = [each.order for each in translations], [each.image for each in translations]
    inward = least_images(orders, images, arcs.ranks)[arcs.head] == arcs.head
    members, chunks = len(np.union1d(arcs.head[inward], arcs.tail[inward])), arcs.ranks * copies
    return members * -(-chunks // 64) * 8 + 4 * chunks * prod(orders) + 8 * _BLOCK


@kernel
def gather_block(arcs: FoldedArcs, state: StreamState, exclusive: int, block: Any) -> int:
    """Make steps until the block is full or nothing is sent; return their number."""
    for step in range(len(block)):
        _match(arcs.first, arcs.tail, arcs.base, arcs.motion, arcs.image, state, exclusive)
        if _pass_on(arcs, state, block[step]) == 0:
            return step
    return len(block)


@kernel
def _match(  # noqa: PLR0912 (one loop)
    first: Any, tail: Any, base: Any, motion: Any, image: Any, state: StreamState, exclusive: int
) -> None:
    """Let the arcs into every rank take chunks.

    This is one function, since calls in the inner loop take as long as the loop. A dry arc is tried again if its
    tail has since received something that its head lacks.
    """
    have, word, dry, choice, last = state.have, state.word, state.dry, state.choice, state.last
    one, none = np.uint64(1), np.uint64(0)
    words = have.shape[1]
    for rank in range(len(state.lacking)):
        begin, end = first[rank], first[rank + 1]
        for place in range(begin, end):
            choice[place] = -1
        if state.lacking[rank] == 0:
            continue
        turn, bit = draw(state.random, end - begin), draw(state.random, 64)
        down, up = np.uint64(bit), np.uint64((64 - bit) & 63)
        place = begin + turn - 1
        for _ in range(end - begin):
            place = place + 1 if place + 1 < end else begin
            source = tail[place]
            if dry[place]:
                for other in range(first[base[source]], first[base[source] + 1]):
                    if last[other] >= 0:
                        chunk = image[last[other], motion[source]]
                        if not (have[rank, chunk >> 6] >> np.uint64(chunk & 63)) & one:
                            dry[place], word[place] = False, chunk >> 6
                if dry[place]:
                    continue
            at, best, looked, offered = word[place], -1, 0, False
            for _ in range(words):
                offer = have[source, at] & ~have[rank, at]
                if offer != none:
                    offered = True
                    for other in range(begin, end):
                        if choice[other] >= 0 and choice[other] >> 6 == at:
                            offer &= ~(one << np.uint64(choice[other] & 63))
                if offer != none:
                    alone = offer
                    for other in range(begin, end):
                        if other != place:
                            alone &= ~have[tail[other], at]
                    if best < 0 or alone != none:
                        some = alone if alone != none else offer
                        best = (at << 6) + ((low_bit((some >> down) | (some << up)) + bit) & 63)
                    looked += 1
                    if alone != none or looked >= exclusive:
                        break
                at += 1
                if at == words:
                    at = 0
            if best >= 0:
                choice[place], word[place] = best, best >> 6
            elif not offered:
                dry[place] = True


@kernel
def _pass_on(arcs: FoldedArcs, state: StreamState, row: Any) -> int:
    """Deliver the chunks and record them, and deliver their images to ghosts; return the number of chunks."""
    have, lacking, choice, last = state.have, state.lacking, state.choice, state.last
    first, base, one = arcs.first, arcs.base, np.uint64(1)
    count = 0
    for rank in range(len(lacking)):
        for place in range(first[rank], first[rank + 1]):
            chunk = choice[place]
            row[arcs.column[place]] = last[place] = chunk
            if chunk >= 0:
                have[rank, chunk >> 6] |= one << np.uint64(chunk & 63)
                lacking[rank] -= 1
                count += 1
    for ghost in range(len(lacking), len(base)):
        for place in range(first[base[ghost]], first[base[ghost] + 1]):
            if last[place] >= 0:
                chunk = arcs.image[last[place], arcs.motion[ghost]]
                have[ghost, chunk >> 6] |= one << np.uint64(chunk & 63)
    return count
