"""Simulation of trees that reserve a rate on every link (MTree), each with its own number of chunks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.pipelining import LatencyModel
from ...core.rate_reservation import RateReservation
from ...core.trace import SimulationMode, Trace
from ...core.trees import TreePacking
from .charges import shared_charges
from .network import Wires, wires
from .occupancy import link_totals
from .pipeline import pipeline
from .timelines import timeline_of, trace_of
from .transfers import Transfers, transfers_of

#: Why trees have no times where a bandwidth varies.
CONSTANT = "trees keep rates on links of constant bandwidth only"

#: Sends of trees, chunk by chunk, that are simulated at most.
MOST_SENDS = 5 * 10**6


def simulate_reserved(
    instance: Instance,
    packing: TreePacking,
    plan: RateReservation,
    model: LatencyModel = LatencyModel.OCCUPANCY,
    *,
    overhead_s: Fraction | float = 0.0,
) -> Trace:
    """Simulate trees at their rates, chunk by chunk; no tree waits for another one.

    Parameters
    ----------
    packing : TreePacking
        Trees that the verifier accepts.
    plan : Reserved
        Rates and numbers of chunks, such as those of :func:`~cwb.core.rate_reservation.reserve_rates`. The trace has
        the sends of first chunks, then of second ones where a tree has them, and so on.
    model : LatencyModel
        Effect of latency on the next chunk.
    overhead_s : Fraction or float
        Seconds of a link that each chunk costs in addition to its bytes.

    Returns
    -------
    Trace
        Times of all sends. A link is busy for the seconds of its bytes at full bandwidth.

    Raises
    ------
    InputError
        If the packing belongs to another instance, a bandwidth varies over time, or there are too many chunks to
        send one by one.
    """
    if instance.rank_costs is not None:
        raise InputError("reserved rates do not count the costs of ranks", place="rank_costs")
    return _simulate_rates(instance, packing, plan, model, float(overhead_s))


def _simulate_rates(
    instance: Instance, packing: TreePacking, plan: RateReservation, model: LatencyModel, overhead_s: float
) -> Trace:
    """Simulate trees at their rates, with the costs of ranks."""
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
    packing : TreePacking
        Trees that the verifier accepts.
    hold_latency : bool
        A piece holds its share of a link for the link's latency too.

    Raises
    ------
    InputError
        For the reasons of :func:`simulate_reserved`.
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
    """Assign separate links with the tree's rate to every edge of every tree.

    A tree that uses a link twice has its rate there twice. All links of a tree have one rate, so the overhead of a
    chunk is equivalent to additional bytes.
    """
    sends, trees, links = transfers.sends, len(plan.chunks), len(columns)
    far = np.where(sends.reduce, sends.source, sends.target)
    edge = (sends.chunk % trees * 2 + sends.reduce) * (int(far.max(initial=0)) + 1) + far
    keys, own = np.unique(edge[sends.hop_send] * links + sends.path_links, return_inverse=True)
    rate = np.empty(len(keys))
    rate[own] = plan.rates_Bps[(sends.chunk % trees)[sends.hop_send]]
    virtual = Wires(rate, columns.latency_s[keys % links])
    extra = overhead_s * plan.rates_Bps[np.arange(len(transfers.chunk_bytes)) % trees]
    alone = replace(
        transfers, sends=replace(sends, path_links=own.astype(np.int64)), chunk_bytes=transfers.chunk_bytes + extra
    )
    return alone, virtual
