"""Simulation of trees that reserve a rate on every link, as MTree's do, each with its own number of chunks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.pipelining import LatencyModel
from ...core.reserved import Reserved
from ...core.trace import SimulationMode, Trace
from ...core.trees import TreePacking
from .network import Wires, wires
from .occupancy import link_totals
from .pipeline import pipeline
from .run import timeline_of, trace_of
from .transfers import Transfers, transfers_of

#: Why trees have no times where a bandwidth varies.
CONSTANT = "trees keep rates on links of constant bandwidth only"

#: Sends of trees, chunk by chunk, that are simulated at most.
MOST_SENDS = 5 * 10**6


def simulate_reserved(
    instance: Instance,
    packing: TreePacking,
    plan: Reserved,
    model: LatencyModel = LatencyModel.OCCUPANCY,
    *,
    overhead_s: Fraction | float = 0.0,
) -> Trace:
    """Simulate trees at their rates, chunk by chunk: no tree waits for another one.

    Parameters
    ----------
    instance : Instance
        The problem, with an explicit network.
    packing : TreePacking
        Trees that the verifier finds right.
    plan : Reserved
        Rates and numbers of chunks, such as :func:`~cwb.core.reserved.reserve` gives. The trace has the sends of first
        chunks, then of second ones where a tree has them, and so on.
    model : LatencyModel
        What latency does to the next chunk.
    overhead_s : Fraction or float
        Seconds of a link that each chunk costs beside its bytes.

    Returns
    -------
    Trace
        Times of all sends. A link is busy for the seconds that its bytes take at full bandwidth.

    Raises
    ------
    InputError
        If the packing is not for the instance, a bandwidth varies over time, or chunks are too many to be sent one by
        one.
    """
    most, edges = int(plan.chunks.max(initial=1)), sum(len(part.parent) for part in packing.passes)
    if most * edges > MOST_SENDS:
        problem = f"{most:,} chunks over {edges:,} edges of trees; expected at most {MOST_SENDS:,} sends"
        raise InputError(problem, place="pieces")
    if instance.timing is not None and instance.timing.changes:
        raise InputError(CONSTANT, place="timing.changes")
    transfers = transfers_of(instance, packing, pieces=plan.chunks)
    columns = wires(instance.topology)
    alone, own = _apart(transfers, columns, plan, float(overhead_s))
    timeline = timeline_of(alone, own, SimulationMode.CONGESTION_AWARE, hold_latency=model is LatencyModel.OCCUPANCY)
    trace = trace_of(SimulationMode.CONGESTION_AWARE, alone.sends, alone.chunk_bytes, own, timeline, alone.place)
    sends = transfers.sends
    seconds = np.repeat(transfers.chunk_bytes[sends.chunk], sends.hops) / columns.bandwidth_Bps[sends.path_links]
    return replace(trace, mode=SimulationMode.SHARES, link_busy_s=link_totals(len(columns), sends.path_links, seconds))


def simulate_shares(instance: Instance, packing: TreePacking, pieces: int, *, hold_latency: bool = False) -> Trace:
    """Simulate trees whose rates are in proportion to their data and fill the fullest link; see :mod:`.pipeline`.

    Parameters
    ----------
    instance : Instance
        The problem, with an explicit network.
    packing : TreePacking
        Trees that the verifier finds right.
    pieces : int
        Equal pieces of every tree.
    hold_latency : bool
        Whether a piece holds its share of a link for the link's latency too.

    Raises
    ------
    InputError
        As :func:`simulate_reserved`.
    """
    flow_s = float(pipeline(instance, packing).flow_s)
    data = np.asarray(packing.units * float(packing.unit_bytes), dtype=np.float64)
    plan = Reserved(flow_s, data / flow_s if flow_s else data, np.full(len(packing), pieces, dtype=np.int64))
    model = LatencyModel.OCCUPANCY if hold_latency else LatencyModel.PROPAGATION
    return simulate_reserved(instance, packing, plan, model)


def _apart(transfers: Transfers, columns: Wires, plan: Reserved, overhead_s: float) -> tuple[Transfers, Wires]:
    """Assign every edge of every tree links of its own, as fast as the tree's rate.

    A tree that uses a link twice has its rate there twice.

    All links of a tree have one rate, so that what a chunk costs beside its bytes is as good as more bytes.
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
