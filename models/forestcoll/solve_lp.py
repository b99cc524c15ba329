"""``forestcoll-lp``: the exact optimal rate of a collective by linear programs; no forest.

A program's value is a float. But its dual values name a cut, whose ratio is an exact bound on 1/x* (theorem 1), and
exact integer flows show that it is attained. Newton's method replaces the paper's bisection
(docs/methods/forestcoll.md).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from ...algorithms.bounds.schedule_bounds import Bound, cut_bound, partition_bound
from ...algorithms.graphs.maxflow import RootedFlow
from ...algorithms.graphs.network import Network, exact_array
from ...algorithms.schedules.compose import reverse_trees
from ...core.answers import BoundOnly
from ...core.budget import Budget
from ...core.collective import Collective
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.solver import ModelSize, Solver, SolverOptions, SolverResult, Termination, as_resolving_solver
from ...core.trees import TreePacking
from .bounds import nearest_optimum, smallest_room
from .formulations.max_flow import SinkFlow, build_concurrent, build_max_flow
from .method import BoundOptions, ForestOptions, SinkOptions
from .problem import ForestProblem, GatherProblem, from_all_ranks, gather_problem
from .solve import MOST_COPIES, solve_forest

_SAME = 1e-7  #: Dual values that differ by less are the same one.


@dataclass(frozen=True)
class CutOracle:
    """Needs of cuts for forests of k trees a rank (section 4.5), or many if k is None (section 4.2)."""

    network: ForestProblem
    k: int | None = None

    def least_copies(self, cut: frozenset[int]) -> Fraction:
        """Return the smallest U, copies of trees per unit of bandwidth, with which all trees can leave a cut.

        Without k that is ``|S & V_c| / B+(S)``, for k = 1 trees in the limit. With k it is the smallest U with
        ``sum_e floor(U b_e) >= k |S & V_c|``: below it the cut excludes every forest.
        """
        net = self.network
        ends = zip(net.tail, net.head, net.bandwidths, strict=True)
        leaving = Counter(c for a, b, c in ends if a in cut and b not in cut)
        count = sum(rank in cut for rank in net.rank_nodes)
        if not leaving:
            raise InputError("data must leave some nodes, but no link does", place="network.links")
        return Fraction(count, sum(leaving.elements())) if self.k is None else smallest_room(leaving, self.k * count)

    def capacities(self, U: Fraction) -> tuple[list[int], int]:
        """Return integer capacities of links at U, and the amount that ranks send."""
        if self.k is None:
            return [c * U.numerator for c in self.network.bandwidths], U.denominator
        return [int(U * c // 1) for c in self.network.bandwidths], self.k

    def violated_cut(self, U: Fraction) -> frozenset[int] | None:
        """Return a cut that is violated at U, by exact flows; None if there is none."""
        capacity, scale = self.capacities(U)
        graph = Network.from_parallel_edges(self.network.nodes, *self.network.ends, exact_array(capacity))
        demand = exact_array(scale * root for root in self.network.roots.tolist())
        violation = RootedFlow(graph, demand, np.array(self.network.rank_nodes)).violation()
        return None if violation is None else frozenset(np.flatnonzero(~violation.side).tolist())


@dataclass
class Bottleneck:
    """Cut of the largest U needed, in the end 1/x* (without k) or U* (with k), in network units.

    U is a lower bound, since the cut needs it, and attained if exact flows have shown that no cut needs more;
    ``hidden`` counts the cuts within the solver's tolerance that only exact flows have found.
    """

    U: Fraction
    cut: frozenset[int]
    attained: bool = False
    reports: list[SolverResult] = field(default_factory=list)
    size: ModelSize = field(default_factory=ModelSize)
    hidden: int = 0

    def raise_to(self, oracle: CutOracle, cut: frozenset[int]) -> bool:
        """Raise U to a cut's need if that is more, and return whether it was."""
        if not any(rank in cut for rank in oracle.network.rank_nodes):
            return False
        copies = oracle.least_copies(cut)
        if more := copies > self.U:
            self.U, self.cut = copies, cut
        return more


def first_bound(oracle: CutOracle) -> Bottleneck:
    """Return the cut around the rank of least incoming bandwidth (bound l of algorithms 1 and 3)."""
    net = oracle.network
    slowest = min(net.rank_nodes, key=net.graph.entering().tolist().__getitem__)
    cut = frozenset(range(net.nodes)) - {slowest}
    return Bottleneck(oracle.least_copies(cut), cut)


