"""TTO: three trees on meshes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.outcome import Status
from cwb.core.topology import Topology
from cwb.heuristics.tto import METHOD, mesh_sides, three_trees
from cwb.instances import load
from cwb.schedules import verdict_of
from hypothesis import given, settings
from hypothesis import strategies as st


def make_instance(network, size=2**24, chunks=1):
    return load(network).with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(size), chunks))


def run(instance, **options):
    return METHOD.run(instance, None, Budget(), METHOD.options.model_validate(options))


@settings(max_examples=50, deadline=None)
@given(st.integers(3, 9), st.integers(3, 9), st.booleans())
def test_no_neighbours_are_joined_by_more_than_two_trees(rows, columns, edge_roots):
    """On every mesh from 3 x 3 on there are three spanning trees, parents first, two at most on each edge, with roots
    where they are asked for."""
    topology = load(f"mesh({columns},{rows})").network
    assert mesh_sides(topology) in ((rows, columns), (columns, rows))
    trees = three_trees(topology, *mesh_sides(topology), edge_roots=edge_roots)
    used = Counter(frozenset((edge.child, edge.parent)) for tree in trees for edge in tree)
    assert max(used.values()) <= 2
    assert len(trees) == 3
    for tree in trees:
        root = tree[0].parent
        known = {root}
        for edge in tree:
            assert edge.parent in known
            known.add(edge.child)
        assert len(tree) == rows * columns - 1
        assert known == set(range(rows * columns))
        assert len([ends for ends in topology.link_ends if ends[0] == root]) < 4 or not edge_roots


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 6), st.integers(3, 6), st.integers(2, 6), st.sampled_from(["edge", "any"]))
def test_schedules_are_right_and_in_time(rows, columns, pieces, roots):
    """The verifier agrees with every schedule, and it takes no longer than its steps: L + 2 (K - 1)."""
    instance = make_instance(f"mesh({rows},{columns})", chunks=pieces)
    outcome = run(instance, roots=roots)
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert not verdict.violations
    assert outcome.status is Status.FEASIBLE
    assert outcome.metrics["pieces"] == pieces
    link = instance.network.links[0]
    step = float(link.latency_s + Fraction(2**24, 3 * pieces) / link.bandwidth_Bps)
    assert outcome.bound <= verdict.objective
    assert verdict.objective <= (outcome.metrics["piece_steps"] + 2 * (pieces - 1)) * step * (1 + 1e-9)


def test_three_by_three_is_nearly_at_the_bound():
    """Two thirds of the data's time on a link are what the bound of nine ranks together is; 8 GiB take 1 % more."""
    instance = make_instance("mesh(3,3)", size=2**33)
    outcome = run(instance)
    seconds = verdict_of(instance, outcome.answer, outcome.certificate).objective
    assert outcome.bound == pytest.approx(float(2 * Fraction(2**33) / 3 / instance.network.links[0].bandwidth_Bps))
    assert outcome.bound < seconds < 1.01 * outcome.bound


@pytest.mark.parametrize(
    ("network", "sides"),
    [
        ("mesh(3,4)", (3, 4)),
        ("mesh(4,3)", (4, 3)),
        ("mesh(2,6)", (2, 6)),
        ("line(5)", (1, 5)),
        ("torus(4,4)", None),
        ("ring(4)", None),
        ("star(9)", None),
        ("mesh(3,3,3)", None),
        ("complete(9)", None),
    ],
)
def test_meshes_are_recognized(network, sides):
    """Rows and columns of a mesh are found, up to which of them is which; other networks are none."""
    found = mesh_sides(load(network).network)
    assert found == sides or (sides is not None and found is not None and sorted(found) == sorted(sides))


def test_a_mesh_in_another_order_is_none():
    """Nodes must be numbered row by row."""
    topology = load("mesh(3,3)").network
    nodes = (topology.nodes[4], *topology.nodes[:4], *topology.nodes[5:])
    assert mesh_sides(Topology(nodes, topology.links)) is None


def test_a_reason_is_given():
    """Two rows are too few, and a torus is no mesh."""
    assert METHOD.supports(make_instance("mesh(3,3)")) is None
    assert "no room for three trees; expected at least 3 x 3" in str(METHOD.supports(make_instance("mesh(2,4)")))
    assert "not a 2D mesh" in str(METHOD.supports(make_instance("torus(4,4)")))
    assert "no links" in str(METHOD.supports(load("RI(4)_SW(2)")))


def test_pieces_are_those_asked_for():
    """The option goes before the collective's chunks; the default is many for large data, one for a byte."""
    assert run(make_instance("mesh(3,3)", chunks=5), pieces=7).metrics["pieces"] == 7
    assert run(make_instance("mesh(3,3)", size=1)).metrics["pieces"] == 1
    assert run(make_instance("mesh(3,3)", size=2**30)).metrics["pieces"] > 100
