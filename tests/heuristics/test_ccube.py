"""C-Cube: two binary trees on the wires of eight ranks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from cwb.algorithms.schedules.problem import parallel_uses
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import Unsupported
from cwb.core.outcome import Status
from cwb.core.topology import Link, Topology
from cwb.heuristics import ccube
from cwb.heuristics.ccube import METHOD, TreeSearch, two_trees, wires_of
from cwb.instances import load
from cwb.schedules import verdict_of
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st


def make_instance(network="dgx1()", size=2**24, chunks=1):
    base = load(network) if isinstance(network, str) else load("dgx1()").with_changes(network=network)
    return base.with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(size), chunks))


def run(instance, **options):
    return METHOD.run(instance, None, Budget(), METHOD.options.model_validate(options))


def box(pairs):
    """Eight ranks with two-way links of so many wires between some of them."""
    nodes = load("dgx1()").network.nodes
    rate = Fraction(25 * 10**9)
    links = [
        Link(nodes[a].name, nodes[b].name, rate * wires, Fraction(7, 10**7))
        for (i, j), wires in pairs.items()
        for a, b in ((i, j), (j, i))
    ]
    return Topology(nodes, tuple(links))


#: A tree of the shape of double binary trees, without the edge (2, 4); wires that a detour through rank 0 can take; and
#: a second tree.
FIRST = [(1, 0), (2, 1), (3, 1), (5, 2), (6, 3), (7, 3)]
DETOUR = [(4, 0), (0, 2)]
SECOND = [(4, 5), (6, 4), (7, 4), (0, 6), (1, 6), (2, 7), (3, 7)]


def is_binary_spanning_tree(edges, wires_only=None):
    children = Counter(edge.parent for edge in edges)
    root = ({edge.parent for edge in edges} - {edge.child for edge in edges}).pop()
    return sorted([root, *(edge.child for edge in edges)]) == list(range(8)) and max(children.values()) <= 2


def test_trees_on_a_dgx1():
    """On a DGX-1 there are two binary spanning trees without a detour, no wire has two edges, and nobody is an inner
    node of both."""
    topology = load("dgx1()").network
    trees, detours = two_trees(topology)
    assert detours == 0
    assert all(is_binary_spanning_tree(tree) for tree in trees)
    inner = [{edge.parent for edge in tree} for tree in trees]
    assert not inner[0] & inner[1]
    load_of = Counter(link for tree in trees for edge in tree for link in edge.up + edge.down)
    assert all(count <= parallel_uses(topology)[link] for link, count in load_of.items())
    assert sum(load_of.values()) == 2 * 14


@pytest.mark.parametrize("size", [2**10, 2**20, 2**30])
def test_the_schedule_takes_the_time_of_the_formula(size):
    """The verifier agrees with the schedule; with 6 steps up and down, it takes at most (6 + K - 1) (a + S / (2 K
    b))."""
    instance = make_instance(size=size)
    outcome = run(instance)
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert not verdict.violations
    assert outcome.status is Status.FEASIBLE
    assert outcome.metrics["piece_steps"] == 6
    pieces = outcome.metrics["pieces"]
    formula = (6 + pieces - 1) * (0.7e-6 + size / (2 * pieces * 25e9))
    assert outcome.bound <= verdict.objective <= formula * (1 + 1e-9)


def test_large_messages_use_two_of_six_wires():
    """Of 8 GiB, both trees take S / (2 b) each at the same time, within 1 %: 57 % of what the bound would allow."""
    instance = make_instance(size=2**33)
    outcome = run(instance)
    seconds = verdict_of(instance, outcome.answer, outcome.certificate).objective
    assert seconds == pytest.approx(2**33 / 50e9, rel=0.01)
    assert outcome.bound / seconds == pytest.approx(50 / (6 * 25 * 8 / 14), rel=0.01)


def test_an_edge_without_a_wire_makes_a_detour():
    """If a tree must pass through a third rank, one detour is found, and the schedule is valid."""
    pairs = Counter(tuple(sorted(pair)) for pair in (*FIRST, *DETOUR, *SECOND))
    instance = make_instance(box(pairs))
    trees, detours = two_trees(instance.network)
    assert detours == 1
    assert sorted(len(edge.up) for tree in trees for edge in tree) == [1] * 13 + [2]
    outcome = run(instance)
    assert outcome.metrics["detours"] == 1
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations


def test_parallel_links_are_wires():
    """The same box with two links of one wire in place of one of two has the same trees and time."""
    topology = load("dgx1()").network
    rate = min(link.bandwidth_Bps for link in topology.links)
    links = [
        replace(link, bandwidth_Bps=rate) for link in topology.links for _ in range(int(link.bandwidth_Bps // rate))
    ]
    instance = make_instance(Topology(topology.nodes, tuple(links)))
    outcome = run(instance)
    assert outcome.metrics["detours"] == 0
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert not verdict.violations
    whole = make_instance()
    assert verdict.objective == pytest.approx(verdict_of(whole, run(whole).answer).objective, rel=0.05)


@settings(max_examples=draws(25), deadline=None)
@given(st.randoms(use_true_random=False), st.integers(14, 24))
def test_on_random_boxes(rng, wires):
    """Whatever the wires, either two trees that fit are found and the verifier agrees with the schedule, or the method
    says that there are none."""
    every = [(a, b) for a in range(8) for b in range(a)]
    pairs = Counter(rng.choice(every) for _ in range(wires))
    path = list(range(8))
    rng.shuffle(path)
    pairs.update((max(a, b), min(a, b)) for a, b in pairwise(path))
    instance = make_instance(box(pairs), size=2**16, chunks=3)
    try:
        outcome = run(instance)
    except Unsupported:
        return
    assert outcome.metrics["pieces"] == 3
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations


def test_a_ring_is_refused_in_one_line():
    """Eight ranks in a ring have wires for one tree only."""
    with pytest.raises(
        Unsupported, match=r"no two trees without a shared wire were found; expected a network such as dgx1\(\)"
    ):
        run(make_instance("ring(8)"))


def test_the_search_is_bounded(monkeypatch):
    """A search that would take too long ends without trees."""
    monkeypatch.setattr(ccube, "EFFORT", 3)
    assert TreeSearch(wires_of(load("dgx1()").network), 0).find() is None


def test_a_reason_is_given():
    """More ranks, switches, and other collectives do not fit."""
    assert METHOD.supports(make_instance()) is None
    assert "expected dgx1()" in str(METHOD.supports(make_instance("torus(4,4)")))
    assert "1 switches" in str(METHOD.supports(make_instance("star(8)")))
    assert "no links" in str(METHOD.supports(load("RI(4)_SW(2)")))


def test_pieces_are_those_asked_for():
    """The option goes before the collective's chunks, and those before the formula."""
    assert run(make_instance(chunks=5), pieces=7).metrics["pieces"] == 7
    assert run(make_instance(chunks=5)).metrics["pieces"] == 5
