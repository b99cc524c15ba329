"""Greedy all-gathers on unequal links and switches: after every arrival, destinations choose chunks for free links.

Time is counted in whole ticks. A transfer needs all its *ports* simultaneously, for its whole duration: a link between
ranks is one port; on a path over switches every link is one. The deadline rule and islands are described on the page
docs/methods/tacos.md: a slow link into an island prefers chunks that no rank there has (``PREFER``), or carries no
others (``INSIST``).

:func:`match_in_turns` is TACOS's own algorithms 1 and 2 (dissertation, sections 5.4.4 and 5.4.5), at the instants of
arrivals. A chunk in transit counts as received, so that it is not sent twice, but is forwarded only after its arrival;
the published code differs in both if links are unequal, see the method's page.
"""

import heapq
from typing import Any, NamedTuple

import numpy as np

from ...core.kernel import kernel
from ..graphs.bits import ZERO, choose, draw, drop, has, put, seed_state, shuffle
from .network import ArcTables
from .step_matching import ChunkState, TransferRows, is_unserved, start_state

IGNORE, PREFER, INSIST = 0, 1, 2  #: rules for slow links into islands
_NEVER = 2**62  #: beyond every tick


class ChoiceRule(NamedTuple):
    """Rule by which an arc chooses a chunk."""

    how: int  #: choice within a set, see :func:`~cwb.algorithms.graphs.bits.choose`
    islands: int  #: one of ``IGNORE``, ``PREFER`` or ``INSIST``
    deadline: bool  #: True to apply the deadline rule
    single: bool  #: True to prefer chunks that only one neighbour has
    seed: int


class EngineState(NamedTuple):
    """State of the event-driven search."""

    arcs: ArcTables
    rule: ChoiceRule
    bound: int  #: tick by which a transfer may end in any case
    random: Any
    rows: TransferRows
    offer: Any  #: uint64 (words,) scratch space
    state: ChunkState  #: chunks that each rank has received
    miss: Any  #: set and number of the chunks that each rank lacks and that are not in transit to it
    lacking: Any
    at_island: Any  #: uint64 (islands, words) chunks that some rank of the island has or is about to receive
    #: (ports,) tick at which each port becomes free, its last chunk, and the tick at which that chunk started
    free: Any
    carried: Any
    since: Any
    dirty: Any  #: queue of ranks that choose next, and a mark for each rank in it
    waiting: Any


@kernel
def gather_by_events(
    arcs: ArcTables, owner: Any, member: Any, rule: ChoiceRule, bound: int, limit: int, rows: TransferRows
) -> tuple[int, int]:
    """Schedule an all-gather; return the last arrival in ticks, 0 if given up, and the number of rows.

    ``owner``, ``member`` and ``rows`` are those of :func:`.step_matching.gather_in_steps`, in ticks. A transfer may in
    any case end by ``bound``; the schedule is given up if it cannot end before ``limit``.
    """
    n = len(member)
    random = seed_state(rule.seed)
    engine = _engine_state(arcs, rule, bound, random, rows, start_state(n, owner), owner)
    state = engine.state
    missing = state.lacking[member].sum()
    heap = [(0, 0) for _ in range(0)]
    now, count, last, dirty, strict = ZERO, ZERO, ZERO, n, True
    while missing > 0:
        begin = count
        shuffle(engine.dirty, dirty, random)
        for index in range(dirty):
            rank = engine.dirty[index]
            count = _serve(engine, rank, now, strict, count)
        for row in range(begin, count):
            heapq.heappush(heap, (now + arcs.ticks[rows.arc[row]], row))
        dirty = ZERO
        if len(heap) == 0:
            if not strict or (not rule.deadline and rule.islands != INSIST):
                return 0, count
            strict = False
            engine.dirty[:], dirty = np.arange(n), n
            continue
        strict = True
        now = heap[0][0]
        if now >= limit:
            return 0, count
        while len(heap) > 0 and heap[0][0] == now:
            row = heapq.heappop(heap)[1]
            head, arc = rows.head[row], rows.arc[row]
            put(state.have[head], rows.chunk[row])
            state.lacking[head] -= 1
            if member[head]:
                missing -= 1
                last = now
            dirty = _wake(engine, head, arc, dirty)
    return last, count


@kernel
def _engine_state(
    arcs: Any, rule: Any, bound: int, random: Any, rows: Any, state: ChunkState, owner: Any
) -> EngineState:
    n, size = state.have.shape
    ports = len(arcs.woken_first) - 1
    miss = state.full & ~state.have
    at_island = np.zeros((max(1, arcs.islands), size), np.uint64)
    for chunk in range(len(owner)):
        for index in range(arcs.of_first[owner[chunk]], arcs.of_first[owner[chunk] + 1]):
            put(at_island[arcs.of[index]], chunk)
    free, carried, since = np.zeros(ports, np.int64), np.full(ports, -1, np.int64), np.full(ports, -1, np.int64)
    offer, lacking, dirty, waiting = np.empty(size, np.uint64), state.lacking.copy(), np.arange(n), np.ones(n, np.bool_)
    return EngineState(
        arcs, rule, bound, random, rows, offer, state, miss, lacking, at_island, free, carried, since, dirty, waiting
    )


