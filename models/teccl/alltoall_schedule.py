"""From exact flows to a schedule: every way that some data takes becomes a chunk of its own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ...core.instance import Instance
from ...core.schedule import Chunks, Schedule, Sends
from ...core.timing import Timing
from ...core.topology import Topology
from .alltoall_exact import EpochFlows, trace


def pieces(flows: EpochFlows) -> int:
    """Count the flows of single sources over single links in single epochs: about as many sends as the schedule will have."""
    used = flows.rate > 0
    lengths = np.diff(np.array(flows.grid.starts))
    in_class = np.bincount(flows.reduced.classes.flow.ravel(), minlength=len(used))
    return int((used * lengths).sum(axis=1) @ in_class)


def schedule_of(instance: Instance, flows: EpochFlows) -> Schedule:
    """Make a schedule of parts of chunks, one send for each link and epoch of each part's way.

    Parameters
    ----------
    instance : Instance
        With a timing; what the flows were made for.
    flows : EpochFlows
        Checked.
    """
    topology, timing, demand = instance.network, instance.timing, instance.demand
    assert isinstance(topology, Topology) and isinstance(timing, Timing) and demand is not None  # noqa: S101
    rank_of = {node: rank for rank, node in enumerate(topology.rank_nodes)}
    groups = tuple((rank_of[node],) for node in flows.exchange.ranks)
    position = {node: index for index, node in enumerate(flows.exchange.ranks)}
    units, held, needed, chunk, link, epoch = (list[int]() for _ in range(6))
    for source, target, amount, hops in trace(flows):
        chunk += [len(units)] * len(hops)
        link += [e for e, _ in hops]
        epoch += [k for _, k in hops]
        units.append(amount)
        held.append(position[source])
        needed.append(position[target])
    order = np.argsort(np.array(epoch), kind="stable")
    links, starts = np.array(link, dtype=np.int64)[order], np.array(epoch, dtype=np.int64)[order]
    delay = np.array(flows.exchange.delay, dtype=np.int64)
    ends = np.array(topology.link_ends, dtype=np.int64)
    part = demand.size_bytes / len(flows.exchange.ranks)
    at = np.array([float(k * timing.epoch_s) for k in range(flows.grid.epochs + 1)])
    columns = [np.array(column, dtype=np.int64) for column in (units, held, needed)]
    return Schedule(
        instance.sha256,
        Chunks(
            columns[0], part / Fraction(flows.scale), groups, columns[1], columns[2], np.zeros(len(units), np.bool_)
        ),
        Sends(
            np.array(chunk, dtype=np.int64)[order],
            ends[links, 0],
            ends[links, 1],
            np.zeros(len(links), dtype=np.bool_),
            np.arange(len(links) + 1),
            links,
        ),
        at[starts],
        at[starts + delay[links]],
    )
