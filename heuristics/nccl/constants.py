"""Numbers of NCCL's performance model, by version: facts of ``src/graph/tuning.cc`` at the tag ``v<version>-1``.

A version stands for those up to the next one here whose numbers are the same, or nearly. Latencies are in microseconds,
bandwidths in GB/s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

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

_TREE, _RING, _DIRECT, _CHAIN, _NVLS, _NVLS_TREE, _PAT = Algorithm
NONE: Triple = (0.0, 0.0, 0.0)


def _simple(latency: float) -> Triple:
    return (0.0, 0.0, latency)


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

    @property
    def name(self) -> str:
        """The version in words."""
        return ".".join(map(str, self.version))


def _by_generation(*rows: Triple) -> dict[str, Triple]:
    """Return rows by generation; those without a row of their own have the last one."""
    return {name: rows[min(i, len(rows) - 1)] for i, name in enumerate(GENERATIONS)}


_INTEL, _AMD = (39.0, 39.0, 20.4), (87.7, 22.5, 19.0)
_VOLTA_TREE, _AMPERE_TREE, _HOPPER_TREE = (26.5, 18.5, 10.0), (24.0, 23.6, 17.8), (38.7, 41.4, 36.0)
_20, _37 = (20.0, 20.0, 20.0), (36.7, 36.7, 36.7)

#: 2.10.3: one kind of CollNet, here as the direct one; no GPU newer than the A100.
_2_10 = Tuning(
    version=(2, 10, 3),
    base_us={_TREE: (4.4, 4.4, 0.0), _RING: (3.6, 10.0, 8.4), _DIRECT: (4.4, 4.4, 0.0)},
    hop_us={
        Hardware.NVLINK: {_TREE: (0.52, 1.25, 28.0), _RING: (0.47, 1.9, 3.4), _DIRECT: (0.5, 1.2, 8.0)},
        Hardware.PCI: {_TREE: (1.0, 1.9, 28.0), _RING: (1.0, 2.5, 5.7), _DIRECT: (1.0, 1.9, 8.0)},
        Hardware.NET: {_TREE: (5.0, 8.5, 28.0), _RING: (2.7, 4.0, 9.6), _DIRECT: (5.0, 5.0, 10.7)},
    },
    ll_max=_by_generation(_INTEL, _AMD),
    tree_max=_by_generation(_VOLTA_TREE, _AMPERE_TREE),
    ring_ll128_max=_by_generation(_20),
    tree_ll128_max=_by_generation(_20),
    nvls_tree_max=_by_generation(NONE),
    nvls_efficiency=dict.fromkeys(GENERATIONS, 0.0),
    pat=0.0,
)

#: 2.20.3: NVLS, two kinds of CollNet, Hopper.
_2_20 = replace(
    _2_10,
    version=(2, 20, 3),
    base_us={_TREE: (6.8, 14.0, 0.0), _RING: (6.6, 14.0, 8.4)},
    hop_us={
        Hardware.NVLINK: {
            _TREE: (0.6, 1.25, 28.0),
            _RING: (0.6, 1.9, 3.4),
            _DIRECT: _simple(3.7),
            _CHAIN: _simple(2.8),
            _NVLS: _simple(23.0),
            _NVLS_TREE: _simple(23.0),
        },
        Hardware.PCI: {_TREE: (1.0, 1.9, 28.0), _RING: (1.0, 2.5, 5.7), _DIRECT: _simple(3.7), _CHAIN: _simple(2.8)},
        Hardware.NET: {
            _TREE: (5.0, 8.5, 28.0),
            _RING: (2.7, 4.0, 14.0),
            _DIRECT: _simple(31.0),
            _CHAIN: _simple(30.0),
            _NVLS: _simple(18.0),
            _NVLS_TREE: _simple(14.0),
        },
    },
    tree_max=_by_generation(_VOLTA_TREE, _AMPERE_TREE, _HOPPER_TREE),
    ring_ll128_max=_by_generation(_20, _20, _37),
    tree_ll128_max=_by_generation(_20, _20, (36.7, 36.7, 29.0)),
    nvls_efficiency={"volta": 0.0, "ampere": 0.0, "hopper": 1.0, "blackwell": 1.0},
)

_HOPPER_LL, _BLACKWELL_LL = (141.0, 45.0, 35.0), (282.0, 90.0, 70.0)


def _with_hops(
    old: Mapping[Hardware, Mapping[Algorithm, Triple]], new: Mapping[Hardware, Mapping[Algorithm, Triple]]
) -> dict[Hardware, dict[Algorithm, Triple]]:
    return {hardware: {**row, **new.get(hardware, {})} for hardware, row in old.items()}


#: 2.23.4: PAT, faster trees in Simple; the caps of LL on Hopper are those of 2.21.5.
_2_23 = replace(
    _2_20,
    version=(2, 23, 4),
    base_us={_TREE: (6.8, 14.0, 8.4), _RING: (6.6, 14.0, 8.4), _PAT: (8.0, 8.0, 8.0)},
    hop_us=_with_hops(
        _2_20.hop_us,
        {
            Hardware.NVLINK: {
                _TREE: (0.6, 1.25, 4.0),
                _NVLS: _simple(25.0),
                _NVLS_TREE: _simple(25.0),
                _PAT: _simple(4.0),
            },
            Hardware.PCI: {_TREE: (1.0, 1.9, 4.0), _PAT: _simple(4.0)},
            Hardware.NET: {_TREE: (5.0, 8.5, 14.0), _PAT: _simple(14.0)},
        },
    ),
    ll_max=_by_generation(_INTEL, _AMD, _HOPPER_LL),
    pat=0.85,
)

#: 2.27.3: Blackwell, whose numbers are twice Hopper's.
_2_27 = replace(
    _2_23,
    version=(2, 27, 3),
    ll_max=_by_generation(_INTEL, _AMD, _HOPPER_LL, _BLACKWELL_LL),
    tree_max=_by_generation(_VOLTA_TREE, _AMPERE_TREE, _HOPPER_TREE, (77.4, 82.8, 72.0)),
    ring_ll128_max=_by_generation(_20, _20, _37, (73.4, 73.4, 73.4)),
    tree_ll128_max=_by_generation(_20, _20, (36.7, 36.7, 29.0), (73.4, 73.4, 58.0)),
    pat=0.75,
)

#: 2.29.7: measured numbers of Blackwell, caps and efficiencies of NVLS.
_2_29 = replace(
    _2_27,
    version=(2, 29, 7),
    hop_us=_with_hops(_2_27.hop_us, {Hardware.NET: {_NVLS_TREE: _simple(20.9)}}),
    tree_max=_by_generation(_VOLTA_TREE, _AMPERE_TREE, _HOPPER_TREE, (70.0, 42.8, 24.0)),
    ring_ll128_max=_by_generation(_20, _20, _37, (40.0, 40.0, 40.0)),
    tree_ll128_max=_by_generation(_20, _20, (36.7, 36.7, 29.0), (55.6, 31.67, 20.0)),
    nvls_tree_max=_by_generation(_VOLTA_TREE, _AMPERE_TREE, (0.0, 57.7, 45.5), (0.0, 96.0, 43.8)),
    nvls_efficiency={"volta": 0.0, "ampere": 0.0, "hopper": 0.85, "blackwell": 0.74},
)

#: 2.30.7.
_2_30 = replace(
    _2_29,
    version=(2, 30, 7),
    nvls_tree_max=_by_generation(_VOLTA_TREE, _AMPERE_TREE, (0.0, 57.7, 45.5), (0.0, 96.0, 80.0)),
)

#: By the name of the version.
TUNINGS: Mapping[str, Tuning] = {one.name: one for one in (_2_10, _2_20, _2_23, _2_27, _2_29, _2_30)}


def nearest_tuning(version: str) -> Tuning:
    """Return the numbers of a version, or of the nearest one known: of the newer of two as near."""
    major, minor, patch = map(int, version.split("."))
    place = (100 * major + minor) * 100 + patch

    def distance(one: Tuning) -> tuple[int, int]:
        known = (100 * one.version[0] + one.version[1]) * 100 + one.version[2]
        return abs(known - place), -known

    return min(TUNINGS.values(), key=distance)


#: Trees are slower at sizes in between: part of the bandwidth from 64 B on, for each power of two; LL, LL128, Simple.
TREE_CORRECTION: Mapping[Protocol, tuple[float, ...]] = {
    Protocol.LL: (
        *(1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5),
        *(0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1),
    ),
    Protocol.LL128: (
        *(1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6),
        *(0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
    ),
    Protocol.SIMPLE: (
        *(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5),
        *(0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9),
    ),
}
