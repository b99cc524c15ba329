"""Gurobi, a commercial solver; its pip licence is free and takes small models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ..core.budget import Budget
from ..core.errors import SolverUnavailable
from ..core.solver import Availability, Capability, SolverOptions, SolverResult, Termination
from .base import LOG_FILE, SEED, THREADS, TIME_LIMIT, Adapter, Session


class Gurobi(Adapter):
    """Direct adapter to gurobipy. Gurobi's own parameters are taken by their names, such as ``MIPFocus``."""

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
        """What sets a parameter; Gurobi does not distinguish capital letters from small ones."""
        return super().means_of(name.lower())

    def open(self, budget: Budget, options: SolverOptions) -> Session:
        """Start Gurobi with its licence and apply the options."""
        from .gurobi_session import GurobiSession

        return GurobiSession(budget, options)

    def pool(self, model: Any, budget: Budget, options: SolverOptions, count: int) -> Iterator[SolverResult]:
        """Solutions, the best first: so many by one search, where all integer variables are binary, and then one by one."""
        from .matrix import compile_matrix
        from .pool import binaries, by_exclusion

        self.require_installed()
        matrix = compile_matrix(model)
        if not (binaries(matrix) == matrix.integer).all():
            yield from by_exclusion(self, model, budget, options)
            return
        wanted = {"PoolSearchMode": 2, "PoolSolutions": count}
        known = []
        for result in self.solutions(model, budget, replace(options, extra={**options.extra, **wanted})):
            known.append(matrix.start())
            yield result
            if result.termination is not Termination.OPTIMAL:
                return
        if len(known) == count:
            yield from by_exclusion(self, model, budget, options, known)

    def licensed(self) -> Availability:
        """Try the licence by starting Gurobi; silent."""
        found = self.installed()
        if not found.ok:
            return found
        from .gurobi_session import licence

        try:
            return Availability(True, licence(), found.version)
        except SolverUnavailable as error:
            return Availability(False, str(error), found.version)


SOLVER = Gurobi()
