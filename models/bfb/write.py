"""Shares of a breadth-first broadcast as a schedule."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ...core.schedule import Chunks, Sends, StepSchedule
from ..common.breadth_first.shares import Shares


def all_gather(shares: Shares, size_bytes: Fraction, instance_sha256: str) -> StepSchedule:
    """Write what the orbit receives as the schedule of all nodes; chunk ``v P + i`` is piece i of v's shard.

    Parameters
    ----------
    shares : Shares
        Shares for a network whose nodes are all ranks.
    size_bytes : Fraction
        Size of all shards together.
    instance_sha256 : str
        Digest of the instance.
    """
    nodes, pieces = shares.graph.nodes, shares.pieces
    sent = shares.everywhere().one_by_one()
    count, sends = nodes * pieces, len(sent.slot)
    return StepSchedule(
        instance_sha256,
        Chunks(
            np.ones(count, dtype=np.int64),
            size_bytes / count,
            (*((rank,) for rank in range(nodes)), tuple(range(nodes))),
            np.repeat(np.arange(nodes), pieces),
            np.full(count, nodes),
            np.zeros(count, dtype=np.bool_),
        ),
        Sends(
            sent.source * pieces + sent.start,
            shares.graph.source[sent.target, sent.slot],
            sent.target,
            np.zeros(sends, dtype=np.bool_),
            np.arange(sends + 1),
            sent.link,
        ),
        sent.step,
    )
