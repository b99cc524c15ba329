"""One round of TE-CCL's A* technique as a Pyomo model (appendix D): the general form with another objective and an open end."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from .milp_formulation import buffers, capacity, flow_conservation, passing_on, variables
from .rounds import RoundLayout


def build(plan: RoundLayout, gamma: float) -> Any:
    """Build the model of a round: the general form without its end, what is on its way, how near that is, what is sought."""
    with PauseGC():
        m = pyo.ConcreteModel("teccl-astar")
        variables(m, plan)
        capacity(m, plan)
        buffers(m, plan)
        flow_conservation(m, plan)
        passing_on(m, plan)
        progress(m, plan)
        on_the_way(m, plan)
        assigned(m, plan)
        objective(m, plan, gamma)
    return m


def lacking(plan: RoundLayout, d: int) -> list[int]:
    """Chunks that a node needs and does not have: D of this round."""
    return [q for q, commodity in enumerate(plan.problem.commodities) if d in commodity.targets]


def later(plan: RoundLayout) -> range:
    """K': indices from the end of the round on at which its sends may still arrive."""
    return range(plan.epochs, plan.horizon + 1)


def ahead(m: Any, plan: RoundLayout, q: int, n: int, k: int) -> Any:
    """``Q[q, n, k']``: whether a node has a chunk at an index after the round; what the round and those before it have sent.

    At nodes that store, ``Q[q, n, 0] = B[q, n, K]`` with what arrives then, ``Q[q, n, k'] = Q[q, n, k'-1] + sum_j F[q, (j, n), K + k' - delta]``:
    B, continued beyond the round. At switches, what arrives at the very index.
    """
    if plan.is_given(q, n):
        return 1
    if plan.problem.holds[n] != 0:
        return m.B[q, n, k] if k >= plan.first[q][n] else 0
    return pyo.quicksum(m.F[key] for key in plan.arriving(q, n, k)) + plan.incoming(q, n, k)


def progress(m: Any, plan: RoundLayout) -> None:
    """``P[n, d, k']``: chunks that node n is to bring to node d."""
    wanting = sorted({d for commodity in plan.problem.commodities for d in commodity.targets})
    m.pairs = pyo.Set(
        dimen=3, initialize=[(n, d, k) for n in range(plan.problem.nodes) for d in wanting for k in later(plan)]
    )
    m.P = pyo.Var(m.pairs, domain=pyo.NonNegativeReals)


def on_the_way(m: Any, plan: RoundLayout) -> None:
    """``P[n, d, k'] <= sum_{q: D[q, d] = 1} Q[q, n, k']``: a node can bring what it has."""

    @m.Constraint(m.pairs)
    def on_the_way(m: Any, n: int, d: int, k: int) -> Any:
        return m.P[n, d, k] <= pyo.quicksum(ahead(m, plan, q, n, k) for q in lacking(plan, d))


def assigned(m: Any, plan: RoundLayout) -> None:
    """``sum_n P[n, d, k'] = sum_q D[q, d]``: every chunk that is lacking is somewhere."""
    wanting = sorted({d for _, d, _ in m.pairs})

    @m.Constraint(wanting, list(later(plan)))
    def assigned(m: Any, d: int, k: int) -> Any:
        return pyo.quicksum(m.P[n, d, k] for n in range(plan.problem.nodes)) == len(lacking(plan, d))


def objective(m: Any, plan: RoundLayout, gamma: float) -> None:
    """Maximize the paper's objective and ``sum gamma / ((k'+1) (1 + FW[n, d])) P[n, d, k']``, 1 / (k'+1) where n is d.

    FW is the distance in epochs. A chunk that is there by index k of the round counts 1 / k for every index from then on.
    """
    terms = []
    for q, commodity in enumerate(plan.problem.commodities):
        for d in commodity.targets:
            terms += [1.0 / k * m.B[q, d, k] for k in range(1, plan.epochs + 1) if k >= plan.first[q][d]]
    for n, d, k in m.pairs:
        near = 1.0 if n == d else gamma / (1.0 + float(plan.problem.distance[n, d]))
        terms.append(near / (k - plan.epochs + 1) * m.P[n, d, k])
    m.objective = pyo.Objective(expr=pyo.quicksum(terms), sense=pyo.maximize)
