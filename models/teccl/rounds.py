"""Index sets of one round of the A* technique (section 4.2, appendix D): what is where when the round begins, what is still on its way."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from .answer import EpochSend, arrival, hops
from .epochs import FAR, EpochProblem
from .layout import Layout, Rules, single_links


@dataclass(frozen=True)
class State:
    """Where the chunks are when a round begins; indices count from there.

    Parameters
    ----------
    held : frozenset of (int, int)
        Commodities and nodes that hold them.
    coming : frozenset of (int, int, int)
        Commodities, nodes and indices of arrivals of earlier rounds' sends; at switches, also at index 0: what passes there at once, or what one
        that stores and does not copy has not sent on.
    started : frozenset of (int, int, int)
        Links, indices before 0 and commodities of earlier starts whose windows are not over.
    """

    held: frozenset[tuple[int, int]]
    coming: frozenset[tuple[int, int, int]] = frozenset()
    started: frozenset[tuple[int, int, int]] = frozenset()

    def moved(self, problem: EpochProblem, sends: Iterable[EpochSend], epochs: int) -> State:
        """Give the state after a round of so many epochs with these sends."""
        held, coming, started = set(self.held), set[tuple[int, int, int]](), set[tuple[int, int, int]]()
        arrived = {(q, n, k) for q, n, k in self.coming}
        arrived |= {(s.commodity, problem.links[s.path[-1]].target, arrival(problem, s)) for s in sends}
        stock = Counter[tuple[int, int]]()
        for q, n, k in arrived:
            if k > epochs or problem.holds[n] == 0:
                if k >= epochs:
                    coming.add((q, n, k - epochs))
            elif problem.copies[n]:
                held.add((q, n))
            else:
                stock[q, n] += 1
        stock.subtract((s.commodity, problem.links[s.path[0]].source) for s in sends)
        coming |= {(q, n, 0) for (q, n), count in stock.items() if count > 0}
        starts = {(e, k, s.commodity) for s in sends for e, k in hops(problem, s)} | set(self.started)
        for e, k, q in starts:
            if k - epochs + problem.links[e].window > 0:
                started.add((e, k - epochs, q))
        return State(frozenset(held), frozenset(c for c in coming if c[:2] not in held), frozenset(started))


@dataclass(frozen=True, eq=False)
class RoundLayout(Layout):
    """Index sets of a round: sends start within it and may arrive after it.

    Parameters
    ----------
    state : State
        How it begins.
    """

    state: State = field(default_factory=lambda: State(frozenset()))

    @property
    def horizon(self) -> int:
        """Last index at which a send of the round can arrive: K and the future epochs K'."""
        return self.epochs + max(arc.delay for arc in self.arcs)

    def is_given(self, q: int, n: int) -> bool:
        """Whether a node holds the chunk when the round begins."""
        return (q, n) in self.state.held

    def has_buffer(self, q: int, n: int) -> bool:
        """Whether a chunk is stored at a node that does not have it yet."""
        return not self.is_given(q, n) and self.problem.holds[n] != 0

    def incoming(self, q: int, n: int, k: int) -> int:
        """Whether a send of an earlier round arrives: Q of the last round."""
        return int((q, n, k) in self.state.coming)

    def most_sent(self, q: int, a: int) -> int:
        """Once in an epoch: the state of a round does not count copies."""
        del q, a
        return 1

    def most(self, q: int, n: int) -> int:
        """Largest B: a switch that does not copy may have received more than is still needed."""
        del q
        return 1 if self.problem.copies[n] else 1 + len(self.entering[n]) * self.horizon

    def windows(self, link: int) -> range:
        """First epochs of windows that need a row; some begin before the round."""
        usual = super().windows(link)
        if not self.state.started or link in self.changed:
            return usual
        return range(min(0, *self.loads[link]) - self.problem.links[link].window + 1, usual.stop)

    def room(self, link: int, epoch: int) -> int:
        """Chunks that may start in a window beside those of earlier rounds."""
        window = self.problem.links[link].window
        taken = sum(e == link and epoch <= k < epoch + window for e, k, _ in self.state.started)
        return super().room(link, epoch) - taken


def round_layout(problem: EpochProblem, epochs: int, state: State) -> RoundLayout:
    """Lay a round out: every start from when a chunk can be at a node to the end of the round, wherever that leads."""
    arcs = tuple(single_links(problem))
    horizon = epochs + max(arc.delay for arc in arcs)
    first = [_earliest(problem, state, q) for q in range(len(problem.commodities))]
    last = [[horizon] * problem.nodes for _ in first]
    plan = RoundLayout(problem, epochs, Rules(), arcs, first, last, state)
    for q, spans in enumerate(plan.spans):
        for a, (begin, end) in list(spans.items()):
            spans[a] = (begin, min(end, epochs - 1))
            if begin > epochs - 1 or plan.is_given(q, arcs[a].target):
                del spans[a]
    return plan


def remaining(problem: EpochProblem, state: State) -> EpochProblem:
    """Leave out the demands that are met, or will be by what is on its way; every commodity keeps its place.

    A commodity without demands keeps its source as its only target, which it need not be sent to.
    """
    coming = {(q, n) for q, n, _ in state.coming}
    commodities = tuple(
        replace(c, targets=tuple(t for t in c.targets if (q, t) not in state.held and (q, t) not in coming))
        for q, c in enumerate(problem.commodities)
    )
    return replace(problem, commodities=commodities)


def _earliest(problem: EpochProblem, state: State, q: int) -> list[int]:
    """Earliest index at which a chunk can be at each node, from where it is."""
    heap = [(0, n) for p, n in state.held if p == q] + [(k, n) for p, n, k in state.coming if p == q]
    heapq.heapify(heap)
    far = [FAR] * problem.nodes
    while heap:
        at, node = heapq.heappop(heap)
        if far[node] <= at:
            continue
        far[node] = at
        for e in problem.leaving[node]:
            link = problem.links[e]
            if at + link.delay < far[link.target]:
                heapq.heappush(heap, (at + link.delay, link.target))
    return far
