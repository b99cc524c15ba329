"""Prices on a grid of epochs: no change of them proves more than the optimum, and wrong ones are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from cwb.core.bounds import EpochPrices, EpochWindowPrices
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.timing import Semantics, Timing
from cwb.instances import load
from cwb.schedules.epoch_bounds import recomputed_epochs
from cwb.schedules.file_parts import read_certificate
from cwb.schedules.strict import Fields
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st


def all_to_all_on_a_ring(*, fluid=True):
    """All to all on a ring of five without latency, one part an epoch over each link: 3 epochs, since 30 hops use 10
    links."""
    network = load("ring(5, latency='0 s', bandwidth='1 B/s')").network
    demand = Demand(Collective.ALL_TO_ALL, Fraction(5))
    return load("ring(5)").with_changes(
        network=network, demand=demand, timing=Timing(Semantics.TE_CCL, Fraction(1), fluid)
    )


def test_equal_prices_prove_the_total_load():
    """With the price 1 everywhere, 20 pairs pay 30 and 10 links of 2 epochs cost 20: two epochs are too few, three are
    not."""
    assert recomputed_epochs(all_to_all_on_a_ring(), EpochPrices((0, 2), ((1,),) * 10)) == 3
    assert recomputed_epochs(all_to_all_on_a_ring(), EpochPrices((0, 1, 2), ((1, 1),) * 10)) == 3
    assert recomputed_epochs(all_to_all_on_a_ring(), EpochPrices((0, 3), ((1,),) * 10)) == 0


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_no_prices_prove_more_than_the_optimum(data):
    """Whatever the prices and blocks, the bound is at most 3."""
    epochs = data.draw(st.integers(1, 5))
    inner = data.draw(st.sets(st.integers(1, max(1, epochs - 1)), max_size=3))
    starts = tuple(sorted({0, epochs} | {p for p in inner if p < epochs}))
    row = st.lists(st.integers(0, 9), min_size=len(starts) - 1, max_size=len(starts) - 1).map(tuple)
    prices = data.draw(st.lists(row, min_size=10, max_size=10).map(tuple))
    assert recomputed_epochs(all_to_all_on_a_ring(), EpochPrices(starts, prices)) <= 3


@pytest.mark.parametrize(
    ("starts", "prices", "message"),
    [
        ((0,), ((),) * 10, "starts"),
        ((1, 2), ((1,),) * 10, "starts"),
        ((0, 2, 2), ((1, 1),) * 10, "starts"),
        ((0, 2**40), ((1,),) * 10, "starts"),
        ((0, 2), ((1,),) * 9, "every link"),
        ((0, 2), ((1, 1),) * 10, "every link"),
        ((0, 2), ((-1,),) * 10, "price is not"),
        ((0, 2), ((2**40,),) * 10, "price is not"),
    ],
)
def test_wrong_prices_are_refused(starts, prices, message):
    """Blocks that do not increase from 0, missing and impossible prices are told."""
    with pytest.raises(InputError, match=message):
        recomputed_epochs(all_to_all_on_a_ring(), EpochPrices(starts, prices))


def test_whole_chunks_are_refused():
    """Prices say nothing where chunks are whole."""
    with pytest.raises(InputError, match="may be split"):
        recomputed_epochs(all_to_all_on_a_ring(fluid=False), EpochPrices((0, 2), ((1,),) * 10))


def all_gather_on_a_ring():
    """All-gather on a ring of three, two chunks of a byte for each rank; a link takes one chunk in two epochs, without
    latency."""
    network = load("ring(3, latency='0 s', bandwidth='1 B/s')").network
    demand = Demand(Collective.ALL_GATHER, Fraction(6), 2)
    timing = Timing(Semantics.STORE_AND_FORWARD, Fraction(1, 2), fluid=False)
    return load("ring(3)").with_changes(network=network, demand=demand, timing=timing)


def into(instance, node):
    """The links into a node."""
    return [e for e, (_, target) in enumerate(instance.network.link_ends) if target == node]


def test_prices_of_windows_prove_what_a_node_must_receive():
    """Four chunks come to rank 0 over two links that take one start in two epochs: one window on each is too little, so
    4 epochs are needed."""
    instance = all_gather_on_a_ring()
    a, b = into(instance, 0)
    prices = EpochWindowPrices(4, (0,), (a, b), (0, 0), (1, 1))
    assert recomputed_epochs(instance, prices) == 4
    for change in (
        {"epochs": 5},
        {"sinks": (1,)},
        {"links": (a, into(instance, 1)[0]), "epochs": 5},
        {"starts": (3, 3)},
        {"prices": (0, 0)},
    ):
        assert recomputed_epochs(instance, replace(prices, **change)) == 0


@settings(max_examples=draws(150))
@given(st.data())
def test_no_prices_of_windows_prove_more_than_the_optimum(data):
    """Whatever the windows, prices and sinks, the bound is at most the optimum, which the bound above meets."""
    instance = all_gather_on_a_ring()
    links = len(instance.network.link_ends)
    windows = data.draw(
        st.lists(st.tuples(st.integers(0, links - 1), st.integers(-2, 6), st.integers(0, 5)), max_size=9)
    )
    sinks = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True))
    columns = tuple(zip(*windows, strict=True)) or ((), (), ())
    prices = EpochWindowPrices(data.draw(st.integers(1, 9)), tuple(sinks), *columns)
    assert recomputed_epochs(instance, prices) <= 4


def test_prices_of_windows_are_read_as_written():
    """A certificate survives the way through a file, and one with a list that is too short is refused."""
    written = EpochWindowPrices(7, (2, 0), (1, 3), (-1, 4), (5, 6))
    data = json.loads(json.dumps(written.to_json()))
    assert read_certificate(Fields(data)) == written
    with pytest.raises(InputError, match="prices"):
        recomputed_epochs(all_gather_on_a_ring(), read_certificate(Fields({**data, "prices": [5]})))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sinks": ()}, "different nodes"),
        ({"sinks": (0, 0)}, "different nodes"),
        ({"sinks": (0, 1, 2, 0)}, "different nodes"),
        ({"sinks": (9,)}, "node 9"),
        ({"epochs": 0}, "epochs"),
        ({"epochs": 2**40}, "epochs"),
        ({"links": (99,)}, "link"),
        ({"starts": (2**40,)}, "too far"),
        ({"prices": (-1,)}, "prices"),
        ({"prices": (2**50,)}, "prices"),
        ({"prices": ()}, "every window"),
    ],
)
def test_wrong_prices_of_windows_are_refused(change, message):
    """Nodes, links and numbers that cannot be are told."""
    with pytest.raises(InputError, match=message):
        recomputed_epochs(all_gather_on_a_ring(), replace(EpochWindowPrices(4, (0,), (1,), (0,), (1,)), **change))


def test_prices_of_windows_are_of_whole_chunks():
    """If chunks may be split, windows bound nothing."""
    with pytest.raises(InputError, match="whole chunks"):
        recomputed_epochs(all_to_all_on_a_ring(), EpochWindowPrices(3, (0,), (0,), (0,), (1,)))
