"""Trees with exact rates from solved models, proved bounds, and outcomes with data in chunks (section III-C).

The verifier recomputes bounds by cuts and partitions, which bound any schedule, and by prices of links, which bound
trees; all others are trusted. The network of sites has the slower direction of every link, so that bounds on trees are
claimed only if both directions are equal (docs/methods/mtree.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ...algorithms.trees.bounds import whole_rate
from ...algorithms.trees.disjoint import DisjointRates
from ...algorithms.trees.network import HeightLimit, Wan
from ...algorithms.trees.pricing import Arborescences, Prices, cheapest_trees
from ...algorithms.trees.trees import (
    RatedTrees,
    exact_rates,
    excess,
    fill_bottleneck,
    heights_of,
    in_order,
    measures_of_rate,
    measures_of_trees,
    packing,
    widest_tree,
    within_reach,
)
from ...core.bounds import Certificate, SolverBound, TreePrices
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.pipelining import RateReservation, equal_finish, forest_of, reserve_rates
from ...core.schedule import Floats, Ints
from ...core.solver import Solver, SolverOptions, SolverResult
from ...core.topology import Topology
from ...core.trees import TreePacking
from .formulations import pricing, selection
from .formulations.selection import model_unit
from .method import ChunkOptions
from .problem import CandidateTrees, LinkPrices, PosedPatterns, PosedPool, TreePatterns, TreeProblem

#: Prover of bounds that are computed here in exact arithmetic, and that the verifier does not recompute.
EXACT_ARITHMETIC = ("mtree", "exact arithmetic")

GAP = 1e-6  #: Relative gap at which an answer is called optimal, unless the budget says otherwise.
ANY_SCHEDULE = "any schedule"  #: Scope of a bound by a cut or a partition.

_FINE = 2**31  #: Data is split in parts of the whole as small as one over this.


def select(
    pool: CandidateTrees, solver: Solver, budget: Budget, options: SolverOptions, start: RatedTrees | None = None
) -> tuple[RatedTrees | None, SolverResult]:
    """Solve MILP (1), if possible from some trees of the pool with rates, and make its rates exact.

    Return the chosen trees, None if the solver found none, and the solver's report.
    """
    with budget.clock.phase("build"):
        model = selection.build(pool)
        if start is not None:
            selection.set_start(model, pool, start)
    result = solver.solve(model, budget, options)
    return read_rates(model, pool) if result.has_solution else None, result


def read_rates(model: Any, pool: CandidateTrees) -> RatedTrees:
    """Return the trees with a rate in a solved model of a pool, with exact rates."""
    choice, unit = getattr(model, "choice", None), model_unit(pool.wan)
    rates = [0.0 if choice is not None and choice[i].value <= 0.5 else unit * model.rate[i].value for i in model.T]
    return exact_rates(pool.wan, pool.trees, rates, pool.floor)


def pattern_rates(model: Any, patterns: TreePatterns) -> RatedTrees:
    """Return a solved pattern model's new trees and used old trees, with exact rates."""
    wan, rates = patterns.wan, dict[tuple[int, ...], float]()
    for k in model.K:
        with_k = [s for s in model.S if s >> k & 1]
        on = {c for c in wan.carriers(model.E) if sum(model.pattern[c, s].value for s in with_k) > 0.5}
        tree = tuple(e for e in model.E if on.issuperset(wan.carriers([e])))
        if len(tree) == wan.nodes - 1:
            rates[tree] = rates.get(tree, 0.0) + model_unit(wan) * model.rate[k].value
    for i, row in enumerate([] if patterns.old is None else np.sort(patterns.old, axis=1).tolist()):
        rates[tuple(row)] = rates.get(tuple(row), 0.0) + model_unit(wan) * model.old_rate[i].value
    trees = np.array(list(rates), dtype=np.int64).reshape(-1, wan.nodes - 1)
    return exact_rates(wan, trees, list(rates.values()), patterns.floor)