def search(oracle: CutOracle, solver: Solver, budget: Budget) -> Bottleneck:
    """Find U by a maximum flow to every rank, each warm-started with other bounds (algorithms 1, 3)."""
    network = oracle.network
    optimum = first_bound(oracle)
    with budget.clock.phase("build"):
        model = build_max_flow(SinkFlow(network, network.rank_nodes[0]))
    compiled = as_resolving_solver(solver).compile(model, budget, SolverOptions())
    optimum.size = compiled.size
    (column,) = model.T
    links = tuple(model.flow[column, e] for e in model.E)
    rows = {v: model.balance[column, v] for v in model.V if (column, v) in model.balance}
    last = column
    for sink in network.rank_nodes:
        compiled.set_constraint_bounds([rows[last]], [0], [0])
        compiled.set_constraint_bounds([rows[sink]], [0], [float("inf")])
        last = sink
        while not budget.is_exhausted:
            capacity, scale = oracle.capacities(optimum.U)
            room = [min(c / scale, len(network.rank_nodes)) for c in capacity]
            compiled.set_variable_bounds(links, [0] * len(links), room)
            result = compiled.solve(budget)
            optimum.reports.append(result)
            if result.termination is not Termination.OPTIMAL:
                return optimum
            cut = frozenset(v for v, row in rows.items() if v != sink and compiled.dual(row) > 0.5)
            if not optimum.raise_to(oracle, cut):
                break
    return confirm_bound(oracle, optimum, budget)


def solve_concurrent(oracle: CutOracle, solver: Solver, budget: Budget) -> Bottleneck:
    """Find 1/x* by one program with all flows, whose dual values are lengths that name the cut."""
    optimum = first_bound(oracle)
    with budget.clock.phase("build"):
        model = build_concurrent(oracle.network)
    compiled = as_resolving_solver(solver).compile(model, budget, SolverOptions())
    optimum.size = compiled.size
    result = compiled.solve(budget)
    optimum.reports.append(result)
    if result.termination is not Termination.OPTIMAL:
        return optimum
    for sink in model.T:
        potential = {v: abs(compiled.dual(model.balance[sink, v])) for v in model.V if (sink, v) in model.balance}
        # Of the sets of nodes with duals above the sink's and each gap, one is tight.
        levels = sorted(set(potential.values()))
        for low, high in pairwise(levels):
            if high - low > _SAME * levels[-1] and low >= potential[sink]:
                optimum.raise_to(oracle, frozenset(v for v, value in potential.items() if value > low))
    return confirm_bound(oracle, optimum, budget)


def confirm_bound(oracle: CutOracle, optimum: Bottleneck, budget: Budget) -> Bottleneck:
    """Show by exact flows that U is attained; cuts hidden by the solver's tolerance raise it."""
    with budget.clock.phase("verify"):
        while not budget.is_exhausted:
            cut = oracle.violated_cut(optimum.U)
            if cut is None:
                optimum.attained = True
                break
            optimum.hidden += optimum.raise_to(oracle, cut)
    return optimum


def run(instance: Instance, solver: Solver, budget: Budget, options: BoundOptions) -> Outcome:
    """Find 1/x* and prove it by a cut (``Method.run``)."""
    kind, network = instance.demands[0].collective, from_all_ranks(instance.topology)
    # A reduce-scatter is an all-gather in which time and links run backwards.
    stages = [network.transpose()] * kind.sums + [network] * kind.copies
    find = search if options.method == "search" else solve_concurrent
    optima = [find(CutOracle(stage), solver, budget) for stage in stages]
    forests = [search(CutOracle(stage, options.k), solver, budget) for stage in stages] if options.k else []
    solved = [*optima, *forests]
    seconds, certificate = best_bound(instance, optima)
    attained = all(each.attained for each in solved)
    return Outcome(
        Status.OPTIMAL if attained and len(stages) == 1 else Status.FEASIBLE,
        BoundOnly(),
        objective=float(seconds),
        bound=float(seconds),
        certificate=certificate,
        message="" if attained else "the budget was too small: the network may be slower than this bound says",
        reports=tuple(report for each in solved for report in each.reports),
        size=max((each.size for each in solved), key=lambda size: size.nonzeros),
        iterations=sum(len(each.reports) for each in solved),
        metrics=rate_metrics(10**9 / network.unit_Bps, instance.npus, optima, forests, options.k),
    )


