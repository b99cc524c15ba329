"""Pyomo model of the integer program over the time-expanded network."""

from typing import Any

import pyomo.environ as pyo

from .problem import HorizonModel, TimeExpandedNetwork


def build(index: HorizonModel) -> Any:
    """Build the model of a horizon: single arrivals, precedence, one chunk at a time on a link."""
    m, problem = pyo.ConcreteModel("ten-ilp"), index.problem
    variables(m, index)
    post(m, problem)
    once(m, problem)
    has_first(m, problem)
    link(m, problem)
    makespan(m, problem)
    objective(m)
    return m


def variables(m: Any, index: HorizonModel) -> None:
    """``x_{c,e,t}`` if c can be at e's tail at t and reach a target by K; ``L <= T <= K``, L a lower bound."""
    m.spans = index.problem.spans(index.horizon)
    m.starts = pyo.Set(initialize=[(c, e, t) for (c, e), span in m.spans.items() for t in span], ordered=True)
    m.x = pyo.Var(m.starts, domain=pyo.Binary)
    m.T = pyo.Var(bounds=(index.least, index.horizon))
    m.demand = [(c, n) for c, chunk in enumerate(index.problem.chunks) for n in chunk.targets]


def arrivals(m: Any, problem: TimeExpandedNetwork, c: int, n: int, by: int | None = None) -> list[tuple[int, int, int]]:
    """List the starts that bring a chunk to a node, by tick ``by`` if given."""
    return [
        (c, e, t)
        for e in problem.into.get(n, [])
        for t in m.spans.get((c, e), ())
        if by is None or t + problem.ticks[e] <= by
    ]


def post(m: Any, problem: TimeExpandedNetwork) -> None:
    """``sum_{e into n, t} x_{c,e,t} = 1`` for n in ``D_c`` (postcondition)."""

    @m.Constraint(m.demand)
    def post(m: Any, c: int, n: int) -> Any:
        into = arrivals(m, problem, c, n)
        return pyo.quicksum(m.x[key] for key in into) == 1 if into else pyo.Constraint.Infeasible


def once(m: Any, problem: TimeExpandedNetwork) -> None:
    """``sum_{e into n, t} x_{c,e,t} <= 1`` for n not in ``D_c``: a rank that forwards receives a chunk once."""
    others = [
        (c, n)
        for c, chunk in enumerate(problem.chunks)
        for n in problem.nodes
        if n not in chunk.targets and len(arrivals(m, problem, c, n)) > 1
    ]

    @m.Constraint(others)
    def once(m: Any, c: int, n: int) -> Any:
        return pyo.quicksum(m.x[key] for key in arrivals(m, problem, c, n)) <= 1


def has_first(m: Any, problem: TimeExpandedNetwork) -> None:
    """``x_{c,(i,j),t} <= sum_{e into i, u + w_e <= t} x_{c,e,u}`` for ``i != s_c``: arrival precedes departure."""
    later = [(c, e, t) for c, e, t in m.starts if problem.edges[e].source != problem.chunks[c].source]

    @m.Constraint(later)
    def has_first(m: Any, c: int, e: int, t: int) -> Any:
        into = arrivals(m, problem, c, problem.edges[e].source, by=t)
        return m.x[c, e, t] <= pyo.quicksum(m.x[key] for key in into)


def link(m: Any, problem: TimeExpandedNetwork) -> None:
    """``sum_{c, e over l, t - w_e < u <= t} x_{c,e,u} <= 1`` for all l, t: no overlap."""
    users: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for c, e, u in m.starts:
        for wire in problem.edges[e].links:
            for t in range(u, u + problem.ticks[e]):
                users.setdefault((wire, t), []).append((c, e, u))

    @m.Constraint(sorted(key for key, starts in users.items() if len(starts) > 1))
    def link(m: Any, wire: int, t: int) -> Any:
        return pyo.quicksum(m.x[key] for key in users[wire, t]) <= 1


def makespan(m: Any, problem: TimeExpandedNetwork) -> None:
    """``sum_{e into n, t} (t + w_e) x_{c,e,t} <= T`` for n in ``D_c``: no arrival is later."""

    @m.Constraint(m.demand)
    def makespan(m: Any, c: int, n: int) -> Any:
        into = arrivals(m, problem, c, n)
        return pyo.quicksum((key[2] + problem.ticks[key[1]]) * m.x[key] for key in into) <= m.T


def objective(m: Any) -> None:
    """Minimize ``T``."""
    m.objective = pyo.Objective(expr=m.T, sense=pyo.minimize)
