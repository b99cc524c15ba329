"""The stages of a schedule: sums come together on trees that are found backwards, then copies use what is left of the links (section 6.4.5)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core.bounds import DistanceCertificate
from ...core.budget import Budget
from ...core.errors import InputError
from ...core.schedule import Ints, Schedule
from ...core.topology import Topology
from ..common.schedule_bounds import Bound
from .assemble import joined, justified, mirrored, rows_of, schedule_of
from .attempts import Stage
from .conditions import MAX_SENDS, Conditions
from .instance_net import Ticked, far_of
from .portfolio import Found, Steps, best_of
from .tables import Far, Jobs, Net, Pool


@dataclass(frozen=True)
class Plan:
    """How much is tried.

    Parameters
    ----------
    orders : str
        ``portfolio`` or ``paper``.
    restarts : int
        Rounds of attempts beyond the first.
    steps : int
        Ways that are sought, about.
    seed : int
        Of everything random.
    """

    orders: str
    restarts: int
    steps: int
    seed: int


@dataclass(frozen=True, eq=False)
class Answer:
    """A schedule and how it came about.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    seconds : Fraction or None
        Exactly when its last send ends; None where times were rounded up to ticks.
    found : tuple of Found
        The stages.
    steps : int
        Ways that were sought.
    """

    schedule: Schedule
    seconds: Fraction | None
    found: tuple[Found, ...]
    steps: int


def solve(
    sha256: str, topology: Topology, conditions: Conditions, ticked: Ticked, bound: Bound, plan: Plan, budget: Budget
) -> Answer | None:
    """Schedule all conditions; None if the budget ends before there is any schedule.

    Raises
    ------
    InputError
        If a target cannot be reached, or the schedule would not fit into memory.
    """
    stepped = ticked.alike
    net = ticked.stepped() if stepped else ticked.net
    steps = Steps(plan.steps)
    found: list[Found] = []
    fixed: tuple[Jobs, Pool] | None = None
    copies = conditions.copies
    sums = conditions.sums
    alone = not (sums.number and copies.number)
    if sums.number:
        backwards = Ticked(net, ticked.tick_s, ticked.exact).reversed()
        stage = _stage(topology, backwards, sums, None, _lower(ticked, bound) if alone else 0, stepped=stepped)
        if not alone:
            steps = Steps(plan.steps // 2)
        best = best_of(stage, plan.orders, plan.restarts, steps, plan.seed, budget)
        if best is None:
            return None
        found.append(best)
        pool, complete = mirrored(net, sums, best.pool, best.ticks)
        fixed = sums, pool
        copies = _released(copies, sums, complete, best.ticks, early=bool((net.room < 0).all()))
        steps = Steps(max(plan.steps - steps.used, 1), steps.used)
    if copies.number:
        earlier = fixed if net.room.max(initial=-1) < 0 else None
        stage = _stage(topology, net, copies, earlier, _lower(ticked, bound), stepped=stepped)
        best = best_of(stage, plan.orders, plan.restarts, steps, plan.seed, budget)
        if best is None:
            return None
        found.append(best)
    schedule, seconds = _schedule(sha256, conditions, ticked, fixed, found, copies)
    return Answer(schedule, seconds, tuple(found), steps.used)


def _lower(ticked: Ticked, bound: Bound) -> int:
    """Give the ticks, or steps, of which a schedule takes at least as many by a bound in seconds; also where times are rounded up to ticks."""
    net, (seconds, certificate) = ticked.net, bound
    ticks = -(-seconds // ticked.tick_s)
    if not ticked.alike:
        return int(ticks)
    # In a step a link carries one chunk, which takes only the window, and a chunk passes one link, which takes the latency too.
    step = net.delay if isinstance(certificate, DistanceCertificate) else net.window
    return int(-(-ticks // int(step.flat[0])))


def _stage(
    topology: Topology, net: Net, jobs: Jobs, fixed: tuple[Jobs, Pool] | None, lower: int, *, stepped: bool
) -> Stage:
    far = far_of(net, jobs.target)
    _check(topology, jobs, far)
    stage = Stage(net, jobs, far, fixed, 0, stepped)
    stage.lower = max(lower, int(stage.length.max(initial=0)))
    stage.lower = max(stage.lower, _ports(net, jobs, far, stepped=stepped))
    return stage


def _check(topology: Topology, jobs: Jobs, far: Far) -> None:
    """Refuse targets that cannot be reached, and what would not fit into memory."""
    owner = np.repeat(np.arange(jobs.number), np.diff(jobs.target_first))
    hops = far.hops[jobs.target, jobs.source[owner]]
    if (lost := np.flatnonzero(hops >= 2**20)).size:
        ends = topology.nodes[jobs.source[owner[lost[0]]]].name, topology.nodes[jobs.target[lost[0]]].name
        raise InputError("no path leads between {!r} and {!r}, where data must travel".format(*ends), place="network")
    least = int(hops.sum()) if len(hops) == jobs.number else len(hops)
    if least > MAX_SENDS:
        raise InputError(f"{least:,} sends at least; expected at most {MAX_SENDS:,}", place="collective.chunks")


def _ports(net: Net, jobs: Jobs, far: Far, *, stepped: bool) -> int:
    """Give the ticks that the links into a target, or out of a source, need at least.

    Of the chunks that a node needs, or has, take the n with the longest ways. None of them has come, or can leave in time, before the way of the
    n-th allows it, and in steps each link takes one at a time. Where links differ, all chunks are counted as the smallest ones at once.
    """
    owner = np.repeat(np.arange(jobs.number), np.diff(jobs.target_first))
    ways = far.ticks[jobs.target, jobs.source[owner]] + jobs.release[owner]
    single = jobs.target_first[:-1]
    longest = np.maximum.reduceat(ways, single) if jobs.number else ways
    last = net.link[net.part_first[1:] - 1]
    into = _most(net, net.head, last, jobs.target, ways, stepped=stepped)
    return max(into, _most(net, net.tail, net.link[net.part_first[:-1]], jobs.source, longest, stepped=stepped))


def _most(net: Net, end: Ints, link: Ints, node: Ints, ways: Ints, *, stepped: bool) -> int:
    """Give the largest of these bounds over the nodes."""
    window = np.zeros(int(net.link.max()) + 1, dtype=np.int64)
    window[net.link] = net.window.min(axis=0)
    order = np.lexsort((-ways, node))
    busy, first = np.unique(node[order], return_index=True)
    most = 0
    for at, places in zip(busy.tolist(), np.split(order, first[1:]), strict=True):
        links = np.unique(link[end == at])
        count = np.arange(1, len(places) + 1)
        if stepped:
            most = max(most, int((ways[places] - 1 + -(-count // len(links))).max()))
        else:
            rate = sum((Fraction(1, int(w)) for w in window[links].tolist()), Fraction(0))
            most = max(most, int(-(-len(places) // rate)))
    return most


def _released(copies: Jobs, sums: Jobs, complete: Ints, ticks: int, *, early: bool) -> Jobs:
    """Give the copies of sums the tick at which these are complete; where buffers are limited, copies wait for all sums."""
    release = copies.release.copy()
    if early:
        when = np.zeros(int(max(copies.chunk.max(initial=0), sums.chunk.max(initial=0))) + 1, dtype=np.int64)
        when[sums.chunk] = complete
        release = when[copies.chunk]
    else:
        release[:] = ticks
    return copies._replace(release=release)


def _schedule(
    sha256: str,
    conditions: Conditions,
    ticked: Ticked,
    fixed: tuple[Jobs, Pool] | None,
    found: list[Found],
    copies: Jobs,
) -> tuple[Schedule, Fraction | None]:
    """Join the stages, start everything as early as the order allows, and say when the last send ends."""
    net, chunks = ticked.net, conditions.chunks
    parts = [] if fixed is None else [rows_of(*fixed, 0, reduce=True)]
    if copies.number:
        parts.append(rows_of(copies, found[-1].pool, len(parts[0].edge) if parts else 0, reduce=False))
    rows = joined(parts)
    index = {units: place for place, units in enumerate(conditions.units)}
    units, where = np.unique(chunks.units, return_inverse=True)
    sizes = np.array([index[int(u)] for u in units], dtype=np.int64)[where]
    limited = bool((net.room >= 0).any())
    start = rows.start if limited else justified(net, rows, sizes, len(chunks))
    delay = net.delay[sizes[rows.chunk], rows.edge]
    last = int((start + delay).max(initial=0))
    schedule = schedule_of(sha256, chunks, net, rows, start, delay, ticked.tick_s)
    return schedule, last * ticked.tick_s if ticked.exact else None
