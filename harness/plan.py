"""Plans of suites as cells.

A cell contains everything that one run needs, in plain data, so that it can run anywhere.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from glob import escape, glob
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from ..core.errors import InputError, SolverUnavailable, locate_errors, one_of
from ..core.method import Kind as MethodKind
from ..core.units import UnitKind, parse
from ..instances.loader import shipped_instances
from . import registry
from .request import Request
from .suite_file import GridFile, Suite, is_file

MAX_CELLS = 100_000  #: A larger grid is a mistake.
_IN_BRACES = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Cell:
    """Specification of one run."""

    instance: str
    request: Request
    #: ``collective``, ``size`` and ``chunks``: values that replace those of the instance.
    collective: str | None = None
    size: str | None = None
    chunks: int | None = None
    memory_bytes: int | None = None
    #: Changes of the network, each an option and its text (:class:`~cwb.instances.edits.Edit`).
    edits: Sequence[tuple[str, str]] = ()

    def __str__(self) -> str:
        request = self.request
        problem = [text for text in (self.collective, self.size) if text is not None]
        options = [f"{name}={value}" for name, value in request.options.items()]
        seed = [f"seed={request.seed}"] if request.seed else []
        own = [f"{name}={value}" for name, value in request.solver_options.items()]
        edits = [part for edit in self.edits for part in edit]
        return " ".join([request.model, request.solver, *own, self.instance, *edits, *problem, *options, *seed])


def cells(suite: Suite) -> list[Cell]:
    """Plan a suite: every combination once, in the order of the file."""
    plan: dict[str, Cell] = {}
    for index, grid in enumerate(suite.file.grid):
        with locate_errors(f"grid[{index}]", source=suite.source):
            for cell in _grid_cells(suite, grid):
                # Two grids may overlap; what is the same run is made once.
                plan.setdefault(json.dumps(asdict(cell), sort_keys=True), cell)
                if len(plan) > MAX_CELLS:
                    raise InputError(f"more than {MAX_CELLS:,} cells; expected fewer")
    return list(plan.values())


def _grid_cells(suite: Suite, grid: GridFile) -> Iterator[Cell]:
    """Yield every combination of one grid; options vary fastest."""
    models, with_own = _models(grid), _with_own_options(grid, _solvers(grid))
    limit, memory = grid.time_limit or suite.file.time_limit, grid.memory or suite.file.memory
    limit_s = None if limit is None else float(limit)
    memory_bytes = None if memory is None else int(parse(memory, UnitKind.SIZE))
    plain: list[tuple[str, dict[str, Any]]] = [(with_own[0][0], {})]
    solving = {model: with_own if _needs_solver(model) else plain for model in models}
    names = list(_instances(suite, grid))
    others = (grid.seeds, _or_none(grid.collectives), _or_none(grid.sizes), *grid.options.values())
    if len(names) * sum(map(len, solving.values())) * prod(map(len, others)) > MAX_CELLS:
        raise InputError(f"more than {MAX_CELLS:,} cells; expected fewer")
    for name in names:
        for model, solvers in solving.items():
            problems = product(_or_none(grid.collectives), _or_none(grid.sizes))
            for ((solver, own), seed), (collective, size) in product(product(solvers, grid.seeds), problems):
                for values in product(*grid.options.values()):
                    options = dict(zip(grid.options, values, strict=True))
                    request = Request(model, solver, options, seed, grid.threads, limit_s, grid.gap, None, own)
                    request = replace(request, bounds="cheap")
                    yield Cell(name, request, collective, size, grid.chunks, memory_bytes)


def _or_none(values: Sequence[str]) -> Sequence[str | None]:
    return values or [None]


def _models(grid: GridFile) -> list[str]:
    """Select methods by name, pattern or kind, but formulations only by a name or a pattern with a slash."""
    models: dict[str, None] = {}
    for index, pattern in enumerate(grid.models):
        left_out, word = pattern.startswith("!"), pattern.removeprefix("!")
        formulations = [name for name in registry.formulation_names() if "/" in word or name == word]
        names = [*registry.names(), *formulations]
        if word.startswith("kind="):
            matching = [name for name in names if f"kind={registry.get(name).kind.value}" == word]
            names = [f"kind={kind.value}" for kind in MethodKind]
        else:
            matching = [name for name in names if fnmatchcase(name, word)]
        if not matching:
            raise InputError(f"unknown {word!r}{one_of(word, names)}", place=f"models[{index}]")
        models = {n: None for n in models if n not in matching} if left_out else models | dict.fromkeys(matching)
    if not models:
        raise InputError("every model is excluded; expected at least one", place="models")
    return list(models)


def _solvers(grid: GridFile) -> list[str]:
    """Select solvers by name; a pattern matches installed ones only."""
    names: dict[str, None] = {}
    for index, pattern in enumerate(grid.solvers):
        # One that Pyomo drives is there by its whole name only.
        candidates = [pattern] if pattern.startswith("pyomo:") else registry.solver_names()
        matching = [name for name in candidates if fnmatchcase(name, pattern) and registry.solver(name)]
        if not matching:
            choices = (*registry.solver_names(), "pyomo:NAME")
            raise InputError(f"unknown {pattern!r}{one_of(pattern, choices)}", place=f"solvers[{index}]")
        names |= dict.fromkeys(name for name in matching if name == pattern or registry.solver(name).installation().ok)
    if not names:
        raise InputError("no solver of these is installed", place="solvers")
    return list(names)


def _with_own_options(grid: GridFile, solvers: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Combine solvers with every combination of their own options, checked on installed solvers."""
    for solver, own in grid.solver_options.items():
        with locate_errors(f'solver_options."{solver}"'):
            if not any(fnmatchcase(solver, pattern) for pattern in grid.solvers):
                raise InputError(f"no solver of the grid; expected one of {', '.join(solvers)}")
            for name, value in ((name, value) for name, choices in own.items() for value in choices):
                with suppress(SolverUnavailable):
                    registry.solver(solver).check_options({name: value})
    return [
        (solver, dict(zip(own, values, strict=True)))
        for solver in solvers
        for own in [grid.solver_options.get(solver, {})]
        for values in product(*own.values())
    ]


