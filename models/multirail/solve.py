"""Method ``themis-lp``: best shares of all chunk orders, a bound, and chunks (docs/methods/multirail.md)."""

from collections.abc import Sequence
from fractions import Fraction
from math import factorial
from typing import Any

import pyomo.environ as pyo

from ...core.answers import ChunkOrders
from ...core.bounds import Certificate, DimensionWeights, SolverBound
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.solver import Capability, ResolvingSolver, Solver, SolverOptions, SolverResult
from .method import ThemisOptions
from .problem import OrderProblem, pose_problem


def run(instance: Instance, solver: Solver, budget: Budget, options: ThemisOptions) -> Outcome:
    """Solve the linear program and assign orders to chunks by its shares (``Method.run``)."""
    problem = pose_problem(instance)
    with budget.clock.phase("build"):
        model = build(problem)
    weights = None
    if isinstance(solver, ResolvingSolver) and Capability.RESOLVE | Capability.DUALS in solver.capabilities:
        compiled = solver.compile(model, budget, SolverOptions())
        result = compiled.solve(budget)
        if result.has_solution:
            weights = clean_weights([compiled.dual(model.busiest[d]) for d in model.D])
    else:
        result = solver.solve(model, budget, SolverOptions())
    if not result.has_solution:
        return Outcome(
            Status.LIMIT, message=result.message or result.termination.value, reports=(result,), size=result.size
        )
    bound, certificate = bound_s(problem, result, weights)
    shares = [max(0.0, pyo.value(model.share[o])) for o in model.O]
    answer = ChunkOrders(deal(problem.orders, shares, instance.demands[0].chunks), options.queue)
    return Outcome(
        Status.FEASIBLE,
        answer,
        bound=bound,
        certificate=certificate,
        reports=(result,),
        size=result.size,
        iterations=result.iterations or 0,
        metrics={"orders": factorial(len(problem.latency_s)), "orders_used": len(set(answer.orders))},
    )


def clean_weights(duals: Sequence[float]) -> tuple[Fraction, ...]:
    """Convert the loads' duals to exact nonnegative weights of sum 1, whatever the rows' signs."""
    weights = [Fraction(abs(dual)).limit_denominator(10**12) for dual in duals]
    total = sum(weights, Fraction(0))
    return tuple(weight / total for weight in weights) if total else ()


def bound_s(
    problem: OrderProblem, result: SolverResult, weights: tuple[Fraction, ...] | None
) -> tuple[float | None, Certificate | None]:
    """Return the bound that weights prove, or the solver's."""
    if weights:
        loads = [
            sum((w * (a + t) for w, a, t in zip(weights, problem.latency_s, transfer, strict=True)), Fraction(0))
            for transfer in problem.transfer_s
        ]
        return float(min(loads)), DimensionWeights(weights)
    if result.bound is not None:
        return result.bound * float(problem.unit_s), SolverBound(result.solver, result.version)
    return None, None


def deal(orders: Sequence[tuple[int, ...]], shares: Sequence[float], chunks: int) -> tuple[tuple[int, ...], ...]:
    """Assign each chunk the order that lags most behind its share, the first of several."""
    total = sum(shares)
    counts = [0] * len(orders)
    dealt: list[tuple[int, ...]] = []
    for chunk in range(1, chunks + 1):
        lag = [round(share / total * chunk, 9) - count for share, count in zip(shares, counts, strict=True)]
        index = lag.index(max(lag))
        counts[index] += 1
        dealt.append(orders[index])
    return tuple(dealt)


def build(problem: OrderProblem) -> Any:
    """Build the model: shares of the orders, load of every dimension, largest load."""
    m = pyo.ConcreteModel("themis-lp")
    sets(m, problem)
    variables(m)
    all_data(m)
    busiest(m, problem)
    objective(m)
    return m


def sets(m: Any, problem: OrderProblem) -> None:
    """Orders o and dimensions d."""
    m.O = pyo.RangeSet(len(problem.orders))
    m.D = pyo.RangeSet(len(problem.latency_s))


def variables(m: Any) -> None:
    """``x_o``, the share of the data that takes order o, and T, the time of the busiest dimension."""
    m.share = pyo.Var(m.O, domain=pyo.NonNegativeReals)
    m.time = pyo.Var(domain=pyo.NonNegativeReals)


def all_data(m: Any) -> None:
    """``sum_o x_o = 1``."""

    @m.Constraint()
    def all_data(m: Any) -> Any:
        return pyo.quicksum(m.share[o] for o in m.O) == 1


def busiest(m: Any, problem: OrderProblem) -> None:
    """``T >= p C A_d + sum_o x_o m_od / B_d``; p is 2 for an all-reduce, which goes both ways, else 1."""

    @m.Constraint(m.D)
    def busiest(m: Any, d: int) -> Any:
        transfers = pyo.quicksum(float(problem.transfer_s[o - 1][d - 1] / problem.unit_s) * m.share[o] for o in m.O)
        return m.time >= float(problem.latency_s[d - 1] / problem.unit_s) + transfers


def objective(m: Any) -> None:
    """Minimize T."""
    m.objective = pyo.Objective(expr=m.time, sense=pyo.minimize)
