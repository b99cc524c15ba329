"""Simulation of trees that keep a rate of their own on every link, as MTree reserves them, each in its own number of chunks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.pipelining import LatencyModel
from ...core.reserved import Reserved
from ...core.schedule import Ints
from ...core.trace import SimulationMode, Trace
from ...core.trees import TreePacking
from .network import Wires, network_of, wires
from .occupancy import link_totals
from .run import timeline_of, trace_of
from .transfers import Transfers, transfers_of

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
        Rates and numbers of chunks, such as :func:`~cwb.core.reserved.reserve` gives. The trace has the sends of first chunks, then of second ones
        where a tree has them, and so on.
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
        If the packing is not for the instance, or chunks are too many to be sent one by one.
    """
    most, edges = int(plan.chunks.max(initial=1)), sum(len(part.parent) for part in packing.passes)
    if most * edges > MOST_SENDS:
        problem = f"{most:,} chunks over {edges:,} edges of trees; expected at most {MOST_SENDS:,} sends"
        raise InputError(problem, place="pieces")
    transfers = transfers_of(instance, packing, pieces=plan.chunks)
    columns = wires(network_of(instance))
    alone, own = _apart(transfers, columns, plan, float(overhead_s))
    timeline = timeline_of(alone, own, SimulationMode.CONGESTION_AWARE, hold_latency=model is LatencyModel.OCCUPANCY)
    trace = trace_of(SimulationMode.CONGESTION_AWARE, alone, own, timeline)
    sends = transfers.sends
    seconds = np.repeat(transfers.chunk_bytes[sends.chunk], sends.hops) / columns.bandwidth_Bps[sends.path_links]
    return replace(trace, link_busy_s=link_totals(len(columns), sends.path_links, seconds))


def _apart(transfers: Transfers, columns: Wires, plan: Reserved, overhead_s: float) -> tuple[Transfers, Wires]:
    """Give every tree links of its own, as fast as its rate.

    All links of a tree have one rate, so that what a chunk costs beside its bytes is as good as more bytes.
    """
    sends, trees = transfers.sends, len(plan.chunks)
    keys, own = np.unique(sends.path_links * trees + _tree_of_hops(transfers, trees), return_inverse=True)
    virtual = Wires(plan.rates_Bps[keys % trees], columns.latency_s[keys // trees])
    extra = overhead_s * plan.rates_Bps[np.arange(len(transfers.chunk_bytes)) % trees]
    alone = replace(
        transfers, sends=replace(sends, path_links=own.astype(np.int64)), chunk_bytes=transfers.chunk_bytes + extra
    )
    return alone, virtual


def _tree_of_hops(transfers: Transfers, trees: int) -> Ints:
    """Tree of every hop."""
    sends = transfers.sends
    return np.repeat(sends.chunk % trees, sends.hops)
