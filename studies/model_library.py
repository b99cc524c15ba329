"""A library of models for developers of solvers: everything that methods pass to their solver, as MPS and LP files.

A method gets a solver that writes every model before solving it, so the library has exactly the models that cwb solves.
"""

import gzip
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from .. import instances
from ..core.budget import Budget, ignore
from ..core.errors import CwbError
from ..core.files import write_whole
from ..core.solver import CompiledModel, SolverOptions, SolverResult
from ..exchange.models import write_model
from ..harness import registry
from ..harness.clock import WallClock
from ..harness.plan import Cell
from ..harness.request import RecordingSolver
from ..instances.demand import with_demand
from ..solvers.base import DEFAULT_OPTIONS, Adapter

INDEX = "index.json"


@dataclass(frozen=True)
class LibraryModel:
    """A model of the library, as listed in the index."""

    name: str  #: Stem of its files, ``NAME.mps.gz`` and ``NAME.lp.gz``.
    family: str
    instance: str
    collective: str | None
    variables: int
    integers: int
    constraints: int
    nonzeros: int
    sense: str
    #: ``objective`` and ``bound``: best known value and best proved bound.
    objective: float | None
    bound: float | None
    status: str
    solver: str
    mps_sha256: str
    lp_sha256: str


class ModelRecorder(RecordingSolver):
    """A solver that writes every model before another solver solves it."""

    def __init__(self, solver: Adapter, keep: Callable[[bytes, bytes, str, SolverResult], None]) -> None:
        super().__init__(solver)
        self._keep = keep

    def solve(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> SolverResult:
        """Write the model and solve it."""
        import pyomo.environ as pyo

        maximizes = any(o.sense == pyo.maximize for o in model.component_data_objects(pyo.Objective, active=True))
        texts = write_model(model, ".mps"), write_model(model, ".lp")
        result = super().solve(model, budget, options)
        self._keep(*texts, "maximize" if maximizes else "minimize", result)
        return result

    def compile(self, model: Any, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS) -> CompiledModel:
        """Write the unchanged model, solve it once, and compile it."""
        self.solve(model, budget, options)
        return super().compile(model, budget, options)


def export_models(
    cells: Sequence[Cell], folder: Path, progress: Callable[[str], None] = ignore
) -> tuple[list[LibraryModel], list[str]]:
    """Write the models of all cells and an index into a folder; equal models are written once.

    Each cell solves under its own limits; ``index.json`` is written last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    models: dict[str, LibraryModel] = {}
    failures: list[str] = []
    for cell in cells:
        try:
            _run(cell, folder, models, progress)
        except CwbError as error:
            failures.append(f"{cell}: {error}")
    rows = sorted(models.values(), key=lambda model: model.name)
    index = {"schema": "cwb-library/1", "models": [asdict(model) for model in rows]}
    write_whole(folder / INDEX, (json.dumps(index, indent=1) + "\n").encode())
    return rows, failures


def _run(cell: Cell, folder: Path, models: dict[str, LibraryModel], progress: Callable[[str], None]) -> None:
    request = cell.request
    method = registry.get(request.model)
    instance = with_demand(instances.load(cell.instance), cell.collective, cell.size, cell.chunks)
    problem, options = method.validate_and_pose(instance, request.options)
    stem = slug(str(cell))

    def keep(mps: bytes, lp: bytes, sense: str, result: SolverResult) -> None:
        digest = sha256(mps).hexdigest()
        if digest in models:
            return
        names = {model.name for model in models.values()}  # also by other cells, whose long texts may end alike
        name = next(name for number in count(1) if (name := f"{stem}-{number}") not in names)
        for suffix, text in (("mps", mps), ("lp", lp)):
            write_whole(folder / f"{name}.{suffix}.gz", gzip.compress(text, mtime=0))
        size = result.size
        models[digest] = LibraryModel(
            name,
            method.name,
            cell.instance,
            problem.collective_name,
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

    limits = (request.time_limit_s, request.threads, request.seed, request.gap)
    budget = Budget(*limits, clock=WallClock(request.time_limit_s))
    method.run(problem, ModelRecorder(registry.solver(request.solver), keep), budget, options)


def slug(text: str) -> str:
    """Convert the text of a cell to a file name of letters, digits and single hyphens."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:120]
