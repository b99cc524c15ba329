"""The all_to_all branch of ``teccl``: cut bounds, then the linear program (section 4.1) on ever finer grids.

Also a method of its own, ``teccl-all-to-all``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any, Literal

from ...algorithms.epochs.problem import FAR
from ...core.answers import BoundOnly
from ...core.bounds import Certificate, EpochCut, EpochDistance, EpochPrices, SolverBound
from ...core.budget import Budget, require_buildable
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Schedule
from ...core.solver import Capability, ModelSize, ResolvingSolver, Solver, SolverOptions, SolverResult, Termination
from .all_to_all_extract import (
    EpochFlows,
    PartWays,
    exact_flows,
    greedy_start,
    grid_start,
    pieces,
    ways_of,
    ways_schedule,
)
from .all_to_all_problem import BlockGrid, BlockProgram, Exchange, ReducedFlows, Side, coarse, points_for, reduce
from .bounds import best_cut, longest_refuted, prices_of
from .formulations.all_to_all import build, shortest
from .model_search import WHOLLY, epochs_of_model, needed_seconds
from .options import AllToAllOptions, BlockOptions, SearchOptions
from .problem import EpochProblem, epoch_problem

MAX_PIECES = 2_000_000  #: A schedule with more sends than about this is not written out unless it is asked for.
FIRST_BLOCKS = 24  #: Blocks of the first grid.
MANY_COLUMNS = 10_000  #: Columns of a first program before which a greedy schedule is made, as it may take long.
CLOSE = 1e-7  #: Delivered parts that differ by less are the same to a solver.

#: What proves a lower bound: cuts, prices checked with whole numbers, or nothing but the solver's word.
Proof = Literal["cut", "prices", "solver"]


def exchange_of(problem: EpochProblem, instance: Instance) -> Exchange:
    """Return the all-to-all of a fluid problem; the unit is one rank's data for another."""
    if not problem.timing.fluid or problem.timing.changes:
        raise Unsupported("the linear program needs chunks that may be split, and links that do not vary")
    if any(limit for limit in problem.holds):
        raise Unsupported("the linear program for all_to_all does not support switches with limited storage")
    demand = instance.demands[0]
    nodes = tuple(sorted(problem.topology.rank_nodes[rank] for rank in demand.group(instance.npus)))
    plenty = Fraction(2 * len(nodes) * (len(nodes) - 1))  # twice all that is moved: such a link is never full
    tails, heads, delay = (tuple(column.tolist()) for column in problem.columns[:3])
    capacity = tuple(min(plenty, link.rate / demand.chunks) for link in problem.links)
    return Exchange(tuple(limit is None for limit in problem.holds), nodes, tails, heads, delay, capacity)


def run(instance: Instance, solver: Solver, budget: Budget, options: AllToAllOptions | SearchOptions) -> Outcome:
    """Minimize the epochs of an all-to-all, with flows checked exactly on the grid (``Method.run``)."""
    with budget.clock.phase("build"):
        problem = epoch_problem(instance)
    exchange = exchange_of(problem, instance)
    with budget.clock.phase("bound"):
        lower, region = best_cut(exchange)
        if region is not None:
            certificate: Certificate = EpochCut(tuple(n for n in range(len(exchange.stores)) if n not in region))
        else:  # the two nodes that are farthest apart
            far = exchange.network.distance[:, list(exchange.ranks)]
            source, target = divmod(int(far.argmax()), len(exchange.ranks))
            certificate = EpochDistance(exchange.ranks[source], exchange.ranks[target])
    if lower >= FAR:
        raise InputError("a rank cannot be reached", place="network.links")
    search = AllToAllSearch(exchange, solver, budget, options.max_columns, lower)
    search.run()
    if search.proof == "prices" and search.priced is not None:
        certificate = search.priced
    elif search.proof != "cut":
        certificate = SolverBound(search.reports[-1].solver, search.reports[-1].version)
    metrics: dict[str, object] = {
        "lower_bound_epochs": search.lower,
        "epoch_duration_s": float(problem.timing.epoch_s),
        "bound_proof": search.proof,
        "grid_blocks": search.blocks,
        "programs": len(search.reports),
    }
    if (reduced := search.reduced.get("restrict")) is not None:
        metrics |= {"flows": int(reduced.classes.flow.size), "flow_classes": reduced.classes.sizes[0]}
    outcome = Outcome(
        Status.LIMIT,
        bound=float(problem.seconds(search.lower)),
        certificate=certificate,
        message="no schedule was found within the limits",
        reports=tuple(search.reports),
        size=max((report.size for report in search.reports), key=lambda size: size.nonzeros, default=ModelSize()),
        iterations=len(search.reports),
        metrics=metrics,
    )
    if search.flows is None or search.upper is None:
        return outcome
    metrics["epochs"] = search.upper
    count, closed = pieces(search.flows), search.is_closed
    message = "" if closed else "the grid could not be refined further within the limits"
    answer: Schedule | BoundOnly = BoundOnly()
    if options.schedule == "always" or (options.schedule == "auto" and count <= MAX_PIECES):
        with budget.clock.phase("schedule"):
            answer = ways_schedule(instance, exchange, ways_of(search.flows))
    elif not closed or isinstance(certificate, SolverBound):
        return replace(outcome, message=f"flows of {search.upper} epochs are not written out")
    else:
        message = f"flows that reach the bound were checked, but not written out as a schedule of about {count:,} sends"
    status, objective = Status.OPTIMAL if closed else Status.FEASIBLE, float(problem.seconds(search.upper))
    return replace(outcome, status=status, answer=answer, objective=objective, message=message)


