"""Explicit networks: compute nodes and switches, and the directed links between them."""

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from .budget import ITEMS_PER_CHECK, check_time
from .display import DisplayMixin
from .errors import InputError

if TYPE_CHECKING:
    from .schedule import Ints

_GPU = re.compile(r"gpu[0-9]+\Z")


class NodeKind(Enum):
    """Kind of node: one that takes part in collectives, or one that only forwards."""

    COMPUTE = "compute"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True)
class Node:
    """Node of the network."""

    name: str
    kind: NodeKind = NodeKind.COMPUTE  #: ``compute`` nodes are the ranks, in the order of the topology.
    multicast: bool = False  #: If a switch may send one incoming chunk to several links.
    #: Capacity of a switch; None is no limit, 0 is a switch that cannot store. For a rank on a grid of epochs: its
    #: capacity for data of others, where 0 is a rank that forwards what it receives at once, or never.
    buffer_bytes: Fraction | None = None
    reduces: bool = False  #: If a switch adds up the contributions to a sum that pass it.

    @property
    def adds(self) -> bool:
        """True if all incoming data can be added here: at a rank, or a switch that reduces or stores all."""
        return self.kind is NodeKind.COMPUTE or self.reduces or self.buffer_bytes is None

    @property
    def may_add(self) -> bool:
        """True if any data can be added here, such as what fits into the buffer of a switch."""
        return self.adds or self.buffer_bytes != 0

    @property
    def copies(self) -> bool:
        """True if incoming data can leave several times: at a rank, and at a switch with multicast."""
        return self.kind is NodeKind.COMPUTE or self.multicast


@dataclass(frozen=True, slots=True)
class Link:
    """Directed link; parallel links between the same nodes are separate links."""

    source: str
    target: str
    bandwidth_Bps: Fraction
    latency_s: Fraction = Fraction(0)  #: Seconds that the first byte takes.


@dataclass(frozen=True, repr=False)
class Topology(DisplayMixin):
    """Nodes and directed links."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        names = {node.name for node in self.nodes}
        is_valid = len(names) == len(self.nodes)
        rates: dict[int, Fraction] = {}  # by identity: most links share theirs, and a fraction is slow to compare
        rest = iter(self.links)
        while is_valid and (some := tuple(islice(rest, ITEMS_PER_CHECK))):
            if len(some) == ITEMS_PER_CHECK:
                check_time("links are checked")
            is_valid = names.issuperset(link.source for link in some) and names.issuperset(link.target for link in some)
            is_valid = is_valid and all(link.source != link.target for link in some)
            rates.update((id(link.bandwidth_Bps), link.bandwidth_Bps) for link in some)
        if not is_valid or any(rate <= 0 for rate in rates.values()):
            self._refuse()

    def _refuse(self) -> None:
        names: set[str] = set()
        for index, node in enumerate(self.nodes):
            if node.name in names:
                raise InputError(f"node {node.name!r} is defined twice", place=f"nodes[{index}]")
            names.add(node.name)
        for index, link in enumerate(self.links):
            place = f"links[{index}]"
            for end in (link.source, link.target):
                if end not in names:
                    raise InputError(f"unknown node {end!r}", place=place)
            if link.source == link.target:
                raise InputError(f"link from {link.source!r} to itself", place=place)
            if link.bandwidth_Bps <= 0:
                raise InputError("bandwidth must be greater than zero", place=place)

    @cached_property
    def ranks(self) -> tuple[str, ...]:
        """Names of the compute nodes; the position is the rank."""
        return tuple(n.name for n in self.nodes if n.kind is NodeKind.COMPUTE)

    @cached_property
    def node_index(self) -> dict[str, int]:
        """Position of every node by its name."""
        return {node.name: index for index, node in enumerate(self.nodes)}

    @cached_property
    def rank_nodes(self) -> tuple[int, ...]:
        """Position of every rank among the nodes."""
        return tuple(i for i, node in enumerate(self.nodes) if node.kind is NodeKind.COMPUTE)

    @cached_property
    def link_ends(self) -> tuple[tuple[int, int], ...]:
        """Positions of the two nodes of every link."""
        index = self.node_index
        return tuple((index[link.source], index[link.target]) for link in self.links)

    @cached_property
    def node_kinds(self) -> tuple[int, ...]:
        """Number of the kind of every node: nodes that differ by their names alone have the same."""
        kind_of: dict[tuple[object, ...], int] = {}  # by identity, as for links
        values: dict[tuple[object, ...], int] = {}
        kinds: list[int] = []
        for node in self.nodes:
            key = id(node.kind), id(node.buffer_bytes), node.multicast, node.reduces
            if (kind := kind_of.get(key)) is None:
                value = node.kind, node.buffer_bytes, node.multicast, node.reduces
                kind = kind_of[key] = values.setdefault(value, len(values))
            kinds.append(kind)
        return tuple(kinds)

    @cached_property
    def end_arrays(self) -> "tuple[Ints, Ints]":
        """Positions of the nodes that every link leaves and enters, as arrays that nobody can write."""
        import numpy as np

        index, count = self.node_index, len(self.links)
        tail = np.fromiter((index[link.source] for link in self.links), np.int64, count)
        head = np.fromiter((index[link.target] for link in self.links), np.int64, count)
        for ends in (tail, head):  # methods and the verifier share them
            ends.flags.writeable = False
        return tail, head

    @cached_property
    def link_kinds(self) -> "array[int]":
        """Number of the kind of every link: equal bandwidths and latencies have the same; kinds are in first order."""
        kind_of: dict[tuple[int, int], int] = {}  # by identity: most links share their quantities; fractions are slow
        values: dict[tuple[Fraction, Fraction], int] = {}
        kinds = array("q")
        for link in self.links:
            key = id(link.bandwidth_Bps), id(link.latency_s)
            if (kind := kind_of.get(key)) is None:
                kind = kind_of[key] = values.setdefault((link.bandwidth_Bps, link.latency_s), len(values))
            kinds.append(kind)
        return kinds

    @cached_property
    def kind_links(self) -> tuple[Link, ...]:
        """The first link of every kind."""
        return tuple(self.links[self.link_kinds.index(kind)] for kind in range(max(self.link_kinds, default=-1) + 1))

    @cached_property
    def tree_nodes(self) -> tuple[int, ...]:
        """Number of every node in trees: first the ranks, then the switches."""
        return *self.rank_nodes, *(i for i, node in enumerate(self.nodes) if node.kind is NodeKind.SWITCH)

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """Names of the switches."""
        return tuple(n.name for n in self.nodes if n.kind is NodeKind.SWITCH)

    def box_names(self, ranks: Sequence[int] | None = None) -> tuple[str, ...] | None:
        """Return the box of every rank: the text before the last dot of a name such as ``box0.gpu3``.

        ``ranks`` are nodes, by default all ranks. A rank without a dot is a box of its own. If no name has a dot, all
        are in one box where they are named like ``gpu0``; the boxes of other names are unknown, and None is returned.
        """
        names = [self.nodes[node].name for node in (self.rank_nodes if ranks is None else ranks)]
        if all(_GPU.match(name) for name in names):
            return ("",) * len(names)
        return tuple(name.rpartition(".")[0] or name for name in names) if any("." in name for name in names) else None

    def _facts(self) -> Mapping[str, object]:
        return {"ranks": len(self.ranks), "switches": len(self.switches), "links": len(self.links)}
