"""Breadth-first broadcasts: values against brute force over link subsets and the linear program, shares against their
loads."""

from fractions import Fraction
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from cwb.algorithms.breadth_first import broadcast as module
from cwb.algorithms.breadth_first.broadcast import Broadcast, graph_of
from cwb.core.errors import InputError, Unsupported
from draws import draws
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog


def _links(pairs):
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _circulant(n, offsets):
    return _links([(i, (i + a) % n) for i in range(n) for a in offsets])


def broadcast(n, links):
    return Broadcast(graph_of(range(n), links))


@st.composite
def networks(draw):
    """Draw a strongly connected network of few nodes, perhaps with parallel links: a cycle and some more links."""
    n = draw(st.integers(2, 8))
    more = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20))
    return n, [*((i, (i + 1) % n) for i in range(n)), *((u, v) for u, v in more if u != v)]


def _jobs(n, pairs):
    """For every step and receiver, the sets of links that each shard can come over."""
    graph = nx.DiGraph(pairs)
    far = dict(nx.all_pairs_shortest_path_length(graph))
    found = {}
    for u in range(n):
        into = [(e, w) for e, (w, x) in enumerate(pairs) if x == u]
        for v in range(n):
            if v != u:
                over = frozenset(e for e, w in into if far[v][w] + 1 == far[v][u])
                found.setdefault((far[v][u], u), []).append(over)
    return found


@given(networks())
@settings(deadline=None, max_examples=100)
def test_loads_are_the_largest_quotients(network):
    """The load of a step is the largest quotient of theorem 19 over all sets of links, by enumeration."""
    n, pairs = network
    worst = {}
    for (step, _), jobs in _jobs(n, pairs).items():
        links = sorted(frozenset().union(*jobs))
        quotient = max(
            Fraction(sum(job <= set(chosen) for job in jobs), size)
            for size in range(1, len(links) + 1)
            for chosen in combinations(links, size)
        )
        worst[step] = max(worst.get(step, Fraction(0)), quotient)
    assert broadcast(n, _links(pairs)).loads == tuple(worst[step] for step in sorted(worst))


@given(networks())
@settings(deadline=None, max_examples=draws(25))
def test_loads_are_those_of_the_linear_program(network):
    """The load of a step is the optimum of LP (1), to rounding, for the receiver that needs most."""
    n, pairs = network
    loads = broadcast(n, _links(pairs)).loads
    worst = [0.0] * len(loads)
    for (step, _), jobs in _jobs(n, pairs).items():
        columns = [(j, e) for j, job in enumerate(jobs) for e in sorted(job)]
        links = sorted({e for _, e in columns})
        carried = [[*(float(e == link) for _, e in columns), -1.0] for link in links]
        whole = [[*(float(j == job) for j, _ in columns), 0.0] for job in range(len(jobs))]
        cost = [*([0.0] * len(columns)), 1.0]
        best = linprog(cost, A_ub=carried, b_ub=np.zeros(len(links)), A_eq=whole, b_eq=np.ones(len(jobs))).fun
        worst[step - 1] = max(worst[step - 1], best)
    assert worst == pytest.approx([float(load) for load in loads])


@given(networks())
@settings(deadline=None, max_examples=60)
def test_shares_are_whole_and_within_the_loads(network):
    """Everybody gets every piece of every other shard once, from a neighbour that is nearer, and no link carries more
    than its load."""
    n, pairs = network
    found = broadcast(n, _links(pairs))
    split = found.split().everywhere()
    far = dict(nx.all_pairs_shortest_path_length(nx.DiGraph(pairs)))
    got, carried = {}, {}
    rows = (split.source, split.target, split.link, split.step, split.start, split.stop)
    for v, u, e, t, start, stop in zip(*(column.tolist() for column in rows), strict=True):
        w = pairs[e][0]
        assert pairs[e][1] == u
        assert far[v][w] == t == far[v][u] - 1
        got.setdefault((v, u), []).extend(range(start, stop))
        carried[e, t] = carried.get((e, t), 0) + stop - start
    assert set(got) == {(v, u) for v in range(n) for u in range(n) if u != v}
    assert all(sorted(parts) == list(range(split.pieces)) for parts in got.values())
    assert all(Fraction(most, split.pieces) <= found.loads[t] for (_, t), most in carried.items())
    assert split.bandwidth_time() == found.bandwidth()
    single = split.single_pieces()
    assert (single.stop - single.start == 1).all()
    assert (single.count_pieces() == split.count_pieces()).all()


@given(networks())
@settings(deadline=None, max_examples=40)
def test_distances(network):
    """Diameter and sum of distances are those of networkx."""
    n, pairs = network
    graph = nx.DiGraph(pairs)
    found = graph_of(range(n), _links(pairs))
    assert found.steps == nx.diameter(graph) == broadcast(n, _links(pairs)).steps
    assert found.distance_sum == sum(sum(row.values()) for _, row in nx.all_pairs_shortest_path_length(graph))


@pytest.mark.parametrize("n", [9, 10, 301])
def test_rings_are_optimal(n):
    """A ring of n takes floor(n / 2) steps and (n - 1)/n."""
    found = broadcast(n, _circulant(n, (1, -1)))
    assert (found.steps, found.bandwidth(2)) == (n // 2, Fraction(n - 1, n))


def test_the_circulant_that_refutes_conjecture_1():
    """C(15, {1, 4, 5}) takes T_B = 1 and not 14/15, although it is circulant: 6 shards must come over 4 links in step
    2."""
    found = broadcast(15, _circulant(15, (1, -1, 4, -4, 5, -5)))
    assert found.loads == (1, Fraction(3, 2))
    assert found.bandwidth(6) == 1


@given(st.integers(7, 60), st.data())
@settings(deadline=None, max_examples=60)
def test_circulants_of_degree_4_are_optimal(n, data):
    """Conjecture 1 holds for two offsets, as the paper proves."""
    a, b = data.draw(st.lists(st.integers(1, (n - 1) // 2), min_size=2, max_size=2, unique=True))
    assume(np.gcd.reduce([n, a, b]) == 1)
    assert broadcast(n, _circulant(n, (a, -a, b, -b))).bandwidth(4) == Fraction(n - 1, n)


def test_disconnected_networks_are_refused():
    """A network with an unreachable node has no broadcast, and the error names the nodes."""
    with pytest.raises(InputError, match="node 0 has no link into it"):
        broadcast(2, [(0, 1)])
    with pytest.raises(InputError, match="data cannot get from node 2 to node 0"):
        broadcast(4, [(0, 1), (1, 0), (2, 3), (3, 2)]).steps  # noqa: B018


def test_too_many_pairs_are_refused(monkeypatch):
    """A large network that does not look the same from every node is refused before memory is taken."""
    monkeypatch.setattr(module, "MAX_PAIRS", 100)
    line = [(i, i + 1) for i in range(10)]
    with pytest.raises(Unsupported, match="121 pairs of nodes"):
        broadcast(11, line + [(b, a) for a, b in line]).steps  # noqa: B018


def test_too_many_pieces_are_refused():
    """Numbers of pieces that 64 bits do not hold are told."""
    with pytest.raises(Unsupported, match="a shard would have"):
        broadcast(3, _circulant(3, (1,))).split(2**62)


@pytest.mark.parametrize("n", [30, 100])
def test_any_number_of_links(n):
    """A complete graph takes one step, however many links a node has."""
    found = broadcast(n, [(u, v) for u in range(n) for v in range(n) if u != v])
    assert (found.steps, found.bandwidth()) == (1, Fraction(n - 1, n))
