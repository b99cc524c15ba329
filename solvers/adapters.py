"""Adapters of HiGHS, Gurobi, SCIP, and of solvers that Pyomo drives: names, capabilities, reserved options.

No solver library is imported before something is solved; the work is in the sessions.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar

from ..core.budget import Budget
from ..core.errors import InputError, SolverUnavailable
from ..core.solver import Availability, Capability, SolverOptions, SolverResult, Termination
from .base import COEFFICIENTS, COSTS, DEFAULT_OPTIONS, LOG_FILE, SEED, THREADS, TIME_LIMIT, Adapter
from .options import KNOWN_SOLVERS, known_solver

if TYPE_CHECKING:
    from .compiled_model import CompiledLinearModel

_LINEAR = Capability.LP | Capability.MIP | Capability.MIP_START | Capability.DUALS | Capability.RESOLVE
_SEARCH = _LINEAR | Capability.CONVEX_QP | Capability.PROGRESS | Capability.INTERRUPT | Capability.POOL

_OF_HIGHS = {
    "time_limit": TIME_LIMIT,
    "log_file": LOG_FILE,
    "output_flag": LOG_FILE,
    "log_to_console": LOG_FILE,
    "threads": THREADS,
    "random_seed": SEED,
    "small_matrix_value": COEFFICIENTS,
    "user_objective_scale": COSTS,
    "user_bound_scale": COSTS,
    "primal_feasibility_tolerance": "feasibility_tolerance",
}


class Highs(Adapter):
    """Direct adapter to highspy, with HiGHS's own options by their names beside :class:`SolverOptions`."""

    name = "highs"
    title = "HiGHS"
    package = "highspy"
    requirement = "highspy"
    session = "highs_session:HighsSession"
    capabilities = _SEARCH
    elsewhere: ClassVar[Mapping[str, str]] = _OF_HIGHS | {
        "mip_rel_gap": "rel_gap",
        "mip_max_nodes": "node_limit",
        "mip_feasibility_tolerance": "feasibility_tolerance",
    }

    def compile(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> CompiledLinearModel:
        """Transfer a linear Pyomo model once, for changes and re-solves from the last basis."""
        from .highs_session import HighsCompiled

        self.require_installed()
        with budget.clock.phase("transfer") as lap:
            session, matrix = self.transfer(model, budget, options)
        return HighsCompiled(self, matrix, options, lap.seconds, session)


class HighsPdlp(Adapter):
    """HiGHS's PDLP, with HiGHS's own options ``pdlp_*`` and ``solver`` (``pdlp`` or ``hipdlp``).

    ``rel_gap`` is the proved gap up to which a solution counts as optimal. Dual values are the multipliers that
    prove the bound.
    """

    name = "highs-pdlp"
    title = "HiGHS PDLP"
    package = "highspy"
    requirement = "highspy"
    session = "first_order_session:FirstOrderSession"
    capabilities = Capability.LP | Capability.DUALS | Capability.RESOLVE
    elsewhere: ClassVar[Mapping[str, str]] = _OF_HIGHS | {"pdlp_optimality_tolerance": "rel_gap"}


class Gurobi(Adapter):
    """Direct adapter to gurobipy, with Gurobi's own parameters by their names, such as ``MIPFocus``."""

    name = "gurobi"
    title = "Gurobi"
    package = "gurobipy"
    requirement = "cwb[gurobi]"
    session = "gurobi_session:GurobiSession"
    option_word = "parameter"
    capabilities = _SEARCH | Capability.NONCONVEX_QP | Capability.QUADRATIC_CONSTRAINTS
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

    def pool(self, model: Any, budget: Budget, options: SolverOptions, count: int) -> Iterator[SolverResult]:
        """Yield solutions, best first: the first ``count`` by one search if all integers are binary."""
        from .compiled_model import binaries, solve_by_exclusion
        from .matrix import compile_matrix

        self.require_installed()
        matrix = compile_matrix(model)
        if not (binaries(matrix) == matrix.integer).all():
            yield from solve_by_exclusion(self.compile(model, budget, options), budget)
            return
        settings = {"PoolSearchMode": 2, "PoolSolutions": count}
        points = []
        for result in self.solutions(model, budget, replace(options, extra={**options.extra, **settings})):
            points.append(matrix.start())
            yield result
            if result.termination is not Termination.OPTIMAL:
                return
        if len(points) == count:
            yield from solve_by_exclusion(self.compile(model, budget, options), budget, points)

    def licence(self) -> Availability:
        """Check the licence by starting Gurobi silently."""
        installation = self.installation()
        if not installation.ok:
            return installation
        from .gurobi_session import licence

        try:
            return Availability(True, licence(), installation.version)
        except SolverUnavailable as error:
            return Availability(False, str(error), installation.version)


class Scip(Adapter):
    """Direct adapter to pyscipopt, with SCIP's own parameters by their names, such as ``limits/solutions``."""

    name = "scip"
    title = "SCIP"
    package = "pyscipopt"
    requirement = "cwb[scip]"
    session = "scip_session:ScipSession"
    option_word = "parameter"
    capabilities = _SEARCH | Capability.NONCONVEX_QP | Capability.QUADRATIC_CONSTRAINTS
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


PREFIX = "pyomo:"  #: How a solver that Pyomo drives is named on the command line.


class PyomoSolver(Adapter):
    """Adapter to a solver of Pyomo's ``SolverFactory``, with options by the names that Pyomo passes on.

    Linear models, with integers or without. A compiled model is solved from scratch each time, without dual values.
    """

    package, requirement = "pyomo", "cwb"
    session = "pyomo_session:PyomoSession"
    # Pyomo does not say what else a solver can do.
    capabilities = Capability.LP | Capability.MIP | Capability.INTERRUPT | Capability.RESOLVE | Capability.POOL

    def __init__(self, factory_name: str) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_]{1,64}", factory_name):
            raise InputError(f"{factory_name!r} is not a solver of Pyomo", source="--solver")
        self.factory_name = factory_name
        # Of each object, not of the class: there is a solver for each name.
        self.name = PREFIX + factory_name
        self.title = f"{factory_name} (by Pyomo)"
        self.elsewhere = known_solver(factory_name).reserved_options  # type: ignore[misc]

    def installation(self) -> Availability:
        """Check if Pyomo finds the solver; slow, as it imports Pyomo and runs a program for its version."""
        if importlib.util.find_spec("pyomo") is None:
            return Availability(False, f'{self.name} is not installed: pip install "pyomo"')
        with _asking:
            return _find_solver(self.factory_name)


