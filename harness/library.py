"""A library of models for people who write solvers: what methods hand to their solver, as MPS and LP files.

A method is handed a solver that writes every model down before it solves it, so that what is exported is what cwb
solves.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from .. import instances
from ..core.budget import Budget, silent
from ..core.errors import CwbError, located
from ..core.fields import validated
from ..core.files import write_whole
from ..core.solver import Availability, Capability, CompiledModel, ResolvingSolver, Solver, SolverOptions, SolverResult
from ..exchange.models import write_model
from . import registry
from .clock import WallClock
from .demand import with_demand
from .plan import Cell

INDEX = "index.json"

_DEFAULT = SolverOptions()


@dataclass(frozen=True)
class Exported:
    """A model of the library, as the index tells it.

    Parameters
    ----------
    name : str
        Of its files, ``NAME.mps.gz`` and ``NAME.lp.gz``.
    family : str
        The method whose model it is.
    instance, collective : str
        What it is a model of.
    variables, integers, constraints, nonzeros : int
        Its size.
    sense : str
        Whether it minimizes or maximizes.
    objective, bound : float or None
        Best known value and best proved bound.
    status : str
        Why the solver stopped.
    solver : str
        Who found them, with its version.
    mps_sha256, lp_sha256 : str
        Of the files' contents, uncompressed.
    """

    name: str
    family: str
    instance: str
    collective: str | None
    variables: int
    integers: int
    constraints: int
    nonzeros: int
    sense: str
    objective: float | None
    bound: float | None
    status: str
    solver: str
    mps_sha256: str
    lp_sha256: str


class ModelRecorder:
    """A solver that writes down every model before another solves it."""

    def __init__(self, inner: Solver, keep: Callable[[bytes, bytes, str, SolverResult], None]) -> None:
        self._inner = inner
        self._keep = keep

    @property
    def name(self) -> str:
        """Name of the solver behind it."""
        return self._inner.name

    @property
    def capabilities(self) -> Capability:
        """What the solver behind it can do."""
        return self._inner.capabilities

    def installed(self) -> Availability:
        """Whether the solver behind it is installed."""
        return self._inner.installed()

    def licensed(self) -> Availability:
        """Whether the solver behind it may be used."""
        return self._inner.licensed()

    def solve(self, model: Any, budget: Budget, options: SolverOptions = _DEFAULT) -> SolverResult:
        """Write the model down and solve it."""
        texts = written(model)
        result = self._inner.solve(model, budget, options)
        self._keep(*texts, result)
        return result

    def compile(self, model: Any, budget: Budget, options: SolverOptions = _DEFAULT) -> CompiledModel:
        """Write the model down as it is before the first change, solve it once, and compile it."""
        self.solve(model, budget, options)
        if not isinstance(self._inner, ResolvingSolver):
            raise TypeError(f"{self.name} does not keep a model between solves")
        return self._inner.compile(model, budget, options)


def written(model: Any) -> tuple[bytes, bytes, str]:
    """Text of a Pyomo model as MPS and as LP, and its sense."""
    import pyomo.environ as pyo

    maximizes = any(o.sense == pyo.maximize for o in model.component_data_objects(pyo.Objective, active=True))
    return write_model(model, ".mps"), write_model(model, ".lp"), "maximize" if maximizes else "minimize"


def export_instances(
    cells: Sequence[Cell], folder: Path, progress: Callable[[str], None] = silent
) -> tuple[list[Exported], list[str]]:
    """Write the models of all cells into a folder, with an index; equal models are written once.

    Parameters
    ----------
    cells : sequence of Cell
        Runs whose models are wanted; each solves under its own limits.
    folder : Path
        Where the files go; ``index.json`` is written last.
    progress : callable
        Called with every model that is written.

    Returns
    -------
    models : list of Exported
        What is there.
    failures : list of str
        Cells that could not be run, with the reason.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    models: dict[str, Exported] = {}
    failures: list[str] = []
    for cell in cells:
        try:
            _run(cell, folder, models, progress)
        except CwbError as error:
            failures.append(f"{cell}: {error}")
    found = sorted(models.values(), key=lambda model: model.name)
    index = {"schema": "cwb-library/1", "models": [asdict(model) for model in found]}
    write_whole(folder / INDEX, (json.dumps(index, indent=1) + "\n").encode())
    return found, failures


def _run(cell: Cell, folder: Path, models: dict[str, Exported], progress: Callable[[str], None]) -> None:
    """Let the method of a cell run on a solver that writes."""
    request = cell.request
    method = registry.get(request.model)
    instance = with_demand(instances.load(cell.instance), cell.collective, cell.size, cell.chunks)
    with located(source="-O"):
        options = validated(lambda: method.options.model_validate(dict(request.options)))
    posed = method.pose(instance, options)
    stem = slug(str(cell))
    count = 0

    def keep(mps: bytes, lp: bytes, sense: str, result: SolverResult) -> None:
        nonlocal count
        digest = sha256(mps).hexdigest()
        if digest in models:
            return
        count += 1
        name = f"{stem}-{count}"
        for suffix, text in (("mps", mps), ("lp", lp)):
            write_whole(folder / f"{name}.{suffix}.gz", gzip.compress(text, mtime=0))
        size = result.size
        collective = posed.demand.collective.value if posed.demand else None
        models[digest] = Exported(
            name,
            method.name,
            cell.instance,
            collective,
            size.variables,
            size.integers,
            size.constraints,
            size.nonzeros,
            sense,
            result.objective if result.has_solution else None,
            result.bound,
            result.termination.value,
            f"{result.solver} {result.version}",
            digest,
            sha256(lp).hexdigest(),
        )
        progress(f"{name}: {size.variables:,} variables, {size.constraints:,} constraints, {result.termination.value}")

    clock = WallClock(request.time_limit_s)
    budget = Budget(
        time_limit_s=request.time_limit_s,
        threads=request.threads,
        seed=request.seed,
        gap=request.gap,
        log_file=None,
        clock=clock,
        progress=silent,
        stop=threading.Event(),
    )
    method.run(posed, ModelRecorder(registry.solver(request.solver), keep), budget, options)


def slug(text: str) -> str:
    """Make a file's name of a cell: letters, digits and single hyphens."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:120]
