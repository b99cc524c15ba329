"""Files of the original TE-CCL (the public repository microsoft/TE-CCL) as instances and schedules.

An *input* has ``TopologyParams``, ``InstanceParams`` and ``GurobiParams``, which say nothing of the problem and are not
read. The size there is that of a chunk. ``NDv2`` with two chassis has GPU 0 as a switch, ``AMD`` with several counts
its switches one place too low, ``Mesh`` joins the rows: the instance has what the code has, unless ``as_drawn`` is
asked for. ``alpha`` is read for a mesh; the other machines keep the latencies of the paper's figures.

A *schedule* is what the code writes after a run: sends, whose nodes are counted as the code does. A way through
switches is one line with the epoch of its first link; the chunk starts over every further link when it arrives there.
What a switch copies is in several lines, and once on the link to the switch. Lines of an all-to-all say a volume, and
count the chunks of a source by their destination.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..core.collective import Collective, Demand
from ..core.errors import InputError, locate_errors, show_value
from ..core.instance import Instance
from ..core.schedule import Chunks
from ..core.timing import Semantics, Timing
from ..core.topology import Topology
from ..core.units import exact
from ..instances.expression import parse_expression
from ..instances.generators import generate
from ..instances.loader import from_data
from .machine import checked_instance
from .plain_data import read_object, to_integer, to_number, to_object

MAX_BYTES = 64 * 2**20  #: The largest file that the original has written is a hundred times smaller.
_COLLECTIVES = {1: "all_gather", 2: "all_to_all"}

_FLOW = re.compile(
    r"Chunk (\d{1,9}) from (\d{1,9}) traveled over (\d{1,9})->(\d{1,9})(?: with volume ([0-9.e+-]{1,40}))?"
    r" in epoch (\d{1,9})(?: via switches ([0-9, >-]{1,200}))?\Z"
)

#: A send: chunk, its origin in the code's numbering of nodes, epoch, way, and volume.
_Flow = tuple[int, int, int, tuple[int, ...], Fraction]


def import_teccl(path: Path, *, as_drawn: bool = False, name: str | None = None) -> dict[str, Any]:
    """Make an instance of an input file, with the network of the code, or that of the paper's figure."""
    with locate_errors(source=str(path)):
        data = read_object(path, MAX_BYTES)
        topology, instance = (to_object(data.get(key), key) for key in ("TopologyParams", "InstanceParams"))
        network = network_expression(topology, as_drawn=as_drawn)
        with locate_errors("TopologyParams"):
            ranks = len(generate(parse_expression(network)).ranks)
        kind = to_integer(instance.get("collective", 1), "InstanceParams.collective", 1)
        if kind not in _COLLECTIVES:
            raise InputError(f"{kind}; expected 1 (all-gather) or 2 (all-to-all)", place="InstanceParams.collective")
        chunks = to_integer(instance.get("num_chunks", 1), "InstanceParams.num_chunks", 1)
        chunk = to_number(topology.get("chunk_size", 1), "TopologyParams.chunk_size") * 10**9
        if not chunk:
            raise InputError("a chunk of no size", place="TopologyParams.chunk_size")
    with locate_errors(source="the imported instance"):
        return checked_instance(
            network,
            name=name or re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "teccl",
            description=f"{_COLLECTIVES[kind]} on {network}, imported from an input file of TE-CCL.",
            source=f"input file of TE-CCL (microsoft/TE-CCL): {path.name}",
            collective={"kind": _COLLECTIVES[kind], "size": exact(chunk * chunks * ranks, "B"), "chunks": chunks},
        )


def topology_name(path: Path) -> str:
    """``TopologyParams.name`` of an input file that has been imported."""
    return str(read_object(path, MAX_BYTES)["TopologyParams"].get("name", "DGX1"))


def network_expression(topology: Mapping[str, Any], *, as_drawn: bool) -> str:
    """Return the generator expression of ``TopologyParams``."""
    name, chassis = topology.get("name", "DGX1"), to_integer(topology.get("chassis", 1), "TopologyParams.chassis", 1)
    match str(name).lower():
        case "dgx1":
            return "dgx1()"
        case "dgx2":
            return "dgx2(chassis=2)"  # the code has two, whatever is asked for
        case "ndv2":
            return f"ndv2(chassis={chassis})" if as_drawn or chassis != 2 else "ndv2(chassis=2, gpu0_switch=true)"
        case "amd":
            return f"amd(chassis={chassis})" if as_drawn or chassis == 1 else f"amd(chassis={chassis}, variant=repo)"
        case "mesh":
            side = to_integer(topology.get("side_length", 4), "TopologyParams.side_length", 2)
            suffix = "" if as_drawn else ", joined_rows=true"
            alpha = topology.get("alpha", [0, 0])
            if not isinstance(alpha, list) or len(alpha) != 2:
                text = f"{show_value(alpha)}; expected seconds of links and of switches"
                raise InputError(text, place="TopologyParams.alpha")
            latency = exact(to_number(alpha[0], "TopologyParams.alpha[0]"), "s")
            return f"mesh({side}, {side}{suffix}, bandwidth='100 GB/s', latency='{latency}')"
        case _:
            expected = "expected DGX1, DGX2, NDv2, AMD or Mesh"
            raise InputError(f"{show_value(name)} is no topology of TE-CCL; {expected}", place="TopologyParams.name")


