"""TE-CCL's linear program for an all-to-all (section 4.1), on blocks of epochs and classes of flows.

One variable stands for the flows of all sources and links of a class
(:mod:`cwb.algorithms.graphs.colour_refinement`); constraints are written for one member of each class.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from ....core.rows import Lists, Table, Variables, rows, var_or_zero
from ..all_to_all_problem import BlockGrid, BlockProgram, Exchange, ReducedFlows


def build(program: BlockProgram) -> Any:
    """Build the model: flows and stocks, balances, switches, capacities, delivery, maximum delivered part."""
    exchange, grid, reduced = program.exchange, program.grid, program.reduced
    with PauseGC():  # nothing of it is garbage yet
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
    """Declare classes, and blocks in which data can have arrived and can still be delivered in time."""
    network = reduced.network
    after = network.delay + network.offset + network.distance_to.min(axis=0)[network.heads]
    m.spans = [
        range(0)
        if network.heads[a] == network.rank_points[s]
        else _in_time(grid, int(network.distance[s, network.tails[a]] - network.offset[a]), int(after[a]))
        for s, a in reduced.flow_members
    ]
    m.flows = pyo.Set(initialize=[(c, b) for c, blocks in enumerate(m.spans) for b in blocks], dimen=2, ordered=True)
    own = {(s, int(p)) for s, p in enumerate(network.rank_points)}
    stocks = [q for q, (s, v) in enumerate(reduced.balance_members) if network.stores[v] and (s, v) not in own]
    m.stocks = pyo.Set(initialize=stocks, ordered=True)
    passing = [q for q, (_, v) in enumerate(reduced.balance_members) if not network.stores[v]]
    m.passing = pyo.Set(initialize=passing, ordered=True)
    ranks = set(network.rank_points.tolist())
    m.rank_stocks = pyo.Set(initialize=[q for q in stocks if reduced.balance_members[q][1] in ranks], ordered=True)
    m.blocks = pyo.RangeSet(0, grid.blocks - 1)
    m.links = pyo.RangeSet(0, len(reduced.link_members) - 1)


def _in_time(grid: BlockGrid, first: int, after: int) -> range:
    """Return blocks for data available from ``first`` on with ``after`` epochs to go; in part if relaxed."""
    if grid.side == "relax":
        return range(bisect_right(grid.starts, first) - 1, bisect_right(grid.starts, grid.epochs - after))
    return range(bisect_left(grid.starts, first), bisect_right(grid.starts, grid.epochs + 1 - after) - 1)


def variables(m: Any) -> None:
    """``F``, a flow in a block; ``B``, the stock at a point at the block's end; the delivered part."""
    m.F = Variables(m.flows, domain=pyo.NonNegativeReals)
    m.B = Variables(m.stocks, m.blocks, domain=pyo.NonNegativeReals)
    m.part = pyo.Var(domain=pyo.NonNegativeReals)


