"""All-to-all by sends and receives, in the order of ``ncclP2pSchedule`` (``src/init.cc``).

Boxes are cut into groups of at most eight ranks. In every round each rank sends to the rank that is so many groups, and
so many places in the group, after it: nobody receives from two ranks at once. Between boxes, data passes through the
GPU that is nearest to the NIC of the receiver (PXN), so that it stays on one rail.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from ...algorithms.schedules.problem import GroupProblem, check_size
from ...core.schedule import Chunks, Sends, StepSchedule
from .paths import Hops, as_paths

#: Ranks of a group at most.
GROUP = 8


def peers(sizes: list[int]) -> list[list[tuple[int, int]]]:
    """Return the pairs of positions, box by box, that exchange data in every round; the first are ranks themselves.

    Parameters
    ----------
    sizes : list of int
        Number of ranks of every box.
    """
    size = gcd(GROUP if len(sizes) > 1 else sizes[0], *sizes)
    count = sum(sizes) // size
    rounds: list[list[tuple[int, int]]] = []
    power, delta = 1 << (count - 1).bit_length(), 0
    for turn in range(power):
        if delta < count:
            rounds += [
                [
                    (g * size + i, (g + delta) % count * size + (i + place) % size)
                    for g in range(count)
                    for i in range(size)
                ]
                for place in range(size)
            ]
        delta = (delta + turn + 1) & (power - 1)
    return rounds


def in_rounds(problem: GroupProblem, hops: Hops, pieces: int) -> StepSchedule:
    """Make the schedule of an all-to-all: one step, whose sends are in the order of the rounds, each in pieces.

    Raises
    ------
    Unsupported
        If the schedule is too large.
    """
    n, cut = problem.n, pieces * problem.demand.chunks
    check_size(n * (n - 1) * cut)
    ranks = [rank for box in hops.boxes.boxes for rank in box.ranks]
    local = {rank: place for box in hops.boxes.boxes for place, rank in enumerate(box.ranks)}
    near = {
        rank: next((i for i, nic in enumerate(box.nics) if nic.near[0] == rank), local[rank])
        for box in hops.boxes.boxes
        for rank in box.ranks
    }
    pairs = [
        (ranks[a], ranks[b]) for turn in peers([len(box.ranks) for box in hops.boxes.boxes]) for a, b in turn if a != b
    ]
    ways = as_paths([hops.links(a, b, local[a], near[b]) for a, b in pairs]).take(np.repeat(np.arange(len(pairs)), cut))
    source, target = (np.repeat(np.array(ends, dtype=np.int64), cut) for ends in zip(*pairs, strict=True))
    sends = Sends(
        np.arange(len(source)),
        problem.nodes[source],
        problem.nodes[target],
        np.zeros(len(source), dtype=bool),
        ways.offset,
        ways.links,
    )
    groups = tuple((rank,) for rank in problem.ranks)
    chunks = Chunks(
        np.ones(len(source), dtype=np.int64),
        problem.part_bytes / cut,
        groups,
        source,
        target,
        np.zeros(len(source), dtype=bool),
    )
    return StepSchedule(problem.instance.sha256, chunks, sends, np.zeros(len(source), dtype=np.int64))
