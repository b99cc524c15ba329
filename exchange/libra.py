"""The input files of the original LIBRA (the public repository astra-sim/libra) as an instance.

The *network* (YAML) has a block, a size and a class of cost for each dimension, innermost first; the *workload*
(ASTRA-sim 1.0 text) a line for each layer; the *communicators* (YAML) the NPUs that the collectives of each phase span
in each dimension, -1 where none; the *cost model* (YAML) prices of every class in dollars per GB/s.

The size of an all-gather there is the shard of a rank, and here the full buffer. A component that a dimension needs
must have a price here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

from ..core.errors import InputError, locate_errors, show_value
from ..core.fabric import CostModel, Fabric, parse_fabric
from ..core.files import read_text
from ..core.transformer import MAX_LAYERS
from ..core.units import UnitKind, parse
from ..core.workload import Span, check_span
from .machine import checked_instance
from .plain_data import read_yaml

MAX_WORKLOAD_BYTES = 160 * MAX_LAYERS  #: Room for the largest number of layers, in lines of 160 characters.
_BLOCKS = {"Ring": "RI", "FullyConnected": "FC", "Switch": "SW"}
_COMPONENTS = {"Link": "link", "Switch": "switch", "Nic": "nic"}
_IGNORED_COMPONENT = "Npu"  #: A component with a price in the original that no network needs.
_COLLECTIVES = {
    "NONE": None,
    "ALLREDUCE": "all_reduce",
    "REDUCESCATTER": "reduce_scatter",
    "ALLGATHER": "all_gather",
    "ALLTOALL": "all_to_all",
}

#: Phases: the communicator file's name, the instance file's, and the first of its three columns in the workload.
_PHASES = (("Forward", "forward", 2), ("InputGrad", "input_gradient", 5), ("WeightGrad", "weight_gradient", 8))
_COLUMNS = 12
_NUMBER = re.compile(r"(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,2})?\Z")
_INTEGER = re.compile(r"-?[0-9]{1,9}\Z")


@dataclass(frozen=True)
class LibraFiles:
    """The four input files of one design."""

    network: Path
    workload: Path
    communicator: Path
    cost_model: Path


def import_libra(files: LibraFiles, *, total_bandwidth: str | None = None, name: str | None = None) -> dict[str, Any]:
    """Make an instance of the original's input files.

    The total bandwidth is that of an NPU over all dimensions, such as ``"1000 GB/s"``; without it the instance sets no
    limit. Its name is by default the workload's and the number of dimensions, such as ``gpt-3-4d``.
    """
    with locate_errors(source=str(files.network)):
        fabric = read_network(files.network)
    with locate_errors(source=str(files.communicator)):
        spans = read_communicators(files.communicator, fabric)
    groups = {phase: phase.replace("_", "-") for phase in spans}
    if spans["forward"] == spans["input_gradient"]:
        groups = {"forward": "tp", "input_gradient": "tp", "weight_gradient": "dp"}
    with locate_errors(source=str(files.workload)):
        layers = read_layers(files.workload, groups, spans)
    with locate_errors(source=str(files.cost_model)):
        prices = read_prices(files.cost_model, fabric)
    workload = to_instance_name(files.workload.stem) or "workload"
    names = ", ".join(path.name for path in (files.network, files.workload, files.communicator, files.cost_model))
    design: dict[str, Any] = {}
    if total_bandwidth is not None:
        parse(total_bandwidth, UnitKind.RATE, allow_zero=False, source="--total-bandwidth")
        design = {"design": {"objective": "perf", "total_bandwidth": total_bandwidth}}
    spanned = {groups[phase]: list(span) for phase, span in spans.items()}
    with locate_errors(source="the imported instance"):
        return checked_instance(
            {"dimensions": str(fabric), "tiers": [d.tier for d in fabric.dimensions], "npus": fabric.npus},
            name=name or f"{workload}-{len(fabric.dimensions)}d",
            description=f"{workload} on {fabric}, imported from input files of LIBRA.",
            source=f"input files of LIBRA (astra-sim/libra): {names}",
            workloads=[{"name": workload, "groups": spanned, "layers": layers}],
            cost_model=prices,
            **design,
        )


def read_network(path: Path) -> Fabric:
    """Read the network file."""
    data = read_yaml(path)
    _expect_keys(data, ("Topology", "NpusCount", "CostDimension"))
    blocks = _read_texts(data["Topology"], "Topology")
    counts = _read_integers(data["NpusCount"], "NpusCount", len(blocks), "Topology")
    tiers = _read_texts(data["CostDimension"], "CostDimension", len(blocks), "Topology")
    for index, block in enumerate(blocks):
        if block not in _BLOCKS:
            raise InputError(f"{show_value(block)}; expected one of {', '.join(_BLOCKS)}", place=f"Topology[{index}]")
    for index, count in enumerate(counts):
        if count < 2:
            raise InputError(f"{count}; expected at least 2 NPUs", place=f"NpusCount[{index}]")
    notation = "_".join(f"{_BLOCKS[block]}({count})" for block, count in zip(blocks, counts, strict=True))
    return parse_fabric(notation, tuple(to_tier_name(tier) for tier in tiers))


def read_communicators(path: Path, fabric: Fabric) -> dict[str, Span]:
    """Read the communicator file: the span of every phase, by the phase's name in an instance file."""
    data = read_yaml(path)
    _expect_keys(data, tuple(key for key, _, _ in _PHASES))
    spans: dict[str, Span] = {}
    for key, phase, _ in _PHASES:
        sizes = _read_integers(data[key], key, len(fabric.dimensions), "the network")
        for index, size in enumerate(sizes):
            if size < 1 and size != -1:
                raise InputError(f"{size}; expected a number of NPUs, or -1 for none", place=f"{key}[{index}]")
        spans[phase] = tuple(1 if size == -1 else size for size in sizes)
        with locate_errors(key):
            check_span(spans[phase], fabric)
    return spans


