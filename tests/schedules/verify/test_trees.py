"""The verifier of tree packings: the exact flow time, and what is told beside it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cwb.core.bounds import CutCertificate, DistanceCertificate
from cwb.core.errors import InputError
from cwb.core.trees import TreeKind
from cwb.schedules import collective, completion, verdict_of
from cwb.schedules.verify import heaviest_load
from cwb.schedules.verify.answers import link_units
from cwb.schedules.verify.network import network_of
from cwb.schedules.verify.sizes import exact_sums
from cwb.schedules.verify.trees import heaviest_link
from families import FAMILIES, full, instance_of, trees_of


def at_other_rates(instance, packing, rate, size):
    """The same trees for other bandwidths and another size, both exact fractions."""
    network = instance.network
    links = tuple(replace(link, bandwidth_Bps=rate) for link in network.links)
    demand = replace(instance.demand, size_bytes=size)
    other = instance.with_changes(network=replace(network, links=links), demand=demand)
    unit = packing.unit_bytes * size / instance.demand.size_bytes
    return other, replace(packing, instance_sha256=other.sha256, unit_bytes=unit)


@pytest.mark.parametrize(
    ("rate", "size"), [(Fraction(10**9), Fraction(10**4)), (Fraction(10**10, 7), Fraction(2**30, 3))]
)
def test_time_and_bound_meet_exactly(rate, size):
    """Chains both ways round a ring are as fast as what enters a rank: objective and recomputed bound are the same
    number."""
    instance, packing = at_other_rates(*FAMILIES["chain_trees"](5), rate, size)
    verdict = verdict_of(instance, packing, CutCertificate((0, 1, 2, 3)))
    assert verdict.ok
    assert verdict.objective == verdict.bound == float(Fraction(2, 5) * size / rate)
    metrics = verdict.metrics
    assert metrics["lower_bound_s"] == verdict.bound
    assert metrics["flow_time_s"] == verdict.objective
    assert metrics["flow_algbw_GBps"] == float(size) / verdict.objective / 1e9
    assert metrics["flow_busbw_GBps"] == pytest.approx(2 * float(rate) / 1e9)
    assert metrics["algbw_GBps"] == float(size) / metrics["completion_time_s"] / 1e9
    assert metrics["busbw_GBps"] == pytest.approx(metrics["algbw_GBps"] * 4 / 5)
    assert (metrics["trees"], metrics["max_height"], metrics["mean_height"]) == (10, 4, 4.0)
    assert metrics["busiest_link"] == [0, 1.0]
    # Four links deep without latency, F + 3 F / C: 256 are the fewest pieces within a hundredth of 1,024.
    assert metrics["pieces"] == 256
    assert metrics["completion_time_s"] == pytest.approx(verdict.objective * (1 + 3 / 256))


def test_in_out_trees_are_as_high_as_their_longer_way():
    """An all-reduce along stars there and chains back is as high as the chains are, not as both together."""
    instance, packing = FAMILIES["unlike_trees"](4)
    metrics = verdict_of(instance, packing).metrics
    assert (metrics["trees"], metrics["max_height"], metrics["mean_height"]) == (2, 3, 3.0)


def test_heights_are_weighted_by_units():
    """A tree that carries three quarters of the data counts three times as much as one that carries a quarter."""
    instance = instance_of(full(3), "broadcast", 4)
    star = (0, 3, [(0, 1, (0, 1)), (0, 2, (0, 2))])
    chain = (0, 1, [(0, 1, (0, 1)), (1, 2, (1, 2))])
    metrics = verdict_of(*trees_of(instance, TreeKind.OUT, [star, chain])).metrics
    assert (metrics["max_height"], metrics["mean_height"]) == (2, 1.25)


def test_trees_are_not_simulated(monkeypatch):
    """The verifier leaves the event simulation of trees to those who ask for it."""

    def never(*_args, **_options):
        raise AssertionError("simulated")

    monkeypatch.setattr(collective, "simulate", never)
    monkeypatch.setattr(completion, "simulate_totals", never)
    assert verdict_of(*FAMILIES["chain_trees"](5)).ok


def test_a_distance_proves_nothing_of_the_flow_time():
    """Latency is no part of the flow model, so that a distance is no bound on its time."""
    instance, packing = FAMILIES["chain_trees"](5)
    assert verdict_of(instance, packing, DistanceCertificate(0, 2)).bound is None


def test_a_wrong_tree_has_no_objective():
    """Trees that do not span are told, and measured no further."""
    instance, packing = FAMILIES["chain_trees"](5)
    child = packing.child.copy()
    child[3] = child[2]
    verdict = verdict_of(instance, replace(packing, child=child))
    assert not verdict.ok
    assert verdict.objective is None
    assert not verdict.metrics


def test_sums_beyond_64_bits_do_not_wrap():
    """Units near 2^62 on one link add up exactly, and so do negative numbers."""
    values = np.array([2**62 - 1, 2**62 - 3, 2**61, -5, -(2**62)], dtype=np.int64)
    where = np.array([0, 0, 0, 1, 1])
    assert exact_sums(where, values, 3) == [2**63 + 2**61 - 4, -5 - 2**62, 0]
    instance, packing = FAMILIES["chain_trees"](5)
    large = replace(packing, units=packing.units * (2**62 - 1), unit_bytes=packing.unit_bytes / (2**62 - 1))
    assert heaviest_load(instance, large) == heaviest_load(instance, packing)
    assert verdict_of(instance, large).ok


def test_the_heaviest_link_is_the_first_of_the_slowest():
    """Of links with different rates the one that needs longest counts, not the one with most units."""
    instance, packing = FAMILIES["chain_trees"](5)
    links = list(instance.network.links)
    links[7] = replace(links[7], bandwidth_Bps=links[7].bandwidth_Bps / 3)
    other = instance.with_changes(network=replace(instance.network, links=tuple(links)))
    loads = link_units(packing, network_of(instance))
    assert heaviest_link(instance, packing, loads) == (0, heaviest_load(instance, packing))
    assert heaviest_link(other, packing, loads) == (7, 3 * heaviest_load(instance, packing))


def test_a_reduction_that_does_not_belong_to_its_trees_is_refused():
    """In-out trees need a reduction of in-trees for the same instance with the same roots and units, and others have
    none."""
    _, packing = FAMILIES["unlike_trees"](4)
    there = packing.reduction
    with pytest.raises(InputError, match="in-out trees, and only they"):
        replace(packing, reduction=None)
    with pytest.raises(InputError, match="in-out trees, and only they"):
        replace(packing, kind=TreeKind.OUT)
    with pytest.raises(InputError, match="expected in-trees, not out-trees"):
        replace(packing, reduction=replace(there, kind=TreeKind.OUT))
    with pytest.raises(InputError, match="another instance"):
        replace(packing, reduction=replace(there, instance_sha256="other"))
    for column in ("root", "units"):
        with pytest.raises(InputError, match=rf"trees\.reduction\.{column}: differs"):
            replace(packing, reduction=replace(there, **{column: getattr(there, column) + 1}))
    with pytest.raises(InputError, match="unit_bytes: differs"):
        replace(packing, reduction=replace(there, unit_bytes=there.unit_bytes + 1))
    assert replace(packing).passes[0] is there