@dataclass
class AllToAllSearch:
    """Bounds and best flows in the search for the makespan."""

    exchange: Exchange
    solver: Solver
    budget: Budget
    max_columns: int
    lower: int
    proof: Proof = "cut"
    upper: int | None = None
    flows: EpochFlows | PartWays | None = None
    reports: list[SolverResult] = field(default_factory=list)
    reduced: dict[Side, ReducedFlows] = field(default_factory=dict)
    blocks: int = 0
    priced: EpochPrices | None = None

    @property
    def is_closed(self) -> bool:
        """True if the bounds have met."""
        return self.upper is not None and self.upper <= self.lower

    def run(self) -> None:
        """Refine the grid until the bounds meet, the program is too large or the budget ends."""
        blocks = FIRST_BLOCKS
        with self.budget.clock.phase("construct"):
            start = grid_start(self.exchange)
            if start is None and self._columns(blocks) > MANY_COLUMNS:
                start = greedy_start(self.exchange, lambda: self.budget.is_exhausted)
        self.flows, self.upper = start, None if start is None else start.epochs
        while not self.is_closed and not self.budget.is_exhausted and blocks <= 8 * max(self.lower, FIRST_BLOCKS):
            self.blocks = blocks
            self.budget.progress(f"grid of {blocks} blocks, makespan of {self.lower} epochs or more")
            if self._columns(blocks) > self.max_columns:
                return
            self._refine(blocks)
            if self.upper is not None and blocks >= self.upper:
                return
            blocks *= 2

    def _refine(self, blocks: int) -> None:
        """Test and raise the lower bound in turn, then seek a schedule above it, unless a finer grid will."""
        before = None
        while self.lower != before and not self.is_closed and not self.budget.is_exhausted:
            before = self.lower
            self._search_flows(before)
            if not self.is_closed:
                proved = _first_true(self._solve_relaxation, before, self.upper, self.budget)
                self.lower = max(self.lower, proved)
        if self.is_closed or self.budget.is_exhausted:
            return
        if blocks >= self.lower or self._columns(2 * blocks) > self.max_columns:
            grid = partial(coarse, self.exchange, blocks=blocks, side="restrict")
            _first_true(lambda k: self._solve(grid(k), corner=True)[0], self.lower, self.upper, self.budget)
        elif self.upper is None and blocks > FIRST_BLOCKS:
            self._search_flows(self.lower + self.lower // 8 + 1)

    def _columns(self, blocks: int) -> int:
        flows, balances, _ = self._reduced_flows("restrict").classes.sizes
        return (flows + balances) * min(blocks, self.lower)

    def _reduced_flows(self, side: Side) -> ReducedFlows:
        if side not in self.reduced:
            with self.budget.clock.phase("build"):
                self.reduced[side] = reduce(points_for(self.exchange, side))
        return self.reduced[side]

    def _solve_relaxation(self, epochs: int) -> float | None:
        """Return the delivered part in the relaxation; below 1 it proves a higher lower bound.

        None if the solver did not finish, or if prices have raised the bound as far as this relaxation can.
        """
        part, proof = self._solve(coarse(self.exchange, epochs, self.blocks, "relax"), corner=False)
        if part is None or part >= 1 or proof != "solver":
            return part if proof is None else None
        if epochs >= self.lower:
            self.lower, self.proof = epochs + 1, proof
        return part

    def _build(self, grid: BlockGrid) -> tuple[BlockProgram, Any]:
        program = BlockProgram(self.exchange, grid, self._reduced_flows(grid.side))
        with self.budget.clock.phase("build"):
            return program, build(program)

    def _search_flows(self, epochs: int) -> None:
        """Look for flows of the restriction that deliver everything with the least load of links."""
        self._take_exact_flows(*self._build(coarse(self.exchange, epochs, self.blocks, "restrict")), [])

    def _solve(self, grid: BlockGrid, *, corner: bool) -> tuple[float | None, Proof | None]:
        """Solve one program; return the part, and the proof if it is below 1.

        None if the solver did not finish. Where prices of an interior point prove nothing, those of a vertex are tried.
        """
        program, model = self._build(grid)
        compiled = None
        limits = SolverOptions()
        if self.solver.name == "highs":
            limits = SolverOptions(extra={"solver": "ipm", "run_crossover": "on" if corner else "off"})
        if (
            isinstance(self.solver, ResolvingSolver)
            and (Capability.RESOLVE | Capability.DUALS) in self.solver.capabilities
        ):
            compiled = self.solver.compile(model, self.budget, limits)
            result = compiled.solve(self.budget)
        else:
            result = self.solver.solve(model, self.budget, limits)
        self.reports.append(result)
        if result.termination is not Termination.OPTIMAL or result.objective is None:
            return None, None
        if result.objective >= 1 - CLOSE:
            if grid.side == "relax":
                return max(1.0, result.objective), None
            values = {key: v.value for key, v in model.F.items()}
            return 1.0 if self._take_exact_flows(program, model, [values]) else None, None
        proof: Proof = "solver"
        if compiled is not None and grid.side == "relax":
            members = {link: int((program.reduced.classes.link == link).sum()) for link in model.links}
            duals = {key: compiled.dual(model.capacity[key]) / members[key[0]] for key in model.capacity}
            prices = prices_of(grid, program.reduced, duals)
            if (refuted := longest_refuted(self.exchange, grid, prices)) is not None:
                proof = "prices"
                if refuted.epochs >= self.lower:
                    self.lower, self.proof = refuted.epochs + 1, proof
                    self.priced = EpochPrices(refuted.starts, tuple(tuple(row) for row in prices.tolist()))
            elif not corner:
                return self._solve(grid, corner=True)
        return result.objective, proof

    def _take_exact_flows(self, program: BlockProgram, model: Any, others: list[dict[tuple[int, int], Any]]) -> bool:
        """Make flows of a restriction exact: those with the least load, else the known ones."""
        shortest(model)
        result = self.solver.solve(model, self.budget)
        self.reports.append(result)
        candidates = [{key: v.value for key, v in model.F.items()}] if result.has_solution else []
        with self.budget.clock.phase("verify"):
            for values in candidates + others:
                if (flows := exact_flows(program, values)) is not None:
                    if self.upper is None or flows.grid.epochs < self.upper:
                        self.upper, self.flows = flows.grid.epochs, flows
                    return True
        return False


def _first_true(part: Callable[[int], float | None], low: int, high: int | None, budget: Budget) -> int:
    """Return the smallest number whose part is 1 or more; ``high`` is known to have it.

    The secant through the last two parts gives the next number to try; between a number whose part is less and one
    whose is not, it is the number just below the latter, and every other time the midpoint. An unknown part counts as
    1 in the result, so that nothing is claimed without proof.
    """
    proved = at = low
    below, above = (low - 1, 0.0), (high, 1.0) if high is not None else None
    tries, slope = 0, 0.0
    while (above is None or proved < above[0]) and not budget.is_exhausted:
        delivered = part(at)
        tries += 1
        if delivered is None:
            return proved
        if delivered >= 1:
            above = (at, delivered)
        else:
            slope = (delivered - below[1]) / (at - below[0])
            below, proved = (at, delivered), at + 1
        if above is None:
            step = (1 - delivered) / slope if slope > 0 else at
            at += max(1, min(ceil(step), at))
        else:
            rise = (above[1] - below[1]) / (above[0] - below[0])
            line = below[0] + ceil((1 - below[1]) / rise) - 1 if rise > 0 and tries % 2 else (proved + above[0]) // 2
            at = max(proved, min(line, above[0] - 1))
    return proved


@dataclass(frozen=True, eq=False)
class PosedProgram(BlockProgram):
    """Index sets of ``teccl/all-to-all``, on the grid of epochs of a posed instance."""

    problem: EpochProblem


def index(instance: Instance, options: BlockOptions) -> PosedProgram:
    """Index the given epochs, or those of the lower bound, in blocks (``Formulation.index``)."""
    problem = epoch_problem(instance)
    exchange = exchange_of(problem, instance)
    least = best_cut(exchange)[0]
    epochs = epochs_of_model(options.epochs, least, least)
    grid = coarse(exchange, epochs, options.blocks or epochs, options.side)
    reduced = reduce(points_for(exchange, options.side))
    flows, balances, _ = reduced.classes.sizes
    require_buildable((flows + balances) * grid.blocks, f"{grid.blocks} blocks of epochs")
    return PosedProgram(exchange, grid, reduced, problem)


def value(program: PosedProgram, part: float) -> float | None:
    """Return the least seconds by the delivered part; None if a restriction proves nothing (``Formulation.value``)."""
    grid, exchange = program.grid, program.exchange
    exact = grid.blocks == grid.epochs and all(exchange.stores)
    if grid.side == "restrict" and not exact and part < WHOLLY:
        return None
    return needed_seconds(program.problem, part, grid.epochs, best_cut(exchange)[0])


def extract(model: Any, program: PosedProgram) -> Schedule | None:
    """Read a restriction's schedule; None if its flows do not deliver all exactly (``Formulation.extract``)."""
    if program.grid.side == "relax" or model.part.value < WHOLLY:
        return None
    values = {key: variable.value for key, variable in model.F.items()}
    flows = exact_flows(program, values)
    return None if flows is None else ways_schedule(program.problem.instance, program.exchange, ways_of(flows))
