"""TE-CCL's linear program (section 4.1) for an all-to-all, on blocks of epochs and classes of flows, as a Pyomo model.

One variable stands for the flows of all sources and links of a class
(:mod:`cwb.algorithms.graphs.colour_refinement`); rows are written for one member of each class.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ..all_to_all_problem import BlockGrid, Exchange, ReducedFlows


def build(exchange: Exchange, grid: BlockGrid, reduced: ReducedFlows) -> Any:
    """Build the model: flows and stocks, balances, switches, capacities, delivery, and as much delivered as possible.

    Parameters
    ----------
    exchange : Exchange
        The problem.
    grid : BlockGrid
        Blocks and side.
    reduced : ReducedFlows
        Classes of the flows of that side (:func:`..all_to_all_problem.points_for`).
    """
    m = pyo.ConcreteModel("teccl-all-to-all")
    sets(m, grid, reduced)
    variables(m)
    balance(m, grid, reduced)
    switch(m, reduced)
    capacity(m, exchange, grid, reduced)
    delivery(m, grid, reduced)
    objective(m)
    return m


def sets(m: Any, grid: BlockGrid, reduced: ReducedFlows) -> None:
    """Classes and blocks in which data can have come and still arrive in time."""
    network = reduced.network
    used: list[tuple[int, int]] = []
    for c, (s, a) in enumerate(reduced.flow_members):
        if network.heads[a] == network.rank_points[s]:
            continue
        first = int(network.distance[s, network.tails[a]] - network.offset[a])
        after = int(network.delay[a] + network.offset[a] + network.rest[network.heads[a]])
        used += [(c, b) for b in range(grid.blocks) if _in_time(grid, b, first, after)]
    m.flows = pyo.Set(initialize=used, dimen=2, ordered=True)
    own = {(s, int(p)) for s, p in enumerate(network.rank_points)}
    stocks = [q for q, (s, v) in enumerate(reduced.balance_members) if network.stores[v] and (s, v) not in own]
    m.stocks = pyo.Set(initialize=stocks, ordered=True)
    m.passing = pyo.Set(
        initialize=[q for q, (_, v) in enumerate(reduced.balance_members) if not network.stores[v]], ordered=True
    )
    wanted = set(network.rank_points.tolist())
    m.wanted = pyo.Set(initialize=[q for q in stocks if reduced.balance_members[q][1] in wanted], ordered=True)
    m.blocks = pyo.RangeSet(0, grid.blocks - 1)
    m.links = pyo.RangeSet(0, len(reduced.link_members) - 1)


def _in_time(grid: BlockGrid, block: int, first: int, after: int) -> bool:
    begin, end = grid.starts[block], grid.starts[block + 1] - 1
    if grid.side == "relax":
        return end >= first and begin + after <= grid.epochs
    return begin >= first and end + after <= grid.epochs


def variables(m: Any) -> None:
    """``F``, what a flow carries in a block.

    ``B``, what is left at a point at the end of it; the part of everything that is delivered.
    """
    m.F = pyo.Var(m.flows, domain=pyo.NonNegativeReals)
    m.B = pyo.Var(m.stocks, m.blocks, domain=pyo.NonNegativeReals)
    m.part = pyo.Var(domain=pyo.NonNegativeReals)


def _around(reduced: ReducedFlows, q: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Flows into and out of a balance: (class, epochs after which they can be used) and classes."""
    network, (s, v) = reduced.network, reduced.balance_members[q]
    after = network.delay + network.offset
    entering = [(int(reduced.classes.flow[s, a]), int(after[a])) for a in np.flatnonzero(network.heads == v)]
    return entering, [int(reduced.classes.flow[s, a]) for a in np.flatnonzero(network.tails == v)]


def _arrivals(m: Any, grid: BlockGrid, reduced: ReducedFlows, q: int) -> dict[int, list[Any]]:
    arrivals: dict[int, list[Any]] = defaultdict(list)
    for c, after in _around(reduced, q)[0]:
        for b in m.blocks:
            if (c, b) in m.F:
                arrivals[grid.usable(b, after)].append(m.F[c, b])
    return arrivals


