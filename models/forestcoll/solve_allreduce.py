"""``forestcoll-allreduce``: reduce-scatter and all-gather if proved best, else the trees of LP (6)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np

from ...algorithms.bounds.schedule_bounds import cut_bound, group_of, partition_bound
from ...algorithms.forests.engine import lower_trees
from ...algorithms.forests.expansion import assign_paths, expand
from ...algorithms.forests.packing import CutPool, Packer
from ...algorithms.forests.symmetry import find_groups
from ...algorithms.schedules.compose import drop_idle_switches, reduce_then_broadcast, reverse_trees
from ...core.bounds import Certificate, CutCertificate, PartitionCertificate
from ...core.budget import Budget, Incumbent
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.solver import Solver, SolverOptions, SolverResult, Termination, as_resolving_solver
from ...core.trees import TreePacking
from .bounds import best_certificate
from .extract import AllReducePlan, Path, graph_of, lengths, make_plan
from .formulations.lp6_allreduce import build, unit
from .method import AllReduceOptions, ForestOptions
from .problem import Pair, PairNetwork, group_problem, hubs_of, sets_of_hubs
from .solve import MOST_COPIES, busiest_s
from .solve import run as run_in_halves

#: HiGHS needs a third of the time with its interior point method, which ends in a vertex like the simplex method.
_OPTIONS: Mapping[str, Mapping[str, object]] = {"highs": {"solver": "ipm"}}


@dataclass(frozen=True)
class AllReduceSolution:
    """Result of a solve of linear program (6).

    ``rate_Bps`` is that of the solver's arithmetic, None if the budget was too small. The plan's is below by rounding
    only; ``plan_s`` is its exact time, None if k is so small that all rates have become 0.
    """

    rate_Bps: float | None
    plan: AllReducePlan | None
    bound_s: Fraction | None
    certificate: CutCertificate | PartitionCertificate | None
    report: SolverResult
    plan_s: Fraction | None = None


class AllReducePairs(PairNetwork):
    """Pairs of tree nodes of an all_reduce."""

    def __init__(self, instance: Instance, hubs: Sequence[int]) -> None:
        super().__init__(group_problem(instance.topology, instance.demands[0]), hubs)
        self.instance = instance


def all_reduce(instance: Instance, options: object) -> AllReducePairs:
    """Return the joined pairs of ranks (``Formulation.index``)."""
    return AllReducePairs(instance, hubs_of(instance.topology))


def seconds(pairs: AllReducePairs, objective: float) -> float:
    """Return the time of an all_reduce at the model's total rate (``Formulation.value``)."""
    if objective <= 0:
        return float("inf")
    return float(group_of(pairs.instance).size_bytes) / (objective * unit(pairs) * float(pairs.network.unit_Bps))


def trees_of(model: Any, pairs: AllReducePairs) -> TreePacking | None:
    """Return the trees of a solved linear program (6) (``Formulation.extract``)."""
    plan = make_plan(model, pairs)
    return pack_plan(pairs, plan, Budget()) if plan.rate_Bps else None


def solve_allreduce(
    instance: Instance, solver: Solver, budget: Budget, k: int | None = None, hubs: Sequence[int] = ()
) -> AllReduceSolution:
    """Solve linear program (6), make its solution exact, and bound the time of the all-reduce.

    Capacities become multiples of one k-th of the network's unit of bandwidth (the paper's rounding); None seeks the k
    of the solution.
    """
    pairs = AllReducePairs(instance, hubs)
    network = pairs.network
    with budget.clock.phase("build"):
        model = build(pairs)
    resolver = as_resolving_solver(solver)
    compiled = resolver.compile(model, budget, SolverOptions(extra=_OPTIONS.get(solver.name, {})))
    result = compiled.solve(budget)
    if result.termination is not Termination.OPTIMAL or result.objective is None:
        return AllReduceSolution(None, None, None, None, result)
    with budget.clock.phase("round"):
        bound_s, certificate = best_certificate(instance, network, lengths(model, compiled, pairs))
        plan = make_plan(model, pairs, k)
    rate_Bps = result.objective * unit(pairs) * float(network.unit_Bps)
    plan_s = group_of(instance).size_bytes / plan.rate_Bps if plan.rate_Bps else None
    return AllReduceSolution(rate_Bps, plan, bound_s, certificate, result, plan_s)


