"""The optimal all-reduce of ForestColl (appendix E): the linear program, exact capacities that attain it, and what bounds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...core.bounds import CutCertificate, PartitionCertificate
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.solver import CompiledModel, Solver, SolverOptions, SolverResult, Termination
from ..common.schedule_bounds import group_of, network_of
from .allreduce_bounds import best_certificate
from .allreduce_formulation import PairNetwork, build, unit
from .allreduce_plan import AllReducePlan, Values, make_plan
from .lp import compiler
from .scaled import scale

#: HiGHS needs a third of the time with its interior point method, which ends in a vertex like the simplex method.
_OPTIONS: Mapping[str, Mapping[str, object]] = {"highs": {"solver": "ipm"}}


@dataclass(frozen=True)
class AllReduceSolution:
    """What a solve of linear program (6) gives.

    Parameters
    ----------
    rate_Bps : float or None
        Size over time of the best all-reduce by trees, in the solver's arithmetic; None if the budget was too small.
    plan : AllReducePlan or None
        Exact capacities, paths and rates; their rate is below by rounding only.
    bound_s : Fraction or None
        Time that no all-reduce of the instance beats, exact.
    certificate : CutCertificate or PartitionCertificate or None
        What proves it.
    report : SolverResult
        The solve.
    plan_s : Fraction or None
        Time of the plan, exact; None if k is so small that all rates have become 0.
    """

    rate_Bps: float | None
    plan: AllReducePlan | None
    bound_s: Fraction | None
    certificate: CutCertificate | PartitionCertificate | None
    report: SolverResult
    plan_s: Fraction | None = None

    @property
    def optimal(self) -> bool:
        """Whether the plan takes exactly as long as the bound says."""
        return self.plan_s is not None and self.plan_s == self.bound_s


def solve_allreduce(instance: Instance, solver: Solver, budget: Budget, k: int | None = None) -> AllReduceSolution:
    """Solve linear program (6), make its solution exact, and bound the time of the all-reduce.

    Parameters
    ----------
    instance : Instance
        An explicit network and an all_reduce among all ranks.
    solver : Solver
        One that keeps models and gives dual values.
    budget : Budget
        Limits of the run.
    k : int or None
        Capacities become multiples of one k-th of the network's unit of bandwidth (the paper's rounding); None seeks the k of the solution.

    Raises
    ------
    Unsupported
        If the solver gives no dual values.
    InputError
        If a rank cannot be reached.
    """
    network = scale(network_of(instance))
    pairs = PairNetwork(network)
    with budget.clock.phase("build"):
        model = build(pairs)
    chosen = compiler(solver)
    compiled = chosen.compile(model, budget, SolverOptions(extra=_OPTIONS.get(solver.name, {})))
    result = compiled.solve(budget)
    if result.termination is not Termination.OPTIMAL or result.objective is None:
        return AllReduceSolution(None, None, None, None, result)
    with budget.clock.phase("round"):
        bound_s, certificate = best_certificate(instance, network, lengths(model, compiled, pairs))
        plan = make_plan(pairs, values(model, pairs), k)
    rate_Bps = result.objective * unit(pairs) * float(network.unit_Bps)
    plan_s = group_of(instance).size_bytes / plan.rate_Bps if plan.rate_Bps else None
    return AllReduceSolution(rate_Bps, plan, bound_s, certificate, result, plan_s)


def lengths(model: Any, compiled: CompiledModel, pairs: PairNetwork) -> dict[int, float]:
    """Give the dual values of links: of their own row, or of that of the pair that they join directly.

    Where the two directions of a link serve one and the same purpose, what matters is the sum of both.
    """
    net = pairs.network
    found = {e: compiled.dual(model.link_capacity[e]) for e in model.H}
    for pair, links in pairs.direct.items():
        found.update(dict.fromkeys(links, compiled.dual(model.pair_capacity[pair])))
    if not pairs.mirrored:
        return found
    ends = list(zip(net.tail, net.head, strict=True))
    length = {ends[e]: value for e, value in found.items()}
    return {e: value + length.get(ends[e][::-1], 0.0) for e, value in found.items()}


def values(model: Any, pairs: PairNetwork) -> Values:
    """Read the solution out of the model, in the network's unit of bandwidth."""
    scaled = unit(pairs)
    return Values(
        [scaled * model.root[v].value for v in model.C],
        {(a, e): scaled * model.relay[a, e].value for a, e in model.R},
        {(a, b): scaled * model.broadcast[a, b].value for a, b in model.A},
    )
