"""Solvers that Pyomo drives, as ``pyomo:NAME``: CBC, GLPK, CPLEX, Xpress, MOSEK, COPT and others."""

from __future__ import annotations

import importlib.util
import re
import shutil
import threading
from functools import cache
from importlib import metadata

from ..core.budget import Budget
from ..core.errors import InputError
from ..core.solver import Availability, Capability, SolverOptions
from .base import Adapter, Session
from .pyomo_options import KNOWN, known_solver

#: How such a solver is named on the command line.
PREFIX = "pyomo:"

#: What is offered of every one; Pyomo does not say what else a solver can do.
CAPABILITIES = Capability.LP | Capability.MIP | Capability.INTERRUPT | Capability.RESOLVE | Capability.POOL

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")


class PyomoSolver(Adapter):
    """Adapter to a solver of Pyomo's ``SolverFactory``, with options by the names that Pyomo passes on.

    Linear models, with integers or without. A compiled model is solved from scratch each time, without dual values.

    Parameters
    ----------
    factory_name : str
        Name in Pyomo's ``SolverFactory``, such as ``cbc``.
    """

    package = "pyomo"
    requirement = "cwb"
    capabilities = CAPABILITIES

    def __init__(self, factory_name: str) -> None:
        if not _NAME.fullmatch(factory_name):
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

    def open(self, budget: Budget, options: SolverOptions) -> Session:
        """Prepare a run of the solver."""
        from .pyomo_session import PyomoSession

        return PyomoSession(self, self.factory_name, budget, options)


def solvers_on_path() -> tuple[str, ...]:
    """Return the names of known solvers whose programs are on the path; imports and starts nothing."""
    return tuple(PREFIX + name for name, known in KNOWN.items() if shutil.which(known.program))


#: Pyomo's interception of its log, which is on while a solver is asked for, is not for several threads.
_asking = threading.Lock()


@cache
def _find_solver(name: str) -> Availability:
    """Ask Pyomo for a solver."""
    import pyomo.environ as pyo
    from pyomo.common.log import LoggingIntercept

    title = f"{PREFIX}{name}"
    if name not in pyo.SolverFactory:
        return Availability(False, f"{title}: Pyomo {metadata.version('pyomo')} knows no solver {name!r}")
    try:
        with LoggingIntercept(module="pyomo"):
            solver = pyo.SolverFactory(name)
            if not solver.available(exception_flag=False):
                return Availability(False, f"{title} is not installed: Pyomo does not find it")
            version = ".".join(map(str, solver.version() or ())) or "unknown"
    except Exception as error:
        return Availability(False, f"{title} cannot be used: {' '.join(str(error).split())}")
    return Availability(True, f"{name} {version}, driven by Pyomo {metadata.version('pyomo')}", version)
