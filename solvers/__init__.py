"""Solvers: thin adapters from Pyomo models to HiGHS (the default), Gurobi and SCIP.

The registry below names every adapter; an adapter is imported on request, and its library when it solves. All
adapters pass the same tests, ``tests/solvers/exam.py``.

===================  ========================================================================
``matrix``           a Pyomo model as arrays: one compilation serves every adapter
``support``          rejects a model that a solver cannot solve, before the transfer
``convexity``        convexity of a quadratic objective
``guard``            enforces time limits and interrupts even if a solver does not
``base``             common part of the adapters, from a Pyomo model to a result
``running``          one solve under guard, and its result
``options``          options by the solvers' own names: types, ranges, error messages
``pool``             the best solutions of a model, one after another
``model_file``       a compiled model as an MPS or LP file
``highs``            HiGHS, and re-solves of a compiled linear model
``first_order``      HiGHS's PDLP, a first-order method whose results are all checked
``dual_bounds``      an exact bound of a linear program from any multipliers
``gurobi``, ``scip`` the optional ones
``pyomo_driven``     ``pyomo:NAME``: every solver that Pyomo can drive
``pyomo_known``      known properties of some of those
===================  ========================================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..core.errors import InputError

if TYPE_CHECKING:
    from .base import Adapter

DEFAULT = "highs"

_REGISTER = {
    "highs": "highs:SOLVER",
    "highs-pdlp": "first_order:SOLVER",
    "gurobi": "gurobi:SOLVER",
    "scip": "scip:SOLVER",
}


def names() -> tuple[str, ...]:
    """Return the names of all adapters, the default first."""
    return tuple(_REGISTER)


def pyomo_solver_names() -> tuple[str, ...]:
    """Return names ``pyomo:NAME`` of solvers that Pyomo drives, cwb knows and this machine has."""
    from .pyomo_solvers import solvers_on_path

    return solvers_on_path()


def get(name: str = DEFAULT) -> Adapter:
    """Return the adapter with a name; imports no solver library.

    For ``pyomo:NAME`` only ``installation`` of the adapter checks if Pyomo knows the solver.
    """
    if name.startswith("pyomo:"):
        from .pyomo_solvers import PyomoSolver

        return PyomoSolver(name.removeprefix("pyomo:"))
    if name not in _REGISTER:
        known = ", ".join((*names(), "pyomo:NAME"))
        raise InputError(f"unknown solver {name!r}, expected one of: {known}", source="--solver")
    module, attribute = _REGISTER[name].split(":")
    solver: Adapter = getattr(import_module(f".{module}", __name__), attribute)
    return solver
