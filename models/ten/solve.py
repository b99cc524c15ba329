"""Method ``ten-ilp``: a first schedule, then models of fewer and fewer ticks."""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...algorithms.bounds.schedule_bounds import best_bound
from ...algorithms.paths.justify import BusyIntervals, justify_schedule
from ...algorithms.schedules.problem import chunks_of, edge_labels, needed_sends
from ...algorithms.schedules.stages import BACKWARDS, stages_of, to_copies
from ...core.bounds import SolverBound
from ...core.budget import Budget, Incumbent, require_buildable, why_unbuildable
from ...core.collective import Collective
from ...core.errors import Unsupported
from ...core.grouping import group_by_key
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Schedule, sends_from_lists
from ...core.solver import ModelSize, Solver, SolverOptions, SolverResult, Termination
from .formulation import build
from .method import TenOptions
from .problem import MAX_TICKS, HorizonModel, TimeExpandedNetwork, epoch_bound, expand_time, tick_s

MAX_COLUMNS = 1_000_000  #: Columns that are built.
COLUMN_S = 3e-5  #: Seconds that a start takes to be built.
Start = tuple[int, int, int]  #: A start: tick, chunk, edge.


def run(instance: Instance, solver: Solver, budget: Budget, options: TenOptions) -> Outcome:
    """Synthesize a schedule of a posed instance."""
    stages, tick = stages_of(instance), tick_s(instance)
    exact, is_whole = not instance.topology.switches, len(stages) == 1
    simple, certificate = epoch_bound(instance, expand_time(stages[-1].instance)) if exact else (0, None)
    if certificate is not None:
        budget.tell_bound(simple * tick, certificate)
    searches: list[TickSearch] = []
    for stage in stages:
        problem = expand_time(stage.instance)
        least = 1 if not exact else simple if is_whole else epoch_bound(stage.instance, problem)[0]
        searches.append(TickSearch(instance, problem, stage.backwards, is_whole, solver, budget, least))
        searches[-1].run(options.horizon)
    schedule = _schedule(instance, [(search.problem, search.best, search.backwards) for search in searches])
    if not is_whole:
        schedule = justify_schedule(instance, schedule)  # sums that are ready come down while others still go up
    ticks = round(float(schedule.end_s.max()) / float(tick))
    low = max(simple, searches[0].low) if exact and is_whole else simple
    reports = tuple(report for search in searches for report in search.reports)
    seconds, proof = low * tick, certificate
    if not exact:
        seconds, proof = best_bound(instance)
    elif low > simple and reports:
        proof = SolverBound(reports[-1].solver, reports[-1].version)
    return Outcome(
        Status.OPTIMAL if seconds >= ticks * tick else Status.FEASIBLE,
        schedule,
        objective=float(ticks * tick),
        bound=float(seconds),
        certificate=proof,
        message="; ".join(dict.fromkeys(search.stopped for search in searches if search.stopped)),
        reports=reports,
        size=max((r.size for r in reports), key=lambda size: size.variables, default=ModelSize()),
        iterations=len(reports),
        metrics={
            "ticks": ticks,
            "model_bound_ticks": sum(search.low for search in searches),
            "tick_s": float(tick),
            "models": len(reports),
        },
    )