def pyomo_solver_names() -> tuple[str, ...]:
    """Return names ``pyomo:NAME`` of known solvers whose programs are on the path; imports and starts nothing."""
    return tuple(PREFIX + name for name, entry in KNOWN_SOLVERS.items() if shutil.which(entry.program))


#: Commands that install solvers from packages of Debian.
_PACKAGES = {"cbc": "apt install coinor-cbc", "glpk": "apt install glpk-utils"}

#: Pyomo's interception of its log, which is on while a solver is asked for, is not for several threads.
_asking = threading.Lock()


@cache
def _find_solver(name: str) -> Availability:
    import pyomo.environ as pyo
    from pyomo.common.log import LoggingIntercept

    title = f"{PREFIX}{name}"
    if name not in pyo.SolverFactory:
        return Availability(False, f"{title}: Pyomo {metadata.version('pyomo')} knows no solver {name!r}")
    try:
        with LoggingIntercept(module="pyomo"):
            solver = pyo.SolverFactory(name)
            if not solver.available(exception_flag=False):
                means = _PACKAGES.get(name, "Pyomo does not find it")
                return Availability(False, f"{title} is not installed: {means}")
            version = ".".join(map(str, solver.version() or ())) or "unknown"
    except Exception as error:
        return Availability(False, f"{title} cannot be used: {' '.join(str(error).split())}")
    return Availability(True, f"{name} {version}, driven by Pyomo {metadata.version('pyomo')}", version)


#: By their names, the default first.
ADAPTERS: Mapping[str, Adapter] = {adapter.name: adapter for adapter in (Highs(), HighsPdlp(), Gurobi(), Scip())}
