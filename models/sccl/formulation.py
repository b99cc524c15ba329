"""Pyomo model of the k-synchronous schedules of SCCL."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from .problem import SynchronousSteps


def build(problem: SynchronousSteps) -> Any:
    """Build the model: chunks at ranks, sends, rounds, and the least number of rounds."""
    m = pyo.ConcreteModel("sccl")
    variables(m, problem)
    start(m, problem)
    receive(m, problem)
    has_first(m, problem)
    bandwidth(m, problem)
    rounds(m, problem)
    post(m, problem)
    objective(m)
    return m


def variables(m: Any, problem: SynchronousSteps) -> None:
    """``v_{c,n,s}``, 1 if n has c before step s; ``y_{c,e,s}``, 1 if e carries it; ``1 <= r_s <= R``, rounds."""
    m.C = pyo.RangeSet(0, len(problem.chunks) - 1)
    m.N = pyo.Set(initialize=problem.nodes)
    m.E = pyo.RangeSet(0, len(problem.edges) - 1)
    m.S = pyo.RangeSet(0, problem.steps - 1)
    m.v = pyo.Var(m.C, m.N, pyo.RangeSet(0, problem.steps), domain=pyo.Binary)
    m.y = pyo.Var(m.C, m.E, m.S, domain=pyo.Binary)
    m.r = pyo.Var(m.S, domain=pyo.NonNegativeIntegers, bounds=(1, problem.rounds))


def start(m: Any, problem: SynchronousSteps) -> None:
    """``v_{c,n,0} = 1`` at the source of c and 0 elsewhere (precondition)."""

    @m.Constraint(m.C, m.N)
    def start(m: Any, c: int, n: int) -> Any:
        return m.v[c, n, 0] == int(problem.chunks[c].source == n)


def receive(m: Any, problem: SynchronousSteps) -> None:
    """``v_{c,n,s+1} = v_{c,n,s} + sum_i y_{c,(i,n),s}``: a rank keeps what it had and receives nothing twice."""
    into = {n: [e for e, edge in enumerate(problem.edges) if edge.target == n] for n in problem.nodes}

    @m.Constraint(m.C, m.N, m.S)
    def receive(m: Any, c: int, n: int, s: int) -> Any:
        return m.v[c, n, s + 1] == m.v[c, n, s] + pyo.quicksum(m.y[c, e, s] for e in into[n])


def has_first(m: Any, problem: SynchronousSteps) -> None:
    """``y_{c,(i,j),s} <= v_{c,i,s}``: a rank sends only chunks that it had before the step."""

    @m.Constraint(m.C, m.E, m.S)
    def has_first(m: Any, c: int, e: int, s: int) -> Any:
        return m.y[c, e, s] <= m.v[c, problem.edges[e].source, s]


def bandwidth(m: Any, problem: SynchronousSteps) -> None:
    """``sum_c y_{c,e,s} <= b_e r_s``: an edge's load fits into the rounds of the step."""

    @m.Constraint(m.E, m.S)
    def bandwidth(m: Any, e: int, s: int) -> Any:
        return pyo.quicksum(m.y[c, e, s] for c in m.C) <= problem.room[e] * m.r[s]


def rounds(m: Any, problem: SynchronousSteps) -> None:
    """``sum_s r_s <= R`` (with ``R = S + k``: k-synchronous)."""

    @m.Constraint()
    def rounds(m: Any) -> Any:
        return pyo.quicksum(m.r[s] for s in m.S) <= problem.rounds


def post(m: Any, problem: SynchronousSteps) -> None:
    """``v_{c,n,S} = 1`` where n needs c (postcondition)."""
    needed = [(c, n) for c, chunk in enumerate(problem.chunks) for n in chunk.targets]

    @m.Constraint(needed)
    def post(m: Any, c: int, n: int) -> Any:
        return m.v[c, n, problem.steps] == 1


def objective(m: Any) -> None:
    """Minimize ``sum_s r_s``, the rounds."""
    m.objective = pyo.Objective(expr=pyo.quicksum(m.r[s] for s in m.S), sense=pyo.minimize)
