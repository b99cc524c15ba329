"""Solvers: thin adapters from Pyomo models to HiGHS (the default), Gurobi and SCIP.

An adapter imports its library when it solves. All adapters pass the same tests, ``tests/solvers/exam.py``.
"""

from ..core.errors import InputError
from .adapters import ADAPTERS, PyomoSolver
from .adapters import pyomo_solver_names as pyomo_solver_names
from .base import Adapter

DEFAULT = "highs"


def names() -> tuple[str, ...]:
    """Return the names of all adapters, the default first."""
    return tuple(ADAPTERS)


def get(name: str = DEFAULT) -> Adapter:
    """Return the adapter with a name; imports no solver library.

    For ``pyomo:NAME`` only ``installation`` of the adapter checks if Pyomo knows the solver.
    """
    if name.startswith("pyomo:"):
        return PyomoSolver(name.removeprefix("pyomo:"))
    if name not in ADAPTERS:
        choices = ", ".join((*names(), "pyomo:NAME"))
        raise InputError(f"unknown solver {name!r}, expected one of: {choices}", source="--solver")
    return ADAPTERS[name]
