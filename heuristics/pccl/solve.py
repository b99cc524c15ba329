"""From an instance to an outcome: conditions, bounds, the search in stages, and the schedule.

Bounds are of cuts, distances, the maximum concurrent flow, and of the links at every node in ticks.
Sums come together on trees that are found backwards, then copies use what is left of the links (section 6.4.5).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from operator import itemgetter

import numpy as np

from ...algorithms.bounds.schedule_bounds import (
    Bound,
    best_bound,
    candidate_sets,
    groups_of,
    joint_cut,
    joint_length,
    pairs_of,
)
from ...algorithms.paths.grid import sides_of
from ...algorithms.paths.reservations import PathNetwork
from ...algorithms.paths.search import DistanceTables, Jobs, SendPool
from ...algorithms.schedules.problem import group_problems
from ...algorithms.schedules.replay import first_come, in_order
from ...core.bounds import CutCertificate, DistanceCertificate, LengthCertificate, SolverBound
from ...core.budget import Budget, Clock, Incumbent, NoClock, ignore, require_schedulable
from ...core.errors import InputError, OutOfTime, Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Ints, Schedule, StepSchedule
from ...core.solver import Solver, SolverResult
from ...core.topology import Topology
from ...core.trace import Routing
from ..hierarchical.levels import find_hierarchy
from ..hierarchical.method import METHOD as HIERARCHICAL
from ..tacos.method import METHOD as TACOS
from ..textbook.exchanges import BRUCK, DIRECT, RHD
from ..textbook.rings import RING
from ..textbook.trees import DBT, KNOMIAL
from .extract import concatenate_sends, justify_starts, mirror_trees, rows_of, schedule_of, ways_of
from .method import PcclOptions
from .problem import MAX_SENDS, PathProblem, TickedNetwork, conditions_of, distance_tables, to_ticked_network
from .search import SearchEffort, Stage, StageResult, best_of

_ALONE = 64  #: Collectives up to which each is bounded on its own, too.


def cheap_bound(instance: Instance, topology: Topology) -> Bound:
    """Return the largest bound without a solver: of single collectives, and of cuts and distances for all."""
    groups = groups_of(instance)
    bounds: list[Bound] = [best_bound(instance.with_single_demand(demand)) for demand in instance.demands[:_ALONE]]
    cut = joint_cut(instance, groups, candidate_sets(topology, groups, sides_of(topology) or ()))
    if cut is not None:
        bounds.append(cut)
    if instance.also and len((pairs := pairs_of(instance))[0]):
        bounds.append(joint_length(instance, pairs, [1] * len(topology.links)))
    return max(bounds, key=itemgetter(0))


def whole_steps(instance: Instance, bound: Bound) -> Bound:
    """Round a bound that is recomputed up to whole steps, where there are any: the verifier does so too."""
    seconds, certificate = bound
    if instance.timing is None or isinstance(certificate, SolverBound):
        return bound
    return ceil(seconds / instance.timing.epoch_s) * instance.timing.epoch_s, certificate


def fewest_ticks(ticked: TickedNetwork, bound: Bound) -> int:
    """Ticks, or steps, that a schedule takes at least by a bound in seconds, also where ticks round times up."""
    net, (seconds, certificate) = ticked.net, bound
    ticks = -(-seconds // ticked.tick_s)
    if not ticked.alike:
        return int(ticks)
    # In a step a link carries one chunk, which takes only the window, and a chunk passes one link, which takes the
    # latency too. Across a cut the last chunk has the latency of one link.
    window, delay = int(net.window.flat[0]), int(net.delay.flat[0])
    if isinstance(certificate, CutCertificate) and certificate.latency:
        ticks -= delay - window
    return int(-(-ticks // (delay if isinstance(certificate, DistanceCertificate) else window)))


def port_ticks(net: PathNetwork, jobs: Jobs, dist: DistanceTables, *, stepped: bool) -> int:
    """Ticks that the links into a target, or out of a source, need at least.

    Of the chunks that a node needs, or has, take the n with the longest ways. None of them has come, or can leave in
    time, before the way of the n-th allows it, and in steps each link takes one at a time. Where links differ, all
    chunks are counted as the smallest ones at once.
    """
    owner = np.repeat(np.arange(jobs.number), np.diff(jobs.target_first))
    ways = dist.ticks[jobs.target, jobs.source[owner]] + jobs.release[owner]
    single = jobs.target_first[:-1]
    longest = np.maximum.reduceat(ways, single) if jobs.number else ways
    last = net.link[net.part_first[1:] - 1]
    into = _most(net, net.head, last, jobs.target, ways, stepped=stepped)
    return max(into, _most(net, net.tail, net.link[net.part_first[:-1]], jobs.source, longest, stepped=stepped))


def _most(net: PathNetwork, end: Ints, link: Ints, node: Ints, ways: Ints, *, stepped: bool) -> int:
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


_MAX_COMPARED = 100_000  #: Chunks times receivers up to which other methods' schedules are tried.
AUTO_FLOWS = 20_000  #: Sources times links up to which the flow's linear program is solved without being asked for.
_CLOSE = 1.001  #: Schedules that are nearer to the bound than this have no flow computed for them.


@dataclass(frozen=True, eq=False)
class PathSchedule:
    """A schedule and its origin.

    It may be in steps if another method found it. ``seconds`` is the exact end of its last send; None if times were
    rounded up to ticks, or another method found it and there is no grid. ``complete_s`` is that end as declared, or
    simulated if another method found it; ``steps`` counts the path searches.
    """

    schedule: Schedule | StepSchedule
    seconds: Fraction | None
    complete_s: Fraction
    found_by: str
    attempts: int
    steps: int


def run(instance: Instance, solver: Solver, budget: Budget, options: PcclOptions) -> Outcome:
    """Find ways for all conditions, and bound the time from below (``Method.solve``)."""
    topology = instance.network
    if not isinstance(topology, Topology) or not instance.demands:
        raise Unsupported("the instance has no collective to schedule, and the option conditions none")
    with budget.clock.phase("build"):
        conditions = conditions_of(instance, topology)
        network = to_ticked_network(topology, conditions.sizes, conditions.units, summed=conditions.sums.number > 0)
    with budget.clock.phase("bound"):
        bound = whole_steps(instance, cheap_bound(instance, topology))
        budget.tell_bound(*bound)
    own = other = timed_out = None
    # Paths along a grid's dimensions, which are tried for pairs, often meet the bound.
    copies = conditions.copies
    grid = not conditions.sums.number and len(copies.target) == copies.number and sides_of(topology) is not None
    for step in ("own", "others") if grid else ("others", "own"):
        if _meets(own, bound) or _meets(other, bound):
            break
        if step == "others":
            other = _best_other_answer(conditions, instance, topology, solver, options, budget)
            continue
        try:
            with budget.clock.phase("search"):
                own = _schedule_conditions(instance.sha256, topology, conditions, network, bound, options, budget)
        except OutOfTime as error:
            timed_out = error
    if timed_out is not None and other is None:
        raise timed_out
    with budget.clock.phase("search"):
        answer = _earlier(topology, own, other)
    reports: tuple[SolverResult, ...] = ()
    if _wants_flow(instance, topology, options, bound, answer) and not budget.is_exhausted:
        from ...models.mcf.solve import bound as of_flow

        with budget.clock.phase("flow"):
            flow = of_flow(instance, solver, budget)
        reports = (flow.report,) if flow.report else ()
        if isinstance(flow.certificate, LengthCertificate) and flow.seconds is not None and flow.seconds > bound[0]:
            bound = whole_steps(instance, (flow.seconds, flow.certificate))
    return _outcome(instance, answer, bound, reports)


def _meets(answer: PathSchedule | None, bound: Bound) -> bool:
    return answer is not None and (answer.seconds or answer.complete_s) <= bound[0]


def _best_other_answer(
    conditions: PathProblem,
    instance: Instance,
    topology: Topology,
    solver: Solver,
    options: PcclOptions,
    budget: Budget,
) -> PathSchedule | None:
    """Return the earliest answer of other methods, reported to the budget so that it is not lost."""
    receptions = len(conditions.sums.target) + len(conditions.copies.target)
    if options.orders == "paper" or not options.others or receptions > _MAX_COMPARED:
        return None
    best: PathSchedule | None = None
    with budget.clock.phase("others"):
        for name, schedule, last in other_answers(instance, topology, solver, budget):
            if best is None or last < best.complete_s:
                best = PathSchedule(schedule, last if instance.timing else None, last, name, 0, 0)
                budget.tell(Incumbent(float(last), answer=lambda answer=schedule: answer))  # type: ignore[misc]
                budget.progress(f"{name}: {float(last):.6g} s")
    return best


def _earlier(topology: Topology, own: PathSchedule | None, other: PathSchedule | None) -> PathSchedule | None:
    """Return the schedule that is complete first; its own one if equal."""
    if own is None or other is None:
        return own or other
    assert isinstance(own.schedule, Schedule)  # noqa: S101 (the search gives no other)
    on_grid = other.seconds is not None
    mine = own.seconds if on_grid and own.seconds is not None else in_order(topology, own.schedule)[1]
    return own if mine <= other.complete_s else replace(other, attempts=own.attempts, steps=own.steps)


def _outcome(
    instance: Instance, answer: PathSchedule | None, bound: Bound, reports: tuple[SolverResult, ...]
) -> Outcome:
    seconds, certificate = float(bound[0]), bound[1]
    if answer is None:
        message = "no schedule was complete in time"
        return Outcome(Status.LIMIT, bound=seconds, certificate=certificate, message=message, reports=reports)
    # Without a grid, ranks with costs and a network with paths of its own change the declared end.
    changed = instance.rank_costs is not None or instance.routing is not Routing.FIXED
    exact = instance.timing is not None or not changed
    is_met = exact and answer.seconds is not None and answer.seconds == bound[0]
    return Outcome(
        Status.OPTIMAL if is_met else Status.FEASIBLE,
        answer.schedule,
        objective=seconds if is_met else None,
        bound=seconds,
        certificate=certificate,
        reports=reports,
        size=reports[0].size if reports else Outcome(Status.FEASIBLE).size,
        iterations=answer.steps,
        metrics={"found_by": answer.found_by, "attempts": answer.attempts, "sends": len(answer.schedule.sends)},
    )


def _wants_flow(
    instance: Instance, topology: Topology, options: PcclOptions, bound: Bound, answer: PathSchedule | None
) -> bool:
    """Return whether to compute the maximum concurrent flow: pairs exchange data, and the bound is not met."""
    if options.bound == "cut" or (answer is not None and answer.seconds == bound[0]):
        return False
    if options.bound == "auto" and answer is not None and answer.complete_s <= _CLOSE * bound[0]:
        return False
    sources = len(set(pairs_of(instance)[0].tolist()))
    return sources > 0 and (options.bound == "flow" or sources * len(topology.links) <= AUTO_FLOWS)


def _schedule_conditions(
    sha256: str,
    topology: Topology,
    conditions: PathProblem,
    ticked: TickedNetwork,
    bound: Bound,
    options: PcclOptions,
    budget: Budget,
) -> PathSchedule | None:
    """Schedule all conditions; None if the budget ends before there is any schedule."""
    stepped, net = ticked.alike, ticked.net
    if stepped:  # all sends take equally long: count steps in place of ticks
        net = net._replace(window=np.ones_like(net.window), delay=np.ones_like(net.delay))
    steps = SearchEffort(options.steps)
    results: list[StageResult] = []
    fixed: tuple[Jobs, SendPool] | None = None
    copies, sums = conditions.copies, conditions.sums
    alone = not (sums.number and copies.number)
    if sums.number:
        backwards = TickedNetwork(net, ticked.tick_s, ticked.exact).reverse_edges()
        stage = _stage(topology, backwards, sums, None, fewest_ticks(ticked, bound) if alone else 0, stepped=stepped)
        if not alone:
            steps = SearchEffort(options.steps // 2)
        best = best_of(stage, options.orders, options.restarts, steps, budget)
        if best is None:
            return None
        results.append(best)
        pool, complete = mirror_trees(net, sums, best.pool, best.ticks)
        fixed = sums, pool
        # Copies are released at the tick at which their sums are complete.
        when = np.zeros(int(max(copies.chunk.max(initial=0), sums.chunk.max())) + 1, dtype=np.int64)
        when[sums.chunk] = complete
        copies = copies._replace(release=when[copies.chunk])
        steps = SearchEffort(max(options.steps - steps.count, 1), steps.count)
    if copies.number:
        stage = _stage(topology, net, copies, fixed, fewest_ticks(ticked, bound), stepped=stepped)
        if stepped:
            stage.clock = int(ticked.net.window.flat[0]), int(ticked.net.delay.flat[0])
        best = best_of(stage, options.orders, options.restarts, steps, budget)
        if best is None:
            return None
        results.append(best)
    schedule, seconds = _schedule(sha256, conditions, ticked, fixed, results, copies)
    by, attempts = ", then ".join(stage.by for stage in results), sum(stage.attempts for stage in results)
    return PathSchedule(schedule, seconds, Fraction(float(schedule.end_s.max())), by, attempts, steps.count)


def _stage(
    topology: Topology, net: PathNetwork, jobs: Jobs, fixed: tuple[Jobs, SendPool] | None, lower: int, *, stepped: bool
) -> Stage:
    """Make a stage, with its lower bound; reject targets out of reach, and what would not fit into memory."""
    dist = distance_tables(net, jobs.target)
    owner = np.repeat(np.arange(jobs.number), np.diff(jobs.target_first))
    hops = dist.hops[jobs.target, jobs.source[owner]]
    if (far := np.flatnonzero(hops >= 2**20)).size:
        ends = topology.nodes[jobs.source[owner[far[0]]]].name, topology.nodes[jobs.target[far[0]]].name
        raise InputError("no path leads between {!r} and {!r}, where data must travel".format(*ends), place="network")
    least = int(hops.sum()) if len(hops) == jobs.number else len(hops)
    if least > MAX_SENDS:
        raise InputError(f"{least:,} sends at least; expected at most {MAX_SENDS:,}", place="collective.chunks")
    require_schedulable(least)
    stage = Stage(net, jobs, dist, fixed, 0, stepped)
    stage.lower = max(lower, int(stage.length.max(initial=0)), port_ticks(net, jobs, dist, stepped=stepped))
    return stage


def _schedule(
    sha256: str,
    conditions: PathProblem,
    ticked: TickedNetwork,
    fixed: tuple[Jobs, SendPool] | None,
    results: list[StageResult],
    copies: Jobs,
) -> tuple[Schedule, Fraction | None]:
    """Join the stages, start everything as early as the order allows, and say when the last send ends."""
    net, chunks = ticked.net, conditions.chunks
    parts = [] if fixed is None else [rows_of(*fixed, 0, reduce=True)]
    if results[-1].in_ticks:
        rows = ways_of(copies, results[-1].pool)
        start, delay = rows.start, net.delay[:1, 0]
    else:
        if copies.number:
            parts.append(rows_of(copies, results[-1].pool, len(parts[0].edge) if parts else 0, reduce=False))
        rows = concatenate_sends(parts)
        sizes = np.searchsorted(np.array(conditions.units, dtype=np.int64), chunks.units)
        limited = bool((net.room >= 0).any())
        start = rows.start if limited else justify_starts(net, rows, sizes, len(chunks))
        delay = net.delay[sizes[rows.chunk], rows.edge]
    last = int((start + delay).max(initial=0))
    schedule = schedule_of(sha256, chunks, net, rows, start, delay, ticked.tick_s)
    return schedule, last * ticked.tick_s if ticked.exact else None


_METHODS = (DIRECT, RHD, RING, BRUCK, DBT, KNOMIAL, TACOS)  #: Methods that are tried, with their default options.
_ROUNDS = 20  #: Times that a schedule is played at most until its links serve in the order of its starts.


class _HalfClock(NoClock):
    """A clock that gives half of the time that is left."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rest_s = (clock.remaining_s() or 0.0) / 2

    def remaining_s(self) -> float | None:
        """Return the seconds until half of the time is over; None without a limit."""
        seconds = self._clock.remaining_s()
        return None if seconds is None else max(0.0, seconds - self._rest_s)


