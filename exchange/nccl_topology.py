"""Topologies that NCCL and RCCL write (``NCCL_TOPO_DUMP_FILE``) and read (``NCCL_TOPO_FILE``), as instances.

A ``system`` has CPUs (NUMA nodes), each with a tree of PCIe devices; GPUs among them list their NVLinks, xGMI links
(RCCL's version 2) and links to the CPU (``c2c``), NICs their network ports. What each link carries follows NCCL's
``src/graph/topo.cc`` at version 2.30 (docs/exchange/machines.md); a port without speed counts as 10 Gb/s, and ports of
one device share its PCIe link.
"""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..core.errors import InputError, locate_errors, show_value
from ..core.files import read_text
from .box import Box, Cable, Layout, Role, both, likely_wiring, merge_cables, wire_gpus
from .link_rates import GB, GENERATIONS, NVLS_CAPABILITY, LOCAL_Bps, Rates, between_cpus, nvlink, pcie, xgmi
from .machine import machine_instance
from .nccl import graph_box
from .xml import Element, parse_xml

#: NCCL itself reads no more than 256 nodes of a kind; a dump of 72 GPUs has 0.3 MB.
MAX_BYTES = 8 * 2**20
MAX_CPUS, MAX_GPUS, MAX_PARTS = 256, 576, 4096
_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,18})\Z")


def import_nccl(path: Path, layout: Layout, rates: Rates, *, graph: int = 0, name: str | None = None) -> dict[str, Any]:
    """Make an instance of a topology file, or of a graph file."""
    with locate_errors(source=str(path)):
        root = parse_xml(read_text(path, MAX_BYTES))
        if root.tag == "graphs":
            box = graph_box(root, graph)
            source = f"{path.name}, a graph that NCCL searched; rates are what its channels use"
        elif root.tag == "system":
            box = system_box(root, rates)
            source = f"{path.name}, a topology of NCCL; rates of links are {rates.rating.value}, as NCCL counts"
            source += ", but those of NVLinks as given" if rates.links else ""
            source += "" if _has_classes(root) else "; devices without a class or others below count as GPUs"
        else:
            raise InputError(f"its root is {show_value(root.tag)}; expected system or graphs")
        return machine_instance(box, layout, name=name or path.stem, source=source)


def system_box(root: Element, rates: Rates) -> Box:
    """Read the ``system`` of a topology file."""
    reader = _Reader(rates, _has_classes(root))
    cpus = [child for child in root if child.tag == "cpu"]
    if not cpus or len(cpus) > MAX_CPUS:
        raise InputError(f"{len(cpus)} CPUs; expected from 1 to {MAX_CPUS}", place="system")
    hosts = list(dict.fromkeys(cpu.get("host_hash", "") for cpu in cpus))
    for index, cpu in enumerate(cpus):
        with locate_errors(f"cpu[{index}]"):
            host = hosts.index(cpu.get("host_hash", ""))
            reader.read_cpu(cpu, host, f"host{host}." if len(hosts) > 1 else "")
    reader.join_cpus()
    reader.join_gpus()
    if reader.bare:
        if reader.gpus:
            raise InputError("some GPUs are described and some are not; expected either")
        reader.wire_bare()
    elif rates.generation or rates.links or rates.wiring or rates.pcie_only:
        text = "describes its GPUs and their links"
        raise InputError(f"{text}; --generation, --nvlink, --wiring and --no-nvlink are for files that do not")
    different = len({rank for rank, _, _ in reader.order}) == len(reader.order)
    ranked = tuple(gpu for _, _, gpu in (sorted(reader.order) if different else reader.order))
    return Box(ranked, reader.parts, merge_cables(reader.cables), reader.ports, nvls=reader.has_nvls())


@dataclass
class _Part:
    """A CPU, or a GPU that is described, with its CPU."""

    name: str
    host: int
    cpu: str
    element: Element


