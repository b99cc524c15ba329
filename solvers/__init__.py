"""Solvers: thin adapters from Pyomo models to HiGHS (the default), Gurobi and SCIP.

An adapter imports its library when it solves. All adapters pass the same tests, ``tests/solvers/exam.py``.

======================  ======================================================================
``adapters``            names, capabilities and options of all solvers
``base``                common part of the adapters, from a Pyomo model to a result
``matrix``              a Pyomo model as arrays: one compilation serves every adapter
``support``             rejects a model that a solver cannot solve, before the transfer
``session``             one model inside one solver, its run under guard, and the result
``guard``               enforces time limits and interrupts even if a solver does not
``options``             options by the solvers' own names: types, ranges, error messages
``compiled_model``      linear models that are changed and solved again; pools of solutions
``highs_session``       HiGHS, and re-solves of a compiled linear model
``first_order_session`` HiGHS's PDLP, a first-order method whose results are all checked
``dual_bounds``         an exact bound of a linear program from any multipliers
``conflict``            rows and bounds that exclude one another
``pyomo_session``       ``pyomo:NAME``: every solver that Pyomo can drive
======================  ======================================================================
"""

from __future__ import annotations

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
        known = ", ".join((*names(), "pyomo:NAME"))
        raise InputError(f"unknown solver {name!r}, expected one of: {known}", source="--solver")
    return ADAPTERS[name]
