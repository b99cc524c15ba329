"""Nominal and effective rates of NVLink, xGMI, PCIe and links between CPUs (docs/exchange/machines.md, "Rates").

*Nominal* rates are lanes times signalling rate, without the line code. All are of one link in one direction, in GB/s.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path

from ..core.errors import InputError, show_value
from .box import Times, Wiring

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


_TABLES = json.loads(Path(__file__).with_name("link_rates.json").read_text())  #: The tables, which say what they are.

_NVLINK = {int(lowest): _rate(*rates) for lowest, rates in _TABLES["nvlink"].items()}


@dataclass(frozen=True)
class Generation:
    """NVLinks of a GPU."""

    links: int
    capability: int  #: Its compute capability times ten.

    def nvlinks(self, rating: Rating) -> Times:
        """Return their number, and the rate of one."""
        return Times(self.links, nvlink(self.capability).by(rating))


#: GPUs with NVLink, by their product names.
GENERATIONS: Mapping[str, Generation] = {name: Generation(*row) for name, row in _TABLES["generations"].items()}

NVLS_CAPABILITY = 90  #: The lowest compute capability whose NVSwitches copy and add (NVLink SHARP): that of Hopper.


def nvlink(capability: int) -> LinkRate:
    """Rates of an NVLink of a GPU."""
    for lowest, rate in _NVLINK.items():
        if capability >= lowest:
            return rate
    raise InputError(f"GPUs of compute capability {capability} have no NVLink; expected at least {min(_NVLINK)}")


#: xGMI links by architecture, and by product name the architecture of AMD's GPUs with one such link for a pair.
XGMI: Mapping[str, LinkRate] = {name: _rate(*rates) for name, rates in _TABLES["xgmi"].items()}
AMD_GENERATIONS: Mapping[str, str] = _TABLES["amd_generations"]
_OLDER: Mapping[str, str] = _TABLES["older_names"]  #: What older dumps write for the architecture.


def xgmi(architecture: str) -> LinkRate:
    """Rates of an xGMI link of a GPU, by its architecture as dumps write it: ``gfx90a:sramecc+``, or ``910``."""
    name = architecture.partition(":")[0]
    rate = XGMI.get(_OLDER.get(name, name))
    if rate is None:
        raise InputError(f"{show_value(architecture)} is not known; expected one of {', '.join(XGMI)}")
    return rate


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
    """Return the rates of a PCIe link; an unknown speed is 8 GT/s, an unknown width 16 lanes."""
    lane = _PCIE_LANE.get(speed.partition(" GT/s")[0].removesuffix(".0"), _PCIE_LANE["8"])
    return LinkRate(lane.nominal_Bps * (width or 16), lane.effective_Bps * (width or 16))


CPUS: Mapping[str, int] = _TABLES["cpus"]  #: Rates between two CPUs in GB/s; those of Intel by generation.


def between_cpus(architecture: str, vendor: str, family: int, model: int) -> Fraction:
    """Return NCCL's rate between two CPUs in bytes per second, of words as in dumps (``x86_64``, ``GenuineIntel``)."""
    name = {"ppc64": "power", "arm64": "arm"}.get(architecture)
    if architecture == "x86_64" and vendor == "GenuineIntel":
        generations = ((0xCF, "granite-rapids"), (0x8F, "sapphire-rapids"), (0x55, "skylake"))
        name = next((name for least, name in generations if family == 6 and model >= least), "broadwell")
    elif architecture == "x86_64" and vendor.strip() in ("CentaurHauls", "Shanghai"):
        name = "kh-40000" if (family, model) == (7, 0x5B) else "zhaoxin"
    elif (architecture, vendor) == ("x86_64", "AuthenticAMD"):
        name = "amd"
    if name is None:
        cpu = f"{show_value(architecture)}, {show_value(vendor)}"
        expected = "expected x86_64, arm64 or ppc64 and a vendor, or --cpu or --between-cpus"
        raise InputError(f"the rate between CPUs of {cpu} is not known; {expected}")
    return Fraction(CPUS[name] * GB)


#: Between a CPU and a device that is no PCIe device, and between parts of one: no limit in practice.
LOCAL_Bps = Fraction(5000 * GB)


@dataclass(frozen=True)
class Rates:
    """Rates and links that a file lacks, as its user says them."""

    rating: Rating = Rating.EFFECTIVE
    generation: str | None = None  #: A GPU of :data:`GENERATIONS` or :data:`AMD_GENERATIONS`.
    links: Times | None = None  #: NVLinks of a GPU, or xGMI links of a pair, and the rate of one.
    #: ``pcie_Bps`` and ``cpus_Bps``: rate of a PCIe link, and between two CPUs.
    pcie_Bps: Fraction | None = None
    cpus_Bps: Fraction | None = None
    wiring: Wiring | None = None  #: Of the NVLinks; None if it follows from their number.
    pcie_only: bool = False
