"""Bounds recomputed from cuts and distances."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from cwb.core.bounds import CutCertificate, DistanceCertificate
from cwb.core.errors import InputError
from cwb.schedules.network_bounds import recomputed_cut_bound, recomputed_distance_bound
from families import RATE, UNIT, full, instance_of, network, ring_of, star


@pytest.mark.parametrize(
    ("kind", "nodes", "units"),
    [
        ("all_gather", (0,), 1),
        ("all_gather", (0, 1), 2),
        ("all_gather", (1, 2, 3), 3),
        ("reduce_scatter", (0,), 3),
        ("reduce_scatter", (0, 1), 2),
        ("all_reduce", (0,), 4),
        ("all_reduce", (0, 1, 2), 4),
        ("all_to_all", (0,), Fraction(3)),
        ("all_to_all", (0, 1), Fraction(4)),
        ("broadcast", (0, 2), 4),
        ("broadcast", (1, 2), 0),
        ("reduce", (1,), 4),
        ("reduce", (0,), 0),
    ],
)
def test_bytes_that_must_leave(kind, nodes, units):
    """On four ranks, the bytes that must leave a set are what only it has or must add, over the bandwidth of its links
    out."""
    instance = instance_of(full(4), kind, 4)
    links = len(nodes) * (4 - len(nodes))
    assert recomputed_cut_bound(instance, CutCertificate(nodes)) == units * UNIT / (links * RATE)


@pytest.mark.parametrize(("size", "seconds"), [(1, Fraction(1)), (2, Fraction(2)), (6, Fraction(5)), (8, Fraction(6))])
def test_a_link_brings_nothing_across_before_its_latency(size, seconds):
    """Of two links with latencies 0 and 4, the later one helps only with what does not arrive over the other by
    then."""
    late = network([(0, 1)], 2, latency=4 * UNIT / RATE)
    both = replace(late, links=(*network([(0, 1)], 2).links, *late.links))
    instance = instance_of(both, "broadcast", size)
    assert recomputed_cut_bound(instance, CutCertificate((0,), latency=True)) == seconds * UNIT / RATE


def test_switches_belong_to_cuts():
    """A rank with its switch has the switch's links out."""
    instance = instance_of(star(4), "all_gather", 4)
    assert recomputed_cut_bound(instance, CutCertificate((0, 4))) == UNIT / (3 * RATE)


def test_cuts_that_are_none():
    """Unknown nodes, and a set that data must leave but cannot, are errors."""
    instance = instance_of(network([(0, 1)], 2), "all_gather", 2)
    with pytest.raises(InputError, match="node 7"):
        recomputed_cut_bound(instance, CutCertificate((7,)))
    with pytest.raises(InputError, match="no link"):
        recomputed_cut_bound(instance, CutCertificate((1,)))


def test_distances():
    """The latency of the fastest path between ranks that must talk, 0 between others."""
    topology = ring_of(4)
    links = tuple(
        type(link)(link.source, link.target, link.bandwidth_Bps, Fraction(i + 1, 3))
        for i, link in enumerate(topology.links)
    )
    slow = type(topology)(topology.nodes, links)
    instance = instance_of(slow, "broadcast", 1)
    assert recomputed_distance_bound(instance, DistanceCertificate(0, 3)) == 2
    assert recomputed_distance_bound(instance, DistanceCertificate(1, 3)) == 0
    assert recomputed_distance_bound(instance_of(slow, "all_reduce", 1), DistanceCertificate(1, 3)) == Fraction(5, 3)
    with pytest.raises(InputError, match="rank 4"):
        recomputed_distance_bound(instance, DistanceCertificate(0, 4))
