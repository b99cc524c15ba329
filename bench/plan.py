"""Suites: grids of runs as TOML files, planned as cells.

A cell says everything that one run needs, in plain data, so that it can be run wherever it is taken.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from .. import instances, solvers
from ..core.collective import CollectiveKind
from ..core.errors import InputError, located
from ..core.fields import Duration, Strict, validated
from ..core.units import Kind, parse
from ..instances.loader import shipped
from ..models import registry
from .run import DEFAULT_SOLVER, Request

#: A larger file is no suite, and a larger grid a mistake.
MAX_FILE_BYTES = 2**20
MAX_CELLS = 100_000

_Name = Annotated[str, Field(min_length=1, max_length=1000)]


def _choices(value: object) -> list[Any]:
    """Give the values of an option to try; a value alone is a list of one."""
    choices = value if isinstance(value, list) else [value]
    if not choices:
        raise ValueError("an empty list; expected at least one value to try")
    for scalar in (s for choice in choices for s in (choice if isinstance(choice, list) else [choice])):
        if not isinstance(scalar, str | bool | int | float) or (
            isinstance(scalar, float) and not math.isfinite(scalar)
        ):
            raise ValueError(
                f"{scalar!r} is no value of an option; expected text, a number, true, false or a list of these"
            )
    return choices


_Choices = Annotated[list[Any], BeforeValidator(_choices)]


def _collective(value: str) -> str:
    """Check the name of a collective."""
    if value not in (known := [kind.value for kind in CollectiveKind]):
        raise ValueError(f"{value!r} is unknown; expected one of {', '.join(known)}")
    return value


def _size(value: str) -> str:
    """Check a size, and leave it as it is written."""
    try:
        parse(value, Kind.SIZE, allow_zero=False)
    except InputError as error:
        raise ValueError(str(error)) from None
    return value


_Size = Annotated[str, AfterValidator(_size)]
_Collective = Annotated[str, AfterValidator(_collective)]


class GridFile(Strict):
    """One grid: every combination of its lists is a cell."""

    instances: list[_Name] = Field(
        min_length=1,
        description="What 'cwb solve' takes: shipped names, files, expressions; or patterns of shipped names (gpt-3-*).",
    )
    models: list[_Name] = Field(min_length=1)
    solvers: list[_Name] = Field([DEFAULT_SOLVER], min_length=1)
    options: dict[_Name, _Choices] = Field(
        {}, description="A value, or a list of values to try; a value that is a list stands in a list: [[8, 16]]."
    )
    collectives: list[_Collective] = Field(
        [], description="Each in turn instead of the instance's; by default its own, or 1 GiB of what is named here."
    )
    sizes: list[_Size] = Field([], description="Each in turn instead of the collective's.")
    chunks: Annotated[int, Field(ge=1, le=10**9, strict=True)] | None = None
    seeds: list[Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)]] = Field([0], min_length=1)
    threads: Annotated[int, Field(ge=1, le=1024, strict=True)] = 1
    time_limit: Duration | None = Field(None, description="Per run; by default the suite's.")
    gap: Annotated[float, Field(ge=0, lt=1)] | None = None


class SuiteFile(Strict):
    """A suite: one or more grids."""

    description: str = ""
    time_limit: Duration | None = Field(None, description="Per run.")
    grid: list[GridFile] = Field(min_length=1, max_length=1000)


@dataclass(frozen=True)
class Cell:
    """One run to be made.

    Parameters
    ----------
    instance : str
        What :func:`cwb.instances.load` takes.
    request : Request
        Method, solver, options and limits.
    collective, size, chunks : str or int, optional
        What is asked instead of what the instance says.
    """

    instance: str
    request: Request
    collective: str | None = None
    size: str | None = None
    chunks: int | None = None

    def __str__(self) -> str:
        request = self.request
        asked = [text for text in (self.collective, self.size) if text is not None]
        options = [f"{name}={value}" for name, value in request.options.items()]
        seed = [f"seed={request.seed}"] if request.seed else []
        return " ".join([request.model, request.solver, self.instance, *asked, *options, *seed])


@dataclass(frozen=True)
class Suite:
    """A suite that has been read: where it came from, what it says, and the folder that its instances may be in."""

    source: str
    file: SuiteFile
    folder: Path | None = None


def shipped_suites() -> tuple[str, ...]:
    """Names of the suites that come with cwb."""
    names = (entry.name for entry in _shipped_folder().iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def _shipped_folder() -> Traversable:
    return files(instances) / "suites"


def load_suite(spec: str | Path) -> Suite:
    """Load a suite.

    Parameters
    ----------
    spec : str or Path
        A file, or the name of a shipped suite, with or without ``suites/`` and ``.toml``.

    Raises
    ------
    InputError
        If there is none, or something is wrong in it; names the file and the place.
    """
    path = Path(spec)
    name = path.name.removesuffix(".toml")
    if _is_file(path):
        return Suite(str(spec), _read(path, str(spec)), path.parent)
    if name in shipped_suites() and path.parent.as_posix() in (".", "suites", "instances/suites"):
        source = f"{name}.toml"
        return Suite(source, _read(_shipped_folder() / source, source))
    close = get_close_matches(name, shipped_suites(), n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise InputError(f"no such file; the suites of cwb are {', '.join(shipped_suites())}{hint}", source=str(spec))


def _is_file(path: Path) -> bool:
    """Whether there is such a file; a text too long for a path is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _read(path: Path | Traversable, source: str) -> SuiteFile:
    with located(source=source):
        try:
            with path.open("rb") as stream:
                raw = stream.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise InputError((error.strerror or "cannot be read").lower()) from None
        if len(raw) > MAX_FILE_BYTES:
            raise InputError(f"more than {MAX_FILE_BYTES:,} bytes; expected a suite")
        try:
            data: dict[str, Any] = tomllib.loads(raw.decode())
        except UnicodeDecodeError:
            raise InputError("not TOML: not UTF-8 text") from None
        except RecursionError:
            raise InputError("not TOML that cwb reads: nested too deeply") from None
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"not TOML: {error}") from None
        return validated(lambda: SuiteFile.model_validate(data))