@dataclass
class TickSearch:
    """Search for the fewest ticks of an instance, or of one half of its all-reduce."""

    instance: Instance
    problem: TimeExpandedNetwork
    backwards: bool  #: Its copies are sums that run backwards.
    is_whole: bool  #: Its schedules are those of the instance.
    solver: Solver
    budget: Budget
    low: int
    best: list[Start] = field(default_factory=list)
    high: int = 0
    reports: list[SolverResult] = field(default_factory=list)
    stopped: str = ""  #: Reason for no further solve; empty before.

    def run(self, horizon: int | None) -> None:
        """Solve the model of the bound, since it is often met, then bisect; given a horizon, solve one model."""
        with self.budget.clock.phase("greedy"):
            first = first_schedule(self.problem)
        if (ticks := finish(self.problem, first)) > MAX_TICKS:
            raise Unsupported(
                f"{ticks:,} ticks, of which no more than {MAX_TICKS:,} are distinguished: links differ too much"
            )
        self.keep(first)
        if horizon is not None:
            if self.high > self.low:
                self.within(max(self.low, min(horizon, self.high)))
            return
        trial = self.low
        while self.low < self.high and not self.stopped:
            if self.budget.is_exhausted:
                self.stopped = "the budget ended"
                break
            self.within(trial)
            trial = (self.low + self.high - 1) // 2

    def keep(self, best: list[Start]) -> None:
        """Keep and report a schedule."""
        self.best, self.high = best, finish(self.problem, best)
        if self.is_whole:
            parts = [(self.problem, best, self.backwards)]
            ends_s = float(self.high * tick_s(self.instance))
            self.budget.tell(Incumbent(ends_s, answer=lambda: _schedule(self.instance, parts)))

    def within(self, horizon: int) -> None:
        """Solve the model of a horizon, and update bound or schedule."""
        index = HorizonModel(self.problem, horizon, self.low, self.instance)
        if why := why_unbuildable(index.columns, f"{horizon:,} ticks", COLUMN_S, MAX_COLUMNS):
            self.stopped = why
            return
        self.budget.progress(f"{horizon} ticks: between {self.low} and {self.high}")
        with self.budget.clock.phase("build"):
            model = build(index)
        result = self.solver.solve(model, self.budget, SolverOptions())
        self.reports.append(result)
        if result.has_solution:
            self.keep(chosen_starts(model, self.problem))
            if result.termination is Termination.OPTIMAL:
                self.low = max(self.low, self.high)
        elif result.termination is Termination.INFEASIBLE:
            self.low = max(self.low, horizon + 1)
        else:
            self.stopped = f"the solver stopped at {horizon} ticks: {result.termination.value}"


def chosen_starts(model: Any, problem: TimeExpandedNetwork) -> list[Start]:
    """Return the starts of a solved model that lead a chunk to a target."""
    starts = [(t, c, e) for c, e, t in model.starts if model.x[c, e, t].value > 0.5]
    useful: list[Start] = []
    edge_at = {edge.links: e for e, edge in enumerate(problem.edges)}
    for c, chunk in enumerate(problem.chunks):
        mine = [(t, problem.edges[e]) for t, other, e in starts if other == c]
        useful += [(t, c, edge_at[edge.links]) for t, edge in needed_sends(chunk.source, chunk.targets, mine)]
    return sorted(useful)


def first_schedule(problem: TimeExpandedNetwork) -> list[Start]:
    """Build a schedule chunk by chunk, the farthest first, by earliest arrival on free links."""
    far = problem.distance
    order = sorted(
        (c for c, chunk in enumerate(problem.chunks) if chunk.targets),
        key=lambda c: -max(far[problem.chunks[c].source][n] for n in problem.chunks[c].targets),
    )
    leaving = group_by_key((edge.source, e) for e, edge in enumerate(problem.edges))
    busy = BusyIntervals()
    starts: list[Start] = []
    for c in order:
        reached = {problem.chunks[c].source: 0}
        missing = set(problem.chunks[c].targets)
        while missing:
            for tick, e in _way(problem, leaving, busy, reached, missing):
                busy.take(problem.edges[e].links, tick, tick + problem.ticks[e])
                reached[problem.edges[e].target] = tick + problem.ticks[e]
                starts.append((tick, c, e))
            missing -= reached.keys()
    return starts


def finish(problem: TimeExpandedNetwork, starts: list[Start]) -> int:
    """Return the ticks until the last arrival."""
    return max((tick + problem.ticks[e] for tick, _, e in starts), default=0)


