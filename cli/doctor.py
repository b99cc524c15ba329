"""``cwb doctor`` and ``cwb warm``: the state of this installation, and compilation in advance."""

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

import click

from ..core.errors import CwbError, ExitStatus
from .streams import console, echo

_EXPECTED = 9.0  #: The smallest value of the test model, found by hand.
_SOLVED = "solved"  #: The result of a solver that finds it.


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def doctor(as_json: bool) -> int:
    """Check the installation: versions, and for every solver its licence and a small test model.

    Exits with 0 if the default solver works and with 6 if it does not.
    """
    from .. import solvers
    from ..harness import registry

    reports = [examine(name) for name in (*registry.solver_names(), *solvers.pyomo_solver_names())]
    works = any(one.name == solvers.DEFAULT and one.test_model == _SOLVED for one in reports)
    if as_json:
        summary = {"versions": versions(), "default_solver": solvers.DEFAULT, "works": works}
        echo(json.dumps({**summary, "solvers": [asdict(one) for one in reports]}))
    else:
        _show(reports, solvers.DEFAULT)
    if works:
        return ExitStatus.OK
    echo(f"cwb: the default solver, {solvers.DEFAULT}, does not work", err=True)
    return ExitStatus.SOLVER_MISSING


@dataclass(frozen=True)
class SolverReport:
    """A solver with its version, a remark on its licence, and its result on the test model."""

    name: str
    version: str
    licence: str
    test_model: str


def versions() -> dict[str, str]:
    """Return the versions of the software that every run needs."""
    return {
        "cwb": metadata.version("cwb"),
        "Python": f"{platform.python_version()} on {platform.platform(terse=True)}",
        "Pyomo": metadata.version("pyomo"),
    }


def _show(reports: Sequence[SolverReport], default: str) -> None:
    from .display import new_table

    programs = new_table("versions", "program", "version")
    for program, version in versions().items():
        programs.add_row(program, version)
    table = new_table("solvers", "solver", "version", "licence", "test model")
    for one in reports:
        name = one.name + (" (default)" if one.name == default else "")
        table.add_row(name, one.version, one.licence, one.test_model)
    terminal = console()
    terminal.print(programs)
    terminal.print(table)
    terminal.print("Other solvers that Pyomo can drive are used as pyomo:NAME.")


def examine(name: str) -> SolverReport:
    """Solve a test model with a solver, if it is there."""
    from ..core.budget import Budget
    from ..harness import registry

    try:
        solver = registry.solver(name)
        installation = solver.installation()
        version = installation.version or "unknown"
        if not installation.ok:
            return SolverReport(name, "not installed", "", installation.message)
        licence = solver.licence()
        if not licence.ok:
            return SolverReport(name, version, licence.message, "")
        result = solver.solve(small_model(), Budget())
    except Exception as error:  # a broken library can raise anything, and to say so is what a doctor is for
        return SolverReport(
            name, "", "", str(error) if isinstance(error, CwbError) else f"{type(error).__name__}: {error}"
        )
    is_solved = result.objective is not None and abs(result.objective - _EXPECTED) <= 1e-6 * _EXPECTED
    verdict = _SOLVED if is_solved else f"wrong: {result.termination.value}"
    return SolverReport(name, version, licence.message or "ok", verdict)


def small_model() -> Any:
    """Build a linear program whose optimum is 9, at (3, 1)."""
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 3))
    model.y = pyo.Var(bounds=(0, None))
    model.enough = pyo.Constraint(expr=model.x + model.y >= 4)
    model.cost = pyo.Objective(expr=2 * model.x + 3 * model.y)
    return model


@click.command()
@click.option("-j", "--jobs", type=click.IntRange(1, 64), help="Number of processes; by default the number of cores.")
def warm(jobs: int | None) -> int:
    """Compile the loops of all methods now instead of at their first use.

    Compiled code is kept in the user's cache folder, or in that of the variable CWB_CACHE_DIR, and recompiled when
    the source changes. Exits with 1 if it cannot be kept, or if a method fails.
    """
    from rich.progress import track

    from ..core.kernel import cache_folder
    from ..harness.warm import RUNS
    from ..harness.warm import warm as compiled

    folder = cache_folder()
    if folder is None:
        echo("cwb: no folder can be written to: compiled code is not kept (CWB_CACHE_DIR names another)", err=True)
        return ExitStatus.FAILURE
    status = ExitStatus.OK
    for name, _, message in track(compiled(jobs), "compiling", total=len(RUNS), console=console(err=True)):
        if message:
            echo(f"cwb: {name}: {message}", err=True)
            status = ExitStatus.FAILURE
    echo(f"compiled code is in {folder}")
    return status
