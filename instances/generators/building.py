"""Common parts of generators: bounded sizes, quantities as text, links, and boxes of GPUs joined by switches."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated

from ...core.budget import ITEMS_PER_REPORT, check_time_rarely, iterate_in_time, report_progress
from ...core.errors import InputError, locate_errors
from ...core.topology import Link, Node, NodeKind, Topology
from ...core.units import UnitKind, parse
from ..schema import MAX_LINKS, MAX_NODES

#: A bandwidth or a latency as the user writes it, with its unit.
Rate = Annotated[str, UnitKind.RATE]
Time = Annotated[str, UnitKind.TIME]

#: Default bandwidth and latency of the links of abstract graphs: those of the dissertation's section 5.5.2 (0.5 us,
#: 50 GiB/s), but the rate in decimal units, like all rates in cwb.
BANDWIDTH: Rate = "50 GB/s"
LATENCY: Time = "0.5 us"

#: Most nodes of a generated network: as many ranks as a file may list, and switches.
MOST_NODES = 2 * MAX_NODES


@dataclass(frozen=True)
class Wire:
    """Bandwidth and latency of a link."""

    bandwidth_Bps: Fraction
    latency_s: Fraction  #: Seconds until the first byte arrives.

    def __mul__(self, count: Fraction | int) -> "Wire":
        """``count`` such wires, bundled into one."""
        return Wire(self.bandwidth_Bps * count, self.latency_s)

    def link(self, source: str, target: str) -> Link:
        """Make a link in one direction."""
        check_time_rarely("links are made")
        return Link(source, target, self.bandwidth_Bps, self.latency_s)

    def link_pair(self, one: str, other: str) -> tuple[Link, Link]:
        """Make a link in each direction."""
        check_time_rarely("links are made")
        rate, delay = self.bandwidth_Bps, self.latency_s
        return Link(one, other, rate, delay), Link(other, one, rate, delay)


def read_wire(bandwidth: Rate, latency: Time, *, place: str = "bandwidth", latency_place: str = "latency") -> Wire:
    """Read bandwidth and latency of a link; ``place`` and ``latency_place`` name the arguments in errors."""
    with locate_errors(place):
        rate = parse(bandwidth, UnitKind.RATE, allow_zero=False)
    with locate_errors(latency_place):
        return Wire(rate, parse(latency, UnitKind.TIME))


def check_range(value: int, place: str, low: int, high: int = MAX_NODES) -> int:
    """Return the value if it is within the bounds (inclusive), else raise InputError."""
    if not low <= value <= high:
        raise InputError(f"{value:,} is out of range; expected an integer from {low:,} to {high:,}", place=place)
    return value


def check_ranges(**ranges: tuple[int, ...]) -> None:
    """Check arguments with their bounds, such as ``boxes=(boxes, 1)`` and ``rails=(rails, 1, 8)``."""
    for place, (value, *bounds) in ranges.items():
        check_range(value, place, *bounds)


#: True while only the size of a network is wanted, so that :func:`check_size` raises it.
_MEASURING: ContextVar[bool] = ContextVar("_MEASURING", default=False)


class _MeasuredError(Exception):
    """Size of a network, raised by :func:`check_size` out of a generator before it makes a node."""


@dataclass(frozen=True)
class NestedNetwork:
    """A network inside an expression, made on demand."""

    text: str
    make: Callable[[], Topology]

    @cached_property
    def size(self) -> tuple[int, int]:
        """Numbers of nodes and links, in closed form where the generator knows one."""
        token = _MEASURING.set(True)
        try:
            network = self.make()
        except _MeasuredError as error:
            nodes, links = error.args
            return nodes, links
        finally:
            _MEASURING.reset(token)
        return len(network.nodes), len(network.links)

    @cached_property
    def topology(self) -> Topology:
        """The network."""
        topology = self.make()
        if topology.switches:
            raise InputError(f"{self.text[:40]!r} has switches; expected only compute nodes")
        return topology


def check_size(*, nodes: int, links: int) -> None:
    """Reject a network that is too large, before memory is allocated, and report the size of one that takes seconds."""
    if nodes > MOST_NODES or links > MAX_LINKS:
        raise InputError(
            f"{nodes:,} nodes and {links:,} links are too many; expected at most {MOST_NODES:,} and {MAX_LINKS:,}"
        )
    if _MEASURING.get():
        raise _MeasuredError(nodes, links)
    if nodes + links > ITEMS_PER_REPORT:
        report_progress(f"making {nodes:,} nodes and {links:,} links")


def make_graph(nodes: int, links: int, edges: Iterable[tuple[int, int]], bandwidth: Rate, latency: Time) -> Topology:
    """Make a direct network whose nodes are named by their rank.

    ``nodes``, ``links``: their numbers in closed form, so that the size is checked before the first one is made.
    """
    wire = read_wire(bandwidth, latency)
    check_size(nodes=nodes, links=links)
    names = rank_names(nodes)
    wires = (Link(names[a], names[b], wire.bandwidth_Bps, wire.latency_s) for a, b in edges)
    return Topology(
        tuple(iterate_in_time(map(Node, names), nodes, "nodes")), tuple(iterate_in_time(wires, links, "links"))
    )


def both_ways(edges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield every edge, followed by its reverse."""
    for one, other in edges:
        yield one, other
        yield other, one


