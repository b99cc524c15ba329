"""``plink`` and ``psld``: by hand, and against simple algorithms."""

from __future__ import annotations

import numpy as np
import pytest
from cwb.algorithms.trees.network import to_wan
from cwb.algorithms.trees.trees import shortest_paths
from cwb.core.trace import SimulationMode
from cwb.heuristics.wan.messages import clusters, median, pair_bandwidth, shares
from cwb.heuristics.wan.method import PsldOptions
from cwb.schedules.simulate import simulate
from hypothesis import given, settings
from hypothesis import strategies as st
from mtree_networks import instance, rate, solve

pytestmark = pytest.mark.slow  # random networks, checked by brute force

seeds = st.integers(0, 10**6)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 6))
def test_clusters_are_those_of_complete_linkage(seed, count):
    """Merging the two groups whose farthest members are nearest, one pair at a time, gives the same groups."""
    source = np.random.default_rng(seed)
    distance = source.permutation(36).reshape(6, 6) + 1
    distance = np.triu(distance, 1) + np.triu(distance, 1).T
    groups = [[site] for site in range(6)]
    while len(groups) > count:
        pairs = [(a, b) for a in range(len(groups)) for b in range(a)]
        a, b = min(pairs, key=lambda p: distance[np.ix_(groups[p[0]], groups[p[1]])].max())
        groups = [g for i, g in enumerate(groups) if i not in (a, b)] + [sorted(groups[a] + groups[b])]
    assert sorted(clusters(distance, count)) == sorted(groups)


def test_plink_by_hand():
    """Two pairs, near each other and far apart: leaders exchange whole vectors, and every phase waits for the one
    before."""
    edges = [(0, 1, 80, 10), (1, 2, 40, 100), (2, 3, 80, 10)]
    done = solve(instance(4, edges, size=10**6), "plink", groups=2)
    assert done.record.metrics["leaders"] == ["0", "2"]
    assert done.record.metrics["root"] == "0"
    # 1 to 0 and 3 to 2: 10 ms + 0.1 s; 2 to 0 over both links: 110 ms + 0.2 s as a flow; and the same back.
    trace = simulate(done.instance, done.answer, SimulationMode.FAIR_SHARE)
    assert trace.completion_s == pytest.approx(2 * (0.11 + 0.31))
    # Both directions of the slowest link carry the vector once; those of the first link twice at twice the rate.
    assert rate(done) == pytest.approx(40)


def test_a_median_is_nearest_to_all():
    """The leader of a path is its middle."""
    distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    assert median(distance, [0, 1, 2, 3, 4]) == 2
    assert median(distance, [4, 0]) == 4


def test_psld_by_hand():
    """On a triangle shares are as the slowest bandwidth to a peer; equal shares of equal links take two thirds of the
    data each way."""
    edges = [(0, 1, 80, 1), (1, 2, 80, 1), (0, 2, 40, 1)]
    wan = to_wan(instance(3, edges))
    bandwidth = pair_bandwidth(wan, shortest_paths(wan, wan.latency_ns))
    units = shares(bandwidth, PsldOptions())
    assert [round(unit / sum(units), 5) for unit in units] == [0.25, 0.5, 0.25]
    assert shares(bandwidth, PsldOptions(share="equal")) == [1, 1, 1]
    mean = shares(bandwidth, PsldOptions(share="mean"))
    assert [round(unit / sum(mean), 5) for unit in mean] == [0.3, 0.4, 0.3]
    done = solve(instance(3, [(0, 1, 80, 0), (1, 2, 80, 0), (0, 2, 80, 0)], size=3 * 10**6), "psld")
    trace = simulate(done.instance, done.answer, SimulationMode.FAIR_SHARE)
    assert trace.completion_s == pytest.approx(0.2)
    assert rate(done) == pytest.approx(120)


def test_the_bandwidth_of_a_pair_is_the_mean_along_the_way_of_least_latency():
    """Of two ways the one of less latency counts, though it is slower and longer."""
    edges = [(0, 1, 20, 1), (1, 2, 40, 1), (0, 2, 90, 5)]
    wan = to_wan(instance(3, edges))
    unit = float(wan.unit_Bps) * 8e-6
    bandwidth = pair_bandwidth(wan, shortest_paths(wan, wan.latency_ns))
    assert bandwidth[0, 2] * unit == pytest.approx(30)
    assert bandwidth[0, 1] * unit == pytest.approx(20)
