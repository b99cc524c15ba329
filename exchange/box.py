"""Boxes of GPUs, read from the output of other programs, and the rates of their links.

A :class:`Box` has GPUs, links, and parts that only pass on: NVSwitches, PCIe switches, CPUs and NICs. A
:class:`Layout` says how many boxes there are, which NICs join them, and what stands in no file.

*Nominal* rates are lanes times signalling rate, without the line code. *Effective* rates are those that NCCL
(``src/graph/topo.h``, ``topo.cc``) and RCCL (``src/graph/topo.h``) use: measured, about 80 % of the nominal ones. All
are of one link in one direction, in GB/s. CPUs have effective rates only, and NICs nominal ones only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from ..core.errors import InputError, show_value
from ..core.units import UnitKind, parse
from ..instances.generators.nvidia import HYBRID_CUBE_MESH

LATENCY, NIC_LATENCY = "0.7 us", "1.3 us"

_TIMES = re.compile(r"(?:([0-9]{1,4}) *[x×*] *)?(.{1,80})\Z")


class Role(Enum):
    """Function of a part that is no GPU."""

    SWITCH = "switch"
    PCIE = "pcie"
    CPU = "cpu"
    NIC = "nic"


@dataclass(frozen=True)
class Cable:
    """A link in one direction."""

    source: str
    target: str
    rate_Bps: Fraction
    #: Whether it is part of the tree of PCIe devices and CPUs, and no link of its own between GPUs.
    pcie: bool = False


@dataclass(frozen=True)
class Box:
    """A machine."""

    gpus: tuple[str, ...]  #: Names in the order of their ranks.
    parts: Mapping[str, Role]
    cables: tuple[Cable, ...]
    #: Rate of the network port of every NIC in bytes per second, None if it is not known.
    ports: Mapping[str, Fraction | None] = field(default_factory=dict)
    chosen: bool = False  #: Whether the file assigns NICs to GPUs.
    nvls: bool = False  #: Whether its NVSwitches copy and add (NVLink SHARP), as those of Hopper and later do.


@dataclass(frozen=True)
class Times:
    """Number of links and the rate of one, such as ``12 x 25 GB/s``; the number is optional."""

    count: int | None
    rate_Bps: Fraction

    @classmethod
    def read(cls, text: str, *, counted: bool = False) -> Times:
        """Read a text."""
        found = _TIMES.match(text.strip())
        count = int(found[1]) if found and found[1] else None
        if found is None or count == 0 or (counted and count is None):
            raise InputError(f"{show_value(text)}; expected such as '12 x 25 GB/s'")
        return cls(count, parse(found[2], UnitKind.RATE, allow_zero=False))


class Wiring(Enum):
    """Wiring of the NVLinks between GPUs of a box."""

    SWITCH = "switch"
    MESH = "mesh"
    HYBRID_CUBE_MESH = "hybrid-cube-mesh"


@dataclass(frozen=True)
class Layout:
    """Network between boxes, and parts of a box to leave out."""

    boxes: int = 1
    nic: Times | None = None  #: Rate of a NIC and number of NICs to use, if the file lacks them or is overridden.
    nics: tuple[str, ...] = ()  #: Names of NICs that may be used; empty means all.
    rails: bool = False  #: Whether NIC i of every box is on a switch of its own.
    pcie: bool = False
    #: ``latency`` and ``nic_latency``: latency between two GPUs, and between two NICs.
    latency: str = LATENCY
    nic_latency: str = NIC_LATENCY
    nvls: bool | None = None  #: Whether NVSwitches copy and add; None: by the generation of the GPUs.


def wire_gpus(gpus: Sequence[str], links: Times, wiring: Wiring) -> tuple[dict[str, Role], list[Cable]]:
    """Join GPUs by their NVLinks."""
    count, peers = links.count or 1, len(gpus) - 1
    if wiring is Wiring.SWITCH:
        return {"nvswitch": Role.SWITCH}, [c for g in gpus for c in both(g, "nvswitch", links.rate_Bps * count)]
    if wiring is Wiring.MESH:
        if not peers or count % peers:
            raise InputError(f"{count} links of a GPU are no mesh of {len(gpus)} GPUs; expected a multiple of {peers}")
        pairs = {(i, j): count // peers for j in range(len(gpus)) for i in range(j)}
    else:
        if (count, peers) != (6, 7):
            raise InputError(f"{len(gpus)} GPUs of {count} links; a hybrid cube mesh has 8 of 6")
        pairs = dict(HYBRID_CUBE_MESH)
    return {}, [c for (i, j), n in pairs.items() for c in both(gpus[i], gpus[j], links.rate_Bps * n)]


def likely_wiring(gpus: int, links: int) -> Wiring:
    """Return the only wiring possible with so many links: a mesh has equally many for every pair."""
    if gpus > 1 and links % (gpus - 1) == 0:
        raise InputError(f"{links} NVLinks of {gpus} GPUs fit both a mesh and a switch; expected --wiring")
    if (gpus, links) == (8, 6):
        raise InputError("6 NVLinks of 8 GPUs fit both a hybrid cube mesh and a switch; expected --wiring")
    return Wiring.SWITCH


def both(one: str, other: str, rate: Fraction, *, pcie: bool = False) -> list[Cable]:
    """Return a link in each direction."""
    return [Cable(one, other, rate, pcie), Cable(other, one, rate, pcie)]


def join_cpus(cpus: Sequence[str], rate: Fraction | None) -> list[Cable]:
    """Return the links between CPUs."""
    if len(cpus) > 1 and rate is None:
        raise InputError(f"{len(cpus)} CPUs, and the rate between them is not in the text; expected --between-cpus")
    return [Cable(a, b, rate, pcie=True) for a in cpus for b in cpus if a != b and rate is not None]


def merge_cables(cables: Iterable[Cable]) -> tuple[Cable, ...]:
    """Merge links with equal ends into one of their summed rate, in order of first occurrence."""
    rates: dict[tuple[str, str, bool], Fraction] = {}
    for c in cables:
        key = (c.source, c.target, c.pcie)
        rates[key] = rates.get(key, Fraction(0)) + c.rate_Bps
    return tuple(Cable(source, target, rate, pcie) for (source, target, pcie), rate in rates.items())


def join_all(gpus: Sequence[str], cables: Iterable[Cable]) -> bool:
    """Return whether every GPU reaches every other one."""
    import networkx as nx

    graph = nx.DiGraph((c.source, c.target) for c in cables)
    graph.add_nodes_from(gpus)
    return any(part.issuperset(gpus) for part in nx.strongly_connected_components(graph))


GB = 10**9


class Rating(Enum):
    """Choice between nominal and effective rates."""

    EFFECTIVE = "effective"
    NOMINAL = "nominal"


@dataclass(frozen=True)
class LinkRate:
    """Rates of one link in one direction, in bytes per second."""

    nominal_Bps: Fraction
    effective_Bps: Fraction

    def by(self, rating: Rating) -> Fraction:
        """Return the rate in bytes per second."""
        return self.nominal_Bps if rating is Rating.NOMINAL else self.effective_Bps


def _rate(nominal: str, effective: str) -> LinkRate:
    return LinkRate(Fraction(nominal) * GB, Fraction(effective) * GB)


#: NVLinks by the lowest compute capability that has them: P100, V100, A100, A40 and A6000, H100, B200.
_NVLINK = {
    100: _rate("50", "40.1"),
    90: _rate("25", "20.6"),
    87: _rate("25", "20"),
    86: _rate("14.0625", "12"),
    80: _rate("25", "20"),
    70: _rate("25", "20"),
    60: _rate("20", "18"),
}


@dataclass(frozen=True)
class Generation:
    """NVLinks of a GPU."""

    links: int
    capability: int  #: Its compute capability times ten.


#: GPUs with NVLink, by their product names. The A800 and the H800 have 400 GB/s in both directions together.
GENERATIONS: Mapping[str, Generation] = {
    "p100": Generation(4, 60),
    "v100": Generation(6, 70),
    "a100": Generation(12, 80),
    "a800": Generation(8, 80),
    "h100": Generation(18, 90),
    "h200": Generation(18, 90),
    "h20": Generation(18, 90),
    "h800": Generation(8, 90),
    "gh200": Generation(18, 90),
    "b200": Generation(18, 100),
    "gb200": Generation(18, 100),
    "b300": Generation(18, 103),
    "gb300": Generation(18, 103),
}


NVLS_CAPABILITY = 90  #: The lowest compute capability whose NVSwitches copy and add (NVLink SHARP): that of Hopper.


def nvlink(capability: int) -> LinkRate:
    """Rates of an NVLink of a GPU."""
    for lowest, rate in _NVLINK.items():
        if capability >= lowest:
            return rate
    raise InputError(f"GPUs of compute capability {capability} have no NVLink; expected at least {min(_NVLINK)}")


#: xGMI links of 16 lanes: 23 GT/s (MI50, MI60, MI100), 25 GT/s (MI200) and 32 GT/s (MI300).
XGMI: Mapping[str, LinkRate] = {
    "gfx906": _rate("46", "24"),
    "gfx908": _rate("46", "24"),
    "gfx90a": _rate("50", "36"),
    "gfx940": _rate("64", "48"),
    "gfx941": _rate("64", "48"),
    "gfx942": _rate("64", "48"),
}

#: What older dumps write for the architecture.
_OLDER = {"906": "gfx906", "908": "gfx908", "910": "gfx90a", "940": "gfx940", "941": "gfx941", "942": "gfx942"}

#: AMD's GPUs with one xGMI link for a pair, by product name. Pairs of an MI200 have one, two or four.
AMD_GENERATIONS: Mapping[str, str] = {
    "mi50": "gfx906",
    "mi60": "gfx906",
    "mi100": "gfx908",
    "mi300a": "gfx942",
    "mi300x": "gfx942",
    "mi325x": "gfx942",
}


def xgmi(architecture: str) -> LinkRate:
    """Rates of an xGMI link of a GPU, by its architecture as dumps write it: ``gfx90a:sramecc+``, or ``910``."""
    name = architecture.partition(":")[0]
    found = XGMI.get(_OLDER.get(name, name))
    if found is None:
        raise InputError(f"{show_value(architecture)} is not known; expected one of {', '.join(XGMI)}")
    return found


#: A lane of PCIe by its signalling rate: 8b/10b below 8 GT/s, 128b/130b up to 32, flits of 242 in 256 bytes at 64.
_PCIE_LANE = {
    "2.5": LinkRate(Fraction(GB, 4), Fraction(15 * GB, 80)),
    "5": LinkRate(Fraction(GB, 2), Fraction(30 * GB, 80)),
    "8": LinkRate(Fraction(128 * GB, 130), Fraction(60 * GB, 80)),
    "16": LinkRate(Fraction(2 * 128 * GB, 130), Fraction(120 * GB, 80)),
    "32": LinkRate(Fraction(4 * 128 * GB, 130), Fraction(240 * GB, 80)),
    "64": LinkRate(Fraction(8 * 242 * GB, 256), Fraction(480 * GB, 80)),
}


def pcie(speed: str, width: int) -> LinkRate:
    """Return the rates of a PCIe link: signalling rate, such as ``16 GT/s`` or ``16.0 GT/s PCIe``, and number of lanes.

    As in NCCL, an unknown speed counts as 8 GT/s and a width of 0 as 16 lanes.
    """
    lane = _PCIE_LANE.get(speed.partition(" GT/s")[0].removesuffix(".0"), _PCIE_LANE["8"])
    return LinkRate(lane.nominal_Bps * (width or 16), lane.effective_Bps * (width or 16))


def between_cpus(architecture: str, vendor: str, family: int, model: int) -> Fraction:
    """Return NCCL's rate between two CPUs in bytes per second.

    Names are those of dumps: architecture ``x86_64``, ``arm64`` or ``ppc64``; vendor ``GenuineIntel`` and others.
    """
    rate = {"ppc64": 32, "arm64": 6}.get(architecture)
    if architecture == "x86_64":
        if vendor == "GenuineIntel":
            rates = ((0xCF, 40), (0x8F, 22), (0x55, 10))
            rate = next((r for least, r in rates if family == 6 and model >= least), 6)
        elif vendor == "AuthenticAMD":
            rate = 16
        elif vendor.strip() in ("CentaurHauls", "Shanghai"):
            rate = 9 if (family, model) == (7, 0x5B) else 6
    if rate is None:
        found = f"{show_value(architecture)}, {show_value(vendor)}"
        raise InputError(f"the rate between CPUs of {found} is not known; expected x86_64, arm64 or ppc64 and a vendor")
    return Fraction(rate * GB)


#: Between a CPU and a device that is no PCIe device, and between parts of one: no limit in practice.
LOCAL_Bps = Fraction(5000 * GB)


@dataclass(frozen=True)
class Rates:
    """Rates that a text of links lacks."""

    rating: Rating = Rating.EFFECTIVE
    generation: str | None = None  #: A GPU of :data:`GENERATIONS` or :data:`AMD_GENERATIONS`.
    links: Times | None = None  #: NVLinks of a GPU, or xGMI links of a pair, and the rate of one.
    #: ``pcie_Bps`` and ``cpus_Bps``: rate of a PCIe link, and between two CPUs.
    pcie_Bps: Fraction | None = None
    cpus_Bps: Fraction | None = None
