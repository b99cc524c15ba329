"""PAT, parallel aggregated trees: all-gather and reduce-scatter of boxes with one GPU each, in ceil(log2 n) steps.

A binomial tree from every rank, all at once, the farthest ranks first: with distance d = 2^k from high to low, a rank
sends to the one d places on all parts that began a multiple of 2d places before it. A reduce-scatter is this backwards.
Source: NVIDIA, NCCL 2.23 release; NCCL sends these parts through small buffers, one after the other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...algorithms.graphs.distances import route
from ...algorithms.schedules.problem import GroupProblem, check_size
from ...core.collective import Collective
from ...core.schedule import StepSchedule
from .rings import steps_of


def in_trees(problem: GroupProblem, pieces: int) -> StepSchedule:
    """Make the schedule of an all-gather or a reduce-scatter.

    Raises
    ------
    Unsupported
        If the schedule is too large.
    """
    n, pieces = problem.n, pieces * problem.demand.chunks
    reduce = problem.collective is Collective.REDUCE_SCATTER
    check_size(n * (n - 1) * pieces)
    rows: list[tuple[int, int]] = []  # distance from the part's rank, how far it is sent on
    step: list[int] = []
    depth = (n - 1).bit_length()
    for k in range(depth):
        on = 1 << (depth - 1 - k)
        for far in range(0, n - on, 2 * on):
            rows.append((far, on))
            step.append(k)
    far, on = np.array(rows, dtype=np.int64).T
    part = np.repeat(np.arange(n), len(rows))
    source = (part + np.tile(far, n)) % n
    target = (source + np.tile(on, n)) % n
    when = np.tile(np.array(step, dtype=np.int64), n)
    if reduce:
        source, target, when = target, source, depth - 1 - when
    order = np.argsort(when, kind="stable")
    part, source, target, when = part[order], source[order], target[order], when[order]
    ways = route(problem.topology, problem.nodes[source], problem.nodes[target])
    none = np.zeros_like(part)
    made = steps_of(problem, part, none, 1, source, target, when, ways, reduce=reduce, pieces=pieces)
    return replace(made, step=made.step - int(made.step.min()))
