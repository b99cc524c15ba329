"""Behaviour of the published code on unequal links, rewritten from its description, to be verified.

Chunks under way do not count as received, so that a second link may start to bring the same chunk. Whichever comes
second is exchanged, on arrival, for a chunk that its source holds then and the destination lacks; if there is none,
nothing has been sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random

import numpy as np
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, Schedule, sends_from_lists
from cwb.core.topology import Topology

Send = tuple[int, int, int, int]


def published(instance: Instance, seed: int) -> list[Send]:
    """Sends ``(link, chunk, start, end)`` in ticks of an all-gather of one chunk from each rank."""
    topology, timing, demand = instance.network, instance.timing, instance.demand
    assert isinstance(topology, Topology)
    assert timing is not None
    assert demand is not None
    n, random = instance.npus, Random(seed)  # noqa: S311 (nothing is secret here)
    size = demand.size_bytes / n
    ticks = [int((e.latency_s + size / e.bandwidth_Bps) / timing.epoch_s) for e in topology.links]
    into: list[list[int]] = [[] for _ in range(n)]
    for link, (_, b) in enumerate(topology.link_ends):
        into[b].append(link)
    have = [{rank} for rank in range(n)]
    under_way: dict[int, tuple[int, int, int]] = {}  # of a link: chunk, start, end
    sent: list[Send] = []
    now = 0
    while any(len(chunks) < n for chunks in have):
        open_pairs = [(d, c) for d in range(n) for c in range(n) if c not in have[d]]
        random.shuffle(open_pairs)
        for d, c in open_pairs:
            able = [e for e in into[d] if e not in under_way and c in have[topology.link_ends[e][0]]]
            if able:
                best = min(able, key=lambda e: (ticks[e], random.random()))
                under_way[best] = c, now, now + ticks[best]
        now = min(end for _, _, end in under_way.values())
        arriving = [e for e, (_, _, end) in under_way.items() if end == now]
        random.shuffle(arriving)
        for link in arriving:
            chunk, start, end = under_way.pop(link)
            a, b = topology.link_ends[link]
            if chunk in have[b]:
                others = sorted(have[a] - have[b])
                if not others:
                    continue
                chunk = random.choice(others)
            have[b].add(chunk)
            sent.append((link, chunk, start, end))
    return sent


def as_schedule(instance: Instance, sends: Sequence[Send]) -> Schedule:
    """Write such sends as a schedule of the instance."""
    topology, timing, demand = instance.network, instance.timing, instance.demand
    assert isinstance(topology, Topology)
    assert timing is not None
    assert demand is not None
    n = instance.npus
    ends = [topology.link_ends[link] for link, *_ in sends]
    columns = sends_from_lists(
        [chunk for _, chunk, _, _ in sends],
        [a for a, _ in ends],
        [b for _, b in ends],
        False,
        [(link,) for link, *_ in sends],
    )
    ones, everyone = np.ones(n, dtype=np.int64), tuple(range(n))
    chunks = Chunks(
        ones,
        Fraction(demand.size_bytes, n),
        (*((rank,) for rank in everyone), everyone),
        np.arange(n),
        ones * n,
        ones < 0,
    )
    epoch = float(timing.epoch_s)
    start, end = (np.array([send[column] for send in sends], dtype=np.float64) * epoch for column in (2, 3))
    return Schedule(instance.sha256, chunks, columns, start, end)
