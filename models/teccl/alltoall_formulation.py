"""The linear program of TE-CCL (section 4.1) for an all-to-all, on blocks of epochs and on classes of flows, as a Pyomo model.

One variable stands for the flows of all sources and links of a class (:mod:`cwb.models.common.colour_refinement`); rows are written for one
member of each class.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ..common.colour_refinement import Classes, Ints, refine
from ..common.colour_refinement import Network as Flows
from .alltoall_grid import Grid
from .alltoall_problem import Exchange, Ways


@dataclass(frozen=True, eq=False)
class Reduced:
    """A problem's flows in classes.

    Parameters
    ----------
    ways : Ways
        Points and arcs.
    classes : Classes
        Which of the flows, balances and links are equal.
    """

    ways: Ways
    classes: Classes

    @cached_property
    def flow_members(self) -> list[tuple[int, int]]:
        """One (source, arc) of every class of flows."""
        return _members(self.classes.flow)

    @cached_property
    def balance_members(self) -> list[tuple[int, int]]:
        """One (source, point) of every class of balances."""
        return _members(self.classes.balance)

    @cached_property
    def link_members(self) -> list[int]:
        """One link of every class of links."""
        return [int(i) for i in np.unique(self.classes.link, return_index=True)[1]]


def reduce(ways: Ways, *, symmetric: bool = True) -> Reduced:
    """Find the classes; without ``symmetric`` every flow is one of its own, for tests."""
    exchange, sources, points = ways.exchange, len(ways.exchange.ranks), len(ways.node)
    flows = Flows(ways.tails, ways.heads, ways.link, points, len(exchange.tails))
    first = np.zeros((sources, points), dtype=np.int64)
    first[:, ~ways.stores.astype(bool)] = 1
    first[:, ways.rank_points] = 2
    first[np.arange(sources), ways.rank_points] = 3
    if not symmetric:
        first = np.arange(first.size).reshape(first.shape)
    arcs = list(zip(ways.delay.tolist(), ways.offset.tolist(), strict=True))
    return Reduced(ways, refine(flows, first, arcs, exchange.capacity if symmetric else range(len(exchange.tails))))


def build(exchange: Exchange, grid: Grid, reduced: Reduced) -> Any:
    """Build the model: flows and stocks, balances, switches, capacities, delivery, and as much delivered as possible.

    Parameters
    ----------
    exchange : Exchange
        The problem.
    grid : Grid
        Blocks and side.
    reduced : Reduced
        Classes of the ways of that side (:func:`.alltoall_grid.ways_for`).
    """
    m = pyo.ConcreteModel("teccl_all_to_all")
    sets(m, grid, reduced)
    variables(m)
    balance(m, grid, reduced)
    switch(m, reduced)
    capacity(m, exchange, grid, reduced)
    delivery(m, grid, reduced)
    objective(m)
    return m


def sets(m: Any, grid: Grid, reduced: Reduced) -> None:
    """Classes and blocks in which data can have come and still arrive in time."""
    ways = reduced.ways
    used: list[tuple[int, int]] = []
    for c, (s, a) in enumerate(reduced.flow_members):
        if ways.heads[a] == ways.rank_points[s]:
            continue
        first = int(ways.distance[s, ways.tails[a]] - ways.offset[a])
        after = int(ways.delay[a] + ways.offset[a] + ways.rest[ways.heads[a]])
        used += [(c, b) for b in range(grid.blocks) if _in_time(grid, b, first, after)]
    m.flows = pyo.Set(initialize=used, dimen=2, ordered=True)
    own = {(s, int(p)) for s, p in enumerate(ways.rank_points)}
    stocks = [q for q, (s, v) in enumerate(reduced.balance_members) if ways.stores[v] and (s, v) not in own]
    m.stocks = pyo.Set(initialize=stocks, ordered=True)
    m.passing = pyo.Set(
        initialize=[q for q, (_, v) in enumerate(reduced.balance_members) if not ways.stores[v]], ordered=True
    )
    wanted = set(ways.rank_points.tolist())
    m.wanted = pyo.Set(initialize=[q for q in stocks if reduced.balance_members[q][1] in wanted], ordered=True)
    m.blocks = pyo.RangeSet(0, grid.blocks - 1)
    m.links = pyo.RangeSet(0, len(reduced.link_members) - 1)


def _in_time(grid: Grid, block: int, first: int, after: int) -> bool:
    begin, end = grid.starts[block], grid.starts[block + 1] - 1
    if grid.side == "relax":
        return end >= first and begin + after <= grid.epochs
    return begin >= first and end + after <= grid.epochs


def variables(m: Any) -> None:
    """``F``, what a flow carries in a block; ``B``, what is left at a point at the end of it; the part of everything that is delivered."""
    m.F = pyo.Var(m.flows, domain=pyo.NonNegativeReals)
    m.B = pyo.Var(m.stocks, m.blocks, domain=pyo.NonNegativeReals)
    m.part = pyo.Var(domain=pyo.NonNegativeReals)


def _around(reduced: Reduced, q: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Flows into and out of a balance: (class, epochs after which they can be used) and classes."""
    ways, (s, v) = reduced.ways, reduced.balance_members[q]
    after = ways.delay + ways.offset
    entering = [(int(reduced.classes.flow[s, a]), int(after[a])) for a in np.flatnonzero(ways.heads == v)]
    return entering, [int(reduced.classes.flow[s, a]) for a in np.flatnonzero(ways.tails == v)]


