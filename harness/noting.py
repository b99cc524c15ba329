"""A solver that notes whether it is called: the record of an answer names the solver only where one ran.

It adds the options that the user gives by the solver's own names to those of the method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ..core.budget import Budget
from ..core.solver import Availability, Capability, CompiledModel, SolverOptions, SolverResult
from ..solvers.base import DEFAULT_OPTIONS, Adapter


class Noting:
    """Passes everything on to a solver.

    Parameters
    ----------
    solver : Adapter
        The solver.
    own : mapping of str to object
        Options by the solver's own names, for every solve.

    Attributes
    ----------
    called : bool
        Whether it was handed a model.
    """

    def __init__(self, solver: Adapter, own: Mapping[str, object] = MappingProxyType({})) -> None:
        self.solver, self.own, self.called = solver, own, False

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

    def solve(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> SolverResult:
        """Solve a Pyomo model."""
        self.called = True
        return self.solver.solve(model, budget, self.solver.with_own(options, self.own))

    def compile(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> CompiledModel:
        """Hand a linear Pyomo model over once."""
        self.called = True
        return self.solver.compile(model, budget, self.solver.with_own(options, self.own))

    def pool(self, model: Any, budget: Budget, options: SolverOptions, count: int) -> Iterator[SolverResult]:
        """The best solutions of a Pyomo model."""
        self.called = True
        return self.solver.pool(model, budget, self.solver.with_own(options, self.own), count)

    def check_options(self) -> None:
        """Reject options that the solver does not take, before anything runs."""
        if self.own:
            self.solver.check_options(self.own)
