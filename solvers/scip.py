"""SCIP, a free solver that also supports nonconvex quadratic objectives and quadratic constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ..core.budget import Budget
from ..core.solver import Capability, SolverOptions
from .base import LOG_FILE, SEED, TIME_LIMIT, Adapter, Session


class Scip(Adapter):
    """Direct adapter to pyscipopt, with SCIP's own parameters by their names, such as ``limits/solutions``."""

    name = "scip"
    title = "SCIP"
    package = "pyscipopt"
    requirement = "cwb[scip]"
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
    numbers_threads = True
    elsewhere: ClassVar[Mapping[str, str]] = {
        "limits/time": TIME_LIMIT,
        "display/verblevel": LOG_FILE,
        "randomization/randomseedshift": SEED,
        "limits/gap": "rel_gap",
        "limits/totalnodes": "node_limit",
        "numerics/feastol": "feasibility_tolerance",
        "misc/catchctrlc": "the budget",
        "timing/clocktype": "the budget",
    }

    def open(self, budget: Budget, options: SolverOptions) -> Session:
        """Start SCIP and apply the options."""
        from .scip_session import ScipSession

        return ScipSession(self, budget, options)


SOLVER = Scip()
