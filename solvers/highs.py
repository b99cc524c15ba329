"""HiGHS, the default solver: linear, mixed-integer and convex quadratic programs, re-solves.

This module is light; the work is in ``highs_session`` (one solve), ``highs_quadratic`` (certificates of quadratic
optima) and ``highs_compiled`` (re-solves after changes).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ..core.budget import Budget
from ..core.solver import Capability, SolverOptions
from .base import COEFFICIENTS, COSTS, DEFAULT_OPTIONS, LOG_FILE, SEED, THREADS, TIME_LIMIT, Adapter, Session

if TYPE_CHECKING:
    from .compiled_model import CompiledLinearModel


class Highs(Adapter):
    """Direct adapter to highspy, with HiGHS's own options by their names beside :class:`SolverOptions`."""

    name = "highs"
    title = "HiGHS"
    package = "highspy"
    requirement = "highspy"
    capabilities = (
        Capability.LP
        | Capability.MIP
        | Capability.CONVEX_QP
        | Capability.MIP_START
        | Capability.PROGRESS
        | Capability.INTERRUPT
        | Capability.DUALS
        | Capability.RESOLVE
        | Capability.POOL
    )
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
        "mip_rel_gap": "rel_gap",
        "mip_max_nodes": "node_limit",
        "mip_feasibility_tolerance": "feasibility_tolerance",
        "primal_feasibility_tolerance": "feasibility_tolerance",
    }

    def open(self, budget: Budget, options: SolverOptions) -> Session:
        """Start HiGHS and apply the options."""
        from .highs_session import HighsSession

        return HighsSession(self, budget, options)

    def compile(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> CompiledLinearModel:
        """Transfer a linear Pyomo model once, for changes and re-solves from the last basis."""
        from .highs_compiled import HighsCompiled

        self.require_installed()
        with budget.clock.phase("transfer") as lap:
            session, matrix = self.transfer(model, budget, options)
        return HighsCompiled(self, matrix, options, lap.seconds, session)


SOLVER = Highs()
