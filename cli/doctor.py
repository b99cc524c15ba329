"""``cwb doctor``: whether this installation can solve, and what is missing if not."""

from __future__ import annotations

from typing import Any

import click

from ..core.errors import CwbError, ExitStatus
from .streams import console, echo

#: The smallest value of the test model, found by hand.
_EXPECTED = 9.0


@click.command()
def doctor() -> int:
    """Check the installation: versions, and for every solver its licence and a small test model.

    Exits with 0 if the default solver works and with 6 if it does not.
    """
    import platform
    from importlib import metadata

    from rich.table import Table

    from .. import solvers
    from ..harness import registry

    versions = Table("program", "version", title="versions", title_justify="left")
    versions.add_row("cwb", metadata.version("cwb"))
    versions.add_row("Python", f"{platform.python_version()} on {platform.platform(terse=True)}")
    versions.add_row("Pyomo", metadata.version("pyomo"))
    table = Table("solver", "version", "licence", "test model", title="solvers", title_justify="left")
    working: set[str] = set()
    for name in (*registry.solver_names(), *solvers.driven()):
        version, licence, test = examine(name)
        if test == "solved":
            working.add(name)
        table.add_row(name + (" (default)" if name == solvers.DEFAULT else ""), version, licence, test)
    printed = console()
    printed.print(versions)
    printed.print(table)
    printed.print("Other solvers that Pyomo can drive are used as pyomo:NAME.")
    if solvers.DEFAULT in working:
        return ExitStatus.OK
    echo(f"cwb: the default solver, {solvers.DEFAULT}, does not work", err=True)
    return ExitStatus.SOLVER_MISSING


def examine(name: str) -> tuple[str, str, str]:
    """A solver's version, a remark on its licence, and its result on the test model."""
    from ..core.budget import Budget
    from ..harness import registry

    try:
        solver = registry.solver(name)
        found = solver.installed()
        version = found.version or "unknown"
        if not found.ok:
            return "not installed", "", found.message
        licence = solver.licensed()
        if not licence.ok:
            return version, licence.message, ""
        model = small_model()
        result = solver.solve(model, Budget())
    except CwbError as error:
        return "", "", str(error)
    except Exception as error:  # a broken library can raise anything, and to say so is what a doctor is for
        return "", "", f"{type(error).__name__}: {error}"
    solved = result.objective is not None and abs(result.objective - _EXPECTED) <= 1e-6 * _EXPECTED
    return version, licence.message or "ok", "solved" if solved else f"wrong: {result.termination.value}"


def small_model() -> Any:
    """A linear program whose smallest value is 9, at (3, 1)."""
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 3))
    model.y = pyo.Var(bounds=(0, None))
    model.enough = pyo.Constraint(expr=model.x + model.y >= 4)
    model.cost = pyo.Objective(expr=2 * model.x + 3 * model.y)
    return model