def _way(
    problem: TimeExpandedNetwork,
    leaving: Mapping[int, Sequence[int]],
    busy: BusyIntervals,
    reached: Mapping[int, int],
    missing: set[int],
) -> list[tuple[int, int]]:
    """Return the starts that bring a chunk to the missing target that it can reach first."""
    came: dict[int, tuple[int, int]] = {}
    settled_nodes: set[int] = set()
    heap = [(tick, node, -1, -1) for node, tick in reached.items()]
    heapq.heapify(heap)
    node = -1
    while heap and node not in missing:
        tick, node, start, e = heapq.heappop(heap)
        if node in settled_nodes:
            continue
        settled_nodes.add(node)
        if e >= 0:
            came[node] = start, e
        for after in leaving[node]:
            if problem.edges[after].target not in settled_nodes:
                begin = busy.earliest(problem.edges[after].links, tick, problem.ticks[after])
                heapq.heappush(heap, (begin + problem.ticks[after], problem.edges[after].target, begin, after))
    way: list[tuple[int, int]] = []
    while node in came:
        way.append(came[node])
        node = problem.edges[came[node][1]].source
    return way[::-1]


def horizon_model(instance: Instance, options: TenOptions) -> HorizonModel:
    """Return the model of a given horizon, or of one for a first schedule (``Formulation.index``)."""
    problem = expand_time(stages_of(instance)[0].instance)
    horizon = options.horizon or finish(problem, first_schedule(problem))
    index = HorizonModel(problem, horizon, min(horizon, epoch_bound(instance, problem)[0]), instance)
    require_buildable(index.columns, f"{horizon:,} ticks", COLUMN_S, MAX_COLUMNS)
    return index


def schedule_of(model: Any, index: HorizonModel) -> Schedule:
    """Return the schedule of a solved model (``Formulation.extract``)."""
    backwards = index.instance.demands[0].collective in BACKWARDS
    return _schedule(index.instance, [(index.problem, chosen_starts(model, index.problem), backwards)])


def seconds(index: HorizonModel, objective: float) -> float:
    """Convert the model's ticks to seconds (``Formulation.value``)."""
    return objective * float(tick_s(index.instance))


def _schedule(instance: Instance, parts: Sequence[tuple[TimeExpandedNetwork, list[Start], bool]]) -> Schedule:
    """Concatenate the parts; those of sums run backwards on the reversed network."""
    rows: list[tuple[int, int, int, int, int, bool, tuple[int, ...]]] = []
    begin = 0
    for problem, starts, backwards in parts:
        last = finish(problem, starts)
        for t, c, e in starts:
            edge, ticks = problem.edges[e], problem.ticks[e]
            if backwards:
                end = begin + last - t
                rows.append((end - ticks, end, c, edge.target, edge.source, True, edge.links[::-1]))
            else:
                rows.append((begin + t, begin + t + ticks, c, edge.source, edge.target, False, edge.links))
        begin += last
    start, end_at, chunk, source, target, reduce, paths = zip(*sorted(rows), strict=True)
    tick, kind, chunks = tick_s(instance), instance.demands[0].collective, chunks_of(to_copies(instance))
    if kind in BACKWARDS:  # sums end where copies begin, those of an all-reduce at all ranks
        receivers = chunks.needed_by if kind is Collective.ALL_REDUCE else chunks.held_by
        chunks = replace(chunks, held_by=chunks.needed_by, needed_by=receivers, reduced=np.ones_like(chunks.reduced))
    start_s, end_s = (np.array([float(t * tick) for t in column], dtype=np.float64) for column in (start, end_at))
    sends = sends_from_lists(chunk, source, target, reduce, paths)
    return Schedule(instance.sha256, chunks, sends, start_s, end_s)


def labels(index: HorizonModel) -> Mapping[str, Callable[[Any], str]]:
    """Name nodes, edges and the chunks' sources (``Formulation.labels``)."""
    return edge_labels(index.instance.topology, index.problem.edges, index.problem.chunks)
