"""A solver that notes whether it is called: the record of an answer names the solver only where one ran."""

from __future__ import annotations

from typing import Any

from ..core.budget import Budget
from ..core.solver import Availability, Capability, CompiledModel, ResolvingSolver, Solver, SolverOptions, SolverResult


class Noting:
    """Passes everything on to a solver.

    Parameters
    ----------
    solver : Solver
        The solver.

    Attributes
    ----------
    called : bool
        Whether it was handed a model.
    """

    def __init__(self, solver: Solver) -> None:
        self.solver, self.called = solver, False

    @property
    def name(self) -> str:
        """Name on the command line."""
        return self.solver.name

    @property
    def capabilities(self) -> Capability:
        """Everything the solver can do."""
        return self.solver.capabilities

    def installed(self) -> Availability:
        """Whether the solver's library can be imported."""
        return self.solver.installed()

    def licensed(self) -> Availability:
        """Whether it may be used."""
        return self.solver.licensed()

    def solve(self, model: Any, budget: Budget, options: SolverOptions | None = None) -> SolverResult:
        """Solve a Pyomo model."""
        self.called = True
        return self.solver.solve(model, budget, SolverOptions() if options is None else options)


class NotingResolving(Noting):
    """The same for a solver that keeps a model between solves."""

    solver: ResolvingSolver

    def compile(self, model: Any, budget: Budget, options: SolverOptions | None = None) -> CompiledModel:
        """Hand a linear Pyomo model over once."""
        self.called = True
        return self.solver.compile(model, budget, SolverOptions() if options is None else options)


def noting(solver: Solver) -> Noting:
    """A solver that records whether it is called, and offers whatever this one offers."""
    return NotingResolving(solver) if isinstance(solver, ResolvingSolver) else Noting(solver)