def _around(reduced: ReducedFlows, q: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Return a balance's inflows (class, epochs until usable) and outflows (class)."""
    network, (s, v) = reduced.network, reduced.balance_members[q]
    after = network.delay + network.offset
    entering = [(int(reduced.classes.flow[s, a]), int(after[a])) for a in network.entering[v]]
    return entering, [int(reduced.classes.flow[s, a]) for a in network.leaving[v]]


def _arrivals(m: Any, grid: BlockGrid, reduced: ReducedFlows, stocks: Any) -> Lists:
    """List the flows ``(class, block)`` into balances, by balance and first usable block."""
    network, arrivals, blocks = reduced.network, Lists(), range(grid.blocks)
    delays = set((network.delay + network.offset).tolist())
    usable = {after: [grid.usable(b, after) for b in blocks] for after in delays}
    for q in stocks:
        for c, after in _around(reduced, q)[0]:
            for b in m.spans[c]:
                arrivals[q, usable[after][b]].append((c, b))
    return arrivals


def balance(m: Any, grid: BlockGrid, reduced: ReducedFlows) -> None:
    """``B_{q,b} = B_{q,b-1} + sum_{c, b'} F_{c,b'} - sum_c F_{c,b}`` (flow conservation, section 4.1).

    The first sum has the flows into a point that block b is the first to use (:meth:`BlockGrid.usable`), the second
    those out of it. What arrives is kept or sent on.
    """
    leaving = Lists((q, _around(reduced, q)[1]) for q in m.stocks)
    came = _arrivals(m, grid, reduced, m.stocks)

    @rows(m, [(q, b) for q in m.stocks for b in m.blocks])
    def balance(m: Any, q: int, b: int) -> Any:
        outflow = sum(var_or_zero(m.F, c, b) for c in leaving[q])
        return m.B[q, b] == var_or_zero(m.B, q, b - 1) + sum(m.F[key] for key in came[q, b]) - outflow


def switch(m: Any, reduced: ReducedFlows) -> None:
    """``sum_c F_{c,b} <= sum_{c'} F_{c',b}`` over flows out of and into a switch: it may drop (section 4.1).

    Blocks count from when data left the last store, so that there is no delay between the two.
    """
    around = {q: _around(reduced, q) for q in m.passing}
    entering = Lists((q, [c for c, _ in came]) for q, (came, _) in around.items())
    leaving = Lists((q, exits) for q, (_, exits) in around.items())

    @rows(m, [(q, b) for q in m.passing for b in sorted({b for c in leaving[q] for b in m.spans[c]})])
    def switch(m: Any, q: int, b: int) -> Any:
        outflow = sum(var_or_zero(m.F, c, b) for c in leaving[q])
        return outflow <= sum(var_or_zero(m.F, c, b) for c in entering[q])


def capacity(m: Any, exchange: Exchange, grid: BlockGrid, reduced: ReducedFlows) -> None:
    """``sum_{c,b} n_c p_b F_{c,b} <= T_ij tau L``: a link's load, in every span in which no rate changes (section 3.1).

    Of the flows on the link n are of class c; a part p of block b lies in the span, which has L epochs.
    """
    network, spans = reduced.network, m.spans
    users, share, room = Lists(), Table(), Table()
    for index, link in enumerate(reduced.link_members):
        count: dict[int, Counter[int]] = defaultdict(Counter)
        for a in np.flatnonzero(network.link == link):
            count[int(network.offset[a])].update(c for c in reduced.classes.flow[:, a].tolist() if spans[c])
        for number, (blocks, epochs) in enumerate(_spans(grid, sorted(count))):
            for offset, b, part in blocks:
                for c, times in count[offset].items():
                    if b in spans[c]:  # classes of one link differ where their offsets do
                        users[index, number].append((c, b))
                        share[index, number, c, b] = times * part
            if (index, number) in users:
                room[index, number] = float(exchange.capacity[link] * epochs)

    @rows(m, list(room))
    def capacity(m: Any, index: int, number: int) -> Any:
        load = sum(share[index, number, c, b] * m.F[c, b] for c, b in users[index, number])
        return load <= room[index, number]


def _spans(grid: BlockGrid, offsets: list[int]) -> list[tuple[list[tuple[int, int, float]], int]]:
    """Divide a link's time into spans: blocks ``(offset, block, share)`` that use it, and the epochs.

    With one offset the spans are the blocks. With several, blocks of different offsets overlap, and rates must fit
    from every block's beginning on.
    """
    if len(offsets) == 1:
        return [([(offsets[0], b, 1.0)], grid.length(b)) for b in range(grid.blocks)]
    starts = sorted({p + offset for offset in offsets for p in grid.starts[:-1]})
    every = [(offset, b) for offset in offsets for b in range(grid.blocks)]
    spans = []
    for at in starts:
        running = [(p, b) for p, b in every if grid.starts[b] + p <= at < grid.starts[b + 1] + p]
        spans.append(([(offset, b, 1.0 / grid.length(b)) for offset, b in running], 1))
    return spans


def delivery(m: Any, grid: BlockGrid, reduced: ReducedFlows) -> None:
    """``B_{q,last} + sum_{c, b} F_{c,b} >= part``: what every destination has, with the flows that arrive at the end.

    1 is all that it wants (destination constraints, section 4.1).
    """
    final, came = grid.blocks - 1, _arrivals(m, grid, reduced, m.rank_stocks)
    last = Lists((q, came[q, grid.blocks]) for q in m.rank_stocks)

    @rows(m, list(m.rank_stocks))
    def delivery(m: Any, q: int) -> Any:
        return m.B[q, final] + sum(m.F[key] for key in last[q]) >= m.part


def objective(m: Any) -> None:
    """Maximize ``part``, which is delivered; the makespan is possible if it is 1 or more."""
    m.objective = pyo.Objective(expr=m.part, sense=pyo.maximize)


def shortest(m: Any) -> None:
    """Deliver everything with the least load of all links: vertices have small denominators and few flows."""
    m.part.setlb(1.0)
    m.part.setub(1.0)
    m.objective.deactivate()
    m.total = pyo.Objective(expr=pyo.quicksum(m.F.values()), sense=pyo.minimize)
