"""Prices on a grid of epochs: no change of them proves more than the optimum, and wrong ones are refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.bounds import EpochPrices
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.errors import InputError
from cwb.core.timing import Semantics, Timing
from cwb.instances import load
from cwb.schedules.epoch_bounds import recomputed_epochs
from hypothesis import given, settings
from hypothesis import strategies as st


def asked(*, fluid=True):
    """All to all on a ring of five without latency, one part an epoch over each link: 3 epochs, since 30 hops use 10 links."""
    network = load("ring(5, latency='0 s', bandwidth='1 B/s')").network
    demand = Demand(CollectiveKind.ALL_TO_ALL, Fraction(5))
    return load("ring(5)").with_changes(
        network=network, demand=demand, timing=Timing(Semantics.TE_CCL, Fraction(1), fluid)
    )


def test_equal_prices_prove_the_total_load():
    """With the price 1 everywhere, 20 pairs pay 30 and 10 links of 2 epochs cost 20: two epochs are too few, three are not."""
    assert recomputed_epochs(asked(), EpochPrices((0, 2), ((1,),) * 10)) == 3
    assert recomputed_epochs(asked(), EpochPrices((0, 1, 2), ((1, 1),) * 10)) == 3
    assert recomputed_epochs(asked(), EpochPrices((0, 3), ((1,),) * 10)) == 0


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_prices_prove_more_than_the_optimum(data):
    """Whatever the prices and blocks, the bound is at most 3."""
    epochs = data.draw(st.integers(1, 5))
    inner = data.draw(st.sets(st.integers(1, max(1, epochs - 1)), max_size=3))
    starts = tuple(sorted({0, epochs} | {p for p in inner if p < epochs}))
    row = st.lists(st.integers(0, 9), min_size=len(starts) - 1, max_size=len(starts) - 1).map(tuple)
    prices = data.draw(st.lists(row, min_size=10, max_size=10).map(tuple))
    assert recomputed_epochs(asked(), EpochPrices(starts, prices)) <= 3


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
        recomputed_epochs(asked(), EpochPrices(starts, prices))


def test_whole_chunks_are_refused():
    """Prices say nothing where chunks are whole."""
    with pytest.raises(InputError, match="may be split"):
        recomputed_epochs(asked(fluid=False), EpochPrices((0, 2), ((1,),) * 10))
