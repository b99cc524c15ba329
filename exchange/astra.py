"""Networks of ASTRA-sim's analytical backend (astra-sim 518bd51): YAML or JSON with a block for each dimension.

A GB is 2³⁰ bytes there (``common/NetworkFunction.cpp``); whose bandwidth and latency: docs/exchange/machines.md. A ring
of three and more has two links at an NPU, a fully connected block n - 1. ``logical-dims``, as in the files for ns-3,
are sizes alone. Exports beside a trace: docs/exchange/chakra.md.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

from ..core.collective import Collective
from ..core.errors import InputError, locate_errors, show_value
from ..core.fabric import TIERS, Block, links_per_npu
from ..core.files import read_text
from ..core.network_views import fabric_of
from ..core.strict_json import parse_json
from ..core.topology import Topology
from ..core.units import UnitKind, exact, parse
from ..instances.schema import MAX_LINKS
from .machine import checked_instance
from .plain_data import MAX_YAML_BYTES, read_yaml

MAX_DIMENSIONS, MAX_EXPRESSION = 16, 200
_BLOCKS = {"Ring": "RI", "FullyConnected": "FC", "Switch": "SW"}
_SIZE = re.compile(r"[0-9]{1,9}\Z")
_DECIMAL = re.compile(r"[0-9]{1,12}(?:\.[0-9]{0,12})?(?:[eE][+-]?[0-9]{1,2})?\Z")


def import_astra(
    path: Path,
    *,
    blocks: Sequence[str] = (),
    bandwidth: Sequence[str] = (),
    latency: Sequence[str] = (),
    fabric: bool = False,
    name: str | None = None,
) -> dict[str, Any]:
    """Make an instance of a network file.

    A file is JSON if its name ends so, else YAML. ``blocks``, ``bandwidth`` and ``latency`` of each dimension are given
    for ``logical-dims`` alone; rates and latencies are those of a link. With ``fabric`` the network is one of
    dimensions, for bandwidth designs and multi-rail methods, and not a graph.
    """
    with locate_errors(source=str(path)):
        if path.suffix == ".topo":
            text = "a topology of ns-3, with switches and links one by one"
            raise InputError(f"{text}; expected the backend's analytical network or logical-dims, or cwb import csv")
        data = parse_json(read_text(path, MAX_YAML_BYTES).encode(), 1000) if path.suffix == ".json" else read_yaml(path)
        if not isinstance(data, dict):
            raise InputError("expected an object")
        options = {"--blocks": blocks, "--bandwidth": bandwidth, "--latency": latency}
        read = _logical(data, options) if "logical-dims" in data else _analytical(data, options)
        network = _fabric(*read)
        basis = "as given" if "logical-dims" in data else "those of the file, where a GB is 2^30 bytes"
        about = f"{'_'.join(f'{block}({n})' for block, n in zip(*read[:2], strict=True))}, imported."
        origin = f"{path.name}, a network of ASTRA-sim; rates and latencies are {basis}"
        data = checked_instance(network, name=name or path.stem, description=about, source=origin)
        return data if fabric else {**data, "network": _expression(network)}


_Dimensions = tuple[list[str], list[int], list[Fraction], list[Fraction]]


def _analytical(data: Mapping[str, Any], options: Mapping[str, Sequence[str]]) -> _Dimensions:
    for option, values in options.items():
        if values:
            raise InputError("the file already sets it; expected only with logical-dims", source=option)
    topology = _list(data, "topology")
    blocks = [_block(word, f"topology[{i}]") for i, word in enumerate(topology)]
    sizes = _sizes(data, "npus_count", len(blocks))
    rates = [rate * 2**30 for rate in _numbers(data, "bandwidth", len(blocks), positive=True)]
    latencies = [ns / 10**9 for ns in _numbers(data, "latency", len(blocks), positive=False)]
    return blocks, sizes, rates, latencies


def _logical(data: Mapping[str, Any], options: Mapping[str, Sequence[str]]) -> _Dimensions:
    """Sizes of a file for ns-3; all else is given."""
    sizes = _sizes(data, "logical-dims", None)
    for option, values in options.items():
        if len(values) != len(sizes):
            hint = f"expected {option} for each of its {len(sizes)} dimensions"
            raise InputError(f"logical-dims contain only sizes: {len(values)} are given; {hint}")
    blocks = [_block(word, "--blocks") for word in options["--blocks"]]
    with locate_errors("--bandwidth"):
        rates = [parse(text, UnitKind.RATE, allow_zero=False) for text in options["--bandwidth"]]
    with locate_errors("--latency"):
        return blocks, sizes, rates, [parse(text, UnitKind.TIME) for text in options["--latency"]]


def _fabric(blocks: list[str], sizes: list[int], rates: list[Fraction], latencies: list[Fraction]) -> dict[str, Any]:
    share = [
        n - 1 if block == "FC" else 2 if block == "RI" and n > 2 else 1 for block, n in zip(blocks, sizes, strict=True)
    ]
    hops = [2 if block == "SW" else 1 for block in blocks]
    dims = "_".join(f"{block}({n})" for block, n in zip(blocks, sizes, strict=True))
    scales = ("GiB/s", 2**30), ("GB/s", 10**9)
    bandwidth = [
        min((exact(rate * n / scale, unit) for unit, scale in scales), key=len)
        for rate, n in zip(rates, share, strict=True)
    ]
    latency = [exact(time * n * 10**9, "ns") for time, n in zip(latencies, hops, strict=True)]
    links = prod(sizes) * sum(n - 1 if block == "FC" else 2 for block, n in zip(blocks, sizes, strict=True))
    if links > MAX_LINKS:
        raise InputError(f"{dims} has {links:,} links; expected at most {MAX_LINKS:,}")
    network = {"dimensions": dims, "bandwidth": bandwidth, "latency": latency}
    return network if len(sizes) <= len(TIERS) else {**network, "tiers": [f"tier {i + 1}" for i in range(len(sizes))]}


def _expression(network: Mapping[str, Any]) -> str:
    """Return the generator expression of the fabric's graph, which is cheap to check."""
    lists = [", ".join(f"'{text}'" for text in network[key]) for key in ("bandwidth", "latency")]
    text = f"fabric('{network['dimensions']}', bandwidth=[{lists[0]}], latency=[{lists[1]}])"
    if len(text) > MAX_EXPRESSION:
        raise InputError(f"its expression has {len(text)} characters; expected at most {MAX_EXPRESSION}, or --fabric")
    return text


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    values = data.get(key)
    if not isinstance(values, list) or not 0 < len(values) <= MAX_DIMENSIONS:
        raise InputError(f"{show_value(values)}; expected a list of 1 to {MAX_DIMENSIONS}", place=key)
    return values