@kernel
def _wake(engine: EngineState, head: int, arc: int, dirty: int) -> int:
    """Mark ranks to choose again: those that use freed ports, or receive from ``head``."""
    arcs = engine.arcs
    # The ports by which ranks send come last in the list.
    sending = len(arcs.woken_first) - 1 - len(engine.waiting) + head
    first, end = arcs.port_first[arc], arcs.port_first[arc + 1]
    for place in range(first, end + 1):
        port = arcs.port[place] if place < end else sending
        for index in range(arcs.woken_first[port], arcs.woken_first[port + 1]):
            rank = arcs.woken[index]
            if not engine.waiting[rank] and engine.lacking[rank] > 0:
                engine.waiting[rank] = True
                engine.dirty[dirty] = rank
                dirty += 1
    return dirty


@kernel
def _serve(engine: EngineState, rank: int, now: int, strict: bool, count: int) -> int:
    """Let the free arcs into a rank choose, the quickest first; return the new number of rows."""
    arcs, random = engine.arcs, engine.random
    engine.waiting[rank] = False
    first = arcs.into.first[rank]
    degree = arcs.into.first[rank + 1] - first
    if engine.lacking[rank] == 0 or degree == 0:
        return count
    count = _copies(engine, rank, now, count)
    order = arcs.into.arc[first : first + degree].copy()
    shuffle(order, degree, random)
    order = order[np.argsort(arcs.ticks[order], kind="mergesort")]
    latest = _NEVER
    if engine.rule.deadline and strict:
        latest = max(engine.bound, _deadline(engine, order, rank, now))
    for arc in order:
        if engine.lacking[rank] == 0:
            break
        if not _idle(arcs, engine.free, arc, now, 0) or now + arcs.ticks[arc] > latest:
            continue
        chunk = _pick(engine, order, arc, rank, strict)
        if chunk >= 0:
            _start(engine, arc, rank, chunk, now, count)
            count += 1
    return count


@kernel
def _idle(arcs: ArcTables, free: Any, arc: int, now: int, skip: int) -> bool:
    """Check that the ports of an arc after the first ``skip`` are free."""
    idle = True
    for place in range(arcs.port_first[arc] + skip, arcs.port_first[arc + 1]):
        idle = idle and free[arcs.port[place]] <= now
    return idle


@kernel
def _start(engine: EngineState, arc: int, rank: int, chunk: int, now: int, count: int) -> None:
    arcs, rows = engine.arcs, engine.rows
    for place in range(arcs.port_first[arc], arcs.port_first[arc + 1]):
        port = arcs.port[place]
        engine.free[port], engine.carried[port], engine.since[port] = now + arcs.ticks[arc], chunk, now
    drop(engine.miss[rank], chunk)
    engine.lacking[rank] -= 1
    engine.state.copies[chunk] += 1
    for index in range(arcs.of_first[rank], arcs.of_first[rank + 1]):
        put(engine.at_island[arcs.of[index]], chunk)
    rows.arc[count], rows.chunk[count], rows.head[count], rows.start[count] = arc, chunk, rank, now


@kernel
def _copies(engine: EngineState, rank: int, now: int, count: int) -> int:
    """Start copies of chunks that a multicast switch has begun to receive at this very tick."""
    arcs = engine.arcs
    for place in range(arcs.into.first[rank], arcs.into.first[rank + 1]):
        arc = arcs.into.arc[place]
        port = arcs.copied[arc]
        if port < 0 or engine.since[port] != now or engine.free[port] != now + arcs.ticks[arc]:
            continue
        chunk = engine.carried[port]
        if has(engine.miss[rank], chunk) and _idle(arcs, engine.free, arc, now, 1):
            _start(engine, arc, rank, chunk, now, count)
            count += 1
    return count


