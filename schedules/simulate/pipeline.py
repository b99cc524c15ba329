"""Time of a forest whose trees have constant shares of links: closed form, and simulation piece by piece.

The closed form T(C) of C pieces a tree, its derivation and the choice of C: docs/schedules/simulators.md, "Forests". It
equals the simulation at these rates piece by piece (:func:`simulate_shares`).

Costs of ranks (:class:`~cwb.core.timing.RankCosts`) are shared like links: the fullest adder may set F, an adder
that begins when data has arrived is one more link, and a piece lasts at least as long as the messages of it that any
rank sends; each message delays its piece by the overhead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, cast

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.pipelining import ENOUGH, PIECES, LatencyModel, RateReservation
from ...core.schedule import Floats, Ints
from ...core.trace import SimulationMode, Trace
from ...core.trees import Forest, TreeKind, TreePacking
from ..trees import edges_above, from_root, tree_sends
from ..verify.answers import LinkUnits, link_units, write_out
from ..verify.network import network_of
from ..verify.trees import heaviest_link
from .network import Wires, longest_adding, most_messages, shared_charges, wires
from .timelines import link_totals, timeline_of, trace_of
from .transfers import Transfers, transfers_of


class Front(NamedTuple):
    """Leaves that can be last at some flow time: none has both more links and more latency."""

    #: Trees that have edges, and the position of the first leaf of each; shape (trees,).
    tree: Ints
    offset: Ints
    links: Ints  #: Number of links from the root, decreasing within a tree; shape (leaves,).
    latency_s: Floats  #: Total latency of these links; shape (leaves,).


@dataclass(frozen=True, eq=False)
class Pipeline:
    """Quantities that determine the time of a forest for any number of pieces and any size."""

    flow_s: Fraction
    size_bytes: Fraction  #: Size of the (first) collective, to which the flow time is proportional.
    #: Number of edges from each root to its farthest rank; for in-out trees in the longer direction; shape (trees,).
    heights: Ints
    fronts: tuple[Front, ...]  #: One for each direction of the data: two for in-out trees.
    loads: LinkUnits  #: Data on all links.
    messages_s: float = 0.0  #: Seconds that the messages of one piece cost the rank that sends most of them.

    def seconds(self, pieces: int, flow_s: Sequence[float] | None = None) -> Floats:
        """Return the time for a number of pieces per tree, for one or several flow times; by default its own."""
        flow = np.array([float(self.flow_s)] if flow_s is None else flow_s, dtype=np.float64)
        if not any(len(front.links) for front in self.fronts):
            return np.zeros(len(flow))
        piece_s = np.maximum(flow[:, None] / pieces, self.messages_s)
        reach_s = np.zeros((len(flow), len(self.heights)))
        for front in self.fronts:
            leaf_s = front.latency_s + front.links * piece_s
            if len(front.tree):
                reach_s[:, front.tree] += np.maximum.reduceat(leaf_s, front.offset, axis=1)
        return np.asarray(reach_s.max(axis=1) + (pieces - 1) * piece_s[:, 0], dtype=np.float64)

    def best(self, sizes_bytes: Sequence[Fraction | int | float] | None = None) -> tuple[Floats, Ints]:
        """Choose the number of pieces, for one or several sizes of the collective; its own by default.

        Return the completion times in seconds and the numbers: the first of :data:`~cwb.core.pipelining.PIECES` within
        :data:`~cwb.core.pipelining.ENOUGH` of the least time.
        """
        sizes = [self.size_bytes] if sizes_bytes is None else [Fraction(size) for size in sizes_bytes]
        flow = [float(self.flow_s * size / self.size_bytes) for size in sizes]
        table = np.array([self.seconds(pieces, flow) for pieces in PIECES])
        at = (table <= table.min(axis=0) * (1 + ENOUGH)).argmax(axis=0)
        return table[at, np.arange(len(flow))], np.array(PIECES, dtype=np.int64)[at]


def pipeline(instance: Instance, forest: Forest) -> Pipeline:
    """Compute the quantities that determine a forest's time in pieces."""
    if instance.demand is None:
        raise InputError("expected a collective", place="collective")
    latency_s = wires(instance.topology).latency_s
    loads = link_units(forest, network_of(instance))
    flow_s = heaviest_link(instance, forest, loads)[1]
    packing, messages_s = forest.trees, 0.0
    if (costs := instance.rank_costs) is not None:
        packing = cast(TreePacking, write_out(forest, instance))
        sends, _, _ = tree_sends(instance.topology, packing, 1)
        messages_s = float(costs.overhead_s * most_messages(instance.topology, sends))
        flow_s = max(flow_s, longest_adding(instance, sends, packing))
    fronts, heights = [], np.zeros(len(packing), dtype=np.int64)
    for part in packing.passes:
        front, edges = _front(instance, part, latency_s)
        fronts.append(front)
        heights = np.maximum(heights, edges)
    return Pipeline(flow_s, instance.demand.size_bytes, heights, tuple(fronts), loads, messages_s)


