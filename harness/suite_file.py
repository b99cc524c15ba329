"""Suites: the format of their TOML files, and their locations."""

import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from .. import instances
from ..core.collective import collective_names
from ..core.errors import InputError, did_you_mean, locate_errors, one_of, show_value
from ..core.fields import Duration, Strict, run_validation
from ..core.files import read_whole
from ..core.units import UnitKind, exact, parse, size_text
from ..instances.demand import is_messages
from .request import DEFAULT_SOLVER

#: Limits on the size of a file and on the length of a range.
MAX_FILE_BYTES = 2**20
MAX_VALUES = 10_000

_SHIPPED = files(instances) / "suites"  #: Folder of the suites that come with cwb.

_Name = Annotated[str, Field(min_length=1, max_length=1000)]


def _scalars(value: object) -> Iterator[object]:
    if isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _scalars(part)
    else:
        yield value


def _choices(value: object) -> list[Any]:
    """Return the values of an option to try; a single value is a list of one."""
    choices = value if isinstance(value, list) else [value]
    if not choices:
        raise ValueError("an empty list; expected at least one value to try")
    for scalar in (each for choice in choices for each in (_scalars(choice) if isinstance(choice, list) else [choice])):
        infinite = isinstance(scalar, float) and not math.isfinite(scalar)
        if infinite or not isinstance(scalar, str | bool | int | float):
            expected = "expected text, a number, true, false or a list of these or of tables"
            raise ValueError(f"{scalar!r} is no value of an option; {expected}")
    return choices


_Choices = Annotated[list[Any], BeforeValidator(_choices)]


def _collective(value: str) -> str:
    if is_messages(value):
        return value
    if value not in (names := collective_names()):
        raise ValueError(f"{value!r} is unknown{one_of(value, names)}")
    return value


def _size(value: str) -> str:
    try:
        parse(value, UnitKind.SIZE, allow_zero=False)
    except InputError as error:
        raise ValueError(str(error)) from None
    return value


_Size = Annotated[str, AfterValidator(_size)]
_Collective = Annotated[str, AfterValidator(_collective)]


def _values(value: object) -> object:
    """Expand a range ``{ from = 2, to = 8 }`` by steps of 1 or ``step``, or by ``factor``."""
    if not isinstance(value, dict):
        return value
    growth = value.keys() - {"from", "to"} or {"step"}
    numbers = {"step": 1, **value}
    valid = all(type(number) is int and number > 0 for number in numbers.values()) and value.get("factor") != 1
    if not {"from", "to"} <= value.keys() or growth not in ({"step"}, {"factor"}) or not valid:
        expected = "expected { from, to, step } or { from, to, factor } of whole numbers above 0, the factor above 1"
        raise ValueError(f"{show_value(value)} is no range; {expected}")
    if value["from"] > value["to"]:
        raise ValueError(f"{show_value(value)} is empty; expected a range that goes up")
    values = [value["from"]]
    while len(values) <= MAX_VALUES:
        following = values[-1] * value["factor"] if "factor" in value else values[-1] + numbers["step"]
        if following > value["to"]:
            break
        values.append(following)
    return values


def _sizes(value: object) -> object:
    """Expand a range of sizes, from one to another by a factor."""
    if not isinstance(value, dict):
        return value
    if value.keys() != {"from", "to", "factor"} or type(value["factor"]) is not int or value["factor"] < 2:
        expected = "expected { from, to, factor }, the factor whole and above 1"
        raise ValueError(f"{show_value(value)} is no range; {expected}")
    size, last = (parse(_size(value[end]), UnitKind.SIZE) for end in ("from", "to"))
    if size > last:
        raise ValueError(f"{show_value(value)} is empty; expected a range that goes up")
    sizes = []
    while size <= last:
        sizes.append(size_text(size) if size.denominator == 1 else exact(size, "B"))
        size *= value["factor"]
    return sizes


_Values = Annotated[
    list[Annotated[int, Field(strict=True)]], BeforeValidator(_values), Field(min_length=1, max_length=MAX_VALUES)
]
_Sizes = Annotated[list[_Size], BeforeValidator(_sizes)]


