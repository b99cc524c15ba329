"""The stage for small problems: the model of a fixed number of epochs, between bound and incumbent."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....core.budget import Budget
from ....core.instance import Instance
from ....core.solver import Solver, SolverOptions, SolverResult, Termination
from ..answer import EpochSend, finish
from ..epochs import EpochProblem
from ..layout import Rules, layout
from ..milp import extracted
from ..milp_formulation import build

#: Nodes of the solver's search in one model.
NODE_LIMIT = 300


@dataclass(eq=False)
class Windowed:
    """Bisection by feasibility models.

    Parameters
    ----------
    instance, problem : Instance, EpochProblem
        What is solved.
    solver, budget : Solver, Budget
        With what.
    low, high : int
        Epochs that are needed at least, and that the best schedule takes.
    sends : list of EpochSend
        The best schedule.
    """

    instance: Instance
    problem: EpochProblem
    solver: Solver
    budget: Budget
    low: int
    high: int
    sends: list[EpochSend]
    reports: list[SolverResult] = field(default_factory=list)
    raised: SolverResult | None = None

    def run(self, columns: int) -> None:
        """Try the bound first, since it is often met, then the middle; a solve without an answer ends it.

        A model with more than so many sends is not built.
        """
        epochs = self.low
        while self.low < self.high and not self.budget.exhausted and self._within(epochs, columns):
            epochs = (self.low + self.high - 1) // 2

    def _within(self, epochs: int, columns: int) -> bool:
        with self.budget.clock.phase("build"):
            plan = layout(self.problem, epochs, Rules())
            if sum(j - i + 1 for spans in plan.spans for i, j in spans.values()) > columns:
                return False
            model = build(plan, "feasible")
        result = self.solver.solve(model, self.budget, SolverOptions(node_limit=NODE_LIMIT))
        self.reports.append(result)
        if result.has_solution:
            self.sends = extracted(plan, model)
            self.high = finish(self.problem, self.sends)
        elif result.termination is Termination.INFEASIBLE:
            self.low, self.raised = epochs + 1, result
        else:
            return False
        return True
