"""ForestColl's problem: a network with exact integer bandwidths, and the number of trees per root."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, Self

import numpy as np

from ...algorithms.forests.expansion import ParallelLinks
from ...algorithms.graphs.maxflow import near_order
from ...algorithms.graphs.network import Exact, Network, exact_array
from ...algorithms.graphs.translations import ColouredNetwork, Symmetry, find_symmetry
from ...algorithms.schedules.compose import transpose
from ...core.collective import Collective, Demand
from ...core.errors import InputError, Unsupported
from ...core.grouping import group_by_key
from ...core.instance import Instance
from ...core.schedule import Bools, Ints
from ...core.topology import NodeKind, Topology
from ...core.units import common_unit
from .method import SPREADS, supports

Pair = tuple[int, int]

#: Switches that add and copy of which all sets are tried, on networks of so many ranks at most.
MOST_TRIED, SMALL = 3, 16


@dataclass(frozen=True, eq=False)
class ForestProblem:
    """Out-trees in one network; reductions use the transposed one."""

    topology: Topology
    ranks: Ints  #: Ranks that trees must span, in the order of their nodes.
    roots: Ints  #: 1 where trees start, else 0; shape (nodes,).
    part_bytes: Fraction  #: Data that starts at every root.

    @cached_property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.topology.nodes)

    @cached_property
    def members(self) -> Bools:
        """Nodes that trees must span; the others only forward."""
        members = np.zeros(self.nodes, dtype=np.bool_)
        members[np.array(self.topology.rank_nodes, dtype=np.int64)[self.ranks]] = True
        return members

    @cached_property
    def rank_nodes(self) -> tuple[int, ...]:
        """Positions of the nodes that trees must span, in order; all others forward without copying."""
        return tuple(np.flatnonzero(self.members).tolist())

    @cached_property
    def unit_Bps(self) -> Fraction:
        """The largest bandwidth that all bandwidths are multiples of."""
        return common_unit(link.bandwidth_Bps for link in self.topology.kind_links)

    @cached_property
    def kind_bandwidths(self) -> tuple[int, ...]:
        """Bandwidth of every kind of link, in units."""
        return tuple(int(link.bandwidth_Bps / self.unit_Bps) for link in self.topology.kind_links)

    @cached_property
    def bandwidths(self) -> tuple[int, ...]:
        """Bandwidth of every link, in units."""
        return tuple(self.kind_bandwidths[kind] for kind in self.topology.link_kinds)

    @cached_property
    def tail(self) -> tuple[int, ...]:
        """The node that every link leaves."""
        return tuple(self.ends[0].tolist())

    @cached_property
    def head(self) -> tuple[int, ...]:
        """The node that every link enters."""
        return tuple(self.ends[1].tolist())

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """Tails and heads as arrays."""
        tail, head = self.topology.end_arrays
        return tail.copy(), head.copy()

    def transpose(self) -> Self:
        """Return the problem with every link reversed, on which a broadcast is a reduction here."""
        return replace(self, topology=transpose(self.topology))

    @cached_property
    def graph(self) -> Network:
        """The network with its bandwidths."""
        capacity = exact_array(self.kind_bandwidths, self.topology.link_kinds)
        return Network.from_parallel_edges(self.nodes, *self.ends, capacity)

    @cached_property
    def symmetry(self) -> Symmetry | None:
        """Translations of the network that map trees from all ranks to such; None if none is found."""
        everyone = np.zeros(self.nodes, dtype=np.bool_)
        everyone[list(self.topology.rank_nodes)] = True
        if not (np.array_equal(self.members, everyone) and np.array_equal(self.roots > 0, everyone)):
            return None
        return find_symmetry(ColouredNetwork.of(self.topology))

    @cached_property
    def sinks(self) -> Ints:
        """Nodes that trees must reach, one per orbit, each close to those before it."""
        return near_order(self.graph, self.members) if self.symmetry is None else self.symmetry.roots

    def wires(self, copies: Fraction) -> ParallelLinks:
        """Return the whole copies of trees that every link can carry, ``floor(U b_e)`` (theorem 13)."""
        room = [int(copies * rate) for rate in self.kind_bandwidths]
        return ParallelLinks(self.nodes, *self.ends, exact_array(room, self.topology.link_kinds))

    def names(self, side: Bools | Sequence[int]) -> str:
        """Name the nodes, abbreviated if they are many."""
        nodes = np.flatnonzero(side) if isinstance(side, np.ndarray) and side.dtype == np.bool_ else list(side)
        names = [repr(self.topology.nodes[node].name) for node in nodes]
        return ", ".join(names[:4]) + (f" and {len(names) - 4:,} more" if len(names) > 4 else "")


def pose(instance: Instance) -> tuple[ForestProblem | None, ForestProblem | None]:
    """Return a collective's trees for reductions, in the transposed network, and trees for copies."""
    topology, demand = instance.network, instance.demand
    if (reason := supports(instance)) is not None or not isinstance(topology, Topology) or demand is None:
        raise Unsupported(reason or "expected a network and a collective")
    check_balance(topology, demand)
    outward = inward = None
    if demand.collective not in (Collective.REDUCE_SCATTER, Collective.REDUCE):
        outward = group_problem(topology, demand)
    if demand.collective not in (Collective.ALL_GATHER, Collective.BROADCAST):
        inward = group_problem(transpose(topology), demand)
    return inward, outward