class GridFile(Strict):
    """One grid: every combination of its lists is a cell."""

    instances: list[_Name] = Field(min_length=1)
    """Shipped names, files and expressions, as in 'cwb solve'; or patterns (gpt-3-*, nets/*.json)."""
    over: dict[_Name, _Values] = Field({})
    """Values of {name} in instances: numbers, { from, to, step } or { from, to, factor }."""
    models: list[_Name] = Field(min_length=1)
    """Names, patterns (teccl*; of formulations teccl/*), kinds (kind=exact); !pattern leaves out again."""
    solvers: list[_Name] = Field([DEFAULT_SOLVER], min_length=1)
    """Names; a pattern means those that are installed here. A method that calls none runs once."""
    options: dict[_Name, _Choices] = Field({})
    """A value, or a list of values to try; a value that is a list stands in a list: [[8, 16]]."""
    solver_options: dict[_Name, dict[_Name, _Choices]] = Field({})
    """By a solver's name, options by its own names: a value, or a list of values to try."""
    collectives: list[_Collective] = Field([])
    """Each in turn instead of the instance's; by default its own, or 1 GiB of what is named here."""
    sizes: _Sizes = Field([], description="Each in turn instead of the collective's: a list, or { from, to, factor }.")
    chunks: Annotated[int, Field(ge=1, le=10**9, strict=True)] | None = None
    seeds: list[Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)]] = Field([0], min_length=1)
    threads: Annotated[int, Field(ge=1, le=1024, strict=True)] = 1
    time_limit: Duration | None = Field(None, description="Per run; by default the suite's.")
    memory: _Size | None = Field(None, description="Most memory of a run; by default the suite's.")
    gap: Annotated[float, Field(ge=0, lt=1)] | None = None


class SuiteFile(Strict):
    """A suite: one or more grids."""

    description: str = ""
    time_limit: Duration | None = Field(None, description="Per run.")
    memory: _Size | None = Field(None, description="Most memory of a run.")
    grid: list[GridFile] = Field(min_length=1, max_length=1000)


@dataclass(frozen=True)
class Suite:
    """A loaded suite: its source, its content, and the folder of its instance files."""

    source: str
    file: SuiteFile
    folder: Path | None = None


def shipped_suites() -> tuple[str, ...]:
    """Return the names of the suites shipped with cwb."""
    names = (entry.name for entry in _SHIPPED.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def load_suite(spec: str | Path) -> Suite:
    """Load a suite from a file, or by the name of a shipped one, with or without ``suites/`` and ``.toml``."""
    path = Path(spec)
    name = path.name.removesuffix(".toml")
    if is_file(path):
        return Suite(str(spec), _read(path, str(spec)), path.parent)
    if name in shipped_suites() and path.parent.as_posix() in (".", "suites", "instances/suites"):
        source = f"{name}.toml"
        return Suite(source, _read(_SHIPPED / source, source))
    hint = did_you_mean(name, shipped_suites())
    raise InputError(f"no such file; the suites of cwb are {', '.join(shipped_suites())}{hint}", source=str(spec))


def with_seeds(suite: Suite, seeds: int | None) -> Suite:
    """Return a suite with ``seeds`` seeds 0, 1, … in every grid; unchanged if None."""
    if seeds is None:
        return suite
    grids = [grid.model_copy(update={"seeds": list(range(seeds))}) for grid in suite.file.grid]
    return replace(suite, file=suite.file.model_copy(update={"grid": grids}))


def is_file(path: Path) -> bool:
    """Return whether a file exists; False for a text too long for a path."""
    try:
        return path.is_file()
    except OSError:
        return False


def _read(path: Path | Traversable, source: str) -> SuiteFile:
    with locate_errors(source=source):
        raw = read_whole(path, MAX_FILE_BYTES, "a suite")
        try:
            data: dict[str, Any] = tomllib.loads(raw.decode())
        except UnicodeDecodeError:
            raise InputError("not TOML: not UTF-8 text") from None
        except RecursionError:
            raise InputError("not TOML that cwb reads: nested too deeply") from None
        except ValueError as error:  # a number of thousands of digits raises a plain one
            raise InputError(f"not TOML: {str(error)[:200]}") from None
        return run_validation(lambda: SuiteFile.model_validate(data))
