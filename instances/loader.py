"""The one loader: from a path, a shipped name or an expression to an instance."""

from collections.abc import Callable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from ..core.budget import ITEMS_PER_REPORT, report_progress
from ..core.errors import InputError, did_you_mean, locate_errors, show_value
from ..core.fabric import Fabric, looks_like_fabric, parse_fabric
from ..core.fields import run_validation
from ..core.files import read_whole, without_collector
from ..core.instance import Instance
from ..core.strict_json import check_kind, parse_json
from ..core.topology import Topology
from .build import build_instance
from .experts import experts_instance
from .expression import Expression, is_expression, parse_expression
from .generators import GENERATORS, generate
from .schema import InstanceFile, WorkloadFile

_PARAMETERS = ("workload", "dims", "total_bandwidth", "objective", "loop")


def libra_instance(expression: Expression, build: Callable[[InstanceFile], Instance]) -> Instance:
    """Make a training instance of ``libra(workload=..., dims=..., ...)``.

    ``expression``: ``workload`` (a shipped name) and ``dims`` (building blocks), and optionally ``total_bandwidth``
    ("1000 GB/s" unless given), ``objective`` and ``loop``. Prices are those of table 4.1, groups are mapped innermost
    first.
    """
    arguments = expression.bind(_PARAMETERS, mandatory=("workload", "dims"))
    workload: dict[str, Any] = {"use": arguments["workload"]}
    if "loop" in arguments:
        workload["loop"] = arguments["loop"]
    data = {
        "schema": "cwb-instance/1",
        "network": {"dimensions": arguments["dims"]},
        "workloads": [workload],
        "cost_model": "table-4.1",
        "design": {
            "objective": arguments.get("objective", "perf"),
            "total_bandwidth": arguments.get("total_bandwidth", "1000 GB/s"),
        },
    }
    return build(run_validation(lambda: InstanceFile.model_validate(data)))


MAX_FILE_BYTES = 64 * 2**20  #: A file larger than this is rejected before it is read.
MAX_KEYS = 10_000  #: Keys in one object: each that is wrong costs memory before the first is reported.

#: Expressions that make instances, and not networks alone.
_INSTANCES = {"libra": libra_instance, "experts": experts_instance}

_SHIPPED = files(__name__.rpartition(".")[0])

_NOT_INSTANCES = ("schema.json",)  #: Files in the shipped folders that are no instances.


def shipped_instances() -> tuple[str, ...]:
    """Names of the instances that come with cwb."""
    return tuple(sorted(_names(_SHIPPED)))


def shipped_workloads() -> tuple[str, ...]:
    """Names of the workloads that come with cwb."""
    return tuple(sorted(_names(_SHIPPED / "workloads")))


def _names(folder: Traversable) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.name.endswith(".json") and entry.name not in _NOT_INSTANCES:
            yield entry.name.removesuffix(".json")


#: By suffix: the command that converts a network of other programs.
_READERS = {".csv": "csv", ".graphml": "wan", ".gml": "wan", ".xml": "nccl", ".yml": "astra"}


def load(spec: str | Path) -> Instance:
    """Load an instance.

    ``spec``: a path of an instance file; the name of a shipped instance, such as ``4d``; building-block notation, such
    as ``RI(4)_FC(4)_SW(4)``; or a generator expression, such as ``torus(8,8)`` or ``libra(workload=gpt-3,
    dims="RI(4)_FC(8)_SW(32)")``.

    Raises
    ------
    OutOfTime
        If the limits (:func:`~cwb.core.budget.limited_by`) are exhausted before the instance is loaded.
    """
    with without_collector():
        return _load(str(spec))


def _load(text: str) -> Instance:
    path = Path(text)
    if not text:
        raise InputError("an empty text; expected a file, the name of a shipped instance or an expression")
    if looks_like_fabric(text):
        with locate_errors(source=text):
            return Instance(text, parse_fabric(text))
    there = _exists(path)
    if is_expression(text) and not there:
        with locate_errors(source=text):
            return _generate_instance(text)
    if there or path.suffix == ".json":
        name = path.stem
        if there or name not in shipped_instances() or path.parent.name not in ("", "instances"):
            return _from_file(path, text)
        text = name
    if text in shipped_instances():
        return _from_file(_SHIPPED / f"{text}.json", f"{text}.json")
    if text in GENERATORS:  # all of its arguments have defaults, or the error says which are missing
        with locate_errors(source=text):
            return _generate_instance(f"{text}()")
    hint = did_you_mean(text, [*shipped_instances(), *GENERATORS])
    raise InputError(
        f"no such file, shipped instance or expression; expected one such as 4d, my.json or torus(8,8){hint}",
        source=text,
    )


def _exists(path: Path) -> bool:
    """Return whether a file exists; a long expression or a text with a null is no file name."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _from_file(path: Path | Traversable, source: str) -> Instance:
    """Load an instance file; workloads named by path are relative to it."""
    with locate_errors(source=source):
        if (reader := _READERS.get(Path(source).suffix.lower())) is not None:
            raise InputError(f"expected an instance, which cwb import {reader} makes of this file")
        data = read_json(path)
        check_kind(data, "cwb-instance/1")
        return from_data(data, Path(path.name).stem, path.parent if isinstance(path, Path) else None)


def from_data(data: object, name: str, folder: Path | None = None) -> Instance:
    """Build an instance from the parsed JSON of a file."""
    file = run_validation(lambda: InstanceFile.model_validate(data))
    return build_instance(file, name, lambda workload: find_workload(workload, folder), network_from_text, folder)


def find_workload(name: str, folder: Path | None = None) -> WorkloadFile:
    """Find a workload: shipped under this name, or a file, relative to the folder of the instance."""
    if name in shipped_workloads():
        path: Path | Traversable = _SHIPPED / "workloads" / f"{name}.json"
    elif name.endswith(".json"):
        path = (folder or Path()) / name
        if not _exists(path):
            raise InputError(f"no such file {show_value(str(path))}; expected that of a workload")
    else:
        raise InputError(
            f"unknown workload {name!r}; expected a *.json file or one of {', '.join(shipped_workloads())}"
        )
    with locate_errors(source=str(path)):
        data = read_json(path)
        return run_validation(lambda: WorkloadFile.model_validate(data))


def network_from_text(text: str) -> Fabric | Topology:
    """Make a network from building-block notation or a generator expression."""
    if is_expression(text) and not looks_like_fabric(text):
        return generate(parse_expression(text))
    return parse_fabric(text)


def _generate_instance(text: str) -> Instance:
    """Make an instance of an expression: of training by ``libra``, a placement by ``experts``, else a network."""
    expression = parse_expression(text)
    if (make := _INSTANCES.get(expression.name)) is not None:
        return make(expression, lambda file: build_instance(file, text, find_workload, network_from_text))
    return Instance(text, generate(expression))


def read_json(path: Path | Traversable) -> Any:
    """Read a JSON file strictly: no duplicate keys, no NaN, and no more than :data:`MAX_FILE_BYTES`."""
    raw = read_whole(path, MAX_FILE_BYTES, "a JSON file")
    if len(raw) > 8 * ITEMS_PER_REPORT:
        report_progress(f"reading {len(raw):,} bytes")
    return parse_json(raw, MAX_KEYS)
