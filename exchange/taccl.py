"""Topologies and sketches of the original TACCL (the public repository microsoft/taccl) as instances.

A *topology* has costs for data of one size: alpha of a link and betas, and those between boxes (units and factors:
docs/exchange/machines.md). Its links are matrices (row: target), or known by the number of betas. ``invbws`` are alpha
+ beta and are not read. A *sketch* says how many boxes there are, and which GPUs send to which GPUs of all other boxes.
Two boxes are joined directly, more by a switch for every sender. Fields that guide TACCL's search are not read.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..core.errors import InputError, locate_errors, show_value
from ..core.units import UnitKind, exact, parse
from ..instances.generators.nvidia import HYBRID_CUBE_MESH
from .link_rates import GB
from .machine import MAX_SIZE, checked_instance, relay
from .plain_data import read_object, to_integer, to_number

MAX_BYTES = 16 * 2**20
MAX_GPUS, MAX_BOXES, MAX_COST = 1024, 1024, 10**12
_SIZE_IN_NAME = re.compile(r"(?:^|[_-])([0-9]{1,6})(K|M|G)B\Z", re.IGNORECASE)
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30}


def import_taccl(
    path: Path, *, sketch: Path | None = None, size: str | None = None, time_unit: str = "1 us", name: str | None = None
) -> dict[str, Any]:
    """Make an instance of a topology, for the boxes of a sketch or for one."""
    with locate_errors(source=str(path)):
        data = read_object(path, MAX_BYTES)
        if "gpus_per_node" not in data and "nnodes" in data:
            raise InputError("a sketch of TACCL; expected a topology, with this file as its --sketch")
        title = str(data.get("name", ""))[:100]
        unit = parse(time_unit, UnitKind.TIME, allow_zero=False)
        costs = _Costs(data, _size(title, size), unit)
        gpus = to_integer(data.get("gpus_per_node"), "gpus_per_node", 1, MAX_GPUS)
        nodes, links = _box(costs, gpus)
    boxes, connections = 1, dict[int, list[int]]()
    if sketch is not None:
        with locate_errors(source=str(sketch)):
            boxes, connections = _sketch(read_object(sketch, MAX_BYTES), gpus)
    if boxes * (len(nodes) + len(links)) > MAX_SIZE:
        raise InputError(f"{boxes:,} boxes of {len(links):,} links; expected at most {MAX_SIZE:,}", source=str(sketch))
    prefix = [f"box{b}." if boxes > 1 else "" for b in range(boxes)]
    all_nodes = [{"name": p + node} for p in prefix for node in nodes if node.startswith("gpu")]
    all_nodes += [relay(p + node) for p in prefix for node in nodes if not node.startswith("gpu")]
    all_links = [{**link, **{e: p + link[e] for e in ("source", "target")}} for p in prefix for link in links]
    if boxes > 1:
        with locate_errors(source=str(path)):
            relays, outside = _between(costs, prefix, connections)
        all_nodes += [relay(node) for node in relays]
        all_links += outside
    about = f"{gpus * boxes:,} GPUs in {boxes:,} {'box' if boxes == 1 else 'boxes'}, imported."
    origin = f"{path.name}{f' and {sketch.name}' if sketch else ''}, a topology of TACCL (microsoft/taccl)"
    origin += f"; costs are of {exact(costs.size_bytes, 'B')}, in units of {time_unit}"
    network = {"nodes": all_nodes, "links": all_links}
    with locate_errors(source=str(path)):
        return checked_instance(network, name=name or path.stem, description=about, source=origin)


class _Costs:
    def __init__(self, data: Mapping[str, Any], size_bytes: Fraction, unit_s: Fraction) -> None:
        self.data, self.size_bytes, self.unit_s = data, size_bytes, unit_s

    def rate(self, beta: Any, place: str, share: Fraction = Fraction(1)) -> str:
        """Bandwidth of a beta, or a share of it."""
        cost = to_number(beta, place, MAX_COST)
        if not cost:
            raise InputError("0; expected a cost above 0", place=place)
        with locate_errors(place):
            return exact(self.size_bytes * share / (cost * self.unit_s) / GB, "GB/s")

    def time(self, key: str, parts: int = 1) -> str:
        """Latency of an alpha, or one of several equal parts of it."""
        with locate_errors(key):
            return exact(to_number(self.data.get(key), None, MAX_COST) * self.unit_s / parts * 10**6, "us")


def _box(costs: _Costs, gpus: int) -> tuple[list[str], list[dict[str, Any]]]:
    names = [f"gpu{i}" for i in range(gpus)]
    betas = costs.data.get("node_betas_list")
    if "links" in costs.data:
        return names, _custom(costs, names)
    if not isinstance(betas, list) or len(betas) not in (1, 2):
        raise InputError(f"{show_value(betas)}; expected one cost or two, or links and betas", place="node_betas_list")
    if len(betas) == 1:
        rate, latency = costs.rate(betas[0], "node_betas_list[0]"), costs.time("alpha", 2)
        links = [_link(gpu, "nvswitch", rate, latency, both=True) for gpu in names]
        return [*names, "nvswitch"], links
    if gpus != 8:
        raise InputError(f"{gpus}; two costs are those of a hybrid cube mesh of 8", place="gpus_per_node")
    fast = {2: costs.rate(betas[0], "node_betas_list[0]"), 1: costs.rate(betas[1], "node_betas_list[1]")}
    alpha = costs.time("alpha")
    return names, [_link(names[a], names[b], fast[n], alpha, both=True) for (a, b), n in HYBRID_CUBE_MESH.items()]


def _custom(costs: _Costs, names: list[str]) -> list[dict[str, Any]]:
    matrices = {key: costs.data.get(key) for key in ("links", "betas")}
    for key, matrix in matrices.items():
        square = isinstance(matrix, list) and len(matrix) == len(names)
        if not square or not all(isinstance(row, list) and len(row) == len(names) for row in matrix or ()):
            raise InputError(f"expected {len(names)} lists of {len(names)} numbers", place=key)
    there, betas = (matrix or [] for matrix in matrices.values())
    alpha = costs.time("alpha")
    links: list[dict[str, Any]] = []
    for target in range(len(names)):
        for source in range(len(names)):
            if source != target and to_number(there[target][source], f"links[{target}][{source}]", MAX_COST):
                rate = costs.rate(betas[target][source], f"betas[{target}][{source}]")
                links.append(_link(names[source], names[target], rate, alpha))
    return links


def _sketch(data: Mapping[str, Any], gpus: int) -> tuple[int, dict[int, list[int]]]:
    boxes = to_integer(data.get("nnodes"), "nnodes", 1, MAX_BOXES)
    inter = data.get("internode_sketch")
    if boxes == 1:
        return 1, {}
    conn = inter.get("internode_conn") if isinstance(inter, dict) else None
    if conn in ("fully-connected", "direct-map"):
        return boxes, {i: list(range(gpus)) if conn == "fully-connected" else [i] for i in range(gpus)}
    place = "internode_sketch.internode_conn"
    if not isinstance(conn, dict) or not conn:
        text = f"{show_value(conn)}; expected receivers of every sender, fully-connected or direct-map"
        raise InputError(text, place=place)
    connections: dict[int, list[int]] = {}
    for sender, receivers in conn.items():
        if not re.match(r"[0-9]{1,5}\Z", sender) or int(sender) >= gpus:
            raise InputError(f"sender {show_value(sender)}; expected a GPU from 0 to {gpus - 1}", place=place)
        targets = receivers if isinstance(receivers, list) else []
        is_valid = all(type(gpu) is int and 0 <= gpu < gpus for gpu in targets)
        if not targets or not is_valid or len({*targets}) < len(targets):
            text = f"receivers {show_value(receivers)}; expected different GPUs from 0 to {gpus - 1}"
            raise InputError(text, place=place)
        connections[int(sender)] = targets
    return boxes, connections


def _between(
    costs: _Costs, prefix: list[str], connections: Mapping[int, list[int]]
) -> tuple[list[str], list[dict[str, Any]]]:
    total = sum(map(len, connections.values()))
    nics = to_integer(costs.data.get("nics_per_node"), "nics_per_node", 1, 10**6)
    if 2 * total * len(prefix) > MAX_SIZE:
        raise InputError(f"{total:,} connections of {len(prefix):,} boxes; expected {MAX_SIZE:,} links at most")
    beta = costs.data.get("remote_beta")
    rate = costs.rate(beta, "remote_beta", Fraction(nics, total))
    if len(prefix) == 2:
        alpha = costs.time("remote_alpha")
        return [], [
            _link(f"{one}gpu{s}", f"{other}gpu{r}", rate, alpha)
            for one, other in (prefix, prefix[::-1])
            for s, receivers in connections.items()
            for r in receivers
        ]
    half = costs.time("remote_alpha", 2)
    links: list[dict[str, Any]] = []
    for s, receivers in connections.items():
        out = costs.rate(beta, "remote_beta", Fraction(nics * len(receivers), total))
        links += [_link(f"{p}gpu{s}", f"network{s}", out, half) for p in prefix]
        links += [_link(f"network{s}", f"{p}gpu{r}", rate, half) for p in prefix for r in receivers]
    return [f"network{s}" for s in connections], links


def _link(source: str, target: str, rate: str, latency: str, *, both: bool = False) -> dict[str, Any]:
    link: dict[str, Any] = {"source": source, "target": target, "bandwidth": rate, "latency": latency}
    return {**link, "bidirectional": True} if both else link


def _size(title: str, size: str | None) -> Fraction:
    if size is not None:
        return parse(size, UnitKind.SIZE, allow_zero=False)
    match = _SIZE_IN_NAME.search(title)
    if not match or not int(match[1]):
        raise InputError(f"{show_value(title)} does not name the data size of the costs; expected --size", place="name")
    return Fraction(int(match[1]) * _BINARY[match[2].upper()])
