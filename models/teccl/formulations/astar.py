"""One round of TE-CCL's A* technique (section 4.2, appendix D): index sets and Pyomo model.

A round begins with held chunks and with sends that are still on their way. Its model is the general form with
another objective and an open end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from ....algorithms.epochs.problem import FAR
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

    held: frozenset[tuple[int, int]]
    coming: frozenset[tuple[int, int, int]] = frozenset()
    started: frozenset[tuple[int, int, int]] = frozenset()

    @classmethod
    def first(cls, problem: EpochProblem) -> RoundState:
        """Return the state in which every source has its chunks."""
        return cls(frozenset((q, c.source) for q, c in enumerate(problem.commodities)))

    def advance(self, problem: EpochProblem, sends: Iterable[EpochSend], epochs: int) -> RoundState:
        """Return the state after a round of ``epochs`` epochs with these sends."""
        held, coming = set(self.held), set[tuple[int, int, int]]()
        arrived = {(s.commodity, problem.links[s.path[-1]].target, arrival(problem, s)) for s in sends}
        stock = Counter[tuple[int, int]]()
        for q, n, k in self.coming | arrived:
            if k > epochs or problem.holds[n] == 0:
                if k >= epochs:
                    coming.add((q, n, k - epochs))
            elif problem.copies[n]:
                held.add((q, n))
            else:
                stock[q, n] += 1
        stock.subtract((s.commodity, problem.links[s.path[0]].source) for s in sends)
        coming |= {(q, n, 0) for (q, n), count in stock.items() if count > 0}
        starts = self.started | {(e, k, s.commodity) for s in sends for e, k in hops(problem, s)}
        started = ((e, k - epochs, q) for e, k, q in starts if k - epochs + problem.links[e].window > 0)
        return RoundState(frozenset(held), frozenset(c for c in coming if c[:2] not in held), frozenset(started))


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

    def is_given(self, q: int, n: int) -> bool:
        """Check whether a node holds the chunk when the round begins."""
        return (q, n) in self.state.held

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
        """Return the first epochs of windows that need a constraint; some begin before the round."""
        usual = super().windows(link)
        if not self.state.started or link in self.changed_links:
            return usual
        return range(min(0, *self.loads[link]) - self.problem.links[link].window + 1, usual.stop)

    def room(self, link: int, epoch: int) -> int:
        """Return the number of chunks that may start in a window beside those of earlier rounds."""
        window = self.problem.links[link].window
        taken = sum(e == link and epoch <= k < epoch + window for e, k, _ in self.state.started)
        return super().room(link, epoch) - taken


def round_index_sets(
    problem: EpochProblem, epochs: int, state: RoundState, gamma: float = 0.5, most_epochs: int | None = None
) -> RoundIndexSets:
    """Build a round's index sets: starts within it on any arc, from a chunk's first arrival on."""
    arcs = tuple(single_links(problem))
    horizon = epochs + max(arc.delay for arc in arcs)
    known = np.full((len(problem.commodities), problem.nodes), FAR)
    for q, n, k in (*((q, n, 0) for q, n in state.held), *state.coming):  # at each node, by a fastest path from there
        known[q] = np.minimum(known[q], k + problem.distance[n])
    first = known.tolist()
    last = [[horizon] * problem.nodes for _ in first]
    sets = RoundIndexSets(problem, epochs, False, arcs, first, last, state=state, gamma=gamma, most_epochs=most_epochs)
    for q, spans in enumerate(sets.spans):
        useful = {a: span for a, span in spans.items() if span[0] < epochs and not sets.is_given(q, arcs[a].target)}
        spans.clear()
        spans.update((a, (begin, min(end, epochs - 1))) for a, (begin, end) in useful.items())
    return sets


def remaining(problem: EpochProblem, state: RoundState) -> EpochProblem:
    """Remove demands that are met or on their way; a commodity without any keeps its source as target."""
    got = state.held | {(q, n) for q, n, _ in state.coming}
    commodities = tuple(
        replace(c, targets=tuple(t for t in c.targets if (q, t) not in got)) for q, c in enumerate(problem.commodities)
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


def lacking(sets: RoundIndexSets, d: int) -> list[int]:
    """Return the chunks that a node needs and does not have: D of this round."""
    return [q for q, commodity in enumerate(sets.problem.commodities) if d in commodity.targets]


def later(sets: RoundIndexSets) -> range:
    """Return K': indices from the end of the round on at which its sends may still arrive."""
    return range(sets.epochs, sets.horizon + 1)


