"""The text of ``rocm-smi --showtopo``.

It prints matrices over pairs of GPUs (weight, hops, link type) and the NUMA node of each GPU. A pair has an xGMI link
if its type is ``XGMI`` and its weight 15, which is one hop; a weight of 30 is two hops. The matrix of hops is not
read, since it has a 1 for every xGMI pair, even without a link of its own. Pairs of type ``PCIE`` communicate over
CPUs, one for each NUMA node.

The text does not say how many xGMI links join a pair: one on MI50 to MI100 and on MI300, one, two or four on MI200.
It has no rates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..core.errors import InputError, locate_errors, show_value
from ..core.files import read_text
from .box import Box, Cable, Layout, Role, both, join_all, join_cpus
from .link_rates import AMD_GENERATIONS, XGMI, Rates
from .machine import machine_instance

MAX_BYTES = 2**20
MAX_GPUS = 256
_ONE_HOP = 15

_GPU = re.compile(r"GPU[0-9]{1,4}\Z")
_NUMA = re.compile(r"GPU\[([0-9]{1,4})\]\s*:\s*\(Topology\) Numa Node: (-?[0-9]{1,4})\s*\Z")
_WEIGHTS, _TYPES = "weight between two gpus", "link type between two gpus"


@dataclass(frozen=True)
class Relations:
    """Relations between the GPUs of a box."""

    gpus: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    numa: Mapping[str, int]


def import_rocm_smi(path: Path, layout: Layout, rates: Rates, *, name: str | None = None) -> dict[str, Any]:
    """Convert the text to the data of an instance file."""
    with locate_errors(source=str(path)):
        relations = read_relations(read_text(path, MAX_BYTES))
        parts: dict[str, Role] = {}
        cables: list[Cable] = []
        origin = "no xGMI links; rates of PCIe as given"
        if relations.links:
            rate, origin = _xgmi_rate(rates)
            cables += [Cable(a, b, rate) for a, b in relations.links]
        if rates.pcie_Bps is not None:
            parts, tree = _pcie_tree(relations, rates.pcie_Bps, rates.cpus_Bps)
            cables += tree
        elif not join_all(relations.gpus, cables):
            raise InputError("PCIe joins GPUs that xGMI does not, and its rate is not in the text; expected --pcie")
        box = Box(relations.gpus, parts, tuple(cables))
        told = f"{path.name}, rocm-smi --showtopo; {origin}"
        return machine_instance(box, layout, name=name or path.stem, source=told)


def read_relations(text: str) -> Relations:
    """Read the blocks of weights, link types and NUMA nodes."""
    blocks: dict[str, list[str]] = {}
    numa: dict[str, int] = {}
    title = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("=") and line.endswith("="):
            title = line.strip("= ").lower()
        elif (node := _NUMA.match(line)) is not None:
            numa[f"gpu{node[1]}"] = int(node[2])
        elif line:
            blocks.setdefault(title, []).append(line)
    weights, types = (_matrix(blocks.get(title, []), title) for title in (_WEIGHTS, _TYPES))
    gpus = tuple(dict.fromkeys(a for a, _ in weights))
    if gpus != tuple(dict.fromkeys(a for a, _ in types)):
        raise InputError("weights and link types list different GPUs")
    links: list[tuple[str, str]] = []
    for (a, b), kind in types.items():
        if a == b:
            continue
        with locate_errors(f"{a} to {b}"):
            if (kind, weights[a, b]) != (types[b, a], weights[b, a]):
                text = f"{show_value(kind)} of weight {show_value(weights[a, b])}, but different in the other direction"
                raise InputError(text)
            if kind not in ("XGMI", "PCIE"):
                raise InputError(f"link type {show_value(kind)}; expected XGMI or PCIE")
            if not re.match(r"[0-9]{1,6}\Z", weights[a, b]):
                raise InputError(f"weight {show_value(weights[a, b])}; expected an integer")
            if kind == "XGMI" and int(weights[a, b]) == _ONE_HOP:
                links.append((a, b))
    return Relations(gpus, tuple(links), {gpu: numa.get(gpu, 0) for gpu in gpus})


def _matrix(lines: list[str], title: str) -> dict[tuple[str, str], str]:
    with locate_errors(title):
        header = lines[0].split() if lines else []
        if not header or not all(map(_GPU.match, header)) or len(set(header)) < len(header):
            raise InputError("no such block; expected the text of rocm-smi --showtopo")
        if len(header) > MAX_GPUS:
            raise InputError(f"{len(header):,} GPUs; expected at most {MAX_GPUS}")
        rows = {words[0]: words[1:] for words in map(str.split, lines[1:]) if words[0] in header}
        for row in header:
            if len(rows.get(row, ())) != len(header):
                raise InputError(f"{len(rows.get(row, ()))} cells in the row of {row}; expected {len(header)}")
        return {(a.lower(), b.lower()): rows[a][j] for a in header for j, b in enumerate(header)}


def _xgmi_rate(rates: Rates) -> tuple[Fraction, str]:
    if rates.links is not None:
        return rates.links.rate_Bps * (rates.links.count or 1), "rates of xGMI as given"
    if rates.generation is None:
        raise InputError(
            "the text says neither how many xGMI links join a pair nor how fast they are; expected --generation"
            f" ({', '.join(AMD_GENERATIONS)}) or --xgmi such as '2 x 50 GB/s'"
        )
    rate = XGMI[AMD_GENERATIONS[rates.generation]].by(rates.rating)
    return rate, f"rates of xGMI are the {rates.rating.value} ones of {rates.generation.upper()}, one link for a pair"


def _pcie_tree(relations: Relations, rate: Fraction, cpus: Fraction | None) -> tuple[dict[str, Role], list[Cable]]:
    nodes = sorted(set(relations.numa.values()))
    called = {node: f"cpu{max(node, 0)}" for node in nodes}
    if len(set(called.values())) < len(nodes):
        raise InputError("some GPUs have the NUMA node 0, others none; expected one for all")
    cables = [c for gpu in relations.gpus for c in both(gpu, called[relations.numa[gpu]], rate, pcie=True)]
    return dict.fromkeys(called.values(), Role.CPU), cables + join_cpus([*called.values()], cpus)