@dataclass
class _Reader:
    rates: Rates
    has_classes: bool  #: Whether devices have a class.
    parts: dict[str, Role] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)
    ports: dict[str, Fraction | None] = field(default_factory=dict)
    cpus: list[_Part] = field(default_factory=list)
    gpus: list[_Part] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)
    order: list[tuple[int, int, str]] = field(default_factory=list)
    devices: dict[tuple[int, int], str] = field(default_factory=dict)
    links: list[tuple[str, int, str]] = field(default_factory=list)

    def read_cpu(self, element: Element, host: int, prefix: str) -> None:
        name = f"{prefix}cpu{_integer(element, 'numaid')}"
        cpu = _Part(name, host, name, element)
        self.cpus.append(cpu)
        self._part(cpu.name, Role.CPU)
        for index, child in enumerate(element):
            with locate_errors(f"{child.tag}[{index}]"):
                if child.tag == "pci":
                    self._device(child, cpu, cpu.name, prefix)
                elif child.tag == "nic":
                    self._nic(child, cpu.name, LOCAL_Bps, prefix, f"{cpu.name}.nic")

    def _part(self, name: str, role: Role) -> None:
        if name in self.parts:
            raise InputError(f"two parts are named {show_value(name)}")
        if len(self.parts) == MAX_PARTS:
            raise InputError(f"more than {MAX_PARTS:,} CPUs, PCIe switches and NICs")
        self.parts[name] = role

    def _device(self, element: Element, cpu: _Part, parent: str, prefix: str) -> None:
        kind, busid = element.get("class", ""), _busid(element, "busid")
        rate = pcie(element.get("link_speed", ""), _integer(element, "link_width", 0, 0, 64)).by(self.rates.rating)
        gpus = [child for child in element if child.tag == "gpu"]
        nic = next((child for child in element if child.tag == "nic"), None)
        if len(gpus) > 1:
            raise InputError(f"{len(gpus)} GPUs are partitions of one device; expected one")
        if gpus:
            name = f"{prefix}gpu{_integer(gpus[0], 'dev', None, 0, 10**6)}"
            self.gpus.append(_Part(name, cpu.host, cpu.name, gpus[0]))
            self.devices[cpu.host, busid] = name
            self._rank(name, _integer(gpus[0], "rank", -1), parent, rate)
        elif nic is not None:
            self._nic(nic, parent, rate, prefix, f"{prefix}nic-{element.get('busid')}")
        elif kind.startswith(("0x03", "0x1200")) or not (self.has_classes or len(element)):
            self.bare.append(f"{prefix}gpu{len(self.bare)}")
            self._rank(self.bare[-1], -1, parent, rate)
        elif kind.startswith("0x02"):
            self._port(f"{prefix}nic{sum(p is None for p in self.ports.values())}", parent, rate, None)
        elif not kind.startswith("0x0680"):
            name = f"{prefix}pci-{element.get('busid')}"
            if name in self.parts:  # RCCL's models have such: both are switches
                name = f"{name}.{len(self.parts)}"
            self._part(name, Role.PCIE)
            self.devices[cpu.host, busid] = name
            self.cables += both(name, parent, rate, pcie=True)
            for index, child in enumerate(element):
                with locate_errors(f"{child.tag}[{index}]"):
                    if child.tag == "pci":
                        self._device(child, cpu, name, prefix)
                    elif child.tag == "pcilink":
                        self.links.append((name, cpu.host, str(_busid(child, "target"))))

    def _rank(self, name: str, rank: int, parent: str, rate: Fraction) -> None:
        if len(self.order) >= MAX_GPUS:
            raise InputError(f"more than {MAX_GPUS:,} GPUs")
        self.order.append((rank, len(self.order), name))
        self.cables += both(name, parent, rate, pcie=True)

    def _nic(self, element: Element, parent: str, rate: Fraction, prefix: str, shared: str) -> None:
        """Read the ports of a NIC; several of them share its link."""
        nets = [net for net in element if net.tag == "net" and net.get("net", "1") != "0"]
        if len(nets) > 1:
            self._part(shared, Role.PCIE)
            self.cables += both(shared, parent, rate, pcie=True)
            parent = shared
        for index, net in enumerate(nets):
            with locate_errors(f"net[{index}]"):
                speed = _integer(net, "speed", 0, -(10**9), 10**9)
                name = net.get("name") or f"net{_integer(net, 'dev')}"
                self._port(prefix + name, parent, rate, Fraction((speed if speed > 0 else 10_000) * GB, 8000))

    def _port(self, name: str, parent: str, rate: Fraction, speed: Fraction | None) -> None:
        self._part(name, Role.NIC)
        self.ports[name] = speed
        self.cables += both(name, parent, rate, pcie=True)

    def join_cpus(self) -> None:
        """Join the CPUs of a host, and PCIe switches that have a link of their own."""
        for cpu in self.cpus:
            for other in self.cpus:
                if cpu is not other and cpu.host == other.host:
                    with locate_errors(cpu.name):
                        kind = (_integer(cpu.element, key, 0) for key in ("familyid", "modelid"))
                        names = cpu.element.get("arch", ""), cpu.element.get("vendor", "")
                        rate = self.rates.cpus_Bps or between_cpus(*names, *kind)
                    self.cables.append(Cable(cpu.name, other.name, rate, pcie=True))
        for name, host, busid in self.links:
            target = self.devices.get((host, int(busid)))
            if target is not None and target != name:
                self.cables.append(Cable(name, target, LOCAL_Bps, pcie=True))

    def join_gpus(self) -> None:
        """Add NVLinks, xGMI links and those to the CPU."""
        for gpu in self.gpus:
            for index, child in enumerate(gpu.element):
                with locate_errors(f"gpu {_integer(gpu.element, 'dev')}.{child.tag}[{index}]"):
                    if child.tag in ("nvlink", "xgmi"):
                        self._fast_link(gpu, child)
                    elif child.tag == "c2c":
                        megabytes = _integer(child, "bw", None, 1, 10**9) * _integer(child, "count", None, 1, 1000)
                        self.cables += both(gpu.name, gpu.cpu, Fraction(megabytes * GB, 1000), pcie=True)

    def _fast_link(self, gpu: _Part, link: Element) -> None:
        of = gpu.element
        single = xgmi(of.get("gcn", "")) if link.tag == "xgmi" else nvlink(_integer(of, "sm", None, 0, 1000))
        rate = single.by(self.rates.rating) * _integer(link, "count", None, 1, 1000)
        kind = link.get("tclass", "")
        if kind.startswith(("0x03", "0x1200")):
            target = self.devices.get((gpu.host, _busid(link, "target")))
            if target not in (None, gpu.name):  # Azure's file of the NCv4 has links from GPUs to themselves
                self.cables.append(Cable(gpu.name, target, rate))
        elif kind == "0x068001":
            self.cables += both(gpu.name, gpu.cpu, rate)
        elif kind == "0x068000":
            self.parts["nvswitch"] = Role.SWITCH
            self.cables += both(gpu.name, "nvswitch", rate)
        else:
            expected = "expected 0x03.. or 0x1200.. (GPU), 0x068000 (NVSwitch) or 0x068001 (CPU)"
            raise InputError(f"tclass {show_value(kind)}; {expected}")

    def has_nvls(self) -> bool:
        """Return True if all GPUs are of a generation whose NVSwitches copy and add."""
        if self.bare:
            name = self.rates.generation
            return name is not None and GENERATIONS[name].capability >= NVLS_CAPABILITY
        return all(_integer(gpu.element, "sm", 0, 0, 1000) >= NVLS_CAPABILITY for gpu in self.gpus)

    def wire_bare(self) -> None:
        if self.rates.pcie_only:
            return
        links = self.rates.links
        if links is None and self.rates.generation is not None:
            links = GENERATIONS[self.rates.generation].nvlinks(self.rates.rating)
        if links is None:
            text = "the file has only the PCIe tree, without NVLinks; expected --generation such as a100, --nvlink"
            raise InputError(f"{text} such as '12 x 25 GB/s' (links of a GPU), or --no-nvlink")
        wiring = self.rates.wiring or likely_wiring(len(self.bare), links.count or 1)
        parts, cables = wire_gpus(self.bare, links, wiring)
        self.parts.update(parts)
        self.cables += cables


def _has_classes(root: Element) -> bool:
    return any(device.get("class") for device in root.iter("pci"))


def _integer(element: Element, key: str, default: int | None = None, low: int = -(10**9), high: int = 10**9) -> int:
    text = element.get(key)
    if text is None and default is not None:
        return default
    if text is None or not _INTEGER.match(text):
        text = f"{show_value(text)}; expected an integer" if text is not None else "missing, but required"
        raise InputError(text, place=key)
    value = int(text, 16) if "x" in text.lower() else int(text)
    if not low <= value <= high:
        raise InputError(f"{value:,}; expected an integer from {low:,} to {high:,}", place=key)
    return value


def _busid(element: Element, key: str) -> int:
    """Return the address of a PCIe device as a number: its hexadecimal digits without separators."""
    digits = re.sub(r"[:.]", "", element.get(key, ""))
    if not re.match(r"[0-9a-fA-F]{1,16}\Z", digits):
        raise InputError(f"{show_value(element.get(key))}; expected an address such as 0000:1b:00.0", place=key)
    return int(digits, 16)