def rank_names(count: int) -> tuple[str, ...]:
    """Return the names of the compute nodes of an abstract network: their ranks."""
    return tuple(str(rank) for rank in range(count))


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


def nvswitches(boxes: int, planes: int = 1) -> list[str]:
    """Name all NVSwitches, box by box."""
    planes_of_box = [""] if planes == 1 else [str(plane) for plane in range(planes)]
    return [f"box{box}.nvswitch{plane}" for box in range(boxes) for plane in planes_of_box]


def switched_boxes(boxes: int, per_box: int, inside: Wire, planes: int = 1) -> list[Link]:
    """Join the GPUs of every box by its NVSwitches, each of which has an equal share of a GPU's bandwidth."""
    share, names = inside * Fraction(1, planes), nvswitches(boxes, planes)
    return [
        link
        for box in range(boxes)
        for index in range(per_box)
        for name in names[box * planes : (box + 1) * planes]
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
    """Join boxes of GPUs on NVSwitches, several by rails: GPU i is on switch i mod rails."""
    rails, cards = (rails, boxes * per_box - missing_nics) if boxes > 1 else (0, 0)
    check_size(nodes=boxes * (per_box + planes) + rails, links=2 * (boxes * per_box * planes + cards))
    inside = read_wire(nvlink, latency, place="nvlink")
    outside = read_wire(nic, latency, place="nic")
    links = switched_boxes(boxes, per_box, inside, planes)
    if rails:
        links += nics(boxes, per_box, outside, lambda _, index: f"ib{index % rails}", missing=missing_nics)
    inner = nvswitches(boxes, planes)
    nodes = [*map(Node, gpus(boxes, per_box)), *(relay(n, multicast=multicast or nvls, reduces=nvls) for n in inner)]
    return Topology((*nodes, *(relay(f"ib{rail}", multicast=multicast) for rail in range(rails))), tuple(links))


def switched_network(
    names: Iterable[str], switches: Iterable[str], links: Iterable[Link], *, multicast: bool, stores: bool = False
) -> Topology:
    """Make the network of compute nodes and of switches that only pass on, or also store."""
    nodes = (relay(name, multicast=multicast, stores=stores) for name in switches)
    return Topology((*map(Node, names), *nodes), tuple(links))


def relay(name: str, *, multicast: bool, reduces: bool = False, stores: bool = False) -> Node:
    """Make a switch that passes on and cannot store; it copies, adds or stores only if asked to."""
    return Node(name, NodeKind.SWITCH, multicast, None if stores else Fraction(0), reduces)


def bufferless(name: str) -> Node:
    """Make a switch as TE-CCL models it (section 3.1): it copies, and cannot store."""
    return relay(name, multicast=True)