def seconds(index: PosedPool | PosedPatterns, objective: float) -> float:
    """Convert the model's objective, a rate, to the time of the all-reduce (``Formulation.value``)."""
    rate = Fraction(objective) * Fraction(model_unit(index.problem.wan))
    return float(index.problem.seconds(rate)) if rate > 0 else float("inf")


def seconds_of_prices(index: LinkPrices, objective: float) -> float | None:
    """Return the time by the bound ``b.w / min_T w(T)`` on rates; None if all are free (``Formulation.value``)."""
    total = float(index.problem.wan.capacity @ index.price)
    return max(0.0, objective) * float(index.problem.seconds(Fraction(1))) / total if total > 0 else None


def best_rates(wan: Wan, trees: Ints, solver: Solver, budget: Budget) -> tuple[RatedTrees | None, SolverResult]:
    """Solve the linear program of given trees' rates and make them exact; None if no solution has any.

    A solver that is stopped at once may return the rates that it began with, all zero.
    """
    pool = CandidateTrees(within_reach(wan, trees), trees)
    with budget.clock.phase("build"):
        model = selection.build_rates(pool)
    result = solver.solve(model, budget, SolverOptions())
    rated = read_rates(model, pool) if result.has_solution else None
    return rated if rated is not None and rated.total else None, result


def cheapest_low_tree(
    wan: Wan, limit: HeightLimit, price: Floats, solver: Solver, budget: Budget, options: SolverOptions
) -> tuple[Ints | None, SolverResult]:
    """Solve the pricing problem; return the tree's links, None if none was found, and the report."""
    with budget.clock.phase("build"):
        model = pricing.build(wan, limit, price)
    result = solver.solve(model, budget, options)
    if not result.has_solution:
        return None, result
    tree = [e for e in model.E if pyo.value(pyo.quicksum(model.arc[0, e, :, ...])) > 0.5]
    return np.array(tree, dtype=np.int64), result


def split_data(
    instance: Instance, wan: Wan, rated: RatedTrees, roots: Ints, options: ChunkOptions
) -> tuple[TreePacking, RatedTrees, Ints, Fraction]:
    """Split the data in proportion to the trees' feasible rates, or so that all trees end at once.

    Return the trees with their data, their rates and roots, without those that are too long to help, and the seconds
    that the most loaded link takes for its bytes.
    """
    trees = packing(instance, wan, rated, roots)
    size = trees.unit_bytes * int(trees.units.sum())
    if options.split == "rate":
        return trees, rated, roots, size / (rated.total * wan.unit_Bps)
    forest = forest_of(instance.topology, trees, options.latency_model, options.chunk_overhead)
    rates_Bps = np.array([float(rate * wan.unit_Bps) for rate in rated.rates])
    data = equal_finish(forest, rates_Bps, float(size), options.chunks)
    parts = (data / float(size) * _FINE).astype(np.int64)
    useful = np.flatnonzero(parts)
    shares = RatedTrees(rated.trees[useful], tuple(Fraction(int(part), int(parts.sum())) for part in parts[useful]))
    rated = RatedTrees(shares.trees, tuple(rated.rates[i] for i in useful))
    flow_s = size * excess(wan, shares.trees, shares.rates) / wan.unit_Bps
    return packing(instance, wan, shares, roots[useful]), rated, roots[useful], flow_s


