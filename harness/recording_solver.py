"""A wrapper that records whether a solver is called: records name only solvers that ran.

It adds the user's options by the solver's own names to those of the method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ..core.budget import Budget
from ..core.solver import CompiledModel, SolverOptions, SolverResult
from ..solvers.base import DEFAULT_OPTIONS, Adapter


class RecordingSolver:
    """Wrapper that forwards everything to a solver and records its use."""

    def __init__(self, solver: Adapter, own: Mapping[str, object] = MappingProxyType({})) -> None:
        self.solver, self.own, self.called = solver, own, False
        self.name, self.capabilities = solver.name, solver.capabilities
        self.installation, self.licence = solver.installation, solver.licence

    def solve(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> SolverResult:
        """Solve a Pyomo model."""
        self.called = True
        return self.solver.solve(model, budget, self.solver.with_own(options, self.own))

    def compile(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> CompiledModel:
        """Pass a linear Pyomo model to the solver once."""
        self.called = True
        return self.solver.compile(model, budget, self.solver.with_own(options, self.own))

    def pool(self, model: Any, budget: Budget, options: SolverOptions, count: int) -> Iterator[SolverResult]:
        """Yield the best solutions of a Pyomo model."""
        self.called = True
        return self.solver.pool(model, budget, self.solver.with_own(options, self.own), count)

    def check_options(self) -> None:
        """Reject options unknown to the solver, before anything runs."""
        if self.own:
            self.solver.check_options(self.own)
