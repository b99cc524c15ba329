"""Solvers: thin adapters from Pyomo models to HiGHS (the default), Gurobi and SCIP.

The register below names every adapter; one is imported when it is asked for, and its library when it solves.
All adapters pass the same exam, ``tests/solvers/exam.py``.

===================  =====================================================================
``matrix``           a Pyomo model as arrays: one compilation serves every adapter
``support``          refuses a model that a solver cannot solve, before anything is handed over
``convexity``        whether a quadratic objective is convex
``guard``            keeps time limits and interruptions even when a solver does not
``base``             what the adapters share: the way from a Pyomo model to a result
``highs``            HiGHS, and re-solves of a compiled linear model
``gurobi``, ``scip`` the optional ones
===================  =====================================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..core.errors import InputError

if TYPE_CHECKING:
    from ..core.solver import Solver

DEFAULT = "highs"

_REGISTER = {
    "highs": "highs:SOLVER",
    "gurobi": "gurobi:SOLVER",
    "scip": "scip:SOLVER",
}


def names() -> tuple[str, ...]:
    """Give the names of all adapters, the default first."""
    return tuple(_REGISTER)


def get(name: str = DEFAULT) -> Solver:
    """Give the adapter of a name; imports no solver library.

    Raises
    ------
    InputError
        If there is no such adapter; the message lists the ones that there are.
    """
    if name not in _REGISTER:
        raise InputError(f"unknown solver {name!r}, expected one of: {', '.join(names())}", source="--solver")
    module, attribute = _REGISTER[name].split(":")
    solver: Solver = getattr(import_module(f".{module}", __name__), attribute)
    return solver