def measures_of_chunks(network: Topology, trees: TreePacking, options: ChunkOptions) -> dict[str, Any]:
    """Compute chunks and times at reserved rates, for all-reduce and reduction alone (figure 8)."""

    def reserve(part: TreePacking, chunks: int | None) -> RateReservation:
        return reserve_rates(network, part, options.latency_model, options.chunk_overhead, chunks)

    plan = reserve(trees, options.chunks)
    data = trees.units * float(trees.unit_bytes)
    reduction = trees.passes[0]
    return {
        "chunks_per_tree": plan.chunks.tolist(),
        "chunk_bytes": (data / plan.chunks).tolist(),
        "pipelined_time_s": plan.seconds,
        "unpipelined_time_s": reserve(trees, 1).seconds,
        "reduce_time_s": reserve(reduction, options.chunks).seconds,
        "unpipelined_reduce_time_s": reserve(reduction, 1).seconds,
    }


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Result of a search: the best trees, and bounds on all allowed trees."""

    rated: RatedTrees | None
    #: Upper bound in units on the summed rate of allowed trees that use both directions of their links alike; at most
    #: the strength.
    bound: Fraction
    prover: tuple[str, str]  #: Name and version of what proves a bound below the strength.
    reports: tuple[SolverResult, ...] = ()
    rounds: int = 0
    metrics: dict[str, Any] | None = None
    trees: int | None = None  #: K, the largest number of trees; None is no limit.
    prices: tuple[Prices, ...] = ()  #: Candidate prices for a proof of the bound.
    disjoint: DisjointRates | None = None  #: Rates of K trees without a common link, if computed.
    scope: str = ""  #: Trees for which the bound holds; by default those of the given number, height and rate.


Proof = tuple[Fraction, Certificate, str]  #: Bound on the rate in units, certificate, and schedules it holds for.


def proof_of(problem: TreeProblem, result: SearchResult, *, trees_only: bool) -> Proof:
    """Choose the bound to claim: for any schedule if as sharp, else one that is recomputed, else a trusted one.

    A bound on the allowed trees is claimed only if the answer is restricted to them (``trees_only``).
    """
    best: Proof = problem.ceiling.rate, problem.ceiling.certificate, ANY_SCHEDULE
    if not trees_only or not problem.wan.balanced or result.bound >= best[0] * (1 - Fraction(GAP) / 10):
        return best
    recomputed = [proof for prices in result.prices if (proof := _bound_by_prices(problem, result, prices)) is not None]
    sharpest = min(recomputed, key=itemgetter(0), default=best)
    if sharpest[0] * (1 - Fraction(GAP) / 10) <= result.bound:
        return sharpest
    scope = f"{_describe_scope(problem, result)}, each with the same links both ways"
    return result.bound, SolverBound(*result.prover), scope


def _bound_by_prices(problem: TreeProblem, result: SearchResult, prices: Prices) -> Proof | None:
    """Return the bound on allowed trees that link prices prove; None if they prove none."""
    wan, limit = problem.wan, problem.height_limit
    late = [link.latency_s for link in problem.instance.topology.links]
    uneven = any(late[a] != late[b] for a, b in zip(wan.forth.tolist(), wan.back.tolist(), strict=True))
    if uneven and limit is not None and limit.unit == "ns":
        return None  # heights count the slower direction of a link here, but each direction for the verifier
    if limit is None:
        cheapest = min(tree.cost for tree in cheapest_trees(wan, prices, problem.min_capacity))
    else:
        cheapest = Arborescences(wan, limit, problem.min_capacity).least(prices)
    rate = prices.bound_with_floor(result.trees, problem.floor, cheapest)
    if rate is None:
        return None
    widest = widest_tree(wan, problem.limit)
    link_sets: tuple[tuple[int, ...], ...] = ()
    if result.trees is not None and widest is not None:
        limits = result.trees, widest[0], problem.floor, rate
        rate = whole_rate(wan, *limits)  # sharper, since capacities are integers
        if result.disjoint is not None:
            disjoint_rate = whole_rate(wan, *limits, result.disjoint.most)
            if disjoint_rate < rate:
                rate = disjoint_rate
                link_sets = tuple(
                    tuple(sorted([*wan.forth[links].tolist(), *wan.back[links].tolist()]))
                    for links in result.disjoint.proof(disjoint_rate)
                )
    price_of = [0] * len(late)  # both directions of a link have its price
    for price, *pair in zip(prices.link.tolist(), wan.forth.tolist(), wan.back.tolist(), strict=True):
        for link in pair:
            price_of[link] = price
    certificate = TreePrices(
        tuple(price_of),
        2 * prices.tree * wan.unit_Bps,
        result.trees,
        None if limit is None else limit.most,
        "ns" if limit is not None and limit.unit == "ns" else "links",
        problem.floor * wan.unit_Bps,
        link_sets,
    )
    once = ", none over a link twice" if result.trees is not None or problem.floor else ""
    return rate, certificate, _describe_scope(problem, result) + once


def _describe_scope(problem: TreeProblem, result: SearchResult) -> str:
    """Describe the trees for which a bound holds."""
    if result.scope:
        return result.scope
    text = "trees" if result.trees is None else f"at most {result.trees} tree{'s' if result.trees > 1 else ''}"
    if not problem.any_height:
        text += f" of a height of at most {problem.limit.format_height(problem.limit.most)}"
    if problem.floor:
        text += f" with rates of at least {float(problem.floor * problem.wan.unit_Bps) * 8e-6:.6g} Mb/s"
    return text


def outcome(
    problem: TreeProblem,
    result: SearchResult,
    budget: Budget,
    options: ChunkOptions | None = None,
    *,
    roots: Sequence[int] | None = None,
    message: str = "",
) -> Outcome:
    """Build the outcome of a run; trees have the roots that make them lowest unless others are given."""
    options = options or ChunkOptions.model_validate({})
    # Data that is not in proportion to the rates leaves trees with less than the smallest rate.
    proved_rate, certificate, scope = proof_of(problem, result, trees_only=options.split == "rate" or not problem.floor)
    bound_s = problem.seconds(proved_rate)
    size = max((r.size for r in result.reports), key=lambda size: size.nonzeros, default=Outcome(Status.LIMIT).size)
    common: dict[str, Any] = {
        "bound": float(bound_s), "certificate": certificate, "reports": result.reports, "size": size,
        "iterations": result.rounds,
    }  # fmt: skip
    metrics = {
        "exact_bound_Bps": float(result.bound * problem.wan.unit_Bps),
        "strength_Bps": float(problem.ceiling.rate * problem.wan.unit_Bps),
        "bound_holds_for": scope,
        **(result.metrics or {}),
    }
    if result.rated is None or not result.rated.rates:
        return Outcome(Status.LIMIT, message=message or "no trees were found in time", metrics=metrics, **common)
    rated = fill_bottleneck(problem.wan, result.rated)
    root_nodes = np.array(roots or (), dtype=np.int64)
    if roots is None:
        rated = in_order(rated)
        root_nodes = heights_of(problem.wan, problem.limit, rated.trees)[0]
    trees, rated, root_nodes, flow_s = split_data(problem.instance, problem.wan, rated, root_nodes, options)
    gap = GAP if budget.gap is None else budget.gap
    optimal = bound_s >= flow_s * (1 - Fraction(gap))
    with budget.clock.phase("chunks"):
        chunks = measures_of_chunks(problem.instance.topology, trees, options)
    return Outcome(
        Status.OPTIMAL if optimal else Status.FEASIBLE,
        trees,
        objective=float(flow_s),
        message=message,
        metrics={
            **measures_of_rate(problem.wan, rated.total, problem.ceiling),
            **measures_of_trees(problem.wan, rated, root_nodes.tolist()),
            **chunks,
            **metrics,
        },
        **{**common, "bound": min(float(bound_s), float(flow_s))},
    )


def trees_of(problem: TreeProblem, rated: RatedTrees) -> TreePacking | None:
    """Return the trees as an answer, each with the root of least height; None if there are none."""
    if not rated.rates:
        return None
    whole = in_order(fill_bottleneck(problem.wan, rated))
    return packing(problem.instance, problem.wan, whole, heights_of(problem.wan, problem.limit, whole.trees)[0])


def trees_of_pool(model: Any, pool: PosedPool) -> TreePacking | None:
    """Return the trees with a rate in a solved model of a pool (``Formulation.extract``)."""
    return trees_of(pool.problem, read_rates(model, pool))


def trees_of_patterns(model: Any, patterns: PosedPatterns) -> TreePacking | None:
    """Return the trees of a solved model of patterns (``Formulation.extract``)."""
    return trees_of(patterns.problem, pattern_rates(model, patterns))
