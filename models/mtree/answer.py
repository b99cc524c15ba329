"""Outcome of a run from rated trees: data in chunks (section III-C, :mod:`~cwb.core.pipelining`), and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...algorithms.trees.network import Wan
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
)
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.rate_reservation import RateReservation, equal_finish, forest_of, reserve_rates
from ...core.schedule import Ints
from ...core.topology import Topology
from ...core.trees import TreePacking
from .bounds import GAP, SearchResult, proof_of
from .extract import chosen_rates, pattern_rates
from .formulations.selection import model_unit
from .index_sets import PosedPatterns, PosedPool
from .method import ChunkOptions
from .problem import TreeProblem

#: Data is split in parts of the whole as small as one over this.
_FINE = 2**31


@dataclass(frozen=True, eq=False)
class DataSplit:
    """Trees with their shares of the data."""

    packing: TreePacking
    rated: RatedTrees  #: Their rates; trees that are too long to help are left out.
    roots: Ints
    flow_s: Fraction  #: Seconds that the most loaded link takes for its bytes.


def split_data(instance: Instance, wan: Wan, rated: RatedTrees, roots: Ints, options: ChunkOptions) -> DataSplit:
    """Split the data in proportion to the trees' feasible rates, or so that all trees end at once."""
    trees = packing(instance, wan, rated, roots)
    size = trees.unit_bytes * int(trees.units.sum())
    if options.split == "rate":
        return DataSplit(trees, rated, roots, size / (rated.total * wan.unit_Bps))
    forest = forest_of(instance.topology, trees, options.latency_model, options.chunk_overhead)
    rates_Bps = np.array([float(rate * wan.unit_Bps) for rate in rated.rates])
    data = equal_finish(forest, rates_Bps, float(size), options.chunks)
    parts = (data / float(size) * _FINE).astype(np.int64)
    kept = np.flatnonzero(parts)
    shares = RatedTrees(rated.trees[kept], tuple(Fraction(int(part), int(parts.sum())) for part in parts[kept]))
    rated = RatedTrees(shares.trees, tuple(rated.rates[i] for i in kept))
    flow_s = size * excess(wan, shares.trees, shares.rates) / wan.unit_Bps
    return DataSplit(packing(instance, wan, shares, roots[kept]), rated, roots[kept], flow_s)


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


def outcome(
    problem: TreeProblem,
    found: SearchResult,
    budget: Budget,
    options: ChunkOptions | None = None,
    *,
    roots: Sequence[int] | None = None,
    message: str = "",
) -> Outcome:
    """Build the outcome of a run; trees have the roots that make them lowest unless others are given."""
    options = options or ChunkOptions.model_validate({})
    # Data that is not in proportion to the rates leaves trees with less than the smallest rate.
    proof = proof_of(problem, found, trees_only=options.split == "rate" or not problem.floor)
    bound_s = problem.seconds(proof.rate)
    size = max((r.size for r in found.reports), key=lambda size: size.nonzeros, default=Outcome(Status.LIMIT).size)
    common: dict[str, Any] = {
        "bound": float(bound_s), "certificate": proof.certificate, "reports": found.reports, "size": size,
        "iterations": found.rounds,
    }  # fmt: skip
    metrics = {
        "exact_bound_Bps": float(found.bound * problem.wan.unit_Bps),
        "strength_Bps": float(problem.highest.rate * problem.wan.unit_Bps),
        "bound_holds_for": proof.holds_for,
        **(found.metrics or {}),
    }
    if found.rated is None or not found.rated.rates:
        return Outcome(Status.LIMIT, message=message or "no trees were found in time", metrics=metrics, **common)
    rated = fill_bottleneck(problem.wan, found.rated)
    if roots is None:
        rated = in_order(rated)
    chosen = (
        heights_of(problem.wan, problem.limit, rated.trees)[0] if roots is None else np.array(roots, dtype=np.int64)
    )
    parted = split_data(problem.instance, problem.wan, rated, chosen, options)
    gap = GAP if budget.gap is None else budget.gap
    optimal = bound_s >= parted.flow_s * (1 - Fraction(gap))
    with budget.clock.phase("chunks"):
        chunks = measures_of_chunks(problem.instance.topology, parted.packing, options)
    return Outcome(
        Status.OPTIMAL if optimal else Status.FEASIBLE,
        parted.packing,
        objective=float(parted.flow_s),
        message=message,
        metrics={
            **measures_of_rate(problem.wan, parted.rated.total, problem.highest),
            **measures_of_trees(problem.wan, parted.rated, parted.roots.tolist()),
            **chunks,
            **metrics,
        },
        **{**common, "bound": min(float(bound_s), float(parted.flow_s))},
    )


def trees_of(problem: TreeProblem, rated: RatedTrees) -> TreePacking:
    """Return the trees as an answer, each with the root of least height."""
    whole = in_order(fill_bottleneck(problem.wan, rated))
    return packing(problem.instance, problem.wan, whole, heights_of(problem.wan, problem.limit, whole.trees)[0])


def chosen_trees(model: Any, pool: PosedPool) -> TreePacking | None:
    """Return the trees that a solved MILP has chosen (``Formulation.extract``)."""
    return _packing_or_none(pool.problem, chosen_rates(model, pool))


def rated_trees(model: Any, pool: PosedPool) -> TreePacking | None:
    """Return the trees with a rate in a solved linear program (``Formulation.extract``)."""
    wan = pool.problem.wan
    return _packing_or_none(
        pool.problem, exact_rates(wan, pool.trees, [model_unit(wan) * model.rate[i].value for i in model.T])
    )


def trees_of_patterns(model: Any, patterns: PosedPatterns) -> TreePacking | None:
    """Return the trees of a solved model of patterns (``Formulation.extract``)."""
    return _packing_or_none(patterns.problem, pattern_rates(model, patterns))


def _packing_or_none(problem: TreeProblem, rated: RatedTrees) -> TreePacking | None:
    return trees_of(problem, rated) if rated.rates else None