def _costs_of_edges(instance: Instance, part: TreePacking) -> tuple[Ints, Floats]:
    """Return further links and latency of every edge because of the costs of ranks."""
    costs, topology = instance.rank_costs, instance.topology
    sources, targets = (part.child, part.parent) if part.kind is TreeKind.IN else (part.parent, part.child)
    if costs is None:
        return np.zeros(len(targets), dtype=np.int64), np.zeros(len(targets))
    later = [not costs.while_receiving and costs.reduce_rate(node.kind) is not None for node in topology.nodes]
    adds = np.array(later, dtype=np.int64)[np.array(topology.tree_nodes)[targets]] * (part.kind is TreeKind.IN)
    return adds, np.where(sources < len(topology.ranks), float(costs.overhead_s), 0.0)


def _front(instance: Instance, packing: TreePacking, link_latency_s: Floats) -> tuple[Front, Ints]:
    """Find the leaves of every tree that can be last, and the height of every tree in edges."""
    more_links, more_latency_s = _costs_of_edges(instance, packing)
    above, hops = edges_above(packing), np.diff(packing.path_offset)
    way = np.zeros((len(hops), 2))
    if len(hops):
        way[:, 0] = hops + more_links
        way[:, 1] = np.add.reduceat(link_latency_s[packing.path_links], packing.path_offset[:-1]) + more_latency_s
    edges, total = from_root(above, way)
    tree, heights = packing.edge_tree, np.zeros(len(packing), dtype=np.int64)
    np.maximum.at(heights, tree, edges)
    leaf = np.ones(len(above), dtype=np.bool_)
    leaf[above[above >= 0]] = False
    tree, links, latency_s = tree[leaf], np.rint(total[leaf, 0]).astype(np.int64), total[leaf, 1]
    order = np.lexsort((-latency_s, -links, tree))
    tree, links, latency_s = tree[order], links[order], latency_s[order]
    # Farthest first: a leaf counts if its latency is above that of all before it in its tree. Ranks of latencies keep
    # trees apart.
    values, rank = np.unique(latency_s, return_inverse=True)
    key = tree * (len(values) + 1) + rank
    farthest = key > np.concatenate([[-1], np.maximum.accumulate(key)[:-1]])[: len(key)]
    tree, links, latency_s = tree[farthest], links[farthest], latency_s[farthest]
    offset = np.flatnonzero(np.diff(tree, prepend=-1))
    return Front(tree[offset], offset, links, latency_s), heights


CONSTANT = "trees keep rates on links of constant bandwidth only"  #: Why trees have no times where a bandwidth varies.
MOST_SENDS = 5 * 10**6  #: Sends of trees, chunk by chunk, that are simulated at most.


