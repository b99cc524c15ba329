"""One round of TE-CCL's A* technique (section 4.2, appendix D): index sets and Pyomo model.

A round begins with held chunks and with sends that are still on their way. Its model is the general form with
another objective and an open end.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from ....algorithms.epochs.problem import FAR
from ....core.rows import Lists, Table, Variables, rows
from ..extract import EpochSend, arrival, hops
from ..index_sets import IndexSets, single_links
from ..problem import EpochProblem
from .milp import buffers, capacity, flow_conservation, passing_on, variables


@dataclass(frozen=True)
class RoundState:
    """Positions of the chunks when a round begins; indices count from there.

    Commodities of earlier rounds' sends are ``coming`` to nodes at indices; at switches also at index 0: chunks passing
    there at once, or those that a storing switch without copies has not sent on. ``started`` has the links, indices
    below 0 and commodities of earlier starts whose windows are not over.
    """

    stock: frozenset[tuple[int, int]]
    coming: frozenset[tuple[int, int, int]] = frozenset()
    started: frozenset[tuple[int, int, int]] = frozenset()

    @classmethod
    def first(cls, problem: EpochProblem) -> "RoundState":
        """Return the state in which every source has its chunks."""
        return cls(frozenset((q, c.source) for q, c in enumerate(problem.commodities)))

    def advance(self, problem: EpochProblem, sends: Iterable[EpochSend], epochs: int) -> "RoundState":
        """Return the state after a round of ``epochs`` epochs with these sends."""
        stored, coming = set(self.stock), set[tuple[int, int, int]]()
        arrived = {(s.commodity, problem.links[s.path[-1]].target, arrival(problem, s)) for s in sends}
        stock = Counter[tuple[int, int]]()
        for q, n, k in self.coming | arrived:
            if k > epochs or problem.holds[n] == 0:
                if k >= epochs:
                    coming.add((q, n, k - epochs))
            elif problem.copies[n]:
                stored.add((q, n))
            else:
                stock[q, n] += 1
        stock.subtract((s.commodity, problem.links[s.path[0]].source) for s in sends)
        coming |= {(q, n, 0) for (q, n), count in stock.items() if count > 0}
        starts = self.started | {(e, k, s.commodity) for s in sends for e, k in hops(problem, s)}
        started = ((e, k - epochs, q) for e, k, q in starts if k - epochs + problem.links[e].window > 0)
        return RoundState(frozenset(stored), frozenset(c for c in coming if c[:2] not in stored), frozenset(started))


@dataclass(frozen=True, eq=False)
class RoundIndexSets(IndexSets):
    """Index sets of a round: sends start within it and may arrive after it."""

    state: RoundState = field(default_factory=lambda: RoundState(frozenset()))
    gamma: float = 0.5
    most_epochs: int | None = None

    @property
    def horizon(self) -> int:
        """Last index at which a send of the round can arrive: K and the future epochs K'."""
        return self.epochs + max(arc.delay for arc in self.arcs)

    @cached_property
    def lacking(self) -> dict[int, list[int]]:
        """Chunks that each node needs and does not have: D of this round."""
        wanting = sorted({d for commodity in self.problem.commodities for d in commodity.targets})
        return {d: [q for q, c in enumerate(self.problem.commodities) if d in c.targets] for d in wanting}

    @cached_property
    def nodes_of_rank(self) -> dict[tuple[int, int], set[int]]:
        """Nodes by rank, and by node d that lacks chunks: 1 + the distance to d, and 0 for d."""
        nodes_of_rank = defaultdict[tuple[int, int], set[int]](set)
        for d, n in product(self.lacking, range(self.problem.nodes)):
            nodes_of_rank[0 if n == d else 1 + int(self.problem.distance[n, d]), d].add(n)
        return nodes_of_rank

    @cached_property
    def reachable(self) -> list[set[int]]:
        """Nodes that can have each chunk by the horizon."""
        reachable = [{self.arcs[a].target for a in spans} for spans in self.spans]
        for q, n, *_ in self.state.stock | self.state.coming:
            reachable[q].add(n)
        return reachable

    def is_given(self, q: int, n: int) -> bool:
        """Check whether a node holds the chunk when the round begins."""
        return (q, n) in self.state.stock

    def has_buffer(self, q: int, n: int) -> bool:
        """Check whether a chunk is stored at a node that does not have it yet."""
        return not self.is_given(q, n) and self.problem.holds[n] != 0

    def incoming(self, q: int, n: int, k: int) -> int:
        """Return 1 if a send of an earlier round arrives: Q of the last round."""
        return int((q, n, k) in self.state.coming)

    def most_sent(self, q: int, a: int) -> int:
        """Return 1: the state of a round does not count copies."""
        return 1

    def most(self, q: int, n: int) -> int:
        """Return the largest B: a switch that does not copy may have received more than is still needed."""
        return 1 if self.problem.copies[n] else 1 + len(self.entering[n]) * self.horizon

    def windows(self, link: int) -> range:
        """Return the first epochs of windows that need a constraint; some begin before the round or end after it."""
        if not self.state.started or link in self.changed_links:
            return super().windows(link)
        return range(min(0, *self.loads[link]) - self.problem.links[link].window + 1, max(self.loads[link]) + 1)

    def room(self, link: int, epoch: int) -> int:
        """Return the number of chunks that may start in a window beside those of earlier rounds."""
        window = self.problem.links[link].window
        busy = sum(e == link and epoch <= k < epoch + window for e, k, _ in self.state.started)
        return super().room(link, epoch) - busy


