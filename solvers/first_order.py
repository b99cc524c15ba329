"""HiGHS's first-order method PDLP as a solver, for linear programs too large for the simplex method.

A first-order method returns neither an exact point nor an exact bound, and its status only states its target. So
none of them is trusted: see ``first_order_session``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ..core.budget import Budget
from ..core.solver import Capability, SolverOptions
from .base import COEFFICIENTS, COSTS, LOG_FILE, SEED, THREADS, TIME_LIMIT, Adapter, Session


class HighsPdlp(Adapter):
    """HiGHS's PDLP, with HiGHS's own options ``pdlp_*`` and ``solver`` (``pdlp`` or ``hipdlp``).

    ``rel_gap`` is the proved gap up to which a solution counts as optimal. Dual values are the multipliers that
    prove the bound.
    """

    name = "highs-pdlp"
    title = "HiGHS PDLP"
    package = "highspy"
    requirement = "highspy"
    capabilities = Capability.LP | Capability.DUALS | Capability.RESOLVE
    elsewhere: ClassVar[Mapping[str, str]] = {
        "time_limit": TIME_LIMIT,
        "log_file": LOG_FILE,
        "output_flag": LOG_FILE,
        "log_to_console": LOG_FILE,
        "threads": THREADS,
        "random_seed": SEED,
        "small_matrix_value": COEFFICIENTS,
        "user_objective_scale": COSTS,
        "user_bound_scale": COSTS,
        "pdlp_optimality_tolerance": "rel_gap",
        "primal_feasibility_tolerance": "feasibility_tolerance",
    }

    def open(self, budget: Budget, options: SolverOptions) -> Session:
        """Start HiGHS and apply the options."""
        from .first_order_session import FirstOrderSession

        return FirstOrderSession(self, budget, options)


SOLVER = HighsPdlp()
