"""Gurobi, a commercial solver whose free pip licence covers small models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ..core.budget import Budget
from ..core.errors import SolverUnavailable
from ..core.solver import Availability, Capability, SolverOptions, SolverResult, Termination
from .base import LOG_FILE, SEED, THREADS, TIME_LIMIT, Adapter, Session


class Gurobi(Adapter):
    """Direct adapter to gurobipy, with Gurobi's own parameters by their names, such as ``MIPFocus``."""

    name = "gurobi"
    title = "Gurobi"
    package = "gurobipy"
    requirement = "cwb[gurobi]"
    capabilities = (
        Capability.LP
        | Capability.MIP
        | Capability.CONVEX_QP
        | Capability.NONCONVEX_QP
        | Capability.QUADRATIC_CONSTRAINTS
        | Capability.MIP_START
        | Capability.PROGRESS
        | Capability.INTERRUPT
        | Capability.DUALS
        | Capability.RESOLVE
        | Capability.POOL
    )
    elsewhere: ClassVar[Mapping[str, str]] = {
        "timelimit": TIME_LIMIT,
        "threads": THREADS,
        "seed": SEED,
        "outputflag": LOG_FILE,
        "logtoconsole": LOG_FILE,
        "logfile": LOG_FILE,
        "mipgap": "rel_gap",
        "nodelimit": "node_limit",
        "feasibilitytol": "feasibility_tolerance",
    }

    def means_of(self, name: str) -> str:
        """Return the means that sets a parameter; Gurobi ignores the case of its name."""
        return super().means_of(name.lower())

    def open(self, budget: Budget, options: SolverOptions) -> Session:
        """Start Gurobi with its licence and apply the options."""
        from .gurobi_session import GurobiSession

        return GurobiSession(self, budget, options)

    def pool(self, model: Any, budget: Budget, options: SolverOptions, count: int) -> Iterator[SolverResult]:
        """Yield solutions, best first: the first ``count`` by one search if all integers are binary."""
        from .matrix import compile_matrix
        from .pool import binaries, solve_by_exclusion

        self.require_installed()
        matrix = compile_matrix(model)
        if not (binaries(matrix) == matrix.integer).all():
            yield from solve_by_exclusion(self.compile(model, budget, options), budget)
            return
        wanted = {"PoolSearchMode": 2, "PoolSolutions": count}
        known = []
        for result in self.solutions(model, budget, replace(options, extra={**options.extra, **wanted})):
            known.append(matrix.start())
            yield result
            if result.termination is not Termination.OPTIMAL:
                return
        if len(known) == count:
            yield from solve_by_exclusion(self.compile(model, budget, options), budget, known)

    def licence(self) -> Availability:
        """Check the licence by starting Gurobi silently."""
        found = self.installation()
        if not found.ok:
            return found
        from .gurobi_session import licence

        try:
            return Availability(True, licence(), found.version)
        except SolverUnavailable as error:
            return Availability(False, str(error), found.version)


SOLVER = Gurobi()