def _block(word: object, place: str) -> str:
    if not isinstance(word, str) or word not in _BLOCKS:
        raise InputError(f"{show_value(word)}; expected {', '.join(_BLOCKS)}", place=place)
    return _BLOCKS[word]


def _sizes(data: Mapping[str, Any], key: str, count: int | None) -> list[int]:
    texts = [str(value) if type(value) in (int, str) else "" for value in _list(data, key)]
    for index, text in enumerate(texts):
        if not _SIZE.match(text) or int(text) < 2:
            raise InputError(f"{show_value(data[key][index])}; expected an integer from 2", place=f"{key}[{index}]")
    if count not in (None, len(texts)):
        raise InputError(f"{len(texts)} entries for {count} dimensions", place=key)
    return [int(text) for text in texts]


def _numbers(data: Mapping[str, Any], key: str, count: int, *, positive: bool) -> list[Fraction]:
    values = _list(data, key)
    if len(values) != count:
        raise InputError(f"{len(values)} entries for {count} dimensions", place=key)
    texts = [repr(each) if type(each) in (int, float) else each if isinstance(each, str) else "" for each in values]
    for index, text in enumerate(texts):
        if not _DECIMAL.match(text) or (positive and not Fraction(text)):
            expected = "above 0" if positive else "of at least 0"
            raise InputError(f"{show_value(values[index])}; expected a number {expected}", place=f"{key}[{index}]")
    return [Fraction(text) for text in texts]


