"""Common parts of machine generators: boxes of GPUs with equal wiring, joined by switches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from ...core.topology import Link, Node, Topology
from .building import Rate, Time, Wire, check_size, make_switch, read_wire

Wiring = Mapping[tuple[int, int], int]  #: Undirected pairs of GPUs, with the number of parallel links between them.


def wiring(bundles: Mapping[int, Iterable[tuple[int, int]]]) -> Wiring:
    """Turn pairs listed by their number of parallel links into the number of links of every pair."""
    return {pair: count for count, pairs in bundles.items() for pair in pairs}


def gpu(box: int, index: int) -> str:
    """Name a GPU."""
    return f"box{box}.gpu{index}"


def gpus(boxes: int, per_box: int) -> tuple[str, ...]:
    """Name all GPUs, box by box."""
    return tuple(gpu(box, index) for box in range(boxes) for index in range(per_box))


def wired_box(box: int, pairs: Wiring, single: Wire) -> list[Link]:
    """Wire the GPUs of a box; parallel links are one link of their summed bandwidth."""
    return [link for (a, b), count in pairs.items() for link in (single * count).link_pair(gpu(box, a), gpu(box, b))]


def nvswitches(box: int, planes: int = 1) -> tuple[str, ...]:
    """Name the NVSwitches of a box."""
    return (f"box{box}.nvswitch",) if planes == 1 else tuple(f"box{box}.nvswitch{plane}" for plane in range(planes))


def switched_box(box: int, per_box: int, inside: Wire, planes: int = 1) -> list[Link]:
    """Join the GPUs of a box by its NVSwitches, each of which has an equal share of a GPU's bandwidth."""
    share = inside * Fraction(1, planes)
    return [
        link
        for index in range(per_box)
        for name in nvswitches(box, planes)
        for link in share.link_pair(gpu(box, index), name)
    ]


def nics(
    boxes: int, per_box: int, outside: Wire, port: Callable[[int, int], str], *, missing: int = 0
) -> Iterable[Link]:
    """Connect every GPU by its own NIC to the switch that ``port`` names for its box and index.

    The first ``missing`` boxes lack the NIC of their GPU 0, in both directions, so that every node still receives what
    it sends; no box loses two, and the boxes stay connected if they have two GPUs.
    """
    for box in range(boxes):
        for index in range(int(box < missing), per_box):
            yield from outside.link_pair(gpu(box, index), port(box, index))


def rail_cluster(
    boxes: int,
    per_box: int,
    rails: int,
    *,
    nvlink: Rate,
    nic: Rate,
    latency: Time,
    multicast: bool,
    planes: int = 1,
    missing_nics: int = 0,
    nvls: bool = False,
) -> Topology:
    """Join boxes of GPUs on NVSwitches by rails: GPU i is on switch i mod rails.

    A single box has no rails.
    """
    rails, cards = (rails, boxes * per_box - missing_nics) if boxes > 1 else (0, 0)
    check_size(nodes=boxes * (per_box + planes) + rails, links=2 * (boxes * per_box * planes + cards))
    inside = read_wire(nvlink, latency, place="nvlink")
    outside = read_wire(nic, latency, place="nic")
    links = [link for box in range(boxes) for link in switched_box(box, per_box, inside, planes)]
    if rails:
        links += nics(boxes, per_box, outside, lambda _, index: f"ib{index % rails}", missing=missing_nics)
    inner = [name for box in range(boxes) for name in nvswitches(box, planes)]
    nodes = [*map(Node, gpus(boxes, per_box)), *(relay(n, multicast=multicast or nvls, reduces=nvls) for n in inner)]
    return Topology((*nodes, *(relay(f"ib{rail}", multicast=multicast) for rail in range(rails))), tuple(links))


def switched_network(
    names: Iterable[str], switches: Iterable[str], links: Iterable[Link], *, multicast: bool
) -> Topology:
    """Make the network of GPUs and of switches that only pass on."""
    return Topology(
        (*map(Node, names), *(relay(name, multicast=multicast) for name in switches)),
        tuple(links),
    )


def relay(name: str, *, multicast: bool, reduces: bool = False) -> Node:
    """Make a switch that passes on and cannot store; it copies or adds only if asked to."""
    return make_switch(name, multicast=multicast, buffer_bytes=Fraction(0), reduces=reduces)


def bufferless(name: str) -> Node:
    """Make a switch as TE-CCL models it (section 3.1): it copies, and cannot store."""
    return relay(name, multicast=True)
