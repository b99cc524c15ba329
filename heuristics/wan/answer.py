"""Outcomes of runs from trees or messages: the same metrics for all, and the bound for any schedule."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...algorithms.trees import trees as tree_rows
from ...algorithms.trees.network import Wan
from ...core.outcome import Outcome, Status
from ...core.schedule import StepSchedule
from ...core.solver import ModelSize, SolverResult
from ...models.mtree.problem import WanProblem


def bound_fields(problem: WanProblem) -> dict[str, Any]:
    """Return the bound of an outcome and its certificate."""
    return {"bound": float(problem.seconds(problem.ceiling.rate)), "certificate": problem.ceiling.certificate}


def tree_outcome(
    problem: WanProblem,
    rated: tree_rows.RatedTrees,
    *,
    common_root: bool = False,
    reports: Sequence[SolverResult] = (),
    rounds: int = 0,
    metrics: dict[str, Any] | None = None,
) -> Outcome:
    """Return the outcome of a run that has found trees.

    Rates of the trees, at least one, are raised together until a link is full. With ``common_root`` all trees have the
    root that makes the highest of them lowest; else each has its own. Other arguments are fields of
    :class:`~cwb.core.outcome.Outcome`.
    """
    wan = problem.wan
    rated = tree_rows.in_order(tree_rows.fill_bottleneck(wan, rated))
    limit = wan.hops(None)
    roots = tree_rows.heights_of(wan, limit, rated.trees)[0]
    if common_root:
        roots[:] = lowest_root(wan, rated)
    seconds = problem.seconds(rated.total)
    measured = {
        **tree_rows.measures_of_rate(wan, rated.total, problem.ceiling),
        **tree_rows.measures_of_trees(wan, rated, roots.tolist()),
    }
    return Outcome(
        Status.OPTIMAL if rated.total == problem.ceiling.rate else Status.FEASIBLE,
        tree_rows.packing(problem.instance, wan, rated, roots),
        objective=float(seconds),
        reports=tuple(reports),
        size=max((report.size for report in reports), key=lambda size: size.nonzeros, default=ModelSize()),
        iterations=rounds,
        metrics={**measured, **(metrics or {})},
        **bound_fields(problem),
    )


def lowest_root(wan: Wan, rated: tree_rows.RatedTrees) -> int:
    """Return the site from which the highest tree is lowest, in hops."""
    trees = rated.trees
    hops = [tree_rows.heights_from(wan, wan.latency_ns, trees, [root] * len(trees))[1] for root in range(wan.nodes)]
    return int(np.array(hops).max(axis=1).argmin())


def message_outcome(problem: WanProblem, schedule: StepSchedule, metrics: dict[str, Any]) -> Outcome:
    """Return the outcome of found messages; their rate is the size over the time of the most loaded link."""
    links, units = problem.instance.topology.links, schedule.chunks.units[schedule.sends.chunk]
    load = np.zeros(len(links), dtype=np.int64)
    np.add.at(load, schedule.sends.path_links, units[schedule.sends.hop_send])
    load_s = max(count / link.bandwidth_Bps for count, link in zip(load.tolist(), links, strict=True))
    rate = problem.size_bytes / (load_s * schedule.chunks.unit_bytes) / problem.wan.unit_Bps
    measured = tree_rows.measures_of_rate(problem.wan, rate, problem.ceiling)
    return Outcome(Status.FEASIBLE, schedule, metrics={**measured, **metrics}, **bound_fields(problem))
