"""Trees span, wait for their parents, share no link in a step, and leave none free that one of them could use."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import NamedTuple

import pytest
from cwb.algorithms.schedules.problem import parallel_uses
from cwb.core.budget import Budget
from cwb.core.errors import InputError
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.heuristics.multitree.method import grow, height_of
from cwb.instances import load
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

GBPS = Fraction(10**9)


class StepEdge(NamedTuple):
    """An edge of a tree."""

    step: int
    tree: int
    parent: int
    child: int
    links: tuple[int, ...]


def list_edges(topology: Topology, nodes, uses) -> list[StepEdge]:
    """The edges that are grown, one by one."""
    edges = grow(topology, nodes, uses, Budget())
    assert edges is not None
    columns = zip(edges.step, edges.tree, edges.parent, edges.child, pairwise(edges.offset), strict=True)
    return [StepEdge(*map(int, ends), links=tuple(edges.links[begin:end].tolist())) for *ends, (begin, end) in columns]


def steps_of(edges: list[StepEdge]) -> int:
    return 1 + max(edge.step for edge in edges)


def grow_edges(network: str) -> tuple[Topology, list[StepEdge]]:
    topology = load(network).network
    return topology, list_edges(topology, topology.rank_nodes, parallel_uses(topology))


@st.composite
def networks(draw) -> tuple[Topology, list[int]]:
    """Strongly connected: a one-way cycle through all nodes, some further links, some parallel; and a group of
    ranks."""
    ranks, switches = draw(st.integers(2, 7)), draw(st.integers(0, 3))
    nodes = [Node(f"r{i}") for i in range(ranks)] + [Node(f"s{i}", NodeKind.SWITCH) for i in range(switches)]
    cycle = draw(st.permutations(range(len(nodes))))
    number = st.integers(0, len(nodes) - 1)
    pairs = draw(st.lists(st.tuples(number, number).filter(lambda pair: pair[0] != pair[1]), max_size=14))
    ends = [*pairwise([*cycle, cycle[0]]), *pairs]
    rates = st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(7, 2)])
    links = tuple(Link(nodes[a].name, nodes[b].name, draw(rates) * GBPS) for a, b in ends)
    return Topology(tuple(nodes), links), draw(
        st.lists(st.integers(0, ranks - 1), min_size=2, max_size=ranks, unique=True)
    )


def reachable(topology: Topology, start: int, group: set[int], free: list[bool]) -> set[int]:
    """Find the ranks of the group that free links lead to without passing one of it."""
    seen, stack = {start}, [start]
    while stack:
        node = stack.pop()
        for link, (a, b) in enumerate(topology.link_ends):
            if a == node and free[link] and b not in seen:
                seen.add(b)
                if b not in group:
                    stack.append(b)
    return (seen & group) - {start}


@settings(max_examples=draws(150), deadline=None)
@given(case=networks(), parallel=st.booleans())
def test_trees_of_any_network(case, parallel):
    """Every tree spans, an edge comes in a later step than the one above it, no link is over its uses, and no tree
    could have added one more edge."""
    topology, nodes = case
    uses = parallel_uses(topology) if parallel else [1] * len(topology.links)
    edges = list_edges(topology, nodes, uses)
    n = len(nodes)
    assert len(edges) == n * (n - 1)
    joined: dict[int, dict[int, int]] = {root: {root: -1} for root in range(n)}
    used: dict[int, Counter] = defaultdict(Counter)
    for edge in edges:
        ends = [topology.link_ends[link] for link in edge.links]
        assert (ends[0][0], ends[-1][1]) == (nodes[edge.parent], nodes[edge.child])
        assert all(one[1] == other[0] and one[1] not in nodes for one, other in pairwise(ends))
        assert edge.child not in joined[edge.tree]
        assert joined[edge.tree][edge.parent] < edge.step
        joined[edge.tree][edge.child] = edge.step
        used[edge.step].update(edge.links)
    assert all(set(tree) == set(range(n)) for tree in joined.values())
    assert sorted({edge.step for edge in edges}) == list(range(steps_of(edges)))
    for step, count in used.items():
        assert all(count[link] <= uses[link] for link in count)
        free = [count[link] < limit for link, limit in enumerate(uses)]
        for tree in joined.values():
            lacking = {nodes[rank] for rank, when in tree.items() if when > step}
            for parent in (rank for rank, when in tree.items() if when < step):
                assert not lacking & reachable(topology, nodes[parent], set(nodes), free)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 13])
def test_steps_that_are_known(n):
    """As few steps as any schedule: 1 on a complete graph, n - 1 over a switch and on a line, half of that on a
    ring."""
    for network, steps in (("complete", 1), ("star", n - 1), ("line", n - 1), ("ring", ceil((n - 1) / 2))):
        assert steps_of(grow_edges(f"{network}({n})")[1]) == steps


@pytest.mark.parametrize(("size", "steps"), [(3, 3), (4, 5), (5, 7), (6, 10), (7, 13), (8, 17), (10, 26)])
def test_square_tori_are_at_most_one_step_off_the_fewest(size, steps):
    """A rank receives n - 1 parts over four links: (n - 1) / 4 steps at least, of which the trees need one more at
    most."""
    n = size * size
    assert steps_of(grow_edges(f"torus({size},{size})")[1]) == steps
    assert ceil((n - 1) / 4) <= steps <= ceil((n - 1) / 4) + 1


@pytest.mark.parametrize(("network", "links"), [("mesh(4,4)", 2), ("mesh(5,5)", 2), ("mesh(8,8)", 2)])
def test_meshes_need_the_fewest_steps(network, links):
    """As few as the corners allow, which receive n - 1 parts over two links."""
    topology, edges = grow_edges(network)
    assert steps_of(edges) == ceil((len(topology.ranks) - 1) / links)


def test_trees_are_flat_where_they_can_be():
    """Over a switch and on a complete graph every rank is a child of the root; on a line the highest tree has n - 1
    edges in a row."""
    found = []
    for network in ("star(6)", "complete(6)", "line(6)", "ring(6)"):
        topology = load(network).network
        found.append(height_of(grow(topology, topology.rank_nodes, parallel_uses(topology), Budget())))
    assert found == [1, 1, 5, 3]


def test_over_a_switch_everybody_sends_to_the_next_then_to_the_one_after():
    """Children are tried from the parent on, so that no two trees want the same port of a switch."""
    _, edges = grow_edges("star(5)")
    assert all((edge.parent + edge.step + 1) % 5 == edge.child for edge in edges)


def test_uses_of_unequal_links_are_rounded_down():
    """A link has the uses of as many links of the smallest bandwidth as fit into it, exactly."""
    rates = [Fraction(1, 3), Fraction(1), Fraction(9, 10), Fraction(1, 3) * Fraction(2999, 1000)]
    links = tuple(Link("a", "b", rate) for rate in rates)
    assert parallel_uses(Topology((Node("a"), Node("b")), links)) == [1, 3, 2, 2]


def test_parallel_links_are_used_side_by_side():
    """Two links between the same nodes, or one that counts twice, carry two trees in a step."""
    hub = Topology(
        (Node("0"), Node("1"), Node("2"), Node("s", NodeKind.SWITCH)),
        tuple(Link(*ends, GBPS) for leaf in "012" for ends in ((leaf, "s"), ("s", leaf))),
    )
    assert [steps_of(list_edges(hub, (0, 1, 2), [uses] * 6)) for uses in (1, 2)] == [2, 1]
    doubled = Topology(hub.nodes, hub.links * 2)
    edges = list_edges(doubled, (0, 1, 2), [1] * 12)
    assert steps_of(edges) == 1
    assert max(Counter(link for edge in edges for link in edge.links).values()) == 1


def test_a_rank_that_cannot_be_reached_is_an_input_error():
    """The message names the root that does not reach everybody."""
    one_way = Topology((Node("a"), Node("b")), (Link("a", "b", GBPS),))
    with pytest.raises(InputError, match="'b'"):
        grow(one_way, (0, 1), [1], Budget())