def round_index_sets(
    problem: EpochProblem, epochs: int, state: RoundState, gamma: float = 0.5, most_epochs: int | None = None
) -> RoundIndexSets:
    """Build a round's index sets: starts within it on any arc, from a chunk's first arrival on."""
    arcs = tuple(single_links(problem))
    horizon = epochs + max(arc.delay for arc in arcs)
    earliest = np.full((len(problem.commodities), problem.nodes), FAR)
    for q, n, k in (*((q, n, 0) for q, n in state.stock), *state.coming):  # at each node, by a fastest path from there
        if problem.commodities[q].targets:
            earliest[q] = np.minimum(earliest[q], k + problem.distance[n])
    first = earliest.tolist()
    last = [[horizon] * problem.nodes for _ in first]
    sets = RoundIndexSets(problem, epochs, False, arcs, first, last, state=state, gamma=gamma, most_epochs=most_epochs)
    for q, spans in enumerate(sets.spans):
        useful = {a: span for a, span in spans.items() if span[0] < epochs and not sets.is_given(q, arcs[a].target)}
        spans.clear()
        spans.update((a, (begin, min(end, epochs - 1))) for a, (begin, end) in useful.items())
    return sets


def remaining(problem: EpochProblem, state: RoundState) -> EpochProblem:
    """Remove demands that are met or on their way; a commodity without any keeps its source as target."""
    has = state.stock | {(q, n) for q, n, _ in state.coming}
    commodities = tuple(
        replace(c, targets=tuple(t for t in c.targets if (q, t) not in has)) for q, c in enumerate(problem.commodities)
    )
    return replace(problem, commodities=commodities)


def build(sets: RoundIndexSets) -> Any:
    """Build the model of a round: the general form without its end, arrivals after the round, objective."""
    with PauseGC():
        m = pyo.ConcreteModel("teccl-astar")
        variables(m, sets)
        capacity(m, sets)
        buffers(m, sets)
        flow_conservation(m, sets)
        passing_on(m, sets)
        progress(m, sets)
        on_the_way(m, sets)
        assignment(m, sets)
        objective(m, sets)
    return m


def later(sets: RoundIndexSets) -> range:
    """Return K': indices from the end of the round on at which its sends may still arrive."""
    return range(sets.epochs, sets.horizon + 1)


def progress(m: Any, sets: RoundIndexSets) -> None:
    """``P[r, d, k']``: chunks that nodes n at rank r from d are to bring to d.

    The rank is ``1 + FW[n, d]``, FW the distance in epochs, and 0 where n is d. The paper has one variable for each n;
    those of one rank have the same coefficients, so that only their sum matters.
    """
    m.pairs = pyo.Set(dimen=3, initialize=[(r, d, k) for r, d in sorted(sets.nodes_of_rank) for k in later(sets)])
    m.P = Variables(m.pairs, domain=pyo.NonNegativeReals)


def on_the_way(m: Any, sets: RoundIndexSets) -> None:
    """``P[r, d, k'] <= sum_{n, q: D[q, d] = 1} Q[q, n, k']``, n at rank r: nodes can bring what they have.

    Q, what a node has from this round or earlier, is 1 for what it held before. At nodes that store,
    ``Q[q, n, 0] = B[q, n, K]`` with the arrivals then, and
    ``Q[q, n, k'] = Q[q, n, k'-1] + sum_j F[q, (j, n), K + k' - delta]`` continues B. At switches, the arrivals at k'.
    """
    stored, passing, constant = Lists(), Lists(), Table()
    for r, d, k in m.pairs:
        stocks, arriving, count = list[tuple[int, int, int]](), list[tuple[int, int, int]](), 0
        for q in sets.lacking[d]:
            for n in sets.reachable[q].intersection(sets.nodes_of_rank[r, d]):
                if sets.is_given(q, n):
                    count += 1
                elif sets.problem.holds[n] == 0:
                    arriving += sets.arriving(q, n, k)
                    count += sets.incoming(q, n, k)
                elif k >= sets.first[q][n]:
                    stocks.append((q, n, k))
        stored[r, d, k], passing[r, d, k], constant[r, d, k] = stocks, arriving, count

    @rows(m, list(m.pairs))
    def on_the_way(m: Any, r: int, d: int, k: int) -> Any:
        had = sum(m.B[key] for key in stored[r, d, k]) + sum(m.F[key] for key in passing[r, d, k])
        return m.P[r, d, k] <= had + constant[r, d, k]


def assignment(m: Any, sets: RoundIndexSets) -> None:
    """``sum_r P[r, d, k'] = sum_q D[q, d]``: every lacking chunk is assigned to a node."""

    @m.Constraint(list(sets.lacking), list(later(sets)))
    def assignment(m: Any, d: int, k: int) -> Any:
        return pyo.quicksum(m.P[r, d, k] for r, node in sets.nodes_of_rank if node == d) == len(sets.lacking[d])


def objective(m: Any, sets: RoundIndexSets) -> None:
    """Maximize ``sum_{q, d, k} B[q, d, k] / k + sum_{r, d, k'} g[r] / (k'+1) P[r, d, k']``.

    The first part is the paper's objective: a chunk that has arrived by index k of the round counts 1 / k for every
    index from then on. The second is the value of chunks on their way: ``g[r] = gamma / r``, and 1 for rank 0.
    """
    terms = []
    for q, commodity in enumerate(sets.problem.commodities):
        for d in commodity.targets:
            terms += [1.0 / k * m.B[q, d, k] for k in range(1, sets.epochs + 1) if k >= sets.first[q][d]]
    for r, d, k in m.pairs:
        near = sets.gamma / r if r else 1.0
        terms.append(near / (k - sets.epochs + 1) * m.P[r, d, k])
    m.objective = pyo.Objective(expr=pyo.quicksum(terms), sense=pyo.maximize)
