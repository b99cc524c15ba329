"""Networks of boxes of GPUs, as instances: which links of a box stay, and how NICs join the boxes.

The choice of links and NICs, and the latencies of TE-CCL (section 6.1): docs/exchange/machines.md. All switches only
pass on: they cannot store. NVSwitches of Hopper and later copy and add, too (NVLink SHARP).
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ..core.errors import InputError, show_value
from ..core.grouping import group_by_key
from ..core.topology import Topology
from ..core.units import UnitKind, exact, parse
from ..instances.loader import from_data
from .box import LATENCY, NIC_LATENCY, Box, Cable, Layout, Role, Times, both, join_all, merge_cables
from .link_rates import GB

MAX_SIZE = 200_000  #: Nodes and links of all boxes: what an instance file can hold.


def machine_instance(box: Box, layout: Layout, *, name: str, source: str) -> dict[str, Any]:
    """Make the data of an instance, checked by building it; what the layout adds is told in its source."""
    if not box.gpus:
        raise InputError("no GPU; expected at least one")
    names = Counter([*box.gpus, *box.parts])
    if (name_twice := next((n for n, count in names.items() if count > 1), None)) is not None:
        raise InputError(f"two nodes are named {show_value(name_twice)}")
    gpus, boxes = len(box.gpus), layout.boxes
    about = f"A box of {gpus} GPUs" if boxes == 1 else f"{gpus * boxes:,} GPUs in {boxes:,} boxes"
    origin = f"{source}; latencies are {layout.latency} between GPUs"
    origin += f" and {layout.nic_latency} between NICs" if boxes > 1 else ""
    origin += " (TE-CCL, section 6.1)" if (layout.latency, layout.nic_latency) == (LATENCY, NIC_LATENCY) else ""
    if layout.nvls is not None:
        box = replace(box, nvls=layout.nvls)
    if box.nvls and Role.SWITCH in box.parts.values():
        origin += "; NVSwitches copy and add (NVLink SHARP)"
    elif layout.nvls:
        raise InputError("the machine has no NVSwitch; only NVSwitches copy and add", source="--nvls")
    network = network_of(box, layout)
    return checked_instance(network, name=name, description=f"{about}, imported.", source=origin)


def checked_instance(
    network: dict[str, Any] | str, *, name: str, description: str, source: str, **demand: Any
) -> dict[str, Any]:
    """Return the data of an instance, checked by building it; callers name the file in errors."""
    about = {"schema": "cwb-instance/1", "name": name, "description": description, "source": source}
    data = {**about, "network": network, **demand}
    from_data(data, name)
    return data


def network_of(box: Box, layout: Layout) -> dict[str, Any]:
    """Return nodes and links of all boxes in the form of an instance file."""
    for name in layout.nics:
        if name not in box.ports:
            expected = f"expected some of {', '.join(box.ports)}" if box.ports else "the file names none"
            raise InputError(f"no NIC is named {show_value(name)}; {expected[:200]}", source="--nics")
    ports: dict[str, Fraction] = {}
    ways: set[tuple[str, str]] = set()
    if layout.boxes > 1:
        box, ports, ways = _with_nics(box, layout)
    nics = {name for name, role in box.parts.items() if role is Role.NIC} - set(ports)
    cables = [c for c in box.cables if not {c.source, c.target} & nics]
    whole = layout.pcie or not join_all(box.gpus, [c for c in cables if not c.pcie])
    wiring = [c for c in cables if whole or not c.pcie or (c.source, c.target) in ways]
    wiring = _drop_dead_ends(wiring, {*box.gpus, *ports})
    if not join_all(box.gpus, wiring):
        over = layout.boxes == 1 and nics and join_all(box.gpus, box.cables)
        text = "its links do not connect all GPUs" + ("; NICs do, expected --boxes of 2 or more" if over else "")
        raise InputError(text)
    ends = {end for c in wiring for end in (c.source, c.target)}
    parts = {name: role for name, role in box.parts.items() if name in ends}
    return _all_boxes(replace(box, parts=parts, cables=merge_cables(wiring)), ports, layout)


def _all_boxes(box: Box, ports: Mapping[str, Fraction], layout: Layout) -> dict[str, Any]:
    rails = [f"rail{i}" for i in range(len(ports) // layout.trays)] if layout.rails else ["network"] * bool(ports)
    count = layout.boxes
    size = count * (len(box.gpus) + len(box.parts) + len(box.cables) + len(ports)) + len(rails)
    if size > MAX_SIZE:
        text = f"{count:,} boxes have {size:,} nodes and links; expected at most {MAX_SIZE:,}"
        raise InputError(text, source="--boxes")
    inside = parse(layout.latency, UnitKind.TIME, source="--latency") / 2
    outside = parse(layout.nic_latency, UnitKind.TIME, source="--nic-latency") / 2
    prefix = [f"box{b}." if count > 1 else "" for b in range(count)]
    nodes: list[dict[str, Any]] = [{"name": p + gpu} for p in prefix for gpu in box.gpus]
    sharp = {"multicast": True, "reduces": True} if box.nvls else {}
    nodes += [
        {**relay(p + part), **(sharp if role is Role.SWITCH else {})}
        for p in prefix
        for part, role in box.parts.items()
    ]
    nodes += [relay(rail) for rail in rails]
    links: list[dict[str, Any]] = []
    for p in prefix:
        for one, other, rate, two_ways in _pairs(box.cables):
            roles = {box.parts.get(end) for end in (one, other)}
            steps = 0 if Role.NIC in roles else 2 if roles == {None} else 1
            links.append(_link(p + one, p + other, rate, inside * steps, two_ways=two_ways))
        for i, (nic, rate) in enumerate(ports.items()):
            links.append(_link(p + nic, rails[i % len(rails)], rate, outside, two_ways=True))
    return {"nodes": nodes, "links": links}


def _pairs(cables: Iterable[Cable]) -> Iterator[tuple[str, str, Fraction, bool]]:
    """Yield links with their rates; a pair of equal links in both directions once."""
    rates = {(c.source, c.target, c.pcie): c.rate_Bps for c in cables}
    reverse: set[tuple[str, str, bool]] = set()
    for (source, target, pcie), rate in rates.items():
        if (source, target, pcie) in reverse:
            continue
        alike = rates.get((target, source, pcie)) == rate
        if alike:
            reverse.add((target, source, pcie))
        yield source, target, rate, alike


def _link(source: str, target: str, rate: Fraction, latency: Fraction, *, two_ways: bool) -> dict[str, Any]:
    times = {"bandwidth": exact(rate / GB, "GB/s"), "latency": exact(latency * 10**6, "us")}
    return {"source": source, "target": target, **times, **({"bidirectional": True} if two_ways else {})}


def topology_data(topology: Topology) -> dict[str, Any]:
    """Return nodes and links of a network in the form of an instance file, with exact numbers."""
    nodes = [
        {
            "name": node.name,
            "kind": node.kind.value,
            **{flag: True for flag in ("multicast", "reduces") if getattr(node, flag)},
            **({} if node.buffer_bytes is None else {"buffer": exact(node.buffer_bytes, "B")}),
        }
        for node in topology.nodes
    ]
    links = [_link(e.source, e.target, e.bandwidth_Bps, e.latency_s, two_ways=False) for e in topology.links]
    return {"nodes": nodes, "links": links}


def relay(name: str) -> dict[str, Any]:
    """Return a switch that only passes on."""
    return {"name": name, "kind": "switch", "buffer": "0 B"}


_WithNics = tuple[Box, dict[str, Fraction], set[tuple[str, str]]]


def _with_nics(box: Box, layout: Layout) -> _WithNics:
    """Return the box, the rates of the NICs in use, and the links on paths to them."""
    names = [n for n in box.ports if not layout.nics or n in layout.nics]
    if not names:
        return _add_nics(box, layout.nic)
    ports: dict[str, Fraction] = {}
    for name in names:
        rate = layout.nic.rate_Bps if layout.nic else box.ports[name]
        if rate is None:
            text = f"the rate of NIC {show_value(name)} is not in the file; expected --nic such as '400 Gb/s'"
            raise InputError(text)
        ports[name] = rate
    ways, nics = _ways_to_nics(box, ports)
    if not nics:
        raise InputError("no path leads from a GPU to a NIC")
    if layout.nic and layout.nic.count not in (None, len(nics)):
        text = f"the GPUs are nearest to {len(nics)} NICs ({', '.join(nics)[:120]}), not to {layout.nic.count}"
        raise InputError(f"{text}; expected their number, or --nics with their names", source="--nic")
    return box, {name: ports[name] for name in names if name in nics}, ways


def _add_nics(box: Box, nic: Times | None) -> _WithNics:
    """NICs that are in no file: spread evenly over the GPUs, with links as fast as they are."""
    if nic is None or nic.count is None:
        raise InputError("the file names no NIC; expected --nic with their number, such as '8 x 400 Gb/s'")
    gpus, count = len(box.gpus), nic.count
    if gpus % count and count % gpus:
        raise InputError(f"{count} NICs cannot be shared evenly by {gpus} GPUs", source="--nic")
    names = [f"nic{i}" for i in range(count)]
    more = max(gpus, count)
    ends = [(box.gpus[i * gpus // more], names[i * count // more]) for i in range(more)]
    links = [cable for gpu, name in ends for cable in both(gpu, name, nic.rate_Bps, pcie=True)]
    parts = {**box.parts, **dict.fromkeys(names, Role.NIC)}
    box = replace(box, parts=parts, cables=(*box.cables, *links))
    return box, dict.fromkeys(names, nic.rate_Bps), {(c.source, c.target) for c in links}


def _ways_to_nics(box: Box, ports: Mapping[str, Fraction]) -> tuple[set[tuple[str, str]], list[str]]:
    """Return the best NICs of the GPUs, or those that the file has chosen, and the links to them."""
    if box.assigns_nics:
        return {(c.source, c.target) for c in box.cables if c.pcie}, list(ports)
    ahead = group_by_key((c.source, c) for c in box.cables if c.pcie)
    ways: set[tuple[str, str]] = set()
    best: dict[str, None] = {}
    ends = {*box.gpus, *(name for name, role in box.parts.items() if role is Role.NIC)}
    for gpu in box.gpus:
        shortest = _shortest_ways(gpu, ahead, ends)
        paths = {nic: shortest[nic] for nic in ports if nic in shortest}
        scores = {nic: (-min(ports[nic], *(c.rate_Bps for c in way)), len(way)) for nic, way in paths.items()}
        for nic, score in scores.items():
            if score == min(scores.values()):
                best[nic] = None
                ways |= {end for c in paths[nic] for end in ((c.source, c.target), (c.target, c.source))}
    return ways, [nic for nic in ports if nic in best]


def _shortest_ways(start: str, ahead: Mapping[str, Sequence[Cable]], ends: set[str]) -> dict[str, tuple[Cable, ...]]:
    """Links of a shortest way to every node; ways pass through no other GPU and no NIC."""
    ways: dict[str, tuple[Cable, ...]] = {start: ()}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for c in ahead.get(here, ()) if here == start or here not in ends else ():
            if c.target not in ways:
                ways[c.target] = (*ways[here], c)
                waiting.append(c.target)
    return ways


def _drop_dead_ends(cables: list[Cable], keep: set[str]) -> list[Cable]:
    import networkx as nx

    graph = nx.from_edgelist((c.source, c.target) for c in cables)
    while dead_ends := [name for name, others in graph.degree if others < 2 and name not in keep]:
        graph.remove_nodes_from(dead_ends)
    return [c for c in cables if c.source in graph and c.target in graph]
