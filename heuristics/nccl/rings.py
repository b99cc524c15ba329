"""All-gather, reduce-scatter and all-reduce in the rings of all channels, each with its share of every part."""

from __future__ import annotations

import numpy as np

from ...algorithms.graphs.distances import Paths
from ...algorithms.schedules.compose import concatenate
from ...algorithms.schedules.problem import GroupProblem, check_size
from ...core.collective import Collective
from ...core.schedule import Chunks, Ints, Sends, StepSchedule
from .paths import Hops, as_paths
from .search import Rings


def ring_orders(rings: Rings) -> list[tuple[int, ...]]:
    """Return the ranks of every channel in the order of its ring, box after box."""
    return [tuple(rank for box in channel for rank in box.order) for channel in rings.channels]


def in_rings(problem: GroupProblem, rings: Rings, hops: Hops, pieces: int) -> StepSchedule:
    """Make the schedule of an all-gather, a reduce-scatter or an all-reduce.

    Every channel has its share of every part, which goes around its ring in pieces; an all-reduce goes around twice.
    Chunks of the problem cut the pieces once more.

    Raises
    ------
    Unsupported
        If the schedule is too large.
    """
    orders, n = ring_orders(rings), problem.n
    pieces *= problem.demand.chunks
    check_size(problem.collective.passes * n * (n - 1) * len(orders) * pieces)
    ways = as_paths(
        [
            hops.links(a, b, number, rings.channels[number][0].nic)
            for number, order in enumerate(orders)
            for a, b in zip(order, [*order[1:], order[0]], strict=True)
        ]
    )
    halves: list[StepSchedule] = []
    if problem.collective is not Collective.ALL_GATHER:
        halves.append(_once_around(problem, orders, ways, pieces, reduce=True))
    if problem.collective is not Collective.REDUCE_SCATTER:
        halves.append(_once_around(problem, orders, ways, pieces, reduce=False))
    return halves[0] if len(halves) == 1 else concatenate(*halves)


def _once_around(
    problem: GroupProblem, orders: list[tuple[int, ...]], ways: Paths, pieces: int, *, reduce: bool
) -> StepSchedule:
    """Return a schedule once around each ring.

    In step s, the i-th rank forwards the part of the rank s (reducing: s + 1) places before it.
    """
    n = problem.n
    step, channel, place = (
        column.ravel() for column in np.meshgrid(np.arange(n - 1), np.arange(len(orders)), np.arange(n), indexing="ij")
    )
    ring = np.array(orders, dtype=np.int64)
    part = ring[channel, (place - step - int(reduce)) % n]
    return steps_of(
        problem,
        part,
        channel,
        len(orders),
        ring[channel, place],
        ring[channel, (place + 1) % n],
        step,
        ways.take(channel * n + place),
        reduce=reduce,
        pieces=pieces,
    )


def steps_of(
    problem: GroupProblem,
    part: Ints,
    share: Ints,
    shares: int,
    source: Ints,
    target: Ints,
    step: Ints,
    ways: Paths,
    *,
    reduce: bool,
    pieces: int,
) -> StepSchedule:
    """Return a schedule in steps of parts that all ranks receive, or that are summed at their owners.

    Parameters
    ----------
    problem : GroupProblem
        Problem with the collective to schedule.
    part, share : array of int, shape (sends,)
        Rank whose part is sent, and share of it.
    shares : int
        Equal shares of every part.
    source, target : array of int, shape (sends,)
        Positions in the group of ranks.
    step : array of int, shape (sends,)
        Step of every send, from 0.
    ways : Paths
        The links of every send.
    reduce : bool
        Whether the receiver adds the data.
    pieces : int
        Pieces of every share, which are sent one after the other.
    """
    n, cut = problem.n, shares * pieces
    chunk = np.repeat((part * shares + share) * pieces, pieces) + np.tile(np.arange(pieces), len(part))
    ways = ways.take(np.repeat(np.arange(len(part)), pieces))
    ends, everyone = np.repeat(np.arange(n), cut), np.full(n * cut, n)
    groups = (*((rank,) for rank in problem.ranks), tuple(sorted(problem.ranks)))
    held, needed = (everyone, ends) if reduce else (ends, everyone)
    flags = np.full(n * cut, reduce)
    chunks = Chunks(np.ones(n * cut, dtype=np.int64), problem.part_bytes / cut, groups, held, needed, flags)
    nodes = problem.nodes
    sends = Sends(
        chunk,
        np.repeat(nodes[source], pieces),
        np.repeat(nodes[target], pieces),
        np.full(len(chunk), reduce),
        ways.offset,
        ways.links,
    )
    return StepSchedule(problem.instance.sha256, chunks, sends, np.repeat(step, pieces))
