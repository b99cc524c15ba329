"""The search for the makespan of an all-to-all: bounds from both sides on ever finer grids until they meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ...core.bounds import EpochPrices
from ...core.budget import Budget
from ...core.solver import Capability, ModelSize, ResolvingSolver, Solver, SolverOptions, SolverResult, Termination
from .alltoall_exact import EpochFlows, exact_flows
from .alltoall_formulation import Reduced, build, reduce, shortest
from .alltoall_grid import Grid, Side, coarse, ways_for
from .alltoall_prices import by_epoch, prices_of, refutes
from .alltoall_problem import Exchange

#: Blocks of the first grid.
FIRST_BLOCKS = 24

#: Delivered parts that differ by less are the same to a solver.
CLOSE = 1e-7

_DUALS = Capability.RESOLVE | Capability.DUALS

#: What proves a lower bound: cuts, prices checked with whole numbers, or nothing but the solver's word.
Proof = Literal["cut", "prices", "solver"]


@dataclass
class Search:
    """What is known of the makespan.

    Parameters
    ----------
    exchange : Exchange
        The problem.
    solver, budget, max_columns
        Who solves, within which limits, and the largest program that is tried.
    lower : int
        No schedule takes fewer epochs.
    proof : str
        What proves it.
    upper : int or None
        A schedule that takes so many is known.
    flows : EpochFlows or None
        It.
    priced : EpochPrices or None
        What proves the bound, where prices do.
    """

    exchange: Exchange
    solver: Solver
    budget: Budget
    max_columns: int
    lower: int
    proof: Proof = "cut"
    upper: int | None = None
    flows: EpochFlows | None = None
    reports: list[SolverResult] = field(default_factory=list)
    size: ModelSize = field(default_factory=ModelSize)
    reduced: dict[Side, Reduced] = field(default_factory=dict)
    blocks: int = 0
    priced: EpochPrices | None = None

    @property
    def closed(self) -> bool:
        """Whether the bounds have met."""
        return self.upper is not None and self.upper <= self.lower

    def run(self) -> None:
        """Refine the grid until the bounds meet, the program is too large or the budget ends."""
        blocks = FIRST_BLOCKS
        while not self.closed and not self.budget.exhausted and blocks <= 8 * max(self.lower, FIRST_BLOCKS):
            self.blocks = blocks
            self.budget.progress(f"grid of {blocks} blocks, makespan of {self.lower} epochs or more")
            if self._columns(blocks) > self.max_columns:
                return
            self._refine(blocks)
            if self.upper is not None and blocks >= self.upper:
                return
            blocks *= 2

    def _refine(self, blocks: int) -> None:
        """Try the lower bound, raise it, and look for a schedule above it where no finer grid will do so better."""
        before = self.lower
        self._restricted(self.lower)
        if self.closed:
            return
        self.lower = _first_true(self._relaxed, self.lower, self.upper, self.budget)
        if self.lower > before:
            self._restricted(self.lower)
        if self.closed or self.budget.exhausted:
            return
        if blocks >= self.lower or self._columns(2 * blocks) > self.max_columns:
            _first_true(self._restricted, self.lower, self.upper, self.budget)
        elif self.upper is None:
            self._restricted(self.lower + self.lower // 8 + 1)

    def _columns(self, blocks: int) -> int:
        flows, balances, _ = self._reduced("restrict").classes.sizes
        return (flows + balances) * min(blocks, self.lower)

    def _reduced(self, side: Side) -> Reduced:
        if side not in self.reduced:
            with self.budget.clock.phase("build"):
                self.reduced[side] = reduce(ways_for(self.exchange, side))
        return self.reduced[side]

    def _relaxed(self, epochs: int) -> float | None:
        """Delivered part in the relaxation; less than 1 is a proof that raises the lower bound."""
        part, proof = self._solve(coarse(self.exchange, epochs, self.blocks, "relax"))
        if part is not None and part < 1 and proof is not None and epochs >= self.lower:
            self.lower = epochs + 1
            self.proof = proof
        return part

    def _restricted(self, epochs: int) -> float | None:
        """Delivered part in the restriction; 1 comes with flows that have been checked on the original grid. 0 is never returned."""
        grid = coarse(self.exchange, epochs, self.blocks, "restrict")
        part, _ = self._solve(grid)
        return part if part is None or part < 1 else 1.0

    def _solve(self, grid: Grid) -> tuple[float | None, Proof | None]:
        """Solve one program: the part, and what a part of less than 1 rests on. None if the solver did not get to the end."""
        reduced = self._reduced(grid.side)
        with self.budget.clock.phase("build"):
            model = build(self.exchange, grid, reduced)
        compiled = None
        if isinstance(self.solver, ResolvingSolver) and _DUALS in self.solver.capabilities:
            compiled = self.solver.compile(model, self.budget, self._options)
            result = compiled.solve(self.budget)
        else:
            result = self.solver.solve(model, self.budget, self._options)
        self._count(result)
        if result.termination is not Termination.OPTIMAL or result.objective is None:
            return None, None
        if result.objective >= 1 - CLOSE:
            return self._taken(model, grid, reduced) if grid.side == "restrict" else 1.0, None
        proof: Proof = "solver"
        if compiled is not None and grid.side == "relax":
            members = {link: int((reduced.classes.link == link).sum()) for link in model.links}
            duals = {key: compiled.dual(model.capacity[key]) / members[key[0]] for key in model.capacity}
            prices = prices_of(grid, reduced, duals)
            if refutes(self.exchange, by_epoch(grid, prices)):
                proof = "prices"
                if grid.epochs >= self.lower:
                    self.priced = EpochPrices(grid.starts, tuple(tuple(row) for row in prices.tolist()))
        return result.objective, proof

    def _taken(self, model: Any, grid: Grid, reduced: Reduced) -> float | None:
        """Make the flows of a restriction exact, if that works: those that load links least, else those that the solver had first."""
        first = {key: v.value for key, v in model.F.items()}
        shortest(model)
        result = self.solver.solve(model, self.budget, self._options)
        self._count(result)
        found = [first]
        if result.has_solution:
            found.insert(0, {key: v.value for key, v in model.F.items()})
        with self.budget.clock.phase("verify"):
            for values in found:
                if (flows := exact_flows(self.exchange, grid, reduced, values)) is not None:
                    if self.upper is None or grid.epochs < self.upper:
                        self.upper, self.flows = grid.epochs, flows
                    return 1.0
        return None

    @property
    def _options(self) -> SolverOptions:
        """A corner of the program is what flows are made exact by: interior point, then crossover."""
        return SolverOptions(extra={"solver": "ipm", "run_crossover": "on"} if self.solver.name == "highs" else {})

    def _count(self, result: SolverResult) -> None:
        self.reports.append(result)
        self.size = max(self.size, result.size, key=lambda size: size.nonzeros)


def _first_true(part: Callable[[int], float | None], low: int, high: int | None, budget: Budget) -> int:
    """Find the smallest number whose part is 1, upwards by secants from 0, then by halving; ``high`` is known to have it.

    A part that is not known counts as 1 for the result, so that nothing is claimed that was not shown.

    Returns
    -------
    int
        All numbers from ``low`` up to the one before have a part below 1.
    """
    proved = at = low
    while (high is None or at < high) and not budget.exhausted:
        found = part(at)
        if found is None:
            return proved
        if found >= 1:
            high = at
            break
        proved = at + 1
        at = max(at + 1, min(int(at / max(found, 0.1)), 2 * at))
    while high is not None and proved < high and not budget.exhausted:
        middle = (proved + high) // 2
        found = part(middle)
        if found is None:
            return proved
        proved, high = (proved, middle) if found >= 1 else (middle + 1, high)
    return proved