def read_schedule(path: Path) -> tuple[Fraction, int, list[_Flow]]:
    """Read the seconds of an epoch, the number of epochs, and the sends of a schedule file."""
    with locate_errors(source=str(path)):
        data = read_object(path, MAX_BYTES)
        lines = data.get("7-Flows")
        if not isinstance(lines, list):
            raise InputError(f"{show_value(lines)}; expected a list of lines", place="7-Flows")
        epoch = to_number(data.get("1-Epoch_Duration"), "1-Epoch_Duration")
        epochs = to_integer(data.get("3-Epochs_Required"), "3-Epochs_Required", 0)
        return epoch, epochs, [_flow(line, f"7-Flows[{i}]") for i, line in enumerate(lines)]


def _flow(line: Any, place: str) -> _Flow:
    match = _FLOW.match(line) if isinstance(line, str) else None
    if match is None:
        expected = "expected such as 'Chunk 0 from 4 traveled over 4->9 in epoch 1 via switches 0'"
        raise InputError(f"{show_value(line)}; {expected}", place=place)
    chunk, source, tail, head = (int(match[index]) for index in range(1, 5))
    try:
        volume = Fraction(match[5] or 1)
    except ValueError:
        raise InputError(f"{show_value(match[5])} is no volume", place=place) from None
    between = tuple(int(text) for text in re.findall(r"\d+", match[7] or ""))
    return chunk, source, int(match[6]), (tail, *between, head), volume


def position(topology: Topology, name: str, node: int) -> int:
    """Return the position of a node that the code counts: switches first, of DGX2 those of a chassis."""
    order = _code_order(topology, name.lower())
    if node >= len(order):
        raise InputError(f"node {node} of {len(order)}", place="7-Flows")
    return topology.node_index[order[node]]


def _code_order(topology: Topology, name: str) -> list[str]:
    names = [node.name for node in topology.nodes]
    if name == "amd" and "network" in names:
        boxes = sorted({n.partition(".")[0] for n in names if n != "network"}, key=lambda box: int(box[3:]))
        return ["network", *(n for box in boxes for n in names if n.startswith(f"{box}."))]
    if name == "ndv2" and "network" in names:
        return ["network", *(n for n in names if n != "network")]
    if name == "dgx2":
        return [n for box in ("box0", "box1") for n in (f"{box}.nvswitch", *(f"{box}.gpu{i}" for i in range(16)))]
    return names


@dataclass(frozen=True)
class ImportedSchedule:
    """A schedule that is not yet timed."""

    instance: Instance
    chunks: Chunks
    sends: tuple[tuple[int, int, tuple[int, ...]], ...]  #: Chunk, epoch of the start, and links.
    epochs: int


def import_schedule(data: dict[str, Any], network: str, path: Path) -> ImportedSchedule:
    """Read a schedule file for the instance of an input (:func:`import_teccl`)."""
    instance, (epoch_s, epochs, flows) = from_data(data, data["name"]), read_schedule(path)
    topology, demand = instance.topology, instance.demand
    assert demand is not None  # noqa: S101 (the importer asks for a collective)
    links = {ends: e for e, ends in enumerate(topology.link_ends)}
    rank = {node: r for r, node in enumerate(topology.rank_nodes)}
    to_each = demand.collective is Collective.ALL_TO_ALL
    per_source = demand.chunks * (len(rank) if to_each else 1)
    sends: list[tuple[int, int, tuple[int, ...]]] = []
    with locate_errors(source=str(path)):
        if not epoch_s:
            raise InputError("an epoch of no time", place="1-Epoch_Duration")
        for index, (chunk, origin, epoch, nodes, volume) in enumerate(flows):
            with locate_errors(f"7-Flows[{index}]"):
                if volume != 1:
                    raise InputError(f"a part of {float(volume):g} of a chunk; expected whole chunks")
                source, *way = (position(topology, network, node) for node in (origin, *nodes))
                if source not in rank:
                    name = topology.nodes[source].name
                    raise InputError(f"a chunk from the switch {name!r}; expected one from a rank")
                if chunk >= per_source:
                    raise InputError(f"chunk {chunk} of {per_source}")
                for one, other in pairwise(way):
                    if (one, other) not in links:
                        names = [topology.nodes[node].name for node in (one, other)]
                        raise InputError(f"no link from {names[0]!r} to {names[1]!r}")
                path_links = tuple(links[ends] for ends in pairwise(way))
                sends.append((rank[source] * per_source + chunk, epoch, path_links))
    problem = instance.with_changes(timing=Timing(Semantics.TE_CCL, epoch_s, fluid=to_each))
    return ImportedSchedule(problem, _chunks(demand, len(rank), to_each=to_each), tuple(sends), epochs)


def _chunks(demand: Demand, ranks: int, *, to_each: bool) -> Chunks:
    """Count chunks as the sends do; those from a rank to itself have nowhere to go."""
    own = np.repeat(np.arange(ranks), demand.chunks)
    groups = (*((rank,) for rank in range(ranks)), tuple(range(ranks)))
    holders, receivers = own, np.full(len(own), ranks)
    if to_each:
        holders, receivers, groups = np.repeat(np.arange(ranks), len(own)), np.tile(own, ranks), groups[:-1]
    unit = demand.size_bytes / len(own)
    return Chunks(np.ones_like(holders), unit, groups, holders, receivers, np.zeros(len(holders), dtype=np.bool_))