def cells(suite: Suite) -> list[Cell]:
    """Plan a suite: every combination once, in the order of the file.

    Raises
    ------
    InputError
        If a model or solver is unknown, a pattern matches no instance, or there are more than :data:`MAX_CELLS` cells.
    """
    plan: dict[str, Cell] = {}
    for index, grid in enumerate(suite.file.grid):
        with located(f"grid[{index}]", source=suite.source):
            for cell in _grid_cells(suite, grid):
                # Two grids may overlap; what is the same run is made once.
                plan.setdefault(json.dumps(asdict(cell), sort_keys=True), cell)
                if len(plan) > MAX_CELLS:
                    raise InputError(f"more than {MAX_CELLS:,} cells; expected fewer")
    return list(plan.values())


def _grid_cells(suite: Suite, grid: GridFile) -> Iterator[Cell]:
    """Every combination of one grid, the options the fastest."""
    _known(grid.models, registry.names(), "models")
    _known(grid.solvers, solvers.names(), "solvers")
    limit = grid.time_limit or suite.file.time_limit
    for name in _instances(suite, grid):
        for model in grid.models:
            chosen = grid.solvers if _needs_solver(model) else grid.solvers[:1]
            asked = product(_or_none(grid.collectives), _or_none(grid.sizes))
            for (solver, seed), (collective, size) in product(product(chosen, grid.seeds), asked):
                for values in product(*grid.options.values()):
                    options = dict(zip(grid.options, values, strict=True))
                    limit_s = None if limit is None else float(limit)
                    request = Request(model, solver, options, seed, grid.threads, limit_s, grid.gap)
                    yield Cell(name, request, collective, size, grid.chunks)


def _or_none(values: Sequence[str]) -> Sequence[str | None]:
    """Give values to take in turn; one that is none where there are none."""
    return values or [None]


def _known(names: Sequence[str], known: Sequence[str], field: str) -> None:
    for index, name in enumerate(names):
        if name not in known:
            raise InputError(f"unknown {name!r}; expected one of {', '.join(known)}", place=f"{field}[{index}]")


def _needs_solver(model: str) -> bool:
    """Whether a method calls a solver; a broken one is found out when it runs."""
    try:
        return registry.get(model).needs_solver
    except Exception:
        return True


def _instances(suite: Suite, grid: GridFile) -> list[str]:
    """Names, files and expressions as they are, patterns as the shipped names that they match."""
    found: dict[str, None] = {}
    for index, name in enumerate(grid.instances):
        if "(" not in name and ("*" in name or "?" in name):
            matching = [candidate for candidate in shipped() if fnmatchcase(candidate, name)]
            if not matching:
                raise InputError(f"{name!r} matches no shipped instance", place=f"instances[{index}]")
            found |= dict.fromkeys(matching)
        else:
            beside = None if suite.folder is None else suite.folder / name
            found[str(beside) if beside is not None and _is_file(beside) else name] = None
    return list(found)