def balance(m: Any, grid: BlockGrid, reduced: ReducedFlows) -> None:
    """``B_{s,n,k} = B_{s,n,k-1} + sum_j F_{s,j,n,k-delta} - sum_j F_{s,n,j,k}`` (flow conservation, section 4.1).

    What arrives is kept or sent on.
    """
    arrivals = {q: _arrivals(m, grid, reduced, q) for q in m.stocks}
    leaving = {q: _around(reduced, q)[1] for q in m.stocks}

    @m.Constraint(m.stocks, m.blocks)
    def balance(m: Any, q: int, b: int) -> Any:
        before = m.B[q, b - 1] if b else 0.0
        sent = pyo.quicksum(m.F[c, b] for c in leaving[q] if (c, b) in m.F)
        return m.B[q, b] == before + pyo.quicksum(arrivals[q].get(b, ())) - sent


def switch(m: Any, reduced: ReducedFlows) -> None:
    """``sum_j F_{s,n,j,k} <= sum_j F_{s,j,n,k-delta}`` at a switch: it keeps nothing, and may drop (section 4.1)."""

    @m.Constraint(m.passing, m.blocks)
    def switch(m: Any, q: int, b: int) -> Any:
        entering, leaving = _around(reduced, q)
        sent = [m.F[c, b] for c in leaving if (c, b) in m.F]
        if not sent:
            return pyo.Constraint.Skip
        return pyo.quicksum(sent) <= pyo.quicksum(m.F[c, b] for c, _ in entering if (c, b) in m.F)


def capacity(m: Any, exchange: Exchange, grid: BlockGrid, reduced: ReducedFlows) -> None:
    """``sum_s F_{s,i,j,k} <= T_ij tau`` (section 3.1): a link's load, in every span in which no rate changes."""
    network = reduced.network
    m.spans = pyo.Set(initialize=[], dimen=2)
    terms: dict[tuple[int, int], tuple[list[tuple[float, Any]], float]] = {}
    for index, link in enumerate(reduced.link_members):
        count: dict[int, Counter[int]] = defaultdict(Counter)
        for a in np.flatnonzero(network.link == link):
            count[int(network.offset[a])].update(reduced.classes.flow[:, a].tolist())
        for number, (blocks, room) in enumerate(_spans(grid, sorted(count))):
            summands = [
                (n * grid_share, m.F[c, b])
                for offset, b, grid_share in blocks
                for c, n in count[offset].items()
                if (c, b) in m.F
            ]
            if summands:
                terms[index, number] = (summands, float(exchange.capacity[link] * room))

    @m.Constraint(list(terms))
    def capacity(m: Any, index: int, number: int) -> Any:
        summands, room = terms[index, number]
        return pyo.quicksum(n * x for n, x in summands) <= room


def _spans(grid: BlockGrid, offsets: list[int]) -> list[tuple[list[tuple[int, int, float]], int]]:
    """Spans of a link's time: the blocks ``(offset, block, share)`` that use it then, and its epochs.

    With one offset the spans are the blocks. With several, those of different offsets overlap: rates must fit
    wherever one begins.
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


def delivery(m: Any, grid: BlockGrid, reduced: ReducedFlows) -> None:
    """``R_{s,d,K} = part``: what every destination has at the end.

    1 is all that it wants (destination constraints, section 4.1).
    """

    @m.Constraint(m.wanted)
    def delivery(m: Any, q: int) -> Any:
        last = _arrivals(m, grid, reduced, q).get(grid.blocks, ())
        return m.B[q, grid.blocks - 1] + pyo.quicksum(last) >= m.part


def objective(m: Any) -> None:
    """Maximize the part of everything that is delivered: the makespan is possible if it is 1 or more."""
    m.objective = pyo.Objective(expr=m.part, sense=pyo.maximize)


def shortest(m: Any) -> None:
    """Deliver everything, and minimize the load of all links: its corners have small denominators and few flows."""
    m.part.fix(1.0)
    m.objective.deactivate()
    m.total = pyo.Objective(expr=pyo.quicksum(m.F.values()), sense=pyo.minimize)