def _arrivals(m: Any, grid: Grid, reduced: Reduced, q: int) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for c, after in _around(reduced, q)[0]:
        for b in m.blocks:
            if (c, b) in m.F:
                found[grid.usable(b, after)].append(m.F[c, b])
    return found


def balance(m: Any, grid: Grid, reduced: Reduced) -> None:
    """``B_{s,n,k} = B_{s,n,k-1} + sum_j F_{s,j,n,k-delta} - sum_j F_{s,n,j,k}`` (flow conservation, section 4.1); what arrives is kept or sent on."""
    arrivals = {q: _arrivals(m, grid, reduced, q) for q in m.stocks}
    leaving = {q: _around(reduced, q)[1] for q in m.stocks}

    @m.Constraint(m.stocks, m.blocks)
    def balance(m: Any, q: int, b: int) -> Any:
        before = m.B[q, b - 1] if b else 0.0
        sent = pyo.quicksum(m.F[c, b] for c in leaving[q] if (c, b) in m.F)
        return m.B[q, b] == before + pyo.quicksum(arrivals[q].get(b, ())) - sent


def switch(m: Any, reduced: Reduced) -> None:
    """``sum_j F_{s,n,j,k} <= sum_j F_{s,j,n,k-delta}`` at a switch: it keeps nothing, and may drop (section 4.1)."""

    @m.Constraint(m.passing, m.blocks)
    def switch(m: Any, q: int, b: int) -> Any:
        entering, leaving = _around(reduced, q)
        sent = [m.F[c, b] for c in leaving if (c, b) in m.F]
        if not sent:
            return pyo.Constraint.Skip
        return pyo.quicksum(sent) <= pyo.quicksum(m.F[c, b] for c, _ in entering if (c, b) in m.F)


def capacity(m: Any, exchange: Exchange, grid: Grid, reduced: Reduced) -> None:
    """``sum_s F_{s,i,j,k} <= T_ij tau``: what all sources send over a link in an epoch (section 3.1), for every span in which no rate changes."""
    ways = reduced.ways
    m.spans = pyo.Set(initialize=[], dimen=2)
    terms: dict[tuple[int, int], tuple[list[tuple[float, Any]], float]] = {}
    for index, link in enumerate(reduced.link_members):
        count: dict[int, Counter[int]] = defaultdict(Counter)
        for a in np.flatnonzero(ways.link == link):
            count[int(ways.offset[a])].update(reduced.classes.flow[:, a].tolist())
        for number, (blocks, room) in enumerate(_spans(grid, sorted(count))):
            found = [
                (n * grid_share, m.F[c, b])
                for offset, b, grid_share in blocks
                for c, n in count[offset].items()
                if (c, b) in m.F
            ]
            if found:
                terms[index, number] = (found, float(exchange.capacity[link] * room))

    @m.Constraint(list(terms))
    def capacity(m: Any, index: int, number: int) -> Any:
        found, room = terms[index, number]
        return pyo.quicksum(n * x for n, x in found) <= room


def _spans(grid: Grid, offsets: list[int]) -> list[tuple[list[tuple[int, int, float]], int]]:
    """Spans of a link's time: the blocks ``(offset, block, share)`` that use it then, and its epochs.

    With one offset the spans are the blocks. With several, those of different offsets overlap: rates must fit wherever one begins.
    """
    if len(offsets) == 1:
        return [([(offsets[0], b, 1.0)], grid.length(b)) for b in range(grid.blocks)]
    starts = sorted({p + offset for offset in offsets for p in grid.starts[:-1]})
    spans = []
    for at in starts:
        running = [
            (offset, b, 1.0 / grid.length(b))
            for offset in offsets
            for b in range(grid.blocks)
            if grid.starts[b] + offset <= at < grid.starts[b + 1] + offset
        ]
        spans.append((running, 1))
    return spans


def delivery(m: Any, grid: Grid, reduced: Reduced) -> None:
    """``R_{s,d,K} = part``: what every destination has at the end; 1 is all that it wants (destination constraints, section 4.1)."""

    @m.Constraint(m.wanted)
    def delivery(m: Any, q: int) -> Any:
        last = _arrivals(m, grid, reduced, q).get(grid.blocks, ())
        return m.B[q, grid.blocks - 1] + pyo.quicksum(last) >= m.part


def objective(m: Any) -> None:
    """Maximize the part of everything that is delivered: the makespan is possible if it is 1 or more."""
    m.objective = pyo.Objective(expr=m.part, sense=pyo.maximize)


def shortest(m: Any) -> None:
    """Deliver everything, and minimize what all links carry instead: corners of this program have small denominators and few flows."""
    m.part.fix(1.0)
    m.objective.deactivate()
    m.total = pyo.Objective(expr=pyo.quicksum(m.F.values()), sense=pyo.minimize)


def _members(table: Ints) -> list[tuple[int, int]]:
    first = np.unique(table, return_index=True)[1]
    return [(int(i) // table.shape[1], int(i) % table.shape[1]) for i in first]
