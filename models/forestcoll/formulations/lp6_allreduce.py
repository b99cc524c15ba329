"""Linear program (6) of ForestColl, appendix E, as a Pyomo model: the best all-reduce by trees.

Root v adds up and broadcasts at the rate x_v. Every rank t has one flow for broadcasts and one for reductions. The arcs
of the source, capacity x_v, are all full, since together they have no more than must arrive; so they are constants of
the balances, and the balance of t itself is the sum of the others and left out.

Trees join ranks only: the capacity of a pair of ranks is that of their direct link plus what switches pass on (b' in
the paper). Switches that add and copy ("hubs", docs/methods/forestcoll.md) are in the place of a rank everywhere but in
the roots.

Where every link has one of the same bandwidth back, the mean of a solution and its mirror image is a solution too: the
reductions need no variables and no flows of their own.
"""

from typing import Any

import pyomo.environ as pyo

from ....core.budget import require_buildable
from ....core.grouping import group_by_key
from ....core.rows import Lists, Variables, rows, var_or_zero
from ..problem import PairNetwork


def build(pairs: PairNetwork) -> Any:
    """Build the model: relays, both stages' shares of pairs, flows of either stage, root rates."""
    ranks = len(pairs.network.rank_nodes)
    stages = 1 if pairs.is_mirrored else 2
    require_buildable(stages * ranks * len(pairs.pairs), f"flows from and to {ranks:,} ranks", 4e-6)
    m = pyo.ConcreteModel("forestcoll-allreduce")
    sets(m, pairs)
    variables(m, pairs)
    link_capacity(m, pairs)
    switch_balance(m, pairs)
    pair_capacity(m, pairs)
    broadcast_capacity(m)
    broadcast_balance(m, pairs)
    if not pairs.is_mirrored:
        reduce_capacity(m)
        reduce_balance(m, pairs)
    objective(m)
    return m


def unit(pairs: PairNetwork) -> int:
    """Return the model's unit of capacity: the largest of a link."""
    return max(pairs.network.bandwidths)


def sets(m: Any, pairs: PairNetwork) -> None:
    """Declare roots, tree nodes, pairs, switch links by relayed node, arcs of flows by node."""
    net = pairs.network
    m.C = pyo.Set(initialize=net.rank_nodes)
    m.N = pyo.Set(initialize=pairs.ends)
    m.A = pyo.Set(dimen=2, initialize=pairs.pairs)
    m.R = pyo.Set(dimen=2, initialize=[(a, e) for a, links in pairs.relays.items() for e in links])
    m.H = pyo.Set(initialize=sorted({e for links in pairs.relays.values() for e in links}))
    # What a sink has received does not leave it again, and what it sends does not come back.
    m.B = pyo.Set(dimen=3, initialize=[(t, a, b) for t in pairs.ends for a, b in pairs.pairs if a != t])
    m.D = pyo.Set(dimen=3, initialize=[(t, a, b) for t in pairs.ends for a, b in pairs.pairs if b != t])


def variables(m: Any, pairs: PairNetwork) -> None:
    """Declare root rates, relayed data, pair capacities of either stage, flows of either stage."""
    m.root = Variables(m.C, domain=pyo.NonNegativeReals)
    m.relay = Variables(m.R, domain=pyo.NonNegativeReals)
    m.broadcast = Variables(m.A, domain=pyo.NonNegativeReals)
    m.broadcast_flow = Variables(m.B, domain=pyo.NonNegativeReals)
    if pairs.is_mirrored:
        return
    m.reduce = Variables(m.A, domain=pyo.NonNegativeReals)
    m.reduce_flow = Variables(m.D, domain=pyo.NonNegativeReals)


def link_capacity(m: Any, pairs: PairNetwork) -> None:
    """``sum_a y_{a,e} <= b_e``: data of all ranks on a link of a switch."""
    users = group_by_key((e, a) for a, e in m.R)

    @m.Constraint(m.H)
    def link_capacity(m: Any, e: int) -> Any:
        return pyo.quicksum(m.relay[a, e] for a in users[e]) <= pairs.network.bandwidths[e] / unit(pairs)