@kernel
def _pick(engine: EngineState, order: Any, arc: int, rank: int, strict: bool) -> int:
    """Choose a chunk for an arc: new to the island, only at this neighbour, or any; -1 if none."""
    arcs, rule, offer, random = engine.arcs, engine.rule, engine.offer, engine.random
    have, miss, island = engine.state.have[arcs.tail[arc]], engine.miss[rank], arcs.island[arc]
    size = len(miss)
    if island >= 0 and rule.islands != IGNORE:
        for word in range(size):
            offer[word] = have[word] & miss[word] & ~engine.at_island[island, word]
        chunk = choose(offer, engine.state.copies, rule.how, random)
        if chunk >= 0 or (rule.islands == INSIST and strict):
            return chunk
    if rule.single:
        for word in range(size):
            others = np.uint64(0)
            for other in order:
                if arcs.tail[other] != arcs.tail[arc]:
                    others |= engine.state.have[arcs.tail[other], word]
            offer[word] = have[word] & miss[word] & ~others
        chunk = choose(offer, engine.state.copies, rule.how, random)
        if chunk >= 0:
            return chunk
    for word in range(size):
        offer[word] = have[word] & miss[word]
    return choose(offer, engine.state.copies, rule.how, random)


@kernel
def _deadline(engine: EngineState, order: Any, rank: int, now: int) -> int:
    """Compute the tick by which the arcs into a rank could bring all that it wants."""
    arcs = engine.arcs
    need = engine.lacking[rank]
    low, high = now, now + arcs.ticks[order[0]]
    for place in range(arcs.port_first[order[0]], arcs.port_first[order[0] + 1]):
        high = max(high, engine.free[arcs.port[place]])
    high += need * arcs.ticks[order[0]]
    while low < high:
        middle = (low + high) // 2
        room = 0
        for arc in order:
            ready = now
            for place in range(arcs.port_first[arc], arcs.port_first[arc + 1]):
                ready = max(ready, engine.free[arcs.port[place]])
            if middle > ready:
                room += (middle - ready) // arcs.ticks[arc]
        if room >= need:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def match_in_turns(
    arcs: ArcTables, owner: Any, member: Any, seed: int, limit: int, rows: TransferRows
) -> tuple[int, int]:
    """Deliver every chunk to every member: postconditions in random order, each over the cheapest free arc.

    Other ranks, which may have to relay chunks, have postconditions too, but need not meet them. The other
    arguments and the result are those of :func:`.step_matching.gather_in_steps`, in ticks.
    """
    n, m = len(member), len(owner)
    state, random = start_state(n, owner), seed_state(seed)
    ticks = arcs.ticks
    free = np.zeros(len(arcs.woken_first) - 1, np.int64)
    pairs, unsatisfied = np.empty(n * m, np.int64), ZERO
    for rank in range(n):
        for chunk in range(m):
            if owner[chunk] != rank:
                pairs[unsatisfied] = rank * m + chunk
                unsatisfied += 1
    way = np.empty(len(ticks), np.int64)  # rows under way, at most one for each arc
    now, count, moving, last = ZERO, ZERO, 0, 0
    while unsatisfied > 0 or moving > 0:
        if now >= limit:
            return 0, count
        begin = count
        unsatisfied, count = _match(arcs, state.have, pairs, unsatisfied, free, now, random, rows, count)
        for row in range(begin, count):
            way[moving] = row
            moving += 1
        if moving == 0:
            break
        now = _NEVER
        for place in range(moving):
            now = min(now, rows.start[way[place]] + ticks[rows.arc[way[place]]])
        size = 0
        for place in range(moving):
            row = way[place]
            if rows.start[row] + ticks[rows.arc[row]] > now:
                way[size] = row
                size += 1
                continue
            put(state.have[rows.head[row]], rows.chunk[row])
            state.lacking[rows.head[row]] -= 1
            if member[rows.head[row]]:
                last = now
        moving = size
    return (0 if is_unserved(state.lacking, member) else last), count


@kernel
def _match(
    arcs: ArcTables, have: Any, pairs: Any, size: int, free: Any, now: int, random: Any, rows: TransferRows, count: int
) -> tuple[int, int]:
    """Run algorithm 1; return the new numbers of unsatisfied postconditions and of rows."""
    into, ticks = arcs.into, arcs.ticks
    m = len(pairs) // have.shape[0]
    shuffle(pairs, size, random)
    rest = 0
    for place in range(size):
        rank, chunk = pairs[place] // m, pairs[place] % m
        best, ties, cost = -1, 0, _NEVER
        for index in range(into.first[rank], into.first[rank + 1]):
            arc = into.arc[index]
            if ticks[arc] > cost or not has(have[into.tail[index]], chunk) or not _idle(arcs, free, arc, now, 0):
                continue
            ties = ties + 1 if ticks[arc] == cost else 1
            cost = ticks[arc]
            if ties == 1 or draw(random, ties) == 0:
                best = arc
        if best < 0:
            pairs[rest] = pairs[place]
            rest += 1
            continue
        for index in range(arcs.port_first[best], arcs.port_first[best + 1]):
            free[arcs.port[index]] = now + ticks[best]
        rows.arc[count], rows.chunk[count], rows.head[count], rows.start[count] = best, chunk, rank, now
        count += 1
    return rest, count