def other_answers(
    instance: Instance, topology: Topology, solver: Solver, budget: Budget
) -> Iterator[tuple[str, StepSchedule | Schedule, Fraction]]:
    """Yield answers of other methods: the first one, and more while half of the time lasts.

    Each comes with the name of its method and its completion time in seconds. A timed schedule comes with its simulated
    times, first repeated to a fixed point, then simulated once; on a grid of ticks it comes as it is, and schedules in
    steps, which have no ticks, are left out.
    """
    # What the others tell is about answers of their own.
    half = replace(budget, tell=ignore, clock=_HalfClock(budget.clock))
    has_one = False
    # Switches that join boxes to boxes make levels, each of which may have an algorithm of its own.
    levels = HIERARCHICAL.supports(instance) is None and bool(topology.switches)
    levels = levels and any(len(find_hierarchy(problem).sizes) > 1 for problem in group_problems(instance))
    for method in (*_METHODS, HIERARCHICAL) if levels else _METHODS:
        if has_one and half.is_exhausted:
            return
        if method.supports(instance) or (instance.timing is not None and method.answer_type is not Schedule):
            continue
        options = method.options()
        try:
            answer = method.run(method.pose(instance, options), solver, half, options).answer
        except (InputError, OutOfTime, Unsupported):
            continue
        if isinstance(answer, StepSchedule):
            has_one = True
            yield method.name, answer, first_come(topology, answer)
        elif isinstance(answer, Schedule):
            has_one = True
            answer = replace(answer, instance_sha256=instance.sha256)
            if instance.timing is not None:
                epoch_s = instance.timing.epoch_s
                yield method.name, answer, round(float(answer.end_s.max() / float(epoch_s))) * epoch_s
                continue
            # As it is, copies of a chunk may share a link, as circuits do and sends in time do not.
            for schedule in (_settle_schedule(topology, answer, half), in_order(topology, answer)[0]):
                yield method.name, schedule, in_order(topology, schedule)[1]


def _settle_schedule(topology: Topology, schedule: Schedule, budget: Budget) -> Schedule:
    """Simulate a schedule to a fixed point, where no send ends later than declared, or until the time is over."""
    for played in range(_ROUNDS):
        if played and budget.is_exhausted:
            break
        before, (schedule, _) = schedule, in_order(topology, schedule)
        if np.array_equal(before.start_s, schedule.start_s) and np.array_equal(before.end_s, schedule.end_s):
            break
    return schedule
