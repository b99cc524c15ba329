"""From an instance to an outcome: a first schedule, then models of fewer and fewer ticks, and the answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from ...core.bounds import Certificate, SolverBound
from ...core.budget import Budget
from ...core.collective import CollectiveKind
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.schedule import Chunks, Schedule, sends_from_lists
from ...core.solver import ModelSize, Solver, SolverOptions, SolverResult, Termination
from ...core.topology import Topology
from ..common.compose import transpose
from ..common.justify import justified
from ..common.schedule_bounds import best_bound
from ..common.step_sends import needed_sends
from ..common.whole_chunks import whole_chunks
from .bounds import epoch_bound
from .formulation import build
from .greedy import Start, finish, first_schedule
from .options import BACKWARDS, Options, copied
from .problem import Expanded, expanded

#: Columns that are built.
MAX_COLUMNS = 1_000_000

#: Ticks of the longest schedule, so that times are exact as floats.
MAX_TICKS = 2**44


@dataclass
class Search:
    """Where the search for the fewest ticks is.

    Parameters
    ----------
    problem : Expanded
        What is solved.
    solver, budget : Solver, Budget
        With what.
    low : int
        Ticks that are needed at least.
    best : list of Start
        The best schedule.
    high : int
        Ticks that it takes.
    reports : list of SolverResult
        Every solve.
    stopped : str
        Why there is no further solve, if there is none.
    """

    problem: Expanded
    solver: Solver
    budget: Budget
    low: int
    best: list[Start]
    high: int
    reports: list[SolverResult] = field(default_factory=list)
    stopped: str = ""

    def within(self, horizon: int) -> None:
        """Solve the model of a horizon, and sharpen what is known."""
        columns = sum(span.stop - span.start for span in self.problem.spans(horizon).values())
        if columns > MAX_COLUMNS:
            self.stopped = f"a model of {horizon} ticks has {columns:,} starts; at most {MAX_COLUMNS:,} are built"
            return
        self.budget.progress(f"{horizon} ticks: between {self.low} and {self.high}")
        with self.budget.clock.phase("build"):
            model = build(self.problem, horizon, self.low)
        result = self.solver.solve(model, self.budget, SolverOptions())
        self.reports.append(result)
        if result.has_solution:
            chosen = [(t, c, e) for c, e, t in model.starts if model.x[c, e, t].value > 0.5]
            self.best = useful(self.problem, chosen)
            self.high = finish(self.problem, self.best)
            if result.termination is Termination.OPTIMAL:
                self.low = max(self.low, self.high)
        elif result.termination is Termination.INFEASIBLE:
            self.low = max(self.low, horizon + 1)
        else:
            self.stopped = f"the solver stopped at {horizon} ticks: {result.termination.value}"


def useful(problem: Expanded, starts: list[Start]) -> list[Start]:
    """Leave out starts that bring a chunk to no target."""
    found: list[Start] = []
    edge_at = {edge.links: e for e, edge in enumerate(problem.edges)}
    for c, chunk in enumerate(problem.chunks):
        mine = [(t, problem.edges[e]) for t, other, e in starts if other == c]
        found += [(t, c, edge_at[edge.links]) for t, edge in needed_sends(chunk.source, chunk.targets, mine)]
    return sorted(found)


def search_for(problem: Expanded, low: int, solver: Solver, budget: Budget, horizon: int | None) -> Search:
    """Find the fewest ticks: the bound is tried first, since it is often met, then what halves the gap.

    With a horizon, one model of at most so many ticks is solved.
    """
    with budget.clock.phase("greedy"):
        best = first_schedule(problem)
    search = Search(problem, solver, budget, low, best, finish(problem, best))
    if search.high > MAX_TICKS:
        raise Unsupported(
            f"{search.high:,} ticks, of which no more than {MAX_TICKS:,} are told apart: links differ too much"
        )
    if horizon is not None:
        if search.high > search.low:
            search.within(max(search.low, min(horizon, search.high)))
        return search
    trial = search.low
    while search.low < search.high and not search.stopped:
        if budget.exhausted:
            search.stopped = "the budget ended"
            break
        search.within(trial)
        trial = (search.low + search.high - 1) // 2
    return search


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Synthesize a schedule of a posed instance."""
    topology = instance.network
    if not isinstance(topology, Topology) or instance.timing is None:
        raise Unsupported("expected an explicit network and a timing")
    kind = instance.demands[0].collective
    there = copied(instance)
    turned = there.with_changes(network=transpose(topology))
    parts = [(there, False)] if kind not in BACKWARDS else [(turned, True)]
    if kind is CollectiveKind.ALL_REDUCE:
        parts.append((there, False))
    tick = instance.timing.epoch_s
    exact = not topology.switches
    simple, certificate = epoch_bound(instance, expanded(parts[-1][0])) if exact else (0, None)
    searches: list[Search] = []
    for part, _ in parts:
        problem = expanded(part)
        least = 1 if not exact else simple if len(parts) == 1 else epoch_bound(part, problem)[0]
        searches.append(search_for(problem, least, solver, budget, options.horizon))
    schedule = _schedule(instance, [(s, backwards) for s, (_, backwards) in zip(searches, parts, strict=True)], tick)
    if len(parts) > 1:
        schedule = justified(instance, schedule)  # sums that are ready come down while others still go up
    ticks = round(float(schedule.end_s.max()) / float(tick))
    low = max(simple, searches[0].low) if exact and len(parts) == 1 else simple
    reports = tuple(report for search in searches for report in search.reports)
    seconds: Fraction = low * tick
    proof: Certificate | None = certificate
    if not exact:
        seconds, proof = best_bound(instance)
    elif low > simple and reports:
        proof = SolverBound(reports[-1].solver, reports[-1].version)
    proved = seconds >= ticks * tick
    why = "; ".join(dict.fromkeys(search.stopped for search in searches if search.stopped))
    return Outcome(
        Status.OPTIMAL if proved else Status.FEASIBLE,
        schedule,
        objective=float(ticks * tick),
        bound=float(seconds),
        certificate=proof,
        message=why,
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


def _schedule(instance: Instance, parts: list[tuple[Search, bool]], tick: Fraction) -> Schedule:
    """Put the parts one after the other; those of sums run backwards in time on the network turned around."""
    rows: list[tuple[tuple[int, int], int, int, int, bool, tuple[int, ...]]] = []
    begin = 0
    for search, backwards in parts:
        for t, c, e in search.best:
            edge, ticks = search.problem.edges[e], search.problem.ticks[e]
            if backwards:
                start = begin + search.high - t - ticks
                rows.append(((start, start + ticks), c, edge.target, edge.source, True, edge.links[::-1]))
            else:
                rows.append(((begin + t, begin + t + ticks), c, edge.source, edge.target, False, edge.links))
        begin += search.high
    rows.sort()
    times, chunk, source, target, reduce, paths = zip(*rows, strict=True)
    start_s, end_s = np.array([[float(t * tick) for t in span] for span in times], dtype=np.float64).T.copy()
    sends = sends_from_lists(chunk, source, target, reduce, paths)
    return Schedule(instance.sha256, _chunks(instance), sends, start_s, end_s)


def _chunks(instance: Instance) -> Chunks:
    """Give the chunks with the ends that the collective asks for."""
    _, chunks = whole_chunks(copied(instance))
    kind = instance.demands[0].collective
    if kind not in BACKWARDS:
        return chunks
    held = chunks.needed_by
    needed = chunks.needed_by if kind is CollectiveKind.ALL_REDUCE else chunks.held_by
    return replace(chunks, held_by=held, needed_by=needed, reduced=np.ones_like(chunks.reduced))