def read_layers(path: Path, groups: Mapping[str, str], spans: Mapping[str, Span]) -> list[dict[str, Any]]:
    """Read the workload file: a layer for each line that is not empty."""
    layers: list[dict[str, Any]] = []
    for number, line in enumerate(read_text(path, MAX_WORKLOAD_BYTES).splitlines(), start=1):
        columns = line.split()
        if not columns:
            continue
        place = f"line {number}"
        if len(columns) != _COLUMNS:
            raise InputError(f"{len(columns)} columns; expected {_COLUMNS}, as in ASTRA-sim 1.0", place=place)
        if len(columns[0]) > 200:
            raise InputError("expected a layer name of at most 200 characters", place=place)
        phases = {
            phase: _read_phase(columns, first, place, groups[phase], prod(spans[phase])) for _, phase, first in _PHASES
        }
        layers.append({"name": columns[0], **phases})
    if not 1 <= len(layers) <= MAX_LAYERS:
        raise InputError(f"{len(layers):,} layers; expected 1 to {MAX_LAYERS:,}")
    return layers


def _read_phase(columns: list[str], first: int, line: str, group: str, members: int) -> dict[str, Any]:
    compute, collective, size = columns[first : first + 3]
    places = [f"{line}, column {first + i}" for i in (1, 2, 3)]
    _read_number(compute, places[0])
    if collective.upper() not in _COLLECTIVES:
        expected = f"expected one of {', '.join(_COLLECTIVES)}"
        raise InputError(f"{show_value(collective)} is no collective; {expected}", place=places[1])
    size_bytes = _read_number(size, places[2])
    phase: dict[str, Any] = {"compute": f"{compute} ns"}
    if (kind := _COLLECTIVES[collective.upper()]) is not None:
        if size_bytes.denominator != 1:
            raise InputError(f"{show_value(size)}; expected a whole number of bytes", place=places[2])
        full = size_bytes * members if kind == "all_gather" else size_bytes
        phase["communication"] = [{"collective": kind, "size": f"{full} B", "group": group}]
    return phase


def read_prices(path: Path, fabric: Fabric) -> dict[str, dict[str, str]]:
    """Read the cost model file; everything that a dimension of the network needs must have a price."""
    prices: dict[str, dict[str, str]] = {}
    for key, components in read_yaml(path).items():
        tier = to_tier_name(key)
        if tier in prices:
            raise InputError(f"is {tier!r}, like another class", place=key)
        if not isinstance(components, dict):
            raise InputError(f"{show_value(components)}; expected prices of {', '.join(_COMPONENTS)}", place=key)
        prices[tier] = {}
        for component, price in components.items():
            if component not in _COMPONENTS and component != _IGNORED_COMPONENT:
                raise InputError(f"unknown component; expected {', '.join(_COMPONENTS)}", place=f"{key}.{component}")
            _read_number(price, f"{key}.{component}")
            if component in _COMPONENTS:
                prices[tier][_COMPONENTS[component]] = f"{price} USD/(GB/s)"
    exact = {tier: {c: parse(p, UnitKind.PRICE) for c, p in parts.items()} for tier, parts in prices.items()}
    CostModel(exact).price_per_Bps(fabric)
    return prices


def to_instance_name(name: str) -> str:
    """Write a name as instances do: ``GPT_3`` is ``gpt-3``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def to_tier_name(name: str) -> str:
    """Write the name of a class of the cost model as a tier: ``InterChiplet`` is ``inter-chiplet``."""
    return to_instance_name(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name))


def _expect_keys(data: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        if key not in data:
            raise InputError("missing, but required", place=key)
    for key in data:
        if key not in keys:
            raise InputError(f"unknown key; expected {', '.join(keys)}", place=key[:60])


def _read_texts(value: Any, place: str, count: int | None = None, like: str = "") -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(entry, str) for entry in value):
        raise InputError(f"{show_value(value)}; expected a list with an entry for each dimension", place=place)
    if count not in (None, len(value)):
        raise InputError(f"{len(value)} entries; expected {count}, as in {like}", place=place)
    return value


def _read_integers(value: Any, place: str, count: int, like: str) -> list[int]:
    texts = _read_texts(value, place, count, like)
    for index, text in enumerate(texts):
        if not _INTEGER.match(text):
            raise InputError(f"{show_value(text)}; expected an integer", place=f"{place}[{index}]")
    return [int(text) for text in texts]


def _read_number(text: Any, place: str) -> Fraction:
    if not isinstance(text, str) or not _NUMBER.match(text):
        raise InputError(f"{show_value(text)}; expected a number that is not negative", place=place)
    return Fraction(text)
