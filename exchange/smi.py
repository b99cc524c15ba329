"""Boxes from the texts of ``nvidia-smi topo -m`` and ``rocm-smi --showtopo``, as instances.

How numbers of links in the matrices are read: docs/exchange/machines.md. Matrices of ``topo -p2p`` behind the first are
not read.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..core.errors import InputError, locate_errors, show_value
from ..core.files import read_text
from .box import Box, Cable, Layout, Role, Times, both, join_all, join_cpus, merge_cables, rack_of
from .link_rates import AMD_GENERATIONS, GB, GENERATIONS, NVLS_CAPABILITY, XGMI, Rates, Rating
from .machine import machine_instance

MAX_BYTES = 2**20
MAX_DEVICES = 256
_ONE_HOP = 15  #: Weight of an xGMI link in ``rocm-smi``.
_ANSI = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_GPU = re.compile(r"GPU[0-9]{1,4}\Z")
_TAIL = ("CPU", "NUMA")
_LEGEND = re.compile(r"^[ \t]{0,40}(NIC[0-9]{1,4}):[ \t]{1,40}(\S{1,60})[ \t]{0,40}$", re.MULTILINE)
_NV = re.compile(r"NV([0-9]{1,3})\Z")
_CELL = re.compile(r"(?:X|NV[0-9]{1,3}|PIX|PXB|PHB|NODE|SYS|SOC)\Z")
_NEAR = {"PIX": 1, "PXB": 2, "PHB": 3, "NODE": 4, "SYS": 5, "SOC": 5}
_PRODUCT = re.compile(rf"(?<![A-Za-z0-9])({'|'.join(GENERATIONS)})(?![A-Za-z0-9])", re.IGNORECASE)
_NUMA = re.compile(r"GPU\[([0-9]{1,4})\]\s*:\s*\(Topology\) Numa Node: (-?[0-9]{1,4})\s*\Z")
_STATUS = re.compile(r"^\s*(?:GPU ([0-9]{1,4}):|Link ([0-9]{1,2}): (?:([0-9]{1,4}(?:\.[0-9]{1,6})?) GB/s|<inactive>))")


@dataclass(frozen=True)
class Matrix:
    """The matrix of ``topo -m``."""

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    cells: Mapping[tuple[str, str], str]

    def nvlinks(self, one: str, other: str) -> int:
        """NVLinks between two devices."""
        match = _NV.match(self.cells[one, other])
        return int(match[1]) if match else 0

    def near(self, one: str, other: str) -> int | None:
        """Return the PCIe distance of two devices; None where NVLinks hide it."""
        return _NEAR.get(self.cells[one, other])


def import_nvidia_smi(
    paths: Sequence[Path], layout: Layout, rates: Rates, *, name: str | None = None
) -> dict[str, Any]:
    """Make an instance of the text of ``nvidia-smi topo -m``, with others of nvidia-smi in the same or other files."""
    with locate_errors(source=str(paths[0])):
        text = _ANSI.sub("", "\n".join(read_text(path, MAX_BYTES) for path in paths))
        if re.search("link type between two gpus", text, re.IGNORECASE):
            raise InputError("the text of rocm-smi --showtopo, which cwb import rocm-smi reads; expected nvidia-smi's")
        matrix = read_matrix(text)
        products = {rates.generation} if rates.generation else {word.lower() for word in _PRODUCT.findall(text)}
        single, origin = _nvlink(matrix, text, rates, products)
        parts, cables = _nvlinks(matrix, single)
        sharp = bool(products) and all(GENERATIONS[name].capability >= NVLS_CAPABILITY for name in products)
        box = replace(_with_pcie(matrix, parts, cables, rates, layout), nvls=sharp)
        source = f"{paths[0].name}, nvidia-smi topo -m; {origin}"
        if layout.rack is not None:
            box, layout = rack_of(box, layout)
            source += f"; {layout.trays} such trays are a rack"
        elif parts and products & {"gb200", "gb300"}:
            source += "; NVSwitches join the GPUs of one tray, not those of a rack (--rack 72 does)"
        return machine_instance(box, layout, name=name or paths[0].stem, source=source)


def read_matrix(text: str) -> Matrix:
    """Read the first matrix of a text."""
    lines = text.splitlines()
    names: list[str] = []
    rows: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words:
            continue
        if not names:
            names = _header(words)
        elif words[0] in names:
            with locate_errors(f"line {number}"):
                rows[words[0]] = _row(words, names)
        if names and len(rows) == len(names):
            break
    if not names:
        raise InputError("no matrix of nvidia-smi topo -m; expected a line such as 'GPU0 GPU1 ... CPU Affinity'")
    missing = [row for row in names if row not in rows]
    if missing:
        raise InputError(f"the matrix has no row of {show_value(missing[0])}; expected one for each of its columns")
    legend = dict(_LEGEND.findall(text))
    labels = {row: row.lower() if _GPU.match(row) else legend.get(row, row) for row in names}
    if len(set(labels.values())) < len(names):
        raise InputError("two devices have the same name")
    cells = {(labels[a], labels[b]): rows[a][j] for a in names for j, b in enumerate(names)}
    for (a, b), cell in cells.items():
        if cell != cells[b, a]:
            text = f"{show_value(cell)} from {a} to {b}, but {show_value(cells[b, a])} back; expected the same"
            raise InputError(text)
        if (a == b) != (cell == "X"):
            raise InputError(f"{show_value(cell)} from {a} to {b}; expected X only on the diagonal")
    gpus = tuple(labels[row] for row in names if _GPU.match(row))
    return Matrix(gpus, tuple(labels[row] for row in names if not _GPU.match(row)), cells)


def _header(words: Sequence[str]) -> list[str]:
    """Names of the columns, or none if the words are no header."""
    if not _GPU.match(words[0]) or (len(words) > 1 and _CELL.match(words[1])):
        return []
    end = next((i for i, word in enumerate(words) if word in _TAIL), len(words))
    names = list(words[:end])
    if len(set(names)) < len(names) or len(names) > MAX_DEVICES or max(map(len, names)) > 60:
        raise InputError(f"{len(names):,} columns; expected at most {MAX_DEVICES}, each with its own name")
    return names


def _row(words: Sequence[str], names: Sequence[str]) -> list[str]:
    cells = list(words[1 : len(names) + 1])
    for name, cell in zip(names, cells, strict=False):
        if not _CELL.match(cell):
            expected = "expected X, NV#, PIX, PXB, PHB, NODE or SYS, with a space or tab behind it"
            raise InputError(f"{show_value(cell)} from {words[0]} to {name}; {expected}")
    if len(cells) < len(names):
        raise InputError(f"{len(cells)} cells for {len(names)} columns")
    return cells


def _nvlink(matrix: Matrix, text: str, rates: Rates, products: set[str]) -> tuple[dict[str, Times], str]:
    """Find the number and the rate of the NVLinks of every GPU, and their source in words."""
    highest = max((matrix.nvlinks(a, b) for a in matrix.gpus for b in matrix.gpus), default=0)
    if not highest:
        return {}, "no NVLinks; rates of PCIe as given"
    if rates.links is not None:
        return dict.fromkeys(matrix.gpus, rates.links), "rates of NVLinks as given"
    status = _status(text, matrix.gpus)
    if status is not None:
        share = Fraction(1) if rates.rating is Rating.NOMINAL else Fraction(4, 5)
        times = {gpu: Times(len(some), (some or [Fraction(0)])[0] * share) for gpu, some in status.items()}
        return times, f"rates of NVLinks are {'' if share == 1 else '80 % of '}those of nvlink -s"
    if len(products) != 1:
        raise InputError(
            f"NV{highest} says neither how fast an NVLink is nor whether it leads to a switch; expected --generation"
            " such as h100, --nvlink such as '18 x 25 GB/s', or the text of nvidia-smi -L or nvidia-smi nvlink -s in"
            " the file or in another one"
        )
    (name,) = products
    one = GENERATIONS[name]
    origin = f"rates of NVLinks are the {rates.rating.value} ones of {name.upper()}"
    return dict.fromkeys(matrix.gpus, one.nvlinks(rates.rating)), origin


def _status(text: str, gpus: Sequence[str]) -> dict[str, list[Fraction]] | None:
    """Rates of the active links of every GPU by ``nvlink -s``; None if the text has none."""
    by_gpu: dict[str, list[Fraction]] = {}
    gpu = ""
    for line in text.splitlines():
        match = _STATUS.match(line)
        if match is None:
            continue
        if match[1] is not None:
            gpu = f"gpu{match[1]}"
            continue
        active = by_gpu.setdefault(gpu, [])
        if match[3] is not None and Fraction(match[3]):
            active.append(Fraction(match[3]) * GB)
    if not by_gpu:
        return None
    for name in gpus:
        if name not in by_gpu:
            raise InputError(f"the matrix has {name}, but nvlink -s does not; expected the text of all GPUs")
        if len(set(by_gpu[name])) > 1:
            rates = sorted({float(rate / GB) for rate in by_gpu[name]})
            text = f"the NVLinks of {name} have several rates: {show_value(rates)} GB/s; expected one, or --nvlink"
            raise InputError(text)
    return {name: by_gpu[name] for name in gpus}


def _nvlinks(matrix: Matrix, links: Mapping[str, Times]) -> tuple[dict[str, Role], list[Cable]]:
    """Switches and NVLinks, group by group of GPUs that NVLinks join."""
    parts: dict[str, Role] = {}
    cables: list[Cable] = []
    count = {gpu: one.count or 0 for gpu, one in links.items()}
    groups = _groups(matrix.gpus, ((a, b) for a in matrix.gpus for b in matrix.gpus if matrix.nvlinks(a, b)))
    clusters = [group for group in groups if len(group) > 1]
    for group in clusters:
        rows = {gpu: {b: matrix.nvlinks(gpu, b) for b in group if b != gpu} for gpu in group}
        for gpu, row in rows.items():
            if max(row.values()) > count[gpu]:
                raise InputError(f"NV{max(row.values())} in the row of {gpu}, but it has {count[gpu]} NVLinks")
        over = next((gpu for gpu, row in rows.items() if sum(row.values()) > count[gpu]), None)
        if over is None:
            cables += [Cable(a, b, links[a].rate_Bps * n) for a, row in rows.items() for b, n in row.items() if n]
            continue
        counts = {n for row in rows.values() for n in row.values()}
        if len(counts) > 1:
            text = f"{over} has {count[over]} NVLinks, but its row has {sum(rows[over].values())}"
            raise InputError(f"{text}, not the same for all; that is neither a switch nor a mesh")
        switch = "nvswitch" if len(clusters) == 1 else f"nvswitch{len(parts)}"
        parts[switch] = Role.SWITCH
        cables += [c for gpu in group for c in both(gpu, switch, links[gpu].rate_Bps * min(counts))]
    return parts, cables


def _groups(names: Sequence[str], pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from(pairs)
    return [sorted(group, key=names.index) for group in nx.connected_components(graph)]


def _with_pcie(matrix: Matrix, parts: dict[str, Role], cables: list[Cable], rates: Rates, layout: Layout) -> Box:
    """Return the box with a PCIe tree if its rate is known, else with NICs on their GPUs."""
    nics: dict[str, Role] = dict.fromkeys(matrix.nics, Role.NIC)
    ports: dict[str, Fraction | None] = dict.fromkeys(matrix.nics)
    if rates.pcie_Bps is not None:
        more, tree = pcie_tree(matrix, rates.pcie_Bps, rates.cpus_Bps)
        return Box(matrix.gpus, {**parts, **more, **nics}, merge_cables([*cables, *tree]), ports)
    if not join_all(matrix.gpus, cables):
        raise InputError("PCIe joins GPUs that NVLinks do not, and its rate is not in the text; expected --pcie")
    candidates = [nic for nic in matrix.nics if not layout.nics or nic in layout.nics]
    rate = layout.nic.rate_Bps if layout.nic else Fraction(GB)
    nearest: dict[str, None] = {}
    for gpu in matrix.gpus:
        near = {nic: matrix.near(gpu, nic) or 0 for nic in candidates}
        for nic in (nic for nic in candidates if near[nic] == min(near.values())):
            nearest[nic] = None
            cables = [*cables, *both(gpu, nic, rate, pcie=True)]
    ports = {nic: None for nic in matrix.nics if nic in nearest or nic not in candidates}
    return Box(matrix.gpus, {**parts, **nics}, merge_cables(cables), ports, assigns_nics=True)


def pcie_tree(matrix: Matrix, rate: Fraction, cpus: Fraction | None) -> tuple[dict[str, Role], list[Cable]]:
    """Return PCIe switches and CPUs, from the PCIe distances of devices."""
    names = [*matrix.gpus, *matrix.nics]
    by_cpu, by_switch = (_near_groups(matrix, names, most) for most in (4, 2))
    parts: dict[str, Role] = {f"cpu{i}": Role.CPU for i in range(len(by_cpu))}
    cpu_of = {name: f"cpu{i}" for i, group in enumerate(by_cpu) for name in group}
    cables: list[Cable] = []
    for group in by_switch:
        above = cpu_of[group[0]]
        if len(group) > 1:
            switch = f"pcie{sum(role is Role.PCIE for role in parts.values())}"
            parts[switch] = Role.PCIE
            cables += both(switch, above, rate, pcie=True)
            above = switch
        cables += [c for name in group for c in both(name, above, rate, pcie=True)]
    return parts, cables + join_cpus([f"cpu{i}" for i in range(len(by_cpu))], cpus)


def _near_groups(matrix: Matrix, names: Sequence[str], most: int) -> list[list[str]]:
    """Devices in groups whose members are at most so far from each other."""
    pairs = ((a, b) for a in names for b in names if (matrix.near(a, b) or 9) <= most)
    groups = _groups(names, pairs)
    for group in groups:
        for a in group:
            for b in group:
                far = matrix.near(a, b)
                if far is not None and far > most:
                    text = f"{a} and {b} are joined by {matrix.cells[a, b]}, but are nearer to others by turns"
                    raise InputError(f"{text}; that is no tree of PCIe switches")
    return groups


def import_rocm_smi(path: Path, layout: Layout, rates: Rates, *, name: str | None = None) -> dict[str, Any]:
    """Make an instance of the text of ``rocm-smi --showtopo``."""
    with locate_errors(source=str(path)):
        numa, links = _relations(read_text(path, MAX_BYTES))
        rate, origin = _xgmi_rate(rates) if links else (None, "no xGMI links; rates of PCIe as given")
        cables = [Cable(a, b, rate) for a, b in links if rate is not None]
        cpus: dict[str, Role] = {}
        if rates.pcie_Bps is not None:
            if {0, -1} <= {*numa.values()}:
                raise InputError("some GPUs have the NUMA node 0, others none; expected one for all")
            cpus = {f"cpu{max(node, 0)}": Role.CPU for node in sorted({*numa.values()})}
            for gpu, node in numa.items():
                cables += both(gpu, f"cpu{max(node, 0)}", rates.pcie_Bps, pcie=True)
            cables += join_cpus([*cpus], rates.cpus_Bps)
        elif not join_all([*numa], cables):
            raise InputError("PCIe joins GPUs that xGMI does not, and its rate is not in the text; expected --pcie")
        box = Box(tuple(numa), cpus, tuple(cables))
        source = f"{path.name}, rocm-smi --showtopo; {origin}"
        return machine_instance(box, layout, name=name or path.stem, source=source)


def _relations(text: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Read the NUMA node of every GPU, and the xGMI links between them."""
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
    titles = "weight between two gpus", "link type between two gpus"
    weights, types = (_block(blocks.get(title, []), title) for title in titles)
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
    return {gpu: numa.get(gpu, 0) for gpu in gpus}, links


