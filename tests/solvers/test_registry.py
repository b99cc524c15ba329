"""The register of adapters: complete, lazy, and clear about unknown names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from cwb import solvers
from cwb.core.errors import InputError
from cwb.core.solver import Capability, ResolvingSolver

_SILENT = """
import sys
from cwb import solvers
for name in solvers.names():
    solver = solvers.get(name)
    solver.installation(), solver.capabilities, solver.name
solvers.get("pyomo:cbc").capabilities, solvers.pyomo_solver_names()
heavy = {"pyomo", "highspy", "gurobipy", "pyscipopt", "scipy"} & set(sys.modules)
print(",".join(sorted(heavy)))
"""


def test_listing_imports_no_library() -> None:
    """Listing the solvers and asking which are installed imports neither Pyomo nor a solver library."""
    out = subprocess.run([sys.executable, "-c", _SILENT], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ""


def test_default_is_first() -> None:
    """HiGHS is the default and the first name."""
    assert solvers.DEFAULT == solvers.names()[0] == "highs"
    assert solvers.get().name == "highs"


def test_unknown_name() -> None:
    """An unknown solver is an input error that lists the known ones."""
    with pytest.raises(
        InputError, match="unknown solver 'cplex', expected one of: highs, highs-pdlp, gurobi, scip, pyomo:NAME"
    ):
        solvers.get("cplex")


@pytest.mark.parametrize("name", solvers.names())
def test_adapter_says_who_it_is(name: str) -> None:
    """An adapter has the name it is registered under, a version, and re-solves exactly when it says so."""
    solver = solvers.get(name)
    assert solver.name == name
    found = solver.installation()
    assert not found.ok or found.version
    assert isinstance(solver, ResolvingSolver) == (Capability.RESOLVE in solver.capabilities)


@pytest.mark.parametrize("name", solvers.names())
def test_licence_is_tried_silently(
    name: str, capfd: pytest.CaptureFixture[str], require_solver: Callable[[str], Any]
) -> None:
    """Trying a licence prints nothing."""
    solver = require_solver(name)
    assert solver.licence().message
    assert capfd.readouterr().out == ""
