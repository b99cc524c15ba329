"""Bytes per dimension and the iteration time: the optimizer's closed forms against the verifier's walk through the
stages."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.collective import Collective
from cwb.core.design import PartialUse
from cwb.core.fabric import parse_fabric
from cwb.core.workload import Communication
from cwb.instances import load
from cwb.instances.loader import shipped_instances
from cwb.models.libra.method import DesignOptions, pose
from cwb.models.libra.problem import time_model, traffic
from cwb.schedules.training import weighted_time
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

FULL = PartialUse.FULL
TRAINING = [name for name in shipped_instances() if load(name).workloads or load(name).transformers]


def make_traffic(kind: Collective, fabric: str, span: tuple[int, ...], size: int = 6, partial: PartialUse = FULL):
    return traffic(Communication(kind, Fraction(size), "g"), span, parse_fabric(fabric), partial)


def test_all_reduce_of_figure_4_3():
    """On the 3x2 network of figure 4.3 six chunks become four received in dimension 1 and one in dimension 2, per
    direction."""
    assert make_traffic(Collective.REDUCE_SCATTER, "RI(3)_RI(2)", (3, 2)) == (4, 1)
    assert make_traffic(Collective.ALL_GATHER, "RI(3)_RI(2)", (3, 2)) == (4, 1)
    assert make_traffic(Collective.ALL_REDUCE, "RI(3)_RI(2)", (3, 2)) == (8, 2)


def test_all_to_all_does_not_shrink():
    """An all-to-all moves m (n - 1) / n through every dimension."""
    assert make_traffic(Collective.ALL_TO_ALL, "RI(3)_RI(2)", (3, 2)) == (4, 3)


def test_in_network_reduction_sends_the_shard_once():
    """Switches that reduce bring dimension i to m / (n_1 ... n_{i-1})."""
    fabric = parse_fabric("RI(3)_SW(2)").with_in_network(frozenset({1}))
    communication = Communication(Collective.ALL_REDUCE, Fraction(6), "g")
    assert traffic(communication, (3, 2), fabric, FULL) == (8, 2)
    assert traffic(communication, (1, 2), fabric, FULL) == (0, 6)


def test_a_group_in_a_part_of_a_fully_connected_dimension():
    """With direct links only, 4 of 8 NPUs use 3/7 of the dimension's bandwidth."""
    whole = make_traffic(Collective.ALL_REDUCE, "FC(8)", (4,), 7)
    part = make_traffic(Collective.ALL_REDUCE, "FC(8)", (4,), 7, PartialUse.DIRECT_LINKS)
    assert part == (whole[0] * Fraction(7, 3),)


@pytest.mark.slow
@settings(max_examples=draws(60), deadline=None)
@given(data=st.data())
def test_merged_terms_give_the_verifiers_time(data, random_instances):
    """However the terms are merged, T(B) is what the verifier adds up layer by layer, for any bandwidths."""
    instance = data.draw(random_instances())
    if data.draw(st.booleans()):
        instance = pose(instance, DesignOptions(partial_use=PartialUse.DIRECT_LINKS))
    count = len(instance.fabric.dimensions)
    bandwidth = data.draw(st.lists(st.floats(1e6, 1e13), min_size=count, max_size=count))
    time = time_model(instance).seconds(bandwidth)
    assert time == pytest.approx(weighted_time(instance, [Fraction(b) for b in bandwidth]), rel=1e-12)


@pytest.mark.parametrize("name", TRAINING)
def test_shipped_workloads_have_few_terms(name):
    """Merging leaves no more terms than there are directions, so that the free Gurobi licence takes every shipped
    model."""
    time = time_model(load(name))
    assert 0 < len(time.terms) <= 8
    equal = [1e10] * len(load(name).fabric.dimensions)
    assert time.seconds(equal) == pytest.approx(weighted_time(load(name), [Fraction(10**10)] * len(equal)), rel=1e-12)