def run(instance: Instance, solver: Solver, budget: Budget, options: AllReduceOptions) -> Outcome:
    """Solve an all-reduce among all ranks: proof before search.

    The two halves in turn come first. Where their time does not meet a bound, the linear program gives the best rate of
    trees, and its dual values suggest a better bound; its own trees are taken if they are faster.
    """
    failed: InputError | Unsupported | None = None
    try:
        plain = run_in_halves(instance, solver, budget, ForestOptions())
    except (InputError, Unsupported) as error:  # such as forwarding nodes that are not balanced
        plain, failed = Outcome(Status.UNSUPPORTED), error
        budget.progress(f"no reduce-scatter and all-gather in turn: {error}")
    if failed is None and plain.status is not Status.FEASIBLE and not options.always_solve:
        return plain
    if failed is None:
        budget.tell(Incumbent(plain.objective, plain.bound, answer=lambda: plain.answer, certificate=plain.certificate))
        budget.progress("reduce-scatter and all-gather in turn may not be best: solving the linear program")
    proved = _proof_of(instance, plain.certificate)
    best: tuple[Fraction, TreePacking, dict[str, float | str | None]] | None = None
    if isinstance(plain.answer, TreePacking):
        best = busiest_s(instance, plain.answer), plain.answer, {"trees_of": "halves"}
    solutions: list[AllReduceSolution] = []
    # Trees that all pass the switches that add and copy; where these are not proved best, some of them, or none.
    for hubs in sets_of_hubs(instance.topology):
        if solutions and (budget.is_exhausted or (best is not None and best[0] == proved[0])):
            break
        try:
            solution = solve_allreduce(instance, solver, budget, options.k, hubs)
        except InputError as error:
            raise failed or error from None
        if solution.bound_s is None:
            break
        solutions.append(solution)
        proved = max(proved, (solution.bound_s, solution.certificate), key=itemgetter(0))
        if solution.plan is None or solution.plan_s is None or (best is not None and solution.plan_s >= best[0]):
            continue
        if (packed := pack_plan(AllReducePairs(instance, hubs), solution.plan, budget)) is not None:
            best = busiest_s(instance, packed), packed, {"trees_of": "program", "switches": len(hubs)}
    if best is None or not solutions:
        if failed is not None:
            raise failed
        return plain
    taken_s, answer, which = best
    bound_s, certificate = proved
    rates = [solution.rate_Bps for solution in solutions if solution.rate_Bps is not None]
    algbw = {
        "program_algbw_GBps": max(rates) / 1e9 if rates else None,
        "halves_algbw_GBps": plain.objective and float(group_of(instance).size_bytes) / plain.objective / 1e9,
    }
    return Outcome(
        Status.OPTIMAL if taken_s == bound_s else Status.FEASIBLE,
        answer,
        objective=float(taken_s),
        bound=float(bound_s),
        certificate=certificate,
        reports=tuple(solution.report for solution in solutions),
        size=solutions[0].report.size,
        metrics=dict(plain.metrics) | algbw | which,
        iterations=len(solutions),
    )


def _proof_of(instance: Instance, certificate: Certificate | None) -> tuple[Fraction, Certificate | None]:
    """Return a certificate with its exact bound."""
    if isinstance(certificate, CutCertificate):
        return cut_bound(instance, certificate.nodes)
    if isinstance(certificate, PartitionCertificate):
        return partition_bound(instance, certificate.parts)
    return Fraction(0), certificate


def pack_plan(pairs: AllReducePairs, plan: AllReducePlan, budget: Budget) -> TreePacking | None:
    """Pack in-trees into a plan's capacities for the reduction, and out-trees into those for the broadcast.

    Each path serves the broadcast first, then the reduction. None if the budget ended first, or the copies of trees
    exceed 64 bits.
    """
    copies = max(sum(plan.root), *plan.broadcast.values(), *plan.reduce.values())
    if copies >= MOST_COPIES:
        budget.progress(f"the linear program's trees are too many to be packed: {copies:,} copies of a tree")
        return None
    instance, topology = pairs.instance, pairs.network.topology
    ranks, links = len(topology.ranks), len(topology.links)
    number = np.array([topology.tree_nodes.index(node) for node in pairs.ends], dtype=np.int64)
    demand = np.array(plan.root, dtype=np.int64)
    unit_bytes = group_of(instance).size_bytes / int(demand.sum())
    packings: list[TreePacking] = []
    for paths in _split_paths(plan):
        edges = sorted(paths)
        graph = graph_of(len(plan.root), [(*edge, sum(copies for _, copies in paths[edge])) for edge in edges])
        with budget.clock.phase("pack"):
            pool = CutPool(graph, [find_groups(graph, np.ones(graph.nodes, dtype=np.bool_))])
            forest = Packer(graph, demand, pool).pack(stop=lambda: budget.is_exhausted)
            if forest is None:
                return None
            forest = lower_trees(forest)
        with budget.clock.phase("expand"):
            pieces = assign_paths(graph, [paths[edge] for edge in edges], links)
            packing = expand(pieces, forest, number, instance.sha256, unit_bytes)
            packings.append(drop_idle_switches(packing, ranks) if pairs.hubs else packing)
    return reduce_then_broadcast(reverse_trees(packings[1]), packings[0])


def _split_paths(plan: AllReducePlan) -> tuple[dict[Pair, list[Path]], dict[Pair, list[Path]]]:
    """Divide the paths: the broadcast's first, the rest, reversed, for in-trees packed as out-trees."""
    stages = defaultdict[Pair, list[Path]](list), defaultdict[Pair, list[Path]](list)
    for (a, b), pieces in plan.paths.items():
        demand = [stage.get((a, b), 0) for stage in (plan.broadcast, plan.reduce)]
        for path, amount in pieces:
            rest = amount
            for stage, edge, links in ((0, (a, b), path), (1, (b, a), path[::-1])):
                if copies := min(rest, demand[stage]):
                    stages[stage][edge].append((links, copies))
                    demand[stage] -= copies
                    rest -= copies
    return stages
