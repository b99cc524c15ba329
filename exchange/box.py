"""Boxes of GPUs, read from the output of other programs.

A :class:`Box` has GPUs, links, and parts that only pass on: NVSwitches, PCIe switches, CPUs and NICs. A
:class:`Layout` says how many boxes there are, which NICs join them, and what stands in no file.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import Self

from ..core.errors import InputError, show_value
from ..core.grouping import group_by_key
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
    pcie: bool = False  #: Whether it is part of the tree of PCIe devices and CPUs, and no link of its own between GPUs.


@dataclass(frozen=True)
class Box:
    """A machine."""

    gpus: tuple[str, ...]  #: Names in the order of their ranks.
    parts: Mapping[str, Role]
    cables: tuple[Cable, ...]
    #: Rate of the network port of every NIC in bytes per second, None if it is not known.
    ports: Mapping[str, Fraction | None] = field(default_factory=dict)
    assigns_nics: bool = False  #: Whether the file assigns NICs to GPUs.
    nvls: bool = False  #: Whether its NVSwitches copy and add (NVLink SHARP), as those of Hopper and later do.


@dataclass(frozen=True)
class Times:
    """Number of links and the rate of one, such as ``12 x 25 GB/s``; the number is optional."""

    count: int | None
    rate_Bps: Fraction

    @classmethod
    def read(cls, text: str, *, with_count: bool = False) -> Self:
        """Read a text."""
        match = _TIMES.match(text.strip())
        count = int(match[1]) if match and match[1] else None
        if match is None or count == 0 or (with_count and count is None):
            raise InputError(f"{show_value(text)}; expected such as '12 x 25 GB/s'")
        return cls(count, parse(match[2], UnitKind.RATE, allow_zero=False))


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
    rack: int | None = None  #: GPUs of a rack that NVSwitches join, if the file describes one tray of it.
    trays: int = 1  #: Trays of a box: its NICs are on as many switches as a tray has NICs.


def rack_of(tray: Box, layout: Layout) -> tuple[Box, Layout]:
    """Return the rack of equal trays on one NVSwitch, and its layout, whose boxes are racks."""
    trays, rest = divmod(layout.rack or 0, len(tray.gpus))
    switches = [name for name, role in tray.parts.items() if role is Role.SWITCH]
    if not trays or rest:
        raise InputError(f"{layout.rack} GPUs; expected a multiple of {len(tray.gpus)}, as in a tray", source="--rack")
    if len(switches) != 1 or {c.source for c in tray.cables if c.target in switches} != {*tray.gpus}:
        raise InputError("the GPUs are not on one NVSwitch; expected a tray such as that of an NVL72", source="--rack")

    def name_in(name: str, number: int) -> str:
        if name in tray.gpus:
            return f"gpu{number * len(tray.gpus) + tray.gpus.index(name)}"
        return name if name in switches else f"{name}-{number}"

    numbers, nic = range(trays), layout.nic
    rack = replace(
        tray,
        gpus=tuple(name_in(gpu, i) for i in numbers for gpu in tray.gpus),
        parts={name_in(part, i): role for i in numbers for part, role in tray.parts.items()},
        cables=tuple(
            replace(c, source=name_in(c.source, i), target=name_in(c.target, i)) for i in numbers for c in tray.cables
        ),
        ports={name_in(port, i): rate for i in numbers for port, rate in tray.ports.items()},
    )
    if nic is not None and nic.count is not None:
        nic = replace(nic, count=nic.count * trays)
    return rack, replace(
        layout, nic=nic, nics=tuple(name_in(one, i) for i in numbers for one in layout.nics), trays=trays
    )


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
    rates = group_by_key(((c.source, c.target, c.pcie), c.rate_Bps) for c in cables)
    return tuple(Cable(a, b, sum(some, Fraction(0)), pcie) for (a, b, pcie), some in rates.items())


def join_all(gpus: Sequence[str], cables: Iterable[Cable]) -> bool:
    """Return whether every GPU reaches every other one."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_edges_from((c.source, c.target) for c in cables)
    graph.add_nodes_from(gpus)
    return any(part.issuperset(gpus) for part in nx.strongly_connected_components(graph))