def switch_balance(m: Any, pairs: PairNetwork) -> None:
    """``sum_w y_{a,(v,w)} <= sum_u y_{a,(u,v)}``: a switch forwards what it receives of rank a, without copying."""
    ends = pairs.network.tail, pairs.network.head
    leaving, entering = (group_by_key(((a, end[e]), e) for a, e in m.R) for end in ends)
    switches = [(a, v) for a, v in leaving if not pairs.is_end[v]]

    @m.Constraint(switches)
    def switch_balance(m: Any, a: int, v: int) -> Any:
        exits, came = leaving[a, v], entering[a, v]
        return pyo.quicksum(m.relay[a, e] for e in exits) <= pyo.quicksum(m.relay[a, e] for e in came)


def pair_capacity(m: Any, pairs: PairNetwork) -> None:
    """``c^RE_{ab} + c^BC_{ab} - sum_{e into b} y_{a,e} <= b_{ab}``, the direct links of the pair; (6), third row.

    b' in the paper is b with what switches deliver of a at b. Where reductions mirror broadcasts, ``c^RE_{ab}`` is
    ``c^BC_{ba}``.
    """
    arriving = group_by_key(((a, pairs.network.head[e]), e) for a, e in m.R)

    @m.Constraint(m.A)
    def pair_capacity(m: Any, a: int, b: int) -> Any:
        both = m.broadcast[a, b]
        if not pairs.is_mirrored:
            both += m.reduce[a, b]
        elif (b, a) in m.A:
            both += m.broadcast[b, a]
        direct = sum(pairs.network.bandwidths[e] for e in pairs.direct.get((a, b), ()))
        return both - pyo.quicksum(m.relay[a, e] for e in arriving[a, b]) <= direct / unit(pairs)


def broadcast_capacity(m: Any) -> None:
    """``f^{s,t}_{ab} <= c^BC_{ab}``; (6), first row."""

    @rows(m, m.B)
    def broadcast_capacity(m: Any, t: int, a: int, b: int) -> Any:
        return m.broadcast_flow[t, a, b] <= m.broadcast[a, b]


def broadcast_balance(m: Any, pairs: PairNetwork) -> None:
    """``sum_u f^{s,t}_{uv} + x_v = sum_w f^{s,t}_{vw}`` for ``v != t``: all rates arrive at t; (6), first row."""
    leaving, entering = neighbours(pairs)

    @rows(m, [(t, v) for t in m.N for v in m.N if v != t])
    def broadcast_balance(m: Any, t: int, v: int) -> Any:
        came = sum(var_or_zero(m.broadcast_flow, t, u, v) for u in entering[v])
        return came + var_or_zero(m.root, v) == sum(m.broadcast_flow[t, v, w] for w in leaving[v])


def reduce_capacity(m: Any) -> None:
    """``f^{t,s}_{ab} <= c^RE_{ab}``; (6), second row."""

    @rows(m, m.D)
    def reduce_capacity(m: Any, t: int, a: int, b: int) -> Any:
        return m.reduce_flow[t, a, b] <= m.reduce[a, b]


def reduce_balance(m: Any, pairs: PairNetwork) -> None:
    """``sum_u f^{t,s}_{uv} = sum_w f^{t,s}_{vw} + x_v`` for ``v != t``: t reaches every root at its rate.

    (6), second row.
    """
    leaving, entering = neighbours(pairs)

    @rows(m, [(t, v) for t in m.N for v in m.N if v != t])
    def reduce_balance(m: Any, t: int, v: int) -> Any:
        came = sum(m.reduce_flow[t, u, v] for u in entering[v])
        return came == sum(var_or_zero(m.reduce_flow, t, v, w) for w in leaving[v]) + var_or_zero(m.root, v)


def objective(m: Any) -> None:
    """Maximize ``sum_v x_v``, the size of the all-reduce over its time."""
    m.objective = pyo.Objective(expr=pyo.quicksum(m.root[v] for v in m.C), sense=pyo.maximize)


def neighbours(pairs: PairNetwork) -> tuple[Lists, Lists]:
    """List the pairs' heads and tails of each rank."""
    leaving, entering = Lists(), Lists()
    for a, b in pairs.pairs:
        leaving[a].append(b)
        entering[b].append(a)
    return leaving, entering
