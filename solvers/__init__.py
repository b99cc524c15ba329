"""Solvers: thin adapters from Pyomo models to HiGHS (the default), Gurobi and SCIP.

The register below names every adapter; one is imported when it is asked for, and its library when it solves.
All adapters pass the same exam, ``tests/solvers/exam.py``.

===================  =====================================================================
``matrix``           a Pyomo model as arrays: one compilation serves every adapter
``support``          rejects a model that a solver cannot solve, before anything is passed on
``convexity``        whether a quadratic objective is convex
``guard``            keeps time limits and interruptions even when a solver does not
``base``             what the adapters share: the way from a Pyomo model to a result
``running``          one solve under guard, and its result
``options``          options by the solvers' own names: types, ranges, what is said of wrong ones
``pool``             the best solutions of a model, one after another
``model_file``       a compiled model as an MPS or LP file
``highs``            HiGHS, and re-solves of a compiled linear model
``first_order``      HiGHS's PDLP, a first-order method whose results are all checked
``dual_bounds``      an exact bound of a linear program from any multipliers
``gurobi``, ``scip`` the optional ones
``pyomo_driven``     ``pyomo:NAME``: every solver that Pyomo can drive
``pyomo_known``      what is known of some of those
===================  =====================================================================
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
    """Names of all adapters, the default first."""
    return tuple(_REGISTER)


def driven() -> tuple[str, ...]:
    """Names ``pyomo:NAME`` of the solvers that Pyomo drives, cwb knows and this machine has."""
    from .pyomo_driven import on_this_machine

    return on_this_machine()


def get(name: str = DEFAULT) -> Adapter:
    """Adapter of a name; imports no solver library.

    Raises
    ------
    InputError
        If there is no such adapter; the message lists the ones that there are. Whether Pyomo knows the solver of
        ``installed`` says whether ``pyomo:NAME`` is available.
    """
    if name.startswith("pyomo:"):
        from .pyomo_driven import PyomoDriven

        return PyomoDriven(name.removeprefix("pyomo:"))
    if name not in _REGISTER:
        known = ", ".join((*names(), "pyomo:NAME"))
        raise InputError(f"unknown solver {name!r}, expected one of: {known}", source="--solver")
    module, attribute = _REGISTER[name].split(":")
    solver: Adapter = getattr(import_module(f".{module}", __name__), attribute)
    return solver