def simulate_reserved(
    instance: Instance,
    packing: TreePacking,
    plan: RateReservation,
    model: LatencyModel = LatencyModel.OCCUPANCY,
    *,
    overhead_s: Fraction | float = 0.0,
) -> Trace:
    """Simulate trees at their rates, chunk by chunk; no tree waits for another one.

    The trace has the sends of first chunks, then of second ones where a tree has them, and so on. A link is busy for
    the seconds of its bytes at full bandwidth, and each chunk costs the seconds of overhead as well.
    """
    if instance.rank_costs is not None:
        raise InputError("reserved rates do not count the costs of ranks", place="rank_costs")
    return _simulate_rates(instance, packing, plan, model, float(overhead_s))


def _simulate_rates(
    instance: Instance, packing: TreePacking, plan: RateReservation, model: LatencyModel, overhead_s: float
) -> Trace:
    most, edges = int(plan.chunks.max(initial=1)), sum(len(part.parent) for part in packing.passes)
    if most * edges > MOST_SENDS:
        problem = f"{most:,} chunks over {edges:,} edges of trees; expected at most {MOST_SENDS:,} sends"
        raise InputError(problem, place="pieces")
    if instance.timing is not None and instance.timing.changes:
        raise InputError(CONSTANT, place="timing.changes")
    transfers = transfers_of(instance, packing, pieces=plan.chunks)
    columns, mode = wires(instance.topology), SimulationMode.CONGESTION_AWARE
    charged = shared_charges(instance, transfers, columns)
    alone, own = _dedicate_links(charged.transfers, charged.wires, plan, overhead_s)
    timeline = timeline_of(alone, own, mode, hold_latency=model is LatencyModel.OCCUPANCY)
    sends = transfers.sends
    trace = trace_of(mode, sends, transfers.chunk_bytes, columns, charged.on_network(timeline), alone.place)
    seconds = np.repeat(transfers.chunk_bytes[sends.chunk], sends.hops) / columns.bandwidth_Bps[sends.path_links]
    return replace(trace, mode=SimulationMode.SHARES, link_busy_s=link_totals(len(columns), sends.path_links, seconds))


def simulate_shares(instance: Instance, packing: TreePacking, pieces: int, *, hold_latency: bool = False) -> Trace:
    """Simulate trees with rates proportional to their data that fill the fullest link; see :mod:`.pipeline`.

    Parameters
    ----------
    hold_latency : bool
        A piece holds its share of a link for the link's latency too.
    """
    line = pipeline(instance, packing)
    flow_s = max(float(line.flow_s), line.messages_s * pieces)
    data = np.asarray(packing.units * float(packing.unit_bytes), dtype=np.float64)
    plan = RateReservation(flow_s, data / flow_s if flow_s else data, np.full(len(packing), pieces, dtype=np.int64))
    model = LatencyModel.OCCUPANCY if hold_latency else LatencyModel.PROPAGATION
    return _simulate_rates(instance, packing, plan, model, 0.0)


def _dedicate_links(
    transfers: Transfers, columns: Wires, plan: RateReservation, overhead_s: float
) -> tuple[Transfers, Wires]:
    """Give every edge of a tree links of its own with the tree's rate; overheads count as bytes."""
    sends, trees, links = transfers.sends, len(plan.chunks), len(columns)
    far = np.where(sends.reduce, sends.source, sends.target)
    edge = (sends.chunk % trees * 2 + sends.reduce) * (int(far.max(initial=0)) + 1) + far
    keys, own = np.unique(edge[sends.hop_send] * links + sends.path_links, return_inverse=True)
    rate = np.empty(len(keys))
    rate[own] = plan.rates_Bps[(sends.chunk % trees)[sends.hop_send]]
    virtual = Wires(rate, columns.latency_s[keys % links])
    extra = overhead_s * plan.rates_Bps[np.arange(len(transfers.chunk_bytes)) % trees]
    own_sends = replace(sends, path_links=own.astype(np.int64))
    return replace(transfers, sends=own_sends, chunk_bytes=transfers.chunk_bytes + extra), virtual