def ahead(m: Any, sets: RoundIndexSets, q: int, n: int, k: int) -> Any:
    """``Q[q, n, k']``: a node has a chunk at an index after the round, from this round or earlier.

    At nodes that store, ``Q[q, n, 0] = B[q, n, K]`` with the arrivals then, and
    ``Q[q, n, k'] = Q[q, n, k'-1] + sum_j F[q, (j, n), K + k' - delta]`` continues B. At switches, the arrivals at k'.
    """
    if sets.is_given(q, n):
        return 1
    if sets.problem.holds[n] != 0:
        return m.B[q, n, k] if k >= sets.first[q][n] else 0
    return pyo.quicksum(m.F[key] for key in sets.arriving(q, n, k)) + sets.incoming(q, n, k)


def progress(m: Any, sets: RoundIndexSets) -> None:
    """``P[n, d, k']``: chunks that node n is to bring to node d."""
    wanting = sorted({d for commodity in sets.problem.commodities for d in commodity.targets})
    m.pairs = pyo.Set(
        dimen=3, initialize=[(n, d, k) for n in range(sets.problem.nodes) for d in wanting for k in later(sets)]
    )
    m.P = pyo.Var(m.pairs, domain=pyo.NonNegativeReals)


def on_the_way(m: Any, sets: RoundIndexSets) -> None:
    """``P[n, d, k'] <= sum_{q: D[q, d] = 1} Q[q, n, k']``: a node can bring what it has."""

    @m.Constraint(m.pairs)
    def on_the_way(m: Any, n: int, d: int, k: int) -> Any:
        return m.P[n, d, k] <= pyo.quicksum(ahead(m, sets, q, n, k) for q in lacking(sets, d))


def assignment(m: Any, sets: RoundIndexSets) -> None:
    """``sum_n P[n, d, k'] = sum_q D[q, d]``: every lacking chunk is assigned to a node."""
    wanting = sorted({d for _, d, _ in m.pairs})

    @m.Constraint(wanting, list(later(sets)))
    def assignment(m: Any, d: int, k: int) -> Any:
        return pyo.quicksum(m.P[n, d, k] for n in range(sets.problem.nodes)) == len(lacking(sets, d))


def objective(m: Any, sets: RoundIndexSets) -> None:
    """Maximize ``sum_{q, d, k} B[q, d, k] / k + sum_{n, d, k'} g[n, d] / (k'+1) P[n, d, k']``.

    The first part is the paper's objective: a chunk that has arrived by index k of the round counts 1 / k for every
    index from then on. The second is the value of chunks on their way: ``g[n, d] = gamma / (1 + FW[n, d])``, FW the
    distance in epochs, and 1 where n is d.
    """
    terms = []
    for q, commodity in enumerate(sets.problem.commodities):
        for d in commodity.targets:
            terms += [1.0 / k * m.B[q, d, k] for k in range(1, sets.epochs + 1) if k >= sets.first[q][d]]
    for n, d, k in m.pairs:
        near = 1.0 if n == d else sets.gamma / (1.0 + float(sets.problem.distance[n, d]))
        terms.append(near / (k - sets.epochs + 1) * m.P[n, d, k])
    m.objective = pyo.Objective(expr=pyo.quicksum(terms), sense=pyo.maximize)
