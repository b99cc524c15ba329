"""Closed forms of pipelined time against trying every number of chunks, every pair of leaves, and by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import sqrt
from random import Random

import numpy as np
import pytest
from cwb.core.pipelining import MOST_CHUNKS, Forest, Leaves


def random_leaves(source, trees, waiting=True):
    """Leaves of random trees, as rows (links, S, A) for each tree."""
    rows = [
        [
            (source.randint(1, 9), source.uniform(0, 3), source.uniform(0.001, 1) if waiting else 0.0)
            for _ in range(source.randint(1, 6))
        ]
        for _ in range(trees)
    ]
    flat = [row for tree in rows for row in tree]
    links, waits, pace = (np.array(column) for column in zip(*flat, strict=True))
    offset = np.cumsum([0, *(len(tree) for tree in rows)])[:-1]
    return rows, Leaves(offset, links, waits, pace)


def a_path(links, waits_s, pace_s):
    """A forest of one path."""
    return Forest((Leaves(np.array([0]), np.array([links]), np.array([waits_s]), np.array([pace_s])),))


def path_seconds(links, waits_s, pace_s, flow_s, chunks):
    """Time of a path by equation (2)."""
    return waits_s + (links + chunks - 1) * flow_s / chunks + (chunks - 1) * pace_s


def by_hand(ways, flow, chunks):
    """The latest of all leaves, or of all ordered pairs of leaves, by equation (2)."""
    return max(
        path_seconds(sum(p[0] for p in pair), sum(p[1] for p in pair), max(p[2] for p in pair), flow, chunks)
        for pair in product(*ways)
    )


def test_a_tie_is_decided_for_fewer_chunks():
    """If lam (lam + 1) is exactly (l - 1) x / A, both numbers take the same time."""
    path = a_path(2, 1.0, 1.0)
    for chunks in range(1, 200):
        flow = np.array([float(chunks * (chunks + 1))])
        assert path.seconds(flow, np.array([chunks])) == path.seconds(flow, np.array([chunks + 1]))
        assert path.best_chunks(flow) == [chunks]
        assert path.best_chunks(flow + 1e-6) == [chunks + 1]


def test_where_nothing_limits_the_number_of_chunks():
    """One link needs one chunk, and no data no more; where a chunk costs nothing, the limit is the answer."""
    assert a_path(1, 1.0, 1.0).best_chunks(np.array([100.0])) == [1]
    assert a_path(3, 1.0, 1.0).best_chunks(np.array([0.0])) == [1]
    assert a_path(3, 1.0, 0.0).best_chunks(np.array([5.0])) == [MOST_CHUNKS]


def test_the_printed_optimum_lacks_the_data_size():
    """5 links of 0.4 s at most, 8,000 Mbit at 100 Mb/s: 28 chunks take 103 s; printed equation (8) says less than one
    chunk: 401 s."""
    latencies, size, rate = (0.1, 0.4, 0.2, 0.1, 0.2), 8000.0, 100.0
    waits, pace, flow = sum(latencies), max(latencies), size / rate
    path = a_path(5, waits, pace)

    def seconds(chunks):
        return path.seconds(np.array([flow]), np.array([chunks]))[0]

    assert path.best_chunks(np.array([flow])) == [28] == [int(sqrt(4 * flow / pace))]
    assert seconds(28) == pytest.approx(waits - pace + flow + 2 * sqrt(4 * flow * pace), rel=1e-4)
    printed = sqrt(4 / rate / pace)
    assert printed < 1
    assert seconds(1) == waits + 5 * flow == 401
    assert seconds(28) == pytest.approx(103.22, abs=0.01)
    # More than lam* squared chunks are slower than one: the printed limit of their number is right, that of their size
    # is not.
    assert seconds(800) == pytest.approx(401)
    assert seconds(801) > 401


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("waiting", [True, False])
def test_trees_take_what_their_latest_leaves_take(ways, waiting):
    """Of 100 random forests the times are those of all leaves, or all ordered pairs of leaves, one by one."""
    source = Random(ways)  # noqa: S311
    for _ in range(100):
        trees = source.randint(1, 5)
        rows, leaves = zip(*(random_leaves(source, trees, waiting) for _ in range(ways)), strict=True)
        forest = Forest(leaves)
        flow = np.array([source.uniform(0, 40) for _ in range(trees)])
        chunks = np.array([source.randint(1, 50) for _ in range(trees)])
        hand = [by_hand([way[i] for way in rows], flow[i], int(chunks[i])) for i in range(trees)]
        assert forest.seconds(flow, chunks) == pytest.approx(hand, rel=1e-13)


@pytest.mark.parametrize("ways", [1, 2])
def test_the_best_number_of_chunks_of_a_tree_is_that_of_trying_all(ways):
    """Of 100 random forests no number of chunks is better than the one found."""
    source = Random(10 + ways)  # noqa: S311
    for _ in range(100):
        trees = source.randint(1, 4)
        forest = Forest(tuple(random_leaves(source, trees)[1] for _ in range(ways)))
        flow = np.array([source.uniform(0.1, 5) for _ in range(trees)])
        every = np.array([forest.seconds(flow, np.full(trees, number)) for number in range(1, 400)])
        found = forest.best_chunks(flow)
        assert forest.seconds(flow, found) == pytest.approx(every.min(axis=0), rel=1e-13)
        inside = found < 400
        assert np.abs(found - 1 - every.argmin(axis=0))[inside].max(initial=0) <= 1


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("waiting", [True, False])
def test_flow_within_a_deadline_is_the_inverse_of_the_time(ways, waiting):
    """Flow within a deadline arrives on time with the best or a given number of chunks, or is zero."""
    source = Random(20 + ways)  # noqa: S311
    for _ in range(40):
        trees = source.randint(1, 4)
        forest = Forest(tuple(random_leaves(source, trees, waiting)[1] for _ in range(ways)))
        deadline = source.uniform(1, 30)
        for chunks in (None, np.array([source.randint(1, 9) for _ in range(trees)])):
            flow = forest.flow_within(deadline, chunks)
            number = forest.best_chunks(flow) if chunks is None else chunks
            time = forest.seconds(flow, number)
            usable = flow > 0
            assert time[usable] == pytest.approx(deadline, rel=1e-11)
            assert (time[~usable] >= deadline * (1 - 1e-12)).all()


@pytest.mark.parametrize("size", [1.0, 1e-9, 1e-30, 1e-300, 5e-324])
def test_data_that_is_nothing_beside_the_latency(size):
    """However little data there is, a deadline before the latency leaves room for none of it, and no number divides by
    zero."""
    leaves = Leaves(np.array([0, 1]), np.array([2, 3]), np.array([0.002, 0.003]), np.array([0.001, 0.0]))
    with np.errstate(all="raise", under="ignore"):
        for ways in ((leaves,), (leaves, leaves)):
            forest = Forest(ways)
            for chunks in (None, np.array([1, 4])):
                assert not forest.flow_within(size * 1e-9, chunks).any()
                assert not forest.flow_within(0.0, chunks).any()
                assert (forest.flow_within(1.0, chunks) > 0).all()


@pytest.mark.parametrize("latency_s", [Fraction(0), Fraction(1, 1000)])
@pytest.mark.parametrize("exponent", [0, -9, -30, -300, -320])
def test_rates_and_splits_of_hardly_any_data(latency_s, exponent):
    """Of any size the rates that trees reserve fit and are used, and a split that ends at once gives every byte to some
    tree."""
    from cwb.core.pipelining import LatencyModel, equal_finish, forest_of, reserve_rates
    from cwb.core.topology import Link, Node, Topology
    from cwb.core.trees import TreeKind, TreePacking

    links = tuple(Link(str(a), str(b), Fraction(10**9), latency_s) for a, b in ((0, 1), (1, 2), (0, 2)))
    topology = Topology(tuple(Node(str(v)) for v in range(3)), links)
    columns = (np.array(column, dtype=np.int64) for column in ([0, 2, 4], [0, 1, 0, 0], [1, 2, 2, 1], range(5),
        [0, 1, 2, 0]))  # fmt: skip
    size = Fraction(10) ** exponent
    packing = TreePacking("0" * 64, TreeKind.OUT, np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.int64), size / 2,
        *columns)  # fmt: skip
    with np.errstate(all="raise", under="ignore"):
        for model in LatencyModel:
            plan = reserve_rates(topology, packing, model)
            assert 0.99e9 <= plan.rates_Bps.sum() <= 1e9 * (1 + 1e-9)
            forest = forest_of(topology, packing, model)
            data = equal_finish(forest, plan.rates_Bps, float(size))
            assert data.sum() == pytest.approx(float(size), rel=1e-9, abs=0)
