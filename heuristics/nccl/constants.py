"""Numbers of NCCL's performance model, by version: facts of ``src/graph/tuning.cc`` at the tag ``v<version>-1``.

They are in ``tunings.json``. A version stands for those up to the next one here whose numbers are the same, or nearly.
Latencies are in microseconds, bandwidths in GB/s.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

Triple = tuple[float, float, float]  #: A number for each protocol: LL, LL128, Simple; or for 1, 2 and more boxes.


class Algorithm(Enum):
    """NCCL's algorithms, in its order: of equal times the first is taken."""

    TREE = "tree"
    RING = "ring"
    COLLNET_DIRECT = "collnet-direct"
    COLLNET_CHAIN = "collnet-chain"
    NVLS = "nvls"
    NVLS_TREE = "nvls-tree"
    PAT = "pat"


class Protocol(Enum):
    """Protocol of data and flags."""

    LL = "ll"
    LL128 = "ll128"
    SIMPLE = "simple"


class Hardware(Enum):
    """Hardware of a hop."""

    NVLINK = "nvlink"
    PCI = "pci"
    NET = "net"


#: Generations of GPUs, oldest first, by which caps are told apart.
GENERATIONS = ("volta", "ampere", "hopper", "blackwell")

NONE: Triple = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Tuning:
    """The numbers of a version.

    Costs of a call are in microseconds by algorithm, those of a hop by hardware and algorithm. By generation are the
    largest bandwidth of LL, then the largest ones of a channel, each for 1, 2 and more boxes; between boxes the cap of
    LL depends on the CPU: "volta" is Intel's, "ampere" AMD's. ``nvls_efficiency`` and ``pat`` are the part of the
    bandwidth that NVLS, by generation, and PAT attain; 0 if the version has no PAT.
    """

    version: tuple[int, int, int]
    base_us: Mapping[Algorithm, Triple]
    hop_us: Mapping[Hardware, Mapping[Algorithm, Triple]]
    ll_max: Mapping[str, Triple]
    tree_max: Mapping[str, Triple]
    ring_ll128_max: Mapping[str, Triple]
    tree_ll128_max: Mapping[str, Triple]
    nvls_tree_max: Mapping[str, Triple]
    nvls_efficiency: Mapping[str, float]
    pat: float
    measured: Mapping[str, Any] | None = None  #: Tables of RCCL, which take the place of NCCL's caps.

    @property
    def name(self) -> str:
        """The version in words."""
        return ".".join(map(str, self.version))


def _by_algorithm(rows: Mapping[str, Sequence[float]]) -> dict[Algorithm, Triple]:
    return {Algorithm(name): _triple(row) for name, row in rows.items()}


def _triple(numbers: Sequence[float]) -> Triple:
    low, middle, high = map(float, numbers)
    return low, middle, high


def _read_tunings() -> Iterator[Tuning]:
    """Read the versions; each has the numbers of the one before that it does not change."""
    numbers: dict[str, Any] = {}
    hops: dict[Hardware, dict[Algorithm, Triple]] = {hardware: {} for hardware in Hardware}
    for version, table in json.loads(Path(__file__).with_name("tunings.json").read_text()).items():
        for hardware, row in table.pop("hop_us", {}).items():
            hops[Hardware(hardware)] = hops[Hardware(hardware)] | _by_algorithm(row)
        if "base_us" in table:
            numbers["base_us"] = _by_algorithm(table.pop("base_us"))
        if "nvls_efficiency" in table:
            numbers["nvls_efficiency"] = dict(zip(GENERATIONS, table.pop("nvls_efficiency"), strict=True))
        numbers["pat"] = table.pop("pat", numbers.get("pat"))
        table.pop("about", None)
        for name, rows in table.items():  # generations without a row of their own have the last one
            numbers[name] = {of: _triple(rows[min(i, len(rows) - 1)]) for i, of in enumerate(GENERATIONS)}
        major, minor, patch = map(int, version.split("."))
        yield Tuning((major, minor, patch), hop_us=dict(hops), **numbers)


TUNINGS: Mapping[str, Tuning] = {one.name: one for one in _read_tunings()}  #: By the name of the version.


def _read_rccl() -> Iterator[tuple[str, Tuning]]:
    """Read RCCL's tables by GPU; its formulas of latencies are those of NCCL 2.27."""
    tables = json.loads(Path(__file__).with_name("rccl.json").read_text())
    base = replace(TUNINGS["2.27.3"], base_us=_by_algorithm(tables["base_us"]), pat=0.0)
    for gpu, rows in tables["gpus"].items():
        hops = {Hardware(hardware): _by_algorithm(row) for hardware, row in rows["hop_us"].items()}
        yield gpu, replace(base, hop_us=hops, measured=rows)


RCCL_TUNINGS = dict(_read_rccl())  #: By GPU.


def nearest_tuning(version: str) -> Tuning:
    """Return the numbers of a version, or of the nearest one known: of the newer of two as near."""
    major, minor, patch = map(int, version.split("."))
    place = (100 * major + minor) * 100 + patch

    def distance(one: Tuning) -> tuple[int, int]:
        number = (100 * one.version[0] + one.version[1]) * 100 + one.version[2]
        return abs(number - place), -number

    return min(TUNINGS.values(), key=distance)


#: Numbers that all versions share: ``tree_correction`` and ``speeds``.
_COMMON = json.loads(Path(__file__).with_name("common.json").read_text())

#: Trees are slower at sizes in between: part of the bandwidth from 64 B on, for each power of two; LL, LL128, Simple.
TREE_CORRECTION = {Protocol(name): tuple(map(float, parts)) for name, parts in _COMMON["tree_correction"].items()}

#: Speeds that are tried, GB/s, by generation: within a box that is alone, and with other boxes (2.30.7, and RCCL).
SPEEDS = {gpu: (tuple(alone), tuple(others)) for gpu, (alone, others) in _COMMON["speeds"].items()}
