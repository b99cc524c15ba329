"""Theorem 19 against brute force, and the transport that attains it."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import networkx as nx
from cwb.models.bfb.balance import largest_load, load_by_cuts, loads, loads_by_counts, transport
from cwb.models.bfb.jobs import Problem
from hypothesis import given
from hypothesis import strategies as st

LINKS = 5


@st.composite
def problems(draw) -> Problem:
    masks = draw(st.lists(st.integers(1, 2**LINKS - 1), min_size=1, max_size=8, unique=True))
    return Problem(tuple(masks), tuple(draw(st.integers(1, 9)) for _ in masks))


def brute_force(problem: Problem) -> Fraction:
    """Every set of links, one after the other."""
    rows = list(zip(problem.masks, problem.counts, strict=True))
    return max(
        Fraction(sum(count for mask, count in rows if mask & w == mask), w.bit_count()) for w in range(1, 2**LINKS)
    )


@given(problems())
def test_both_ways_to_the_load_are_brute_force(problem):
    """The subset-sum transform and Newton's method on cuts give the largest quotient of all sets of links."""
    expected = brute_force(problem)
    assert loads_by_counts([problem], LINKS) == [expected]
    assert load_by_cuts(problem) == expected
    assert load_by_cuts(problem, Fraction(100)) == 100


@given(st.lists(problems(), min_size=1, max_size=6))
def test_the_largest_of_several_is_their_maximum(several):
    """Problems together give what each of them gives alone; a problem of many links beside them too."""
    wide = Problem((1 << 20 | 1, 1 << 20), (3, 2))
    assert loads([*several, wide]) == [*map(brute_force, several), Fraction(5, 2)]
    assert largest_load([*several, wide]) == max(*map(brute_force, several), Fraction(5, 2))


@given(problems(), st.integers(1, 12))
def test_the_load_in_pieces_is_the_next_whole_number_and_not_less(problem, pieces):
    """Shards in P pieces need ceil(P U) on the busiest link; with one less, a set of links is named that is too small."""
    best = ceil(pieces * brute_force(problem))
    sent, stuck = transport(problem, pieces, best)
    assert stuck is None
    for mask, count, row in zip(problem.masks, problem.counts, sent, strict=True):
        assert sum(row.values()) == count * pieces
        assert all(mask >> link & 1 and amount >= 0 for link, amount in row.items())
    assert max(sum(row.get(link, 0) for row in sent) for link in range(LINKS)) <= best
    _, stuck = transport(problem, pieces, best - 1)
    assert stuck is not None
    rows = zip(problem.masks, problem.counts, strict=True)
    assert sum(count * pieces for mask, count in rows if mask & ~stuck == 0) > (best - 1) * stuck.bit_count()


@given(problems(), st.integers(1, 30))
def test_the_transport_sends_as_much_as_the_maximum_flow(problem, capacity):
    """Whether everything can be sent is what another library's maximum flow says."""
    network = nx.DiGraph()
    for mask, count in zip(problem.masks, problem.counts, strict=True):
        network.add_edge("source", mask << 10, capacity=count)
        network.add_edges_from((mask << 10, link) for link in range(LINKS) if mask >> link & 1)
    network.add_edges_from(((link, "sink") for link in range(LINKS)), capacity=capacity)
    everything = nx.maximum_flow_value(network, "source", "sink") == sum(problem.counts)
    assert (transport(problem, 1, capacity)[1] is None) == everything


def test_the_example_of_figure_5():
    """Two shards over links {1, 2} and {2, 3}: every link carries 2/3 of a shard."""
    assert loads([Problem((0b011, 0b110), (1, 1)), Problem((), ())]) == [Fraction(2, 3), 0]