#: Names of blocks in network files.
BLOCKS = {Block.RING: "Ring", Block.FULLY_CONNECTED: "FullyConnected", Block.SWITCH: "Switch"}

#: The collectives that a trace can be the algorithm of: the key in the system file, and the number in workloads.
COLLECTIVES = {
    Collective.ALL_REDUCE: ("all-reduce-implementation-custom", 0),
    Collective.ALL_GATHER: ("all-gather-implementation-custom", 2),
    Collective.ALL_TO_ALL: ("all-to-all-implementation-custom", 6),
    Collective.REDUCE_SCATTER: ("reduce-scatter-implementation-custom", 7),
}


@dataclass(frozen=True)
class Dimension:
    """A dimension: its block, its size, and what each of its links has."""

    block: Block
    size: int
    bandwidth_Bps: Fraction
    latency_s: Fraction


def dimensions_of(topology: Topology) -> tuple[Dimension, ...]:
    """Return the dimensions of a network, the innermost first; one that has none is an :class:`InputError`."""
    fabric = fabric_of(topology)
    if fabric is None:
        text = "the network has no dimensions of rings, switches and fully connected blocks, as ASTRA-sim's analytical"
        raise InputError(f"{text} one has; 'cwb export chakra' writes the traces alone", place="instance.network")
    rows = zip(fabric.dimensions, fabric.bandwidth_Bps, fabric.latency_s, strict=True)
    return tuple(
        Dimension(one.block, one.size, rate, delay / 2)
        if one.block is Block.SWITCH
        else Dimension(one.block, one.size, rate / links_per_npu(one), delay)
        for one, rate, delay in rows
    )


def network_text(dimensions: tuple[Dimension, ...]) -> str:
    """Write the network file, YAML; numbers have up to 12 decimals."""
    rows = {
        "topology": [BLOCKS[one.block] for one in dimensions],
        "npus_count": [str(one.size) for one in dimensions],
        "bandwidth": [_decimal(one.bandwidth_Bps / 2**30) for one in dimensions],
        "latency": [_decimal(one.latency_s * 10**9) for one in dimensions],
    }
    notes = {"bandwidth": "  # GB/s of a link; a GB is 2^30 bytes", "latency": "  # ns of a link"}
    return "".join(f"{key}: [ {', '.join(values)} ]{notes.get(key, '')}\n" for key, values in rows.items())


def _decimal(value: Fraction) -> str:
    """Format a number as ASTRA-sim does, such as 50.0."""
    text = f"{float(value):.12f}".rstrip("0")
    if value and not float(text):
        raise InputError(f"{float(value):g} is too small for a network file", place="instance.network")
    return f"{text}0" if text.endswith(".") else text


def system_text(kind: Collective, trace: str) -> str:
    """Write the system file, JSON: a trace implements the collective, in one split of the data."""
    if kind not in COLLECTIVES:
        names = ", ".join(one.name for one in COLLECTIVES)
        text = f"ASTRA-sim takes algorithms for {names}, not for {kind.name}"
        raise InputError(f"{text}; 'cwb export chakra' writes the traces alone", place="instance.collective")
    data = {
        "scheduling-policy": "FIFO",
        "endpoint-delay": 0,
        "preferred-dataset-splits": 1,
        COLLECTIVES[kind][0]: [trace],
    }
    return json.dumps(data, indent=2) + "\n"


MEMORY = '{\n  "memory-type": "NO_MEMORY_EXPANSION"\n}\n'  #: The memory file: nothing is loaded from elsewhere.
