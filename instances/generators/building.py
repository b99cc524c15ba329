"""Common parts of generators: bounded sizes, quantities as text, and links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated

from ...core.errors import InputError, locate_errors
from ...core.limits import ITEMS_PER_REPORT, check_time_rarely, iterate_in_time, report_progress
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


@dataclass(frozen=True)
class Wire:
    """Bandwidth and latency of a link."""

    bandwidth_Bps: Fraction
    latency_s: Fraction  #: Seconds until the first byte arrives.

    def __mul__(self, count: Fraction | int) -> Wire:
        """``count`` such wires, bundled into one."""
        return Wire(self.bandwidth_Bps * count, self.latency_s)

    def link(self, source: str, target: str) -> Link:
        """Make a link in one direction."""
        check_time_rarely("links are made")
        return Link(source, target, self.bandwidth_Bps, self.latency_s)

    def link_pair(self, one: str, other: str) -> tuple[Link, Link]:
        """Make a link in each direction."""
        return self.link(one, other), self.link(other, one)


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


def check_ranges(**given: tuple[int, ...]) -> None:
    """Check arguments with their bounds, such as ``boxes=(boxes, 1)`` and ``rails=(rails, 1, 8)``."""
    for place, (value, *bounds) in given.items():
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
            made = self.make()
        except _MeasuredError as error:
            nodes, links = error.args
            return nodes, links
        finally:
            _MEASURING.reset(token)
        return len(made.nodes), len(made.links)

    @cached_property
    def topology(self) -> Topology:
        """The network."""
        topology = self.make()
        if topology.switches:
            raise InputError(f"{self.text[:40]!r} has switches; expected only compute nodes")
        return topology


def check_size(*, nodes: int, links: int) -> None:
    """Reject a network that is too large, before memory is allocated, and report the size of one that takes seconds."""
    if nodes > MAX_NODES or links > MAX_LINKS:
        raise InputError(
            f"{nodes:,} nodes and {links:,} links are too many; expected at most {MAX_NODES:,} and {MAX_LINKS:,}"
        )
    if _MEASURING.get():
        raise _MeasuredError(nodes, links)
    if nodes + links > ITEMS_PER_REPORT:
        report_progress(f"making {nodes:,} nodes and {links:,} links")


def make_graph(*, nodes: int, links: int, edges: Iterable[tuple[int, int]], wire: Wire) -> Topology:
    """Make a direct network whose nodes are named by their rank.

    Parameters
    ----------
    nodes, links : int
        Their numbers in closed form, so that the size is checked before the first one is made.
    wire : Wire
        Bandwidth and latency of every link.
    """
    check_size(nodes=nodes, links=links)
    names, rate, latency = rank_names(nodes), wire.bandwidth_Bps, wire.latency_s
    made = (Link(names[source], names[target], rate, latency) for source, target in edges)
    return Topology(
        tuple(iterate_in_time(map(Node, names), nodes, "nodes")), tuple(iterate_in_time(made, links, "links"))
    )


def both_ways(edges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield every edge, followed by its reverse."""
    for one, other in edges:
        yield one, other
        yield other, one


def rank_names(count: int) -> tuple[str, ...]:
    """Return the names of the compute nodes of an abstract network: their ranks."""
    return tuple(str(rank) for rank in range(count))


def make_switch(name: str, *, multicast: bool, buffer_bytes: Fraction | None = None, reduces: bool = False) -> Node:
    """Make a switch."""
    return Node(name, NodeKind.SWITCH, multicast, buffer_bytes, reduces)