def from_all_ranks(topology: Topology) -> ForestProblem:
    """Return the problem of trees from every rank to all ranks, whatever the size of the data."""
    roots = np.zeros(len(topology.nodes), dtype=np.int64)
    roots[list(topology.rank_nodes)] = 1
    return ForestProblem(topology, np.arange(len(topology.ranks)), roots, Fraction(1))


def check_balance(topology: Topology, demand: Demand) -> None:
    """Reject forwarding nodes whose bandwidths in and out differ.

    Splitting needs balance there (appendix C, assumption (b)); where ranks send and receive at different rates, trees
    exist all the same.
    """
    entering, leaving, unit = bandwidth_of_nodes(topology)
    spanned = {topology.rank_nodes[rank] for rank in demand.group(len(topology.ranks))}
    for index in np.flatnonzero(entering != leaving).tolist():
        if index not in spanned:
            sums = f"{_rate(int(entering[index]) * unit)} come in, {_rate(int(leaving[index]) * unit)} go out"
            text = f"{topology.nodes[index].name!r} forwards data, but {sums}; expected the same"
            raise InputError(text, place=f"network.nodes[{index}]")


def bandwidth_of_nodes(topology: Topology) -> tuple[Exact, Exact, Fraction]:
    """Sum the bandwidths into and out of every node, as multiples of the rate that is returned third."""
    unit = common_unit(link.bandwidth_Bps for link in topology.kind_links)
    rates = [int(link.bandwidth_Bps / unit) for link in topology.kind_links]
    each = exact_array(rates, topology.link_kinds)
    leaving, entering = (np.zeros(len(topology.nodes), dtype=each.dtype) for _ in range(2))
    for total, ends in zip((leaving, entering), topology.end_arrays, strict=True):
        np.add.at(total, ends, each)
    return entering, leaving, unit


def group_problem(topology: Topology, demand: Demand) -> ForestProblem:
    """Return the problem of trees from ranks of a group, or its first, to all of them; other nodes forward."""
    ranks = demand.group(len(topology.ranks))
    roots = np.zeros(len(topology.nodes), dtype=np.int64)
    if demand.collective in SPREADS:
        roots[topology.rank_nodes[ranks[0]]] = 1
        part = demand.size_bytes
    else:
        roots[[topology.rank_nodes[rank] for rank in ranks]] = 1
        part = demand.size_bytes / len(ranks)
    return ForestProblem(topology, np.array(sorted(ranks), dtype=np.int64), roots, part)


def _rate(rate: Fraction) -> str:
    value = rate / 10**9
    return f"{float(value):.6g} GB/s" if value.denominator != 1 else f"{value.numerator:,} GB/s"


