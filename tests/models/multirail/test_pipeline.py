"""The stage model against the dissertation's tables, and its own invariants."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest
from cwb.core.collective import Collective, Demand, collective_named
from cwb.core.errors import InputError
from cwb.schedules.multirail import evaluate, message_bytes, weighted_bound_s
from hypothesis import given, settings
from hypothesis import strategies as st

MIB = 2**20
#: Sizes, messages in MiB and collective time in us (table 3.4), and the relative error that is left with 64 chunks.
TABLE_3_4 = [
    ("2_8_8_4", (1024, 896, 112, 12), 4392.85, 0.0006),
    ("2_8_8_8", (1024, 896, 112, 14), 4392.85, 0.0006),
    ("2_8_8_16", (1024, 896, 112, 15), 4392.85, 0.0006),
    ("2_8_8_32", (1024, 896, 112, 15.5), 4392.85, 0.0006),
    ("4_8_8_4", (1536, 448, 56, 6), 2212.60, 0.0009),
    ("8_8_8_4", (1792, 224, 28, 3), 1753.48, 0.0021),
    ("16_8_8_4", (1920, 112, 14, 1.5), 1879.17, 0.0023),
]
BASELINE = (0, 1, 2, 3)


def conv_4d(fabric, sizes: str):
    a, b, c, d = sizes.split("_")
    return fabric(f"RI({a})_FC({b})_RI({c})_SW({d})", (1000, 200, 100, 50))


def all_reduce(chunks: int = 1, size: int = 1024 * MIB) -> Demand:
    return Demand(Collective.ALL_REDUCE, Fraction(size), chunks)


@pytest.mark.parametrize(("sizes", "messages", "time_us", "error"), TABLE_3_4)
def test_messages_of_table_3_4(fabric, sizes, messages, time_us, error):
    """All 28 message sizes are exact, as those of an all-reduce of 1 GiB."""
    assert message_bytes(conv_4d(fabric, sizes), all_reduce(), BASELINE) == tuple(Fraction(m) * MIB for m in messages)


@pytest.mark.parametrize(("sizes", "messages", "time_us", "error"), TABLE_3_4)
def test_times_of_table_3_4(fabric, sizes, messages, time_us, error):
    """All seven times are within 1.2 % of the busiest dimension's; a pipeline of 64 chunks is at least as close."""
    wired = conv_4d(fabric, sizes)
    busiest = max(m / b for m, b in zip(message_bytes(wired, all_reduce(), BASELINE), wired.bandwidth_Bps, strict=True))
    pipeline = evaluate(wired, all_reduce(64), [BASELINE] * 64, "fifo").completion_s
    published = time_us * 1e-6
    assert float(busiest) == pytest.approx(published, rel=0.012)
    assert float(pipeline) == pytest.approx(published, rel=error)
    assert abs(float(pipeline) - published) <= abs(float(busiest) - published)


def test_chunks_of_figure_4_3(fabric):
    """On 3 x 2 NPUs, six chunks per NPU: four go through the first dimension for every one through the second, each
    way."""
    wired = fabric("RI(3)_RI(2)", (1, 1))
    assert message_bytes(wired, Demand(Collective.REDUCE_SCATTER, Fraction(6)), (0, 1)) == (4, 1)


def test_one_chunk_pays_every_stage(fabric):
    """Latencies: n - 1 links on a ring, one in a full block, log2(n) through a switch; an all-reduce pays them
    twice."""
    wired = fabric("RI(5)_FC(4)_SW(8)", (1, 1, 1), (1, 10, 100))
    for kind, passes in (("reduce_scatter", 1), ("all_gather", 1), ("all_reduce", 2)):
        demand = Demand(collective_named(kind), Fraction(2**30))
        transfer = Fraction(4, 5) + Fraction(3, 4) / 5 + Fraction(7, 8) / 20
        assert evaluate(wired, demand, [(0, 1, 2)], "fifo").completion_s == passes * (4 + 10 + 300 + transfer)


def test_a_queue_is_served_in_order(fabric):
    """Two chunks with crossing orders: smallest-first lets the chunk that was already reduced overtake."""
    wired = fabric("SW(2)_SW(4)", (1, 1))
    orders = [(0, 1), (1, 0), (0, 1)]
    first, smallest = (evaluate(wired, all_reduce(3, 3 * 2**30), orders, queue) for queue in ("fifo", "scf"))
    assert first.busy_s == smallest.busy_s
    assert first.completion_s != smallest.completion_s


orders_of_three = st.lists(st.sampled_from(list(permutations(range(3)))), min_size=1, max_size=12)


@given(
    orders=orders_of_three,
    queue=st.sampled_from(["fifo", "scf"]),
    kind=st.sampled_from(["all_reduce", "reduce_scatter", "all_gather"]),
    rates=st.tuples(*[st.integers(1, 9)] * 3),
    weights=st.tuples(*[st.integers(0, 5)] * 3),
    latency=st.tuples(*[st.integers(0, 2)] * 3),
)
@settings(max_examples=60, deadline=None)
def test_completion_lies_between_the_bounds(fabric, orders, queue, kind, rates, weights, latency):
    """No pipeline beats its busiest dimension or any weighted bound, nor is it slower than all stages one after the
    other."""
    wired = fabric("RI(3)_FC(2)_SW(4)", rates, latency)
    demand = Demand(collective_named(kind), Fraction(2**30), len(orders))
    pipeline = evaluate(wired, demand, orders, queue)
    assert max(pipeline.busy_s) <= pipeline.completion_s <= sum(pipeline.busy_s)
    total = sum(weights)
    if total:
        assert weighted_bound_s(wired, demand, [Fraction(w, total) for w in weights]) <= max(pipeline.busy_s)


def test_what_cannot_be_evaluated_is_an_input_error(fabric):
    """Orders that miss a chunk or a dimension, an unknown queue, another collective, weights that bound nothing."""
    wired = fabric("RI(4)_SW(2)", (1, 1))
    for demand, orders, queue, place in (
        (all_reduce(2), [(0, 1)], "fifo", "orders: 1 orders for 2 chunks"),
        (all_reduce(1), [(0, 0)], "fifo", r"orders\[0\]"),
        (all_reduce(1), [(0, 1)], "lifo", "queue"),
        (Demand(Collective.BROADCAST, Fraction(1)), [(0, 1)], "fifo", "no multi-rail collective"),
    ):
        with pytest.raises(InputError, match=place):
            evaluate(wired, demand, orders, queue)
    for weights in ([Fraction(-1), Fraction(1)], [Fraction(1), Fraction(1)]):
        with pytest.raises(InputError, match="weights"):
            weighted_bound_s(wired, all_reduce(), weights)
