"""Verifier and slow replay on small random schedules, most of them broken."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.schedules.verify import verify
from families import RATE, UNIT, TreeKind, instance_of, schedule_of, trees_of
from hypothesis import event, given
from hypothesis import strategies as st
from slow_replay import is_valid

KINDS = {
    "all_gather": ([([r], range(3), False) for r in range(3)], 3),
    "reduce_scatter": ([(range(3), [r], True) for r in range(3)], 3),
    "all_reduce": ([(range(3), range(3), True)], 1),
    "broadcast": ([([0], range(3), False)], 1),
    "reduce": ([(range(3), [0], True)] * 2, 2),
}
PAIRS = [(a, b) for a in range(4) for b in range(4) if a != b]


def network_with(switch: Node) -> Topology:
    """Three ranks and a switch, everyone linked to everyone."""
    nodes = [*(Node(f"n{i}") for i in range(3)), switch]
    return Topology(tuple(nodes), tuple(Link(nodes[a].name, nodes[b].name, RATE) for a, b in PAIRS))


switches = st.builds(
    Node,
    st.just("switch"),
    st.just(NodeKind.SWITCH),
    st.booleans(),
    st.sampled_from([None, Fraction(0), UNIT, 2 * UNIT]),
)
paths = st.lists(st.integers(0, 3), min_size=2, max_size=3).filter(
    lambda nodes: all(a != b for a, b in pairwise(nodes)) and nodes[0] != nodes[-1]
)


def instance_and_rows(data):
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    rows, units = KINDS[kind]
    instance = instance_of(network_with(data.draw(switches)), kind, units)
    return instance, [(1, *row) for row in rows]


@pytest.mark.slow
@given(data=st.data())
def test_same_verdict_on_steps(data):
    """On random sends in steps, verifier and slow replay agree on what is right."""
    instance, rows = instance_and_rows(data)
    chunks, steps = st.integers(0, len(rows) - 1), st.integers(0, 3)
    moves = data.draw(st.lists(st.tuples(chunks, paths, st.booleans(), steps), min_size=1, max_size=10))
    instance, answer = schedule_of(instance, rows, moves)
    assert verify(instance, answer).ok == is_valid(instance, answer)


@pytest.mark.slow
@given(data=st.data())
def test_same_verdict_on_times(data):
    """On random sends in time, too fast, overlapping or too early, verifier and slow replay agree."""
    instance, rows = instance_and_rows(data)
    chunks, times = st.integers(0, len(rows) - 1), st.integers(0, 8)
    drawn = data.draw(
        st.lists(st.tuples(chunks, paths, st.booleans(), times, st.integers(1, 6)), min_size=1, max_size=8)
    )
    moves = [(c, path, reduce, start / 2, (start + lasts) / 2) for c, path, reduce, start, lasts in drawn]
    instance, answer = schedule_of(instance, rows, moves, timed=True)
    assert verify(instance, answer).ok == is_valid(instance, answer)


@given(data=st.data())
def test_same_verdict_on_sums_grown_from_right_ones(data):
    """On an all-reduce over a star of ranks with sends added and left out, verifier and slow replay agree; some are
    right."""
    switch = Node("switch", NodeKind.SWITCH, multicast=data.draw(st.booleans()))
    instance = instance_of(network_with(switch), "all_reduce", 1)
    hub = data.draw(st.integers(0, 3))
    others = [r for r in range(3) if r != hub]
    moves = [(0, (r, hub), True, 1) for r in others] + [(0, (hub, r), False, 2) for r in others]
    extra = st.tuples(st.just(0), paths, st.booleans(), st.integers(0, 4))
    moves += data.draw(st.lists(extra, max_size=2))
    for _ in range(data.draw(st.integers(0, 1))):
        moves.pop(data.draw(st.integers(0, len(moves) - 1)))
    instance, answer = schedule_of(instance, [(1, range(3), range(3), True)], moves)
    right = is_valid(instance, answer)
    event(f"right: {right}")
    assert verify(instance, answer).ok == right


@given(data=st.data())
def test_same_verdict_on_trees(data):
    """On random edges with random roots and sizes, verifier and slow growth agree."""
    kind, collective = data.draw(
        st.sampled_from(
            [
                (TreeKind.OUT, "broadcast"),
                (TreeKind.OUT, "all_gather"),
                (TreeKind.IN, "reduce"),
                (TreeKind.BOTH, "all_reduce"),
            ]
        )
    )
    instance = instance_of(network_with(Node("switch", NodeKind.SWITCH)), collective, 3)
    ranks = st.integers(0, 2)
    edges = st.lists(st.tuples(ranks, ranks).filter(lambda e: e[0] != e[1]), min_size=2, max_size=3)
    drawn = data.draw(st.lists(st.tuples(ranks, st.integers(1, 3), edges), min_size=1, max_size=3))
    trees = [(root, units, [(a, b, (a, 3, b)) for a, b in branch]) for root, units, branch in drawn]
    others = [(root, units, [(a, b, (a, 3, b)) for a, b in data.draw(edges)]) for root, units, _ in drawn]
    instance, answer = trees_of(instance, kind, trees, data.draw(st.sampled_from([trees, others])))
    assert verify(instance, answer).ok == is_valid(instance, answer)