def hubs_of(topology: Topology) -> tuple[int, ...]:
    """Return switches that add and copy and that all trees of an all-reduce may pass without a bottleneck."""
    entering, leaving, _ = bandwidth_of_nodes(topology)
    rates = np.minimum(entering, leaving).tolist()
    fastest = min(rates[node] for node in topology.rank_nodes)
    return tuple(switch for switch in adding_switches(topology) if rates[switch] >= fastest)


def adding_switches(topology: Topology) -> tuple[int, ...]:
    """Return the switches that add and copy."""
    nodes = enumerate(topology.nodes)
    return tuple(i for i, node in nodes if node.kind is NodeKind.SWITCH and node.copies and node.adds)


def sets_of_hubs(topology: Topology) -> list[tuple[int, ...]]:
    """Return candidate sets of hubs: :func:`hubs_of`, all others if there are few, and none."""
    able = adding_switches(topology)
    few = len(able) <= MOST_TRIED and len(topology.ranks) <= SMALL
    sizes = range(len(able), 0, -1) if few else ()
    subsets = [hubs for size in sizes for hubs in combinations(able, size)]
    return list(dict.fromkeys([hubs_of(topology), *subsets, ()]))


class PairNetwork:
    """Pairs of tree nodes joined directly or through switches.

    Hubs are switches that are nodes of all trees, since they add and copy; the others only forward.
    """

    def __init__(self, network: ForestProblem, hubs: Sequence[int] = ()) -> None:
        self.network = network
        self.hubs = tuple(hubs)
        self.is_end = [node in self.ends for node in range(network.nodes)]

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Nodes of trees: ranks, then hubs."""
        return self.network.rank_nodes + self.hubs

    @cached_property
    def direct(self) -> dict[Pair, list[int]]:
        """Links between two nodes of trees."""
        links = enumerate(self.network.topology.link_ends)
        return group_by_key(((a, b), e) for e, (a, b) in links if self.is_end[a] and self.is_end[b])

    @cached_property
    def relays(self) -> dict[int, tuple[int, ...]]:
        """Links usable by way of switches, for every tree node with a link to a switch."""
        net = self.network
        links_in_order = enumerate(net.topology.link_ends)
        out = group_by_key((a, e) for e, (a, b) in links_in_order if not (self.is_end[a] and self.is_end[b]))
        relays: dict[int, tuple[int, ...]] = {}
        for rank in self.ends:
            links, nodes, waiting = [], {rank}, [rank]
            while waiting:
                for e in out[waiting.pop()]:
                    node = net.head[e]
                    if node != rank:
                        links.append(e)
                    if node not in nodes and not self.is_end[node]:
                        waiting.append(node)
                    nodes.add(node)
            if links:
                relays[rank] = tuple(sorted(links))
        return relays

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Ordered pairs of nodes of trees with a direct link or a path through switches."""
        net = self.network
        through = {(a, net.head[e]) for a, links in self.relays.items() for e in links if self.is_end[net.head[e]]}
        return tuple(sorted(through | self.direct.keys()))

    @cached_property
    def is_mirrored(self) -> bool:
        """True if every two nodes are joined by the same bandwidth in both directions."""
        total = defaultdict[Pair, int](int)
        for a, b, c in zip(self.network.tail, self.network.head, self.network.bandwidths, strict=True):
            total[a, b] += c
        return all(total.get((b, a)) == c for (a, b), c in total.items())


@dataclass(frozen=True, eq=False)
class GatherProblem(ForestProblem):
    """Out-trees of an all_gather, or of a reduce_scatter in the transposed network."""

    instance: Instance = field(kw_only=True)
    backwards: bool = field(kw_only=True)  #: True for a reduce_scatter.


def gather_problem(instance: Instance, options: Any) -> GatherProblem:
    """Return the problem of an all_gather or reduce_scatter (``Formulation.index``)."""
    reductions, copies = pose(instance)
    problem = reductions if copies is None else copies
    assert problem is not None  # noqa: S101 (one of the two is asked for)
    parts = problem.topology, problem.ranks, problem.roots, problem.part_bytes
    return GatherProblem(*parts, instance=instance, backwards=copies is None)
