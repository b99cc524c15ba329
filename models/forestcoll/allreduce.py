"""``forestcoll-allreduce``: reduce-scatter and all-gather where that is proved best, else the trees of linear program (6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from operator import itemgetter

import numpy as np

from ...core.bounds import Certificate, CutCertificate, PartitionCertificate
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import Solver
from ...core.trees import TreePacking
from ..common.compose_trees import reduce_then_broadcast, reverse_trees
from ..common.digraph import Digraph, exact_array
from ..common.forests.cuts import CutPool
from ..common.forests.expansion import along, expand
from ..common.forests.groups import find_groups
from ..common.forests.packing import Forest, Packer
from ..common.forests.polish import lowered
from ..common.schedule_bounds import cut_bound, group_of, network_of, partition_bound
from . import run as halves
from .allreduce_lp import AllReduceSolution, solve_allreduce
from .allreduce_plan import AllReducePlan
from .forest import MOST_COPIES
from .options import AllReduceOptions, ForestOptions

Pair = tuple[int, int]
Paths = list[tuple[tuple[int, ...], int]]


def run(instance: Instance, solver: Solver, budget: Budget, options: AllReduceOptions) -> Outcome:
    """Solve an all-reduce among all ranks: proof before search.

    The two halves in turn come first. Where their time is not that of a bound, the linear program says how fast trees can be, and its dual
    values suggest a better bound; its own trees are taken if they are faster.
    """
    plain = halves.run(instance, solver, budget, ForestOptions())
    if plain.status is not Status.FEASIBLE and not options.always_solve:
        return plain
    budget.progress("reduce-scatter and all-gather in turn may not be best: solving the linear program")
    solution = solve_allreduce(instance, solver, budget, options.k)
    if solution.bound_s is None:
        return plain
    known_s = proved_s(instance, plain.certificate)
    bound_s, certificate = max(
        (known_s, plain.certificate), (solution.bound_s, solution.certificate), key=itemgetter(0)
    )
    answer = plain.answer if isinstance(plain.answer, TreePacking) else None
    taken_s, which = None if answer is None else halves.busiest_s(instance, answer), "halves"
    faster = solution.plan_s is not None and (taken_s is None or solution.plan_s < taken_s)
    if faster and solution.plan is not None and (packed := pack_plan(instance, solution.plan, budget)) is not None:
        answer, taken_s, which = packed, halves.busiest_s(instance, packed), "program"
    if taken_s is None:
        return plain
    return Outcome(
        Status.OPTIMAL if taken_s == bound_s else Status.FEASIBLE,
        answer,
        objective=float(taken_s),
        bound=float(bound_s),
        certificate=certificate,
        reports=(solution.report,),
        size=solution.report.size,
        metrics=dict(plain.metrics) | _metrics(instance, solution, plain.objective, which),
        iterations=1,
    )


def proved_s(instance: Instance, certificate: Certificate | None) -> Fraction:
    """Give what the certificate of the halves proves, exactly."""
    match certificate:
        case CutCertificate():
            return cut_bound(instance, certificate.nodes)[0]
        case PartitionCertificate():
            return partition_bound(instance, certificate.parts)[0]
        case _:
            return Fraction(0)


def pack_plan(instance: Instance, plan: AllReducePlan, budget: Budget) -> TreePacking | None:
    """Pack in-trees into the capacities that a plan keeps for the reduction, and out-trees into those for the broadcast.

    Each path serves the broadcast first, then the reduction. None if the budget ended first, or there are more copies of trees than 64 bits count.
    """
    copies = max(plan.rate_Bps, *plan.broadcast.values(), *plan.reduce.values()) / plan.unit_Bps
    if copies >= MOST_COPIES:
        budget.progress(f"the linear program's trees are too many to be packed: {int(copies):,} copies of a tree")
        return None
    links = len(network_of(instance).links)
    demand = np.array([int(rate / plan.unit_Bps) for rate in plan.root], dtype=np.int64)
    unit_bytes = group_of(instance).size_bytes / int(demand.sum())
    broadcast, reduce = _shared(plan)
    packings: list[TreePacking] = []
    for paths in (broadcast, reduce):
        edges = sorted(paths)
        graph = _graph(len(plan.root), {edge: sum(copies for _, copies in paths[edge]) for edge in edges})
        with budget.clock.phase("pack"):
            forest = _packed(graph, demand, budget)
        if forest is None:
            return None
        with budget.clock.phase("expand"):
            pieces = along(graph, [paths[edge] for edge in edges], links)
            packings.append(expand(pieces, forest, np.arange(graph.nodes), instance.sha256, unit_bytes))
    return reduce_then_broadcast(reverse_trees(packings[1]), packings[0])


def _shared(plan: AllReducePlan) -> tuple[dict[Pair, Paths], dict[Pair, Paths]]:
    """Give the broadcast its paths, and the reduction the rest, turned around: in-trees are packed as out-trees of the turned network."""
    broadcast: dict[Pair, Paths] = {}
    reduce: dict[Pair, Paths] = {}
    for (a, b), pieces in plan.paths.items():
        wanted = [int(stage.get((a, b), Fraction(0)) / plan.unit_Bps) for stage in (plan.broadcast, plan.reduce)]
        for path, rate in pieces:
            left = int(rate / plan.unit_Bps)
            for stage, edge, links in ((0, (a, b), path), (1, (b, a), path[::-1])):
                copies = min(left, wanted[stage])
                if copies:
                    (broadcast, reduce)[stage].setdefault(edge, []).append((links, copies))
                    wanted[stage] -= copies
                    left -= copies
    return broadcast, reduce


def _graph(nodes: int, capacity: Mapping[Pair, int]) -> Digraph:
    def column(end: int) -> Iterator[int]:
        return (edge[end] for edge in sorted(capacity))

    return Digraph(
        nodes,
        np.fromiter(column(0), dtype=np.int64),
        np.fromiter(column(1), dtype=np.int64),
        exact_array(capacity[edge] for edge in sorted(capacity)),
    )


def _packed(graph: Digraph, demand: np.ndarray, budget: Budget) -> Forest | None:
    pool = CutPool(graph, [find_groups(graph, np.ones(graph.nodes, dtype=np.bool_))])
    forest = Packer(graph, demand, pool).pack(stop=lambda: budget.exhausted)
    return None if forest is None else lowered(forest)


def _metrics(
    instance: Instance, solution: AllReduceSolution, halves_s: float | None, which: str
) -> dict[str, float | str | None]:
    """Rates in 10^9 bytes per second."""
    size = float(group_of(instance).size_bytes)
    return {
        "program_algbw_GBps": None if solution.rate_Bps is None else solution.rate_Bps / 1e9,
        "halves_algbw_GBps": None if halves_s is None else size / halves_s / 1e9,
        "trees_of": which,
    }