def best_bound(instance: Instance, optima: Sequence[Bottleneck]) -> Bound:
    """Return the bound of the stages' cuts; for an all-reduce also that of all ranks apart.

    Only for a single stage is it the time that the stages take: an all-reduce may be faster than its two stages in
    turn.
    """
    topology, kind = instance.topology, instance.demands[0].collective
    everything = frozenset(range(len(topology.nodes)))
    # What leaves a set where links are turned around enters it where they are not.
    backwards = [kind is not Collective.ALL_GATHER, False][: len(optima)]
    bounds: list[Bound] = [
        cut_bound(instance, everything - one.cut if back else one.cut)
        for one, back in zip(optima, backwards, strict=True)
    ]
    if kind is Collective.ALL_REDUCE:
        bounds.append(partition_bound(instance, [(node,) for node in topology.rank_nodes]))
    return max(bounds, key=lambda bound: bound[0])


def rate_metrics(
    scale: Fraction, ranks: int, optima: Sequence[Bottleneck], forests: Sequence[Bottleneck], k: int | None
) -> dict[str, Any]:
    """Return the metrics of rates: exact fractions as text, bandwidths in 10^9 bytes/s.

    ``inv_x`` is 1/x*, in seconds per 10^9 bytes, of an all-reduce the sum of both stages. ``k`` and ``U`` are those of
    proposition 3, ``U = p / gcd(q, {b_e})`` and ``k = U x*``, or the given ones; ``forest_algbw_GBps`` is N k / U, the
    rate of the forests, both stages in turn. Values that differ between the two stages of an all-reduce are lists, the
    reduce-scatter first.
    """
    inv_x = sum((each.U for each in optima), Fraction(0))
    if k is None:
        # The capacities have no common divisor, so that gcd(q, {b_e}) is 1.
        counts = [each.U.denominator for each in optima]
        scales = [Fraction(each.U.numerator) for each in optima]
    else:
        counts, scales = [k] * len(forests), [each.U for each in forests]
    per_rank = sum((U / count for U, count in zip(scales, counts, strict=True)), Fraction(0))
    texts = [str(U * scale) for U in scales]
    return {
        "inv_x": str(inv_x * scale),
        "k": counts[0] if len(set(counts)) == 1 else counts,
        "U": texts[0] if len(set(texts)) == 1 else texts,
        "forest_algbw_GBps": float(ranks / (per_rank * scale)),
    }


def seconds(problem: ForestProblem, objective: float) -> float:
    """Return the time of an all_gather or reduce_scatter at the model's rate (``Formulation.value``)."""
    rate_Bps = Fraction(objective) * max(problem.bandwidths) * problem.unit_Bps
    return float(problem.part_bytes / rate_Bps) if rate_Bps > 0 else float("inf")


def forest_of(model: Any, problem: GatherProblem) -> TreePacking | None:
    """Pack trees at the rate of a solved model, by algorithms 2 to 5 (``Formulation.extract``); None if none fit."""
    rate = (model.rate.value or 0.0) * max(problem.bandwidths)
    best = nearest_optimum(problem, 1 / rate) if rate > 0 else None
    if best is None or best.k >= MOST_COPIES:
        return None
    forest = solve_forest(problem, best, best.k, problem.instance.sha256, Budget(), ForestOptions())
    assert forest is not None  # noqa: S101 (without a limit)
    return reverse_trees(forest.packing) if problem.backwards else forest.packing


def sink_flow(instance: Instance, options: SinkOptions) -> SinkFlow:
    """Return the flow to a rank at the rate of the least incoming bandwidth (``Formulation.index``)."""
    problem = gather_problem(instance, options)
    if options.sink >= len(problem.rank_nodes):
        last = len(problem.rank_nodes) - 1
        raise InputError(f"rank {options.sink}; expected one of 0 to {last}", source="-O", place="sink")
    return SinkFlow(problem, problem.rank_nodes[options.sink], 1 / first_bound(CutOracle(problem)).U)


def flow_seconds(problem: SinkFlow, objective: float) -> float:
    """Return a lower bound on an all_gather's or reduce_scatter's time (``Formulation.value``).

    At the largest rate x* all that the source feeds arrives, ``N x*``. The model's x is that of a cut, so that it is
    not below x*, and at a larger rate no less arrives: ``x* <= x F / N``, F being the flow in multiples of x.
    """
    network = problem.network
    rate_Bps = problem.rate * Fraction(objective) / len(network.rank_nodes) * network.unit_Bps
    return float(network.part_bytes / rate_Bps) if rate_Bps > 0 else float("inf")
