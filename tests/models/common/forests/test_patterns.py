"""Patterns that pair the ports of a switch."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from cwb.models.common.digraph import exact_array
from cwb.models.common.forests.patterns import MODES, Ports, propose
from networks import seeded

LARGEST = (1, 3, 40, 10**6, 2**61, 2**66)


def random_ports(rng, up):
    """Draw ports in groups of their own sizes, numbered at random; `up` of them lead to switches."""
    sizes = [rng.randint(1, 5) for _ in range(rng.randint(1, 5))]
    largest = rng.choice(LARGEST)
    even = rng.random() < 0.5
    rows = [(box, place, False) for box, size in enumerate(sizes) for place in range(size)]
    rows += [(-1, 0, True)] * up
    nodes = rng.sample(range(3 * len(rows)), len(rows))
    capacity = exact_array(largest if even else rng.randint(1, largest) for _ in rows)
    group, position, above = (np.array([row[i] for row in rows]) for i in range(3))
    order = np.argsort(nodes)
    return Ports(np.array(nodes)[order], capacity[order], group[order], position[order], above[order])


def sums(pairs):
    """What comes from and goes to every port, and the amount of every pair."""
    come: Counter[int] = Counter()
    go: Counter[int] = Counter()
    both: Counter[tuple[int, int]] = Counter()
    for u, t, amount in zip(pairs.source.tolist(), pairs.target.tolist(), pairs.amount.tolist(), strict=True):
        assert amount > 0
        come[u] += amount
        go[t] += amount
        both[u, t] += amount
    return come, go, both


@pytest.mark.parametrize("up", [0, 1, 2, 5])
@pytest.mark.parametrize("mode", MODES)
def test_amounts_add_up(mode, up):
    """Every port below gets rid of all it has and gets as much; no port above more than it has, and as much each way."""
    rng = seeded(10 * mode + up)
    proposed = 0
    for _ in range(150):
        ports = random_ports(rng, up)
        pairs = propose(ports, mode)
        if pairs is None:
            continue
        proposed += 1
        come, go, _ = sums(pairs)
        assert come == go
        capacity = dict(zip(ports.node.tolist(), ports.capacity.tolist(), strict=True))
        assert set(come) <= set(capacity)
        below = [node for node, above in zip(ports.node.tolist(), ports.up.tolist(), strict=True) if not above]
        assert all(come[node] == capacity[node] for node in below)
        assert all(come[node] <= room for node, room in capacity.items())
        if mode == 2 or up == 0:
            assert come == Counter(capacity)
        elif mode in (0, 1):
            above = sum(room for node, room in capacity.items() if node not in below)
            through = min(above, sum(capacity[node] for node in below))
            assert sum(come[node] for node in capacity if node not in below) == through
    assert proposed == (0 if mode > 0 and up == 0 else proposed)
    assert proposed > 20 or (mode > 0 and up == 0)


def test_nobody_is_paired_within_a_group_that_is_at_most_half():
    """Where no group has more than half of all, no pair is within a group; where one has, only in that one."""
    rng = seeded(5)
    halves = 0
    for _ in range(300):
        ports = random_ports(rng, 0)
        if len(set(ports.group.tolist())) < 2:
            continue
        pairs = propose(ports, 0)
        assert pairs is not None
        group = dict(zip(ports.node.tolist(), ports.group.tolist(), strict=True))
        size: Counter[int] = Counter()
        for node, amount in zip(ports.node.tolist(), ports.capacity.tolist(), strict=True):
            size[group[node]] += amount
        inside = {group[u] for u, t in sums(pairs)[2] if group[u] == group[t]}
        if 2 * max(size.values()) > sum(size.values()):
            assert inside <= {max(size, key=lambda box: size[box])}
        elif rounded_exactly(ports):
            halves += 1
            assert not inside
    assert halves > 60


def rounded_exactly(ports):
    """Whether every slice has a fixed part of all ports, so that the largest group is at most half of each."""
    capacity = ports.capacity.tolist()
    slices = max(1, min(len(set(ports.group.tolist())) - 1, *capacity))
    return all(c % slices == 0 for c in capacity)


def test_a_port_to_itself_only_where_it_must():
    """Ports of single nodes are paired with themselves only where one has more than half of all, up to the rounding of slices."""
    rng = seeded(6)
    for _ in range(100):
        count = rng.randint(2, 8)
        amounts = [rng.randint(1, 30) for _ in range(count)]
        nothing = np.zeros(count, dtype=np.int64)
        ports = Ports(np.arange(count), exact_array(amounts), np.arange(count), nothing, nothing.astype(np.bool_))
        pairs = propose(ports, 0)
        assert pairs is not None
        alone = sum(amount for (u, t), amount in sums(pairs)[2].items() if u == t)
        if alone:
            assert 2 * max(amounts) > sum(amounts) - count * count


def test_all_neighbours_are_switches():
    """A switch that has only switches around it is paired like any other, however many they are."""
    for count in (1, 2, 5):
        ones = np.ones(count, dtype=np.bool_)
        ports = Ports(np.arange(count), exact_array([7] * count), np.full(count, -1), np.zeros(count, np.int64), ones)
        pairs = propose(ports, 0)
        assert pairs is not None
        assert sums(pairs)[0] == Counter(dict.fromkeys(range(count), 7))
        assert propose(ports, 1) is None
