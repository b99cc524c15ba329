"""Busy intervals and bits, against sets of ticks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from cwb.algorithms.paths.reservations import NEVER, Reservations, earliest, free_bit, give_back, take
from cwb.core.topology import Link, Node, Topology
from cwb.heuristics.pccl.problem import to_ticked_network
from hypothesis import given, settings
from hypothesis import strategies as st


def network(window):
    """One link that takes so many ticks."""
    topology = Topology((Node("0"), Node("1")), (Link("0", "1", Fraction(1)),))
    net = to_ticked_network(topology, [Fraction(1)], [1], summed=False).net
    return net._replace(window=np.full_like(net.window, window))


def empty(words, room):
    """Nothing is taken."""
    none = np.zeros((2, 0), dtype=np.int64)
    lists = [np.zeros((1, room), dtype=np.int64) for _ in range(2)]
    return Reservations(
        np.zeros((1, words), dtype=np.uint64),
        *lists,
        np.zeros(1, dtype=np.int64),
        none,
        none,
        none,
        none[:, 0:1].sum(axis=1),
    )


@settings(deadline=None)
@given(st.integers(1, 5), st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=40))
def test_intervals_are_sets_of_ticks(window, steps):
    """Whatever is taken and given back, the first free window is the one that a search through all ticks finds;
    touching intervals are one."""
    net, busy = network(window), empty(0, 64)
    taken: list[int] = []
    for wants, tick in steps:
        if not wants and taken:
            start = taken.pop(tick % len(taken))
            give_back(net, busy, 0, 0, start)
            continue
        used = {t for start in taken for t in range(start, start + window)}
        start = next(t for t in range(tick, 1000) if not used & set(range(t, t + window)))
        assert earliest(net, busy, 0, 0, tick) == start
        take(net, busy, 0, 0, start)
        taken.append(start)
    used = sorted({t for start in taken for t in range(start, start + window)})
    runs = sum(1 for i, t in enumerate(used) if i == 0 or used[i - 1] != t - 1)
    assert busy.runs[0] == runs


@settings(deadline=None)
@given(st.sets(st.integers(0, 191)), st.integers(0, 200))
def test_free_bits(taken, tick):
    """The first free bit is that of a search; beyond the table there is none."""
    words = np.zeros((1, 3), dtype=np.uint64)
    for bit in taken:
        words[0, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
    free = [t for t in range(tick, 192) if t not in taken]
    assert free_bit(words, 0, tick) == (free[0] if free else NEVER)
