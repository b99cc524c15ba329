"""Theorem 19 against brute force, and the transport that attains it."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import ceil

import networkx as nx
import numpy as np
from cwb.algorithms.breadth_first.kernels import least_load, place
from hypothesis import given, settings
from hypothesis import strategies as st

LINKS = 5
SETS = [frozenset(chosen) for size in range(1, LINKS + 1) for chosen in combinations(range(LINKS), size)]


@st.composite
def problems(draw):
    """Draw classes: the links that each can come over, and its number of shards."""
    classes = draw(st.lists(st.sampled_from(SETS), min_size=1, max_size=8, unique=True))
    return {links: draw(st.integers(1, 9)) for links in classes}


def arrays(problem, links=LINKS):
    over = np.array([[i in row for i in range(links)] for row in problem])
    return over, np.array(list(problem.values()))


def load(problem, least=Fraction(0), links=LINKS):
    above, below = least_load(*arrays(problem, links), np.int64(least.numerator), np.int64(least.denominator))
    return Fraction(int(above), int(below))


def sent_pieces(problem, pieces, capacity):
    """Pieces of every class on every link, and the links that are too few."""
    over, counts = arrays(problem)
    sent = np.empty(over.shape, dtype=np.int64)
    stuck = place(over, counts, capacity, pieces, sent)
    return sent, frozenset(np.flatnonzero(stuck).tolist())


def brute_force(problem):
    """Every set of links, one after the other."""
    return max(Fraction(sum(n for row, n in problem.items() if row <= chosen), len(chosen)) for chosen in SETS)


@given(problems())
@settings(deadline=None)
def test_the_load_is_brute_force(problem):
    """Newton's method on cuts gives the largest quotient of all sets of links; a load that is enough stays."""
    assert load(problem) == brute_force(problem)
    assert load(problem, Fraction(100)) == 100
    assert load(problem, Fraction(1, 7)) == max(brute_force(problem), Fraction(1, 7))


def test_there_is_no_limit_to_the_links():
    """A hundred links, of which one alone has to bring two shards of five."""
    assert load({frozenset({99}): 2, frozenset({3, 99}): 3}, links=100) == Fraction(5, 2)
    assert load({frozenset({99}): 2, frozenset(range(100)): 3}, links=100) == 2


@given(problems(), st.integers(1, 12))
@settings(deadline=None)
def test_the_load_in_pieces_is_the_next_whole_number_and_not_less(problem, pieces):
    """Shards in P pieces need ceil(P U) on the busiest link; with one less, a set of links is named that is too
    small."""
    best = ceil(pieces * brute_force(problem))
    sent, stuck = sent_pieces(problem, pieces, best)
    assert not stuck
    for (links, count), row in zip(problem.items(), sent, strict=True):
        assert row.sum() == count * pieces
        assert row.min() >= 0
        assert set(np.flatnonzero(row).tolist()) <= links
    assert sent.sum(axis=0).max() <= best
    _, stuck = sent_pieces(problem, pieces, best - 1)
    assert sum(n * pieces for links, n in problem.items() if links <= stuck) > (best - 1) * len(stuck)


@given(problems(), st.integers(1, 30))
@settings(deadline=None)
def test_the_transport_sends_as_much_as_the_maximum_flow(problem, capacity):
    """The transport sends everything exactly if the maximum flow of another library does."""
    network = nx.DiGraph()
    for c, (links, count) in enumerate(problem.items()):
        network.add_edge("source", f"class {c}", capacity=count)
        network.add_edges_from((f"class {c}", link) for link in links)
    network.add_edges_from(((link, "sink") for link in range(LINKS)), capacity=capacity)
    everything = nx.maximum_flow_value(network, "source", "sink") == sum(problem.values())
    assert (not sent_pieces(problem, 1, capacity)[1]) == everything


def test_the_example_of_figure_5():
    """Two shards over links {1, 2} and {2, 3}: every link carries 2/3 of a shard."""
    assert load({frozenset({0, 1}): 1, frozenset({1, 2}): 1}) == Fraction(2, 3)
