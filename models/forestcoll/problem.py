"""What ForestColl is asked: a network with exact integer bandwidths, and how many trees start where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

import numpy as np

from ...core.collective import CollectiveKind, Demand
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.schedule import Bools, Ints
from ...core.topology import Topology
from ..common.compose import transpose
from ..common.digraph import Digraph, exact_array
from ..common.forests.expansion import Wires
from ..common.maxflow import near_order

#: What trees from every rank, or from one, are for. The first of each pair goes outwards.
GATHERS = (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER)
SPREADS = (CollectiveKind.BROADCAST, CollectiveKind.REDUCE)
SUPPORTED = (*GATHERS, CollectiveKind.ALL_REDUCE, *SPREADS)


def supports(instance: Instance) -> str | None:
    """Say why ForestColl has nothing to say about an instance."""
    if not isinstance(instance.network, Topology):
        return f"{instance.network} has no links; expected an explicit network such as mi250(boxes=2)"
    if instance.demand is None or instance.also:
        return "the instance has no collective, or several; expected one"
    if instance.demand.collective not in SUPPORTED:
        defined = ", ".join(kind.value for kind in SUPPORTED)
        return f"spanning trees do not make {instance.demand.collective.value}, but {defined}"
    if len(_ranks(instance.network, instance.demand)) < 2:
        return "a collective needs at least two ranks"
    if instance.demand.size_bytes <= 0:
        return "the collective has no data to move"
    return None


@dataclass(frozen=True, eq=False)
class Problem:
    """Out-trees in one network; reductions are asked in the transposed one.

    Parameters
    ----------
    topology : Topology
        The network in which the trees go outwards.
    ranks : array of int
        Ranks that trees must span, in the order of their nodes.
    roots : array of int, shape (nodes,)
        1 where trees start, else 0.
    part_bytes : Fraction
        Data that starts at every root.
    """

    topology: Topology
    ranks: Ints
    roots: Ints
    part_bytes: Fraction

    @cached_property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.topology.nodes)

    @cached_property
    def members(self) -> Bools:
        """Nodes that trees must span; the others only pass on."""
        members = np.zeros(self.nodes, dtype=np.bool_)
        members[np.array(self.topology.rank_nodes, dtype=np.int64)[self.ranks]] = True
        return members

    @cached_property
    def unit_Bps(self) -> Fraction:
        """The largest bandwidth that all bandwidths are multiples of."""
        rates = {link.bandwidth_Bps for link in self.topology.links}
        scale = lcm(*(rate.denominator for rate in rates))
        return Fraction(gcd(*(int(rate * scale) for rate in rates)), scale)

    @cached_property
    def bandwidths(self) -> tuple[int, ...]:
        """Bandwidth of every link, in units."""
        known = {rate: int(rate / self.unit_Bps) for rate in {link.bandwidth_Bps for link in self.topology.links}}
        return tuple(known[link.bandwidth_Bps] for link in self.topology.links)

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """Nodes at both ends of every link."""
        tail, head = np.array(self.topology.link_ends, dtype=np.int64).reshape(-1, 2).T.copy()
        return tail, head

    @cached_property
    def graph(self) -> Digraph:
        """The network with its bandwidths."""
        return Digraph.merged(self.nodes, *self.ends, exact_array(self.bandwidths))

    @cached_property
    def sinks(self) -> Ints:
        """Nodes that trees must reach, each close to those before it."""
        return near_order(self.graph, self.members)

    def wires(self, copies: Fraction) -> Wires:
        """Give every link the whole copies of trees that it can carry, ``floor(U b_e)`` (theorem 13)."""
        room = {rate: int(copies * rate) for rate in set(self.bandwidths)}
        return Wires(self.nodes, *self.ends, exact_array(room[rate] for rate in self.bandwidths))

    def names(self, side: Bools | Sequence[int]) -> str:
        """Name nodes, not too many."""
        chosen = np.flatnonzero(side) if isinstance(side, np.ndarray) and side.dtype == np.bool_ else list(side)
        names = [repr(self.topology.nodes[node].name) for node in chosen]
        return ", ".join(names[:4]) + (f" and {len(names) - 4:,} more" if len(names) > 4 else "")


def pose(instance: Instance) -> tuple[Problem | None, Problem | None]:
    """Say what a collective needs: trees for reductions, given in the transposed network, and trees for copies.

    Raises
    ------
    Unsupported
        If :func:`supports` has something against the instance.
    InputError
        If there is a switch that more comes into than can leave it, or the other way around.
    """
    topology, demand = instance.network, instance.demand
    if (reason := supports(instance)) is not None or not isinstance(topology, Topology) or demand is None:
        raise Unsupported(reason or "expected a network and a collective")
    check_balance(topology, demand)
    outward = inward = None
    if demand.collective not in (CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE):
        outward = _problem(topology, demand)
    if demand.collective not in (CollectiveKind.ALL_GATHER, CollectiveKind.BROADCAST):
        inward = _problem(transpose(topology), demand)
    return inward, outward


def check_balance(topology: Topology, demand: Demand) -> None:
    """Refuse nodes that only pass on, but have not the same bandwidth in and out.

    Splitting needs it there (appendix C, assumption (b)); where ranks send and receive at different rates, trees exist all the same.

    Raises
    ------
    InputError
        If there is one; names it with both sums.
    """
    entering, leaving = ([Fraction(0)] * len(topology.nodes) for _ in range(2))
    for link, (a, b) in zip(topology.links, topology.link_ends, strict=True):
        leaving[a] += link.bandwidth_Bps
        entering[b] += link.bandwidth_Bps
    spanned = {topology.rank_nodes[rank] for rank in _ranks(topology, demand)}
    for index, node in enumerate(topology.nodes):
        if index not in spanned and entering[index] != leaving[index]:
            sums = f"{_rate(entering[index])} come in, {_rate(leaving[index])} go out"
            raise InputError(
                f"{node.name!r} passes data on, but {sums}; expected the same", place=f"network.nodes[{index}]"
            )


def unreachable(problem: Problem, side: Bools, *, backwards: bool) -> InputError:
    """Give the error of a network in which data cannot reach a set of nodes, or leave it."""
    verb = "leads out of" if backwards else "leads to"
    return InputError(f"disconnected: no link {verb} {problem.names(side)}", place="network.links")


def _problem(topology: Topology, demand: Demand) -> Problem:
    ranks = _ranks(topology, demand)
    roots = np.zeros(len(topology.nodes), dtype=np.int64)
    if demand.collective in SPREADS:
        roots[topology.rank_nodes[ranks[0]]] = 1
        part = demand.size_bytes
    else:
        roots[[topology.rank_nodes[rank] for rank in ranks]] = 1
        part = demand.size_bytes / len(ranks)
    return Problem(topology, np.array(sorted(ranks), dtype=np.int64), roots, part)


def _ranks(topology: Topology, demand: Demand) -> tuple[int, ...]:
    return tuple(range(len(topology.ranks))) if demand.ranks is None else demand.ranks


def _rate(rate: Fraction) -> str:
    value = rate / 10**9
    return f"{float(value):.6g} GB/s" if value.denominator != 1 else f"{value.numerator:,} GB/s"
