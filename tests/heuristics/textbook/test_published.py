"""Published times that textbook algorithms reproduce (dissertation, sections 5.3.1 and 5.6)."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import pytest
from cwb.core.topology import Link, Node, Topology

GIB = Fraction(2**30)
MICRO = Fraction(1, 10**6)


@pytest.mark.slow
def test_ring_is_16_71_times_faster_than_direct_on_a_ring(pose, solve_unchecked, clock):
    """Section 5.3.1: 1 GiB all-reduce on 64 NPUs, links of 0.5 us and 50 GiB/s; 528 messages on the busiest link
    against half the data each way."""
    posed = pose("ring(64, bandwidth='50 GiB/s', latency='0.5 us')", "all_reduce", size=2**30)
    ring, direct = solve_unchecked("ring", posed), solve_unchecked("direct", posed)
    assert clock(posed.network, ring) == pytest.approx(19750.5e-6, rel=1e-9)
    assert clock(posed.network, direct) / clock(posed.network, ring) == pytest.approx(16.71, abs=0.005)


def unwound(k: int, connected: Fraction) -> Topology:
    """RI(2)_FC(4)_SW(k): 200 GiB/s in the ring of 2, ``connected`` per link of the second dimension.

    The switch is unwound to a one-way ring of 50 GiB/s (section 5.4.8).
    """
    n = prod((2, 4, k))
    links: list[Link] = []

    def link(source: int, target: int, rate: Fraction) -> None:
        links.append(Link(str(source), str(target), rate * GIB, MICRO / 2))

    for rank in range(n):
        link(rank, rank ^ 1, Fraction(200))
    for rank in range(n):
        y = rank // 2 % 4
        for other in range(4):
            if other != y:
                link(rank, rank + 2 * (other - y), connected)
    for rank in range(n):
        link(rank, (rank + 8) % n, Fraction(50))
    return Topology(tuple(Node(str(rank)) for rank in range(n)), tuple(links))


def ideal_s(n: int, k: int) -> float:
    """All bandwidth of an NPU, 350 GiB/s, and the diameter."""
    return 2 * (n - 1) / n / 350 + (2 + k - 1) * 0.5e-6


#: Nodes, and Ring, Direct and Ideal over TACOS (table 5.5).
TABLE = [(2, 7.14, 4.04, 1.00), (4, 5.10, 7.86, 0.72), (8, 4.80, 16.84, 0.68), (16, 4.82, 36.02, 0.68)]


def of_ideal(pose, solve_unchecked, clock, topology: Topology, name: str, **options: object) -> float:
    posed = pose(topology, "all_reduce", size=2**30)
    n = len(topology.ranks)
    return clock(topology, solve_unchecked(name, posed, **options)) / ideal_s(n, n // 8)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "ring", "direct", "ideal"), TABLE)
def test_direct_of_table_5_5(pose, solve_unchecked, clock, k, ring, direct, ideal):
    """Direct takes as many times the ideal as published, within 1 %, where the 100 GiB/s of the second dimension are
    split over its three links."""
    found = of_ideal(pose, solve_unchecked, clock, unwound(k, Fraction(100, 3)), "direct")
    assert found == pytest.approx(direct / ideal, rel=0.01)


@pytest.mark.parametrize(("k", "ring", "direct", "ideal"), TABLE)
def test_ring_of_table_5_5(pose, solve_unchecked, clock, k, ring, direct, ideal):
    """A one-way ring takes as many times the ideal as published, within 2 %: 350 / 50, the slowest link of a ring
    through all dimensions."""
    found = of_ideal(pose, solve_unchecked, clock, unwound(k, Fraction(50)), "ring", ways="one-way")
    assert found == pytest.approx(7.0, rel=0.002)
    assert found == pytest.approx(ring / ideal, rel=0.02)