def _needs_solver(model: str) -> bool:
    try:
        return registry.get(model).needs_solver
    except Exception:
        return True


def _instances(suite: Suite, grid: GridFile) -> list[str]:
    """List instances: names, files and expressions as given, matches of patterns, expanded ranges."""
    specs: dict[str, None] = {}
    rest, folder = set(grid.over), suite.folder or Path()
    for index, name in enumerate(grid.instances):
        if "(" not in name and ("*" in name or "?" in name):
            matching = [candidate for candidate in shipped_instances() if fnmatchcase(candidate, name)]
            # Path.glob takes no absolute pattern.
            files = [] if matching else glob(str(Path(escape(str(folder)), name)), recursive=True)  # noqa: PTH207
            matching += sorted(file for file in files if is_file(Path(file)))
            if not matching:
                names = ", ".join(shipped_instances())
                text = f"{name!r} matches no file and no shipped instance; expected one of {names}"
                raise InputError(text, place=f"instances[{index}]")
            specs |= dict.fromkeys(matching)
            continue
        rest -= set(_IN_BRACES.findall(name))
        for spec in _expand_braces(name, grid.over, f"instances[{index}]"):
            beside = None if suite.folder is None else suite.folder / spec
            specs[str(beside) if beside is not None and is_file(beside) else spec] = None
    if rest:
        raise InputError(f"no instance has {{{min(rest)}}} in it", place=f"over.{min(rest)}")
    return list(specs)


def _expand_braces(name: str, over: Mapping[str, Sequence[int]], place: str) -> Iterator[str]:
    """Yield an expression for every combination of the numbers of its ``{names}``."""
    names = list(dict.fromkeys(_IN_BRACES.findall(name)))
    for key in names:
        if key not in over:
            raise InputError(f"{{{key}}} is not defined in 'over'", place=place)
    for values in product(*(over[key] for key in names)):
        spec = name
        for key, value in zip(names, values, strict=True):
            spec = spec.replace(f"{{{key}}}", str(value))
        yield spec
