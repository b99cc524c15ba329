"""``multitree``: the method, and the schedules of its trees."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from ...algorithms.bounds.schedule_bounds import best_bound
from ...algorithms.schedules.compose import concatenate, merge, reverse, transpose
from ...algorithms.schedules.problem import GroupProblem, check_size, group_problems, parallel_uses, supports_groups
from ...core.budget import Budget
from ...core.collective import Collective
from ...core.errors import Refusal
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Kind, Method, Metric
from ...core.outcome import Outcome, Status
from ...core.schedule import Chunks, Sends, StepSchedule
from ...core.solver import Solver
from .trees import StepEdges, grow

#: Collectives that the trees serve.
COLLECTIVES = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE)


class MultitreeOptions(Strict):
    """Options of ``multitree``."""

    links: Literal["parallel", "equal"] = Field(
        "parallel",
        description="parallel lets a link of k times the smallest bandwidth take k edges in a step, k rounded down; "
        "equal lets every link take one.",
    )


def supports(instance: Instance) -> Refusal | None:
    """Return the reason why an instance does not fit, if any (``Method.supports``)."""
    return supports_groups(instance, COLLECTIVES)


def run(instance: Instance, solver: Solver, budget: Budget, options: MultitreeOptions) -> Outcome:
    """Grow the trees of every collective on its own (``Method.run``)."""
    del solver
    problems = group_problems(instance)
    bound, certificate = best_bound(instance)
    budget.tell_bound(bound, certificate)
    schedules: list[StepSchedule] = []
    heights: list[int] = []
    with budget.clock.phase("build"):
        for problem in problems:
            built = build(problem, budget, parallel=options.links == "parallel")
            if built is None:
                message = "the trees were not complete in time"
                return Outcome(Status.LIMIT, bound=float(bound), certificate=certificate, message=message)
            schedules.append(built[0])
            heights.append(built[1])
    metrics = {"tree_height": max(heights)}
    schedule = merge(instance.sha256, schedules)
    return Outcome(Status.FEASIBLE, schedule, bound=float(bound), certificate=certificate, metrics=metrics)


def build(problem: GroupProblem, budget: Budget, *, parallel: bool) -> tuple[StepSchedule, int] | None:
    """Return the schedule of a collective, and the height of its highest tree in edges.

    None if the budget ended first.

    Parameters
    ----------
    problem : GroupProblem
        Problem of one of the :data:`COLLECTIVES`.
    parallel : bool
        Whether a link of k times the smallest bandwidth counts as k links; otherwise all links count as equal.
    """
    topology, kind, n = problem.topology, problem.collective, problem.n
    check_size(kind.passes * n * (n - 1) * problem.demand.chunks)
    uses = parallel_uses(topology) if parallel else [1] * len(topology.links)
    phases: list[StepSchedule] = []
    height = 0
    for reducing in [True] * kind.sums + [False] * kind.copies:
        edges = grow(transpose(topology) if reducing else topology, problem.nodes.tolist(), uses, budget)
        if edges is None:
            return None
        gather = all_gather(problem, edges)
        phases.append(reverse(gather) if reducing else gather)
        height = max(height, height_of(edges))
    return phases[0] if len(phases) == 1 else concatenate(*phases), height


def all_gather(problem: GroupProblem, edges: StepEdges) -> StepSchedule:
    """Send every rank's part down its tree; chunk j of position i is ``i * c + j``.

    Chunks of a part travel together.
    """
    n, c = problem.n, problem.demand.chunks
    each = np.repeat(np.arange(len(edges.step)), c)
    chunk = edges.tree[each] * c + np.tile(np.arange(c), len(edges.step))
    ends = problem.nodes[edges.parent], problem.nodes[edges.child]
    of_edge = Sends(edges.tree, *ends, np.zeros(len(edges.step), dtype=np.bool_), edges.offset, edges.links)
    return StepSchedule(
        problem.instance.sha256,
        Chunks(
            np.ones(n * c, dtype=np.int64),
            problem.part_bytes / c,
            (*((rank,) for rank in problem.ranks), tuple(sorted(problem.ranks))),
            np.repeat(np.arange(n), c),
            np.full(n * c, n),
            np.zeros(n * c, dtype=np.bool_),
        ),
        replace(of_edge.take(each), chunk=chunk),
        edges.step[each],
    )


def height_of(edges: StepEdges) -> int:
    """Return the largest number of edges between a root and a leaf.

    An edge comes in a later step than the one above it.
    """
    n = 1 + int(edges.tree.max(initial=0))
    depth = np.zeros((n, n), dtype=np.int64)
    begins = np.flatnonzero(np.diff(edges.step)) + 1
    for part in np.split(np.arange(len(edges.step)), begins):
        depth[edges.tree[part], edges.child[part]] = depth[edges.tree[part], edges.parent[part]] + 1
    return int(depth.max())


METHOD = Method(
    name="multitree",
    kind=Kind.HEURISTIC,
    summary="a spanning tree from every rank, grown in turns over free links",
    paper="Huang et al., Communication Algorithm-Architecture Co-Design for Distributed Deep Learning, ISCA 2021",
    answer_type=StepSchedule,
    options=MultitreeOptions,
    solve=run,
    supports=supports,
    needs_solver=False,
    metrics={
        "tree_height": Metric("largest number of edges between a root and a leaf, over all trees"),
    },
)
