"""Gurobi, a commercial solver; its pip licence is free and takes small models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ..core.budget import Budget
from ..core.errors import SolverUnavailable
from ..core.solver import Availability, Capability, SolverOptions
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
        """What sets a parameter; Gurobi does not tell capital letters from small ones."""
        return super().means_of(name.lower())

    def open(self, budget: Budget, options: SolverOptions) -> Session:
        """Start Gurobi with its licence and apply the options."""
        from .gurobi_session import GurobiSession

        return GurobiSession(budget, options)

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
