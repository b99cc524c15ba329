"""Pyomo model of the rounds with a late rank."""

from typing import Any

import pyomo.environ as pyo

from .problem import LateRounds


def build(problem: LateRounds) -> Any:
    """Build the model: sends, full sums, one send and one receipt per round, least number of rounds."""
    m = pyo.ConcreteModel("straggler")
    variables(m, problem)
    start(m)
    gain(m)
    has_first(m, problem)
    one_send(m)
    one_receipt(m)
    in_turn(m)
    post(m, problem)
    objective(m)
    return m


def variables(m: Any, problem: LateRounds) -> None:
    """``x_{c,i,j,t}``, 1 if i sends c to j; ``f_{c,i,t}``, 1 if i has the full sum; ``u_t``, 1 if round t is used."""
    m.C = pyo.RangeSet(0, len(problem.homes) - 1)
    m.N = pyo.RangeSet(0, problem.problem.n - 1)
    m.T = pyo.RangeSet(0, problem.rounds - 1)
    m.W = pyo.Set(dimen=3, initialize=problem.ways)
    m.x = pyo.Var(m.W, m.T, domain=pyo.Binary)
    m.f = pyo.Var(m.C, m.N, pyo.RangeSet(0, problem.rounds), domain=pyo.Binary)
    m.u = pyo.Var(m.T, domain=pyo.Binary)


def start(m: Any) -> None:
    """``f_{c,i,0} = 0``: no rank has a full sum when the late rank arrives."""

    @m.Constraint(m.C, m.N)
    def start(m: Any, c: int, i: int) -> Any:
        return m.f[c, i, 0] == 0


def gain(m: Any) -> None:
    """``f_{c,j,t+1} = f_{c,j,t} + sum_i x_{c,i,j,t}``: a rank keeps a received chunk and receives none twice."""

    @m.Constraint(m.C, m.N, m.T)
    def gain(m: Any, c: int, j: int, t: int) -> Any:
        return m.f[c, j, t + 1] == m.f[c, j, t] + pyo.quicksum(m.x[c, i, j, t] for i in m.N if i != j)


def has_first(m: Any, problem: LateRounds) -> None:
    """``x_{c,i,j,t} <= f_{c,i,t}``, except between the late rank 0 and the chunk's home, which add their parts."""
    home = problem.homes

    @m.Constraint(m.W, m.T)
    def has_first(m: Any, c: int, i: int, j: int, t: int) -> Any:
        if {i, j} == {0, home[c]}:
            return pyo.Constraint.Skip
        return m.x[c, i, j, t] <= m.f[c, i, t]


def one_send(m: Any) -> None:
    """``sum_{c,j} x_{c,i,j,t} <= u_t``: a rank sends at most one chunk in a used round."""

    @m.Constraint(m.N, m.T)
    def one_send(m: Any, i: int, t: int) -> Any:
        return pyo.quicksum(m.x[c, i, j, t] for c in m.C for j in m.N if j != i) <= m.u[t]


def one_receipt(m: Any) -> None:
    """``sum_{c,i} x_{c,i,j,t} <= u_t``: a rank receives at most one chunk in a round."""

    @m.Constraint(m.N, m.T)
    def one_receipt(m: Any, j: int, t: int) -> Any:
        return pyo.quicksum(m.x[c, i, j, t] for c in m.C for i in m.N if i != j) <= m.u[t]


def in_turn(m: Any) -> None:
    """``u_{t+1} <= u_t``: unused rounds come last."""

    @m.Constraint(m.T)
    def in_turn(m: Any, t: int) -> Any:
        return pyo.Constraint.Skip if t == m.T.last() else m.u[t + 1] <= m.u[t]


def post(m: Any, problem: LateRounds) -> None:
    """``f_{c,i,R} = 1``: in the end all ranks have all chunks."""

    @m.Constraint(m.C, m.N)
    def post(m: Any, c: int, i: int) -> Any:
        return m.f[c, i, problem.rounds] == 1


def objective(m: Any) -> None:
    """Minimize ``sum_t u_t``, the rounds that are used."""
    m.objective = pyo.Objective(expr=pyo.quicksum(m.u[t] for t in m.T), sense=pyo.minimize)
