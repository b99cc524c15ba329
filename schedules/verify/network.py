"""A topology as arrays, for checks of millions of sends; paths over it."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ...core.instance import Instance
from ...core.schedule import Bools, Floats, Ints
from ...core.topology import NodeKind, Topology
from ...core.trees import link_columns

_AT_ONCE = 1_000_000  #: links of paths that are compared at once, which takes less memory


@dataclass(frozen=True, eq=False)
class Network:
    """Arrays over the nodes and links of a topology."""

    topology: Topology
    link_source: Ints
    link_target: Ints
    bandwidth_Bps: Floats
    latency_s: Floats
    rank_node: Ints
    tree_node: Ints  #: Position of each node in the numbering of trees; shape (nodes,).
    node_rank: Ints  #: Rank of each node; -1 for switches; shape (nodes,).
    unicast: Bools  #: Switches that must not send one chunk twice; shape (nodes,).
    buffer_bytes: dict[int, Fraction]  #: Buffer limits of switches in bytes; those without are absent.
    #: True for nodes that can add to their content: all but switches that neither reduce nor store; shape (nodes,).
    adds: Bools

    @cached_property
    def has_limit(self) -> Bools:
        """True for ranks with a buffer limit; shape (nodes,)."""
        return np.array([n.kind is NodeKind.COMPUTE and n.buffer_bytes is not None for n in self.topology.nodes])

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_rank)

    @property
    def links(self) -> int:
        """Number of links."""
        return len(self.link_source)

    def rank(self, node: int) -> int | None:
        """Return the rank of a node; None for a switch."""
        rank = int(self.node_rank[node])
        return rank if rank >= 0 else None

    def name(self, node: int) -> str:
        """Return the name of a node."""
        return self.topology.nodes[node].name


def network_of(instance: Instance) -> Network:
    """Return the arrays of an instance's network."""
    topology, (tail, head) = instance.topology, instance.topology.end_arrays
    rank_node = np.array(topology.rank_nodes, dtype=np.int64)
    node_rank = np.full(len(topology.nodes), -1, dtype=np.int64)
    node_rank[rank_node] = np.arange(len(rank_node))
    switches = [(i, node) for i, node in enumerate(topology.nodes) if node.kind is NodeKind.SWITCH]
    unicast = np.zeros(len(topology.nodes), dtype=np.bool_)
    unicast[[i for i, node in switches if not node.multicast]] = True
    adds = np.ones(len(topology.nodes), dtype=np.bool_)
    adds[[i for i, node in switches if not node.may_add]] = False
    return Network(
        topology,
        tail.copy(),
        head.copy(),
        *link_columns(topology),
        rank_node,
        np.array(topology.tree_nodes, dtype=np.int64),
        node_rank,
        unicast,
        {i: node.buffer_bytes for i, node in switches if node.buffer_bytes is not None},
        adds,
    )


def broken_paths(network: Network, source: Ints, target: Ints, offset: Ints, links: Ints) -> tuple[Bools, Ints]:
    """Find paths that do not lead from source to target, each with a link that does not fit."""
    if len(links) == len(source):
        is_wrong = (network.link_source[links] != source) | (network.link_target[links] != target) | (source == target)
        return is_wrong, links
    first, last = offset[:-1], offset[1:] - 1
    where = np.full(len(source), len(links), dtype=np.int64)
    apart = np.empty(max(len(links) - 1, 0), dtype=np.bool_)
    for begin in range(0, len(apart), _AT_ONCE):
        some = links[begin : begin + _AT_ONCE + 1]
        apart[begin : begin + _AT_ONCE] = network.link_target[some[:-1]] != network.link_source[some[1:]]
    apart[last[:-1]] = False  # between the last link of a path and the first of the next
    wrong_end = network.link_target[links[last]] != target
    where[wrong_end] = last[wrong_end]
    entry = np.flatnonzero(apart) + 1
    np.minimum.at(where, np.searchsorted(offset, entry, side="right") - 1, entry)
    wrong_start = network.link_source[links[first]] != source
    where[wrong_start] = first[wrong_start]
    is_wrong = (where < len(links)) | (source == target)
    return is_wrong, links[np.where(where < len(links), where, first)]
