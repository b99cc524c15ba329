"""Trees that reduce and broadcast at the same time: steps of sends, and the number of pieces."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from cwb.algorithms.schedules.pipelined_trees import (
    TreeEdge,
    all_reduce,
    best_pieces,
    length_of,
    pipeline,
)
from cwb.core.collective import Collective, Demand
from cwb.core.errors import Unsupported
from cwb.core.instance import Instance
from cwb.core.topology import Topology
from cwb.instances import load
from cwb.schedules import verdict_of
from hypothesis import given, settings
from hypothesis import strategies as st


def line_tree(topology: Topology, root: int) -> list[TreeEdge]:
    """The one spanning tree of a line, from a root outwards."""
    link = {ends: index for index, ends in enumerate(topology.link_ends)}
    rows = [(n, n - 1) for n in range(root + 1, len(topology.nodes))] + [(n, n + 1) for n in range(root - 1, -1, -1)]
    return [TreeEdge(n, up, (link[n, up],), (link[up, n],)) for n, up in rows]


def make_instance(network: str, size: int = 2**20, chunks: int = 1, ranks=None, kind=Collective.ALL_REDUCE) -> Instance:
    return load(network).with_changes(demand=Demand(kind, Fraction(size), chunks, ranks))


@settings(max_examples=60, deadline=None)
@given(
    ranks=st.integers(2, 7),
    roots=st.lists(st.integers(0, 6), min_size=1, max_size=3),
    pieces=st.integers(1, 5),
    spare=st.integers(0, 2),
)
def test_pieces_flow_without_waiting(ranks, roots, pieces, spare):
    """On a line with any roots, every link has at most one send in a step, the verifier agrees, and the time is no more
    than that of all steps."""
    instance = make_instance(f"line({ranks})")
    topology = instance.topology
    trees = [line_tree(topology, root % ranks) for root in roots]
    load_of = Counter(link for tree in trees for edge in tree for link in edge.up + edge.down)
    period = max(load_of.values()) + spare
    items = pipeline(trees, [1] * len(topology.links), period)
    taken = Counter((link, (item.step + hop) % period) for item in items for hop, link in enumerate(item.path))
    assert max(taken.values()) == 1
    schedule, cut = all_reduce(instance, topology, len(trees), items, period, pieces)
    assert cut == pieces
    verdict = verdict_of(instance, schedule)
    assert not verdict.violations
    link = topology.links[0]
    step_s = link.latency_s + instance.demands[0].size_bytes / (len(trees) * pieces) / link.bandwidth_Bps
    assert verdict.objective <= float((length_of(items) + period * (pieces - 1)) * step_s) * (1 + 1e-9)


@settings(deadline=None)
@given(
    length=st.integers(1, 60),
    period=st.integers(1, 3),
    latency=st.fractions(Fraction(1, 1000), 10),
    wire=st.fractions(Fraction(1, 1000), 1000),
)
def test_the_number_of_pieces_is_the_best_one(length, period, latency, wire):
    """No number of pieces is better by the formula than the one that is given."""

    def seconds(pieces: int) -> Fraction:
        return (length + period * (pieces - 1)) * (latency + wire / pieces)

    best = best_pieces(length, period, latency, wire)
    assert all(seconds(best) <= seconds(pieces) for pieces in {*range(1, 50), max(1, best - 1), min(4096, best + 1)})


def test_without_latency_pieces_cost_nothing():
    """Then there are as many pieces as may be, unless one takes no longer than the next one has to wait."""
    assert best_pieces(6, 1, Fraction(0), Fraction(1)) == 4096
    assert best_pieces(1, 1, Fraction(0), Fraction(1)) == 1


def test_trees_that_need_a_link_too_often_are_refused():
    """Two trees on one line need two steps for a piece."""
    topology = make_instance("line(3)").network
    assert isinstance(topology, Topology)
    trees = [line_tree(topology, 0)] * 2
    with pytest.raises(Unsupported, match="more often than 1 steps"):
        pipeline(trees, [1] * len(topology.links), 1)


def test_schedules_that_are_too_large_are_refused():
    """The number of sends is checked before memory is taken for them."""
    instance = make_instance("line(3)")
    topology = instance.topology
    items = pipeline([line_tree(topology, 0)], [1] * len(topology.links), 1)
    with pytest.raises(Unsupported, match="sends; expected at most"):
        all_reduce(instance, topology, 1, items, 1, 20_000_000)
