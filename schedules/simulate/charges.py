"""Costs of ranks as links, so that the simulators of links count them.

A message passes a link of its rank before its first real one: it holds this *sender* for the overhead, without bytes.
What is added passes a link of its target after the last real one: the *adder*, with the rate of adding. It begins
when the first byte has arrived, or the last one. Sends of one step between the same two nodes over the same first
link are one message, whose first send pays. Times of these links do not appear in a trace.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ...core.instance import Instance
from ...core.ragged import offsets
from ...core.schedule import Bools, Floats, Sends
from ...core.topology import Link, NodeKind, Topology
from ...core.trees import TreePacking
from .network import RankLinks, Timeline, Wires
from .transfers import Transfers


class ChargedTransfers(NamedTuple):
    """Transfers over the links of ranks as well."""

    transfers: Transfers
    wires: Wires
    real: Bools | slice = slice(None)  #: Entries of paths that are links of the network.

    def on_network(self, timeline: Timeline) -> Timeline:
        """Return the times of the hops over links of the network."""
        return Timeline(timeline.end_s, timeline.hop_start_s[self.real], timeline.hop_end_s[self.real])


def charge(instance: Instance, transfers: Transfers, wires: Wires) -> ChargedTransfers:
    """Add the links of ranks to the paths if ranks have costs."""
    if (costs := instance.rank_costs) is None:
        return ChargedTransfers(transfers, wires)
    sends, nodes, links = transfers.sends, instance.topology.nodes, len(wires)
    rates = [costs.reduce_rate(node.kind) for node in nodes]
    adds = sends.reduce & np.array([rate is not None for rate in rates], dtype=np.bool_)[sends.target]
    sender = np.array([costs.overhead_s > 0 and node.kind is NodeKind.COMPUTE for node in nodes])
    calls = sender[sends.source]
    longer = _extend_paths(sends, calls, adds, links, len(nodes))
    real = longer.path_links < links
    virtual = [Link("", "", rate or Fraction(0)) for rate in rates]  # 0: takes no time, see ticks
    virtual += [Link("", "", Fraction(0), costs.overhead_s)] * len(nodes)
    own = Wires(
        np.concatenate([wires.bandwidth_Bps, [float(link.bandwidth_Bps) or np.inf for link in virtual]]),
        np.concatenate([wires.latency_s, [float(link.latency_s) for link in virtual]]),
        wires.varying,
        [*wires.links, *virtual] if wires.links else (),
        RankLinks(links, links + len(nodes), costs.while_receiving),
    )
    return ChargedTransfers(replace(transfers, sends=longer, pays=_first_of_messages(transfers, calls)), own, real)


def shared_charges(instance: Instance, transfers: Transfers, wires: Wires) -> ChargedTransfers:
    """Add the costs of ranks to trees that have shares of all links, where nothing waits for another tree.

    A message delays its first link by the overhead, as a copy of that link does; an adder that begins when data has
    arrived is one more link.
    """
    sends, costs, links = transfers.sends, instance.rank_costs, len(wires)
    if costs is None:
        return ChargedTransfers(transfers, wires)
    nodes = instance.topology.nodes
    rates = [None if costs.while_receiving else costs.reduce_rate(node.kind) for node in nodes]
    adds = sends.reduce & np.array([rate is not None for rate in rates], dtype=np.bool_)[sends.target]
    calls = np.array([node.kind is NodeKind.COMPUTE for node in nodes])[sends.source]
    copied = sends.path_links.copy()
    copied[sends.path_offset[:-1][calls]] += links
    longer = _extend_paths(replace(sends, path_links=copied), calls & False, adds, 2 * links, len(nodes))
    late = wires.latency_s + float(costs.overhead_s)
    own = Wires(
        np.concatenate([wires.bandwidth_Bps, wires.bandwidth_Bps, np.ones(len(nodes))]),
        np.concatenate([wires.latency_s, late, np.zeros(len(nodes))]),
    )
    return ChargedTransfers(replace(transfers, sends=longer), own, longer.path_links < 2 * links)


def most_messages(topology: Topology, sends: Sends) -> int:
    """Return the number of sends of the rank that sends most."""
    leaving = np.bincount(sends.source, minlength=len(topology.nodes))
    return int(leaving[list(topology.rank_nodes)].max(initial=0))


def longest_adding(instance: Instance, sends: Sends, packing: TreePacking) -> Fraction:
    """Return the seconds of the node that adds longest, where every chunk is the data of a tree."""
    assert instance.rank_costs is not None  # noqa: S101 (asked for instances with costs only)
    units = np.zeros(len(instance.topology.nodes), dtype=np.int64)
    np.add.at(units, sends.target[sends.reduce], packing.units[sends.chunk[sends.reduce]])
    rates = [instance.rank_costs.reduce_rate(node.kind) for node in instance.topology.nodes]
    loads = zip(units.tolist(), rates, strict=True)
    return max((unit * packing.unit_bytes / rate for unit, rate in loads if rate is not None), default=Fraction(0))


def _extend_paths(sends: Sends, calls: Bools, adds: Bools, links: int, nodes: int) -> Sends:
    """Return sends over their senders and adders, numbered after the links: adders first."""
    offset = offsets(sends.hops + calls.astype(np.int64) + adds)
    path_links = np.full(int(offset[-1]), -1, dtype=np.int64)
    path_links[offset[:-1][calls]] = links + nodes + sends.source[calls]
    path_links[offset[1:][adds] - 1] = links + sends.target[adds]
    path_links[path_links < 0] = sends.path_links
    return replace(sends, path_offset=offset, path_links=path_links)


def _first_of_messages(transfers: Transfers, calls: Bools) -> Floats:
    """Return 1 for sends that pay, the first of every message, and 0 for all others."""
    sends = transfers.sends
    first_link = sends.path_links[sends.path_offset[:-1]] if transfers.first_link is None else transfers.first_link
    width = int(sends.target.max(initial=0)) + 1, int(first_link.max(initial=0)) + 1
    message = (transfers.leaves * width[0] + sends.target) * width[1] + first_link  # the link tells the source
    pays = np.zeros(len(sends))
    pays[np.unique(message, return_index=True)[1]] = 1.0
    return pays * calls