def _block(lines: list[str], title: str) -> dict[tuple[str, str], str]:
    with locate_errors(title):
        header = lines[0].split() if lines else []
        if not header or not all(map(_GPU.match, header)) or len(set(header)) < len(header):
            raise InputError("no such block; expected the text of rocm-smi --showtopo")
        if len(header) > MAX_DEVICES:
            raise InputError(f"{len(header):,} GPUs; expected at most {MAX_DEVICES}")
        rows = {words[0]: words[1:] for words in map(str.split, lines[1:]) if words[0] in header}
        for row in header:
            if len(rows.get(row, ())) != len(header):
                raise InputError(f"{len(rows.get(row, ()))} cells in the row of {row}; expected {len(header)}")
        return {(a.lower(), b.lower()): rows[a][j] for a in header for j, b in enumerate(header)}


def _xgmi_rate(rates: Rates) -> tuple[Fraction, str]:
    if rates.links is not None:
        return rates.links.rate_Bps * (rates.links.count or 1), "rates of xGMI as given"
    if rates.generation is None:
        text = "the text says neither how many xGMI links join a pair nor how fast they are; expected --generation"
        raise InputError(f"{text} ({', '.join(AMD_GENERATIONS)}) or --xgmi such as '2 x 50 GB/s'")
    rate = XGMI[AMD_GENERATIONS[rates.generation]].by(rates.rating)
    return rate, f"rates of xGMI are the {rates.rating.value} ones of {rates.generation.upper()}, one link for a pair"
