"""Reasons for unsupported instances, and input errors for wrong options."""

from __future__ import annotations

from collections import Counter

import pytest
from cwb.algorithms.schedules.problem import MAX_SENDS, check_size, group_problems
from cwb.core.errors import InputError, Unsupported
from cwb.core.fabric import parse_fabric
from cwb.heuristics.textbook.lattice import Neighbours, find_cycle, find_lattice, is_cycle
from cwb.heuristics.textbook.trees import top_down, two_trees, two_trees_from_root
from cwb.instances import load
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("name", "network", "kind", "reason"),
    [
        ("rhd", "switch(6)", "all_gather", "6 ranks are not a power of two"),
        ("rhd", "switch(8)", "broadcast", "does not define broadcast"),
        ("swing", "mesh(4,4)", "all_reduce", "not a torus"),
        ("swing", "switch(4)", "all_reduce", "not a torus"),
        ("swing", "torus(4,6)", "all_reduce", "4x6 is not a power of two"),
        ("torus-rings", "complete(5)", "all_gather", "not a torus"),
        ("torus-rings", "torus(4,4)", "all_to_all", "does not define all_to_all"),
        ("dbt", "ring(4)", "all_gather", "does not define all_gather"),
        ("direct", "ring(2)", "point_to_point", "does not define point_to_point"),
    ],
)
def test_a_reason_is_given(textbook, pose, name, network, kind, reason):
    """The reason names what does not fit."""
    assert reason in str(textbook(name).supports(pose(network, kind)))


@pytest.mark.parametrize("name", ["torus-rings", "swing"])
def test_parts_of_a_torus_are_refused(textbook, pose, name):
    """Algorithms of tori need all ranks in order."""
    assert "all ranks" in str(textbook(name).supports(pose("torus(4,4)", "all_reduce", ranks=(0, 1, 2, 3))))


def test_instances_without_links_demand_or_data_are_refused(textbook, pose):
    """A fabric has no links, a bare network no collective, a single rank nobody to talk to, an empty collective no
    data."""
    ring = textbook("ring")
    assert "no collective" in str(ring.supports(load("ring(4)")))
    fabric = pose("ring(4)", "all_gather").with_changes(network=parse_fabric("RI(4)"))
    assert "no links" in str(ring.supports(fabric))
    assert "two ranks" in str(ring.supports(pose("ring(4)", "all_gather", ranks=(2,))))
    assert "no data" in str(ring.supports(pose("ring(4)", "all_gather", size=0)))


@pytest.mark.parametrize(
    ("name", "options", "place"),
    [
        ("ring", {"order": [0, 1, 2]}, "order"),
        ("ring", {"order": [0, 1, 2, 2]}, "order"),
        ("shifted-ring", {"strides": [1, 2]}, r"strides\[1\]"),
    ],
)
def test_wrong_options_are_input_errors(pose, solve_unchecked, name, options, place):
    """The error names the option and what is wrong with it."""
    with pytest.raises(InputError, match=place):
        solve_unchecked(name, pose("ring(4)", "all_gather"), **options)


def test_a_network_without_shifted_rings_is_unsupported(pose, solve_and_replay):
    """Without strides to find, the user has to give some; then they are routed."""
    posed = pose("torus(4,4)", "all_gather")
    with pytest.raises(Unsupported, match="no stride"):
        solve_and_replay("shifted-ring", posed)
    assert solve_and_replay("shifted-ring", posed, strides=[1, 3]).sends.hops.max() > 1


def test_a_given_ring_order_is_kept(pose, solve_and_replay):
    """The ring follows the ranks as given, wherever they start."""
    schedule = solve_and_replay("ring", pose("complete(4)", "all_gather"), order=[2, 0, 3, 1], ways="one-way")
    pairs = set(zip(schedule.sends.source.tolist(), schedule.sends.target.tolist(), strict=True))
    assert pairs == {(2, 0), (0, 3), (3, 1), (1, 2)}


def test_a_disconnected_network_is_unsupported(pose, solve_unchecked):
    """If no path leads to some rank, the message says so."""
    with pytest.raises(Unsupported, match="no path leads from"):
        solve_unchecked("direct", pose("line(2)", "all_gather").with_changes(network=cut_line()))


def cut_line():
    topology = load("line(4)").network
    links = tuple(link for link in topology.links if {link.source, link.target} != {"1", "2"})
    return type(topology)(topology.nodes, links)


def test_schedules_that_are_too_large_are_refused(pose, solve_unchecked):
    """The number of sends is checked before memory is taken."""
    with pytest.raises(Unsupported, match="sends"):
        solve_unchecked("direct", pose("mesh(71,71)", "all_reduce"))
    with pytest.raises(Unsupported, match=f"{MAX_SENDS + 1:,}"):
        check_size(MAX_SENDS + 1)


@pytest.mark.parametrize(
    ("name", "sends"),
    [("ring", 960), ("torus-rings", 1920), ("swing", 1920), ("direct", 480), ("dbt", 30), ("knomial", 30)],
)
def test_an_all_reduce_on_trees_is_counted_by_its_trees(monkeypatch, pose, solve_unchecked, name, sends):
    """The number of sends that is held against the limits is no larger than the algorithm's, in parts or on trees."""
    counted = []
    monkeypatch.setattr("cwb.heuristics.textbook.algorithm.check_size", lambda count, *_: counted.append(count))
    solve_unchecked(name, pose("torus(4,4)", "all_reduce"))
    assert counted[0] == sends <= counted[-1]


@pytest.mark.parametrize("name", ["ring", "torus-rings"])
def test_what_is_too_large_is_refused_before_it_is_built(name, pose, solve_unchecked, monkeypatch):
    """An algorithm that cuts the data into shares knows its sends before a bound is computed or a move is made."""
    monkeypatch.setattr("cwb.heuristics.textbook.algorithm.best_bound", pytest.fail)
    with pytest.raises(Unsupported, match="sends; expected at most 50,000,000; forestcoll has trees"):
        solve_unchecked(name, pose("torus(64,64)", "all_reduce", chunks=2000))


@pytest.mark.parametrize(
    "network",
    ["ring(5)", "torus(4,4)", "torus(3,4)", "torus(3,5,2)", "mesh(4,5)", "mesh(5,4)", "mesh(2,7)", "hypercube(4)",
     "torus(16,16,16)", "switch(7)", "dgx1()", "circulant(9,[2,3])", "torus(3,3)", "torus(3,5)", "switch2d(4,3)",
     "rfs3d(2,4,4)"],
)  # fmt: skip
def test_a_hamiltonian_cycle_is_found(pose, network):
    """The ring of these networks has neighbours alone."""
    problem = group_problems(pose(network, "all_gather"))[0]
    near = Neighbours(problem)
    cycle = find_cycle(problem, near)
    assert sorted(cycle) == list(range(problem.n))
    assert cycle[0] == 0
    assert is_cycle(cycle, near)


@pytest.mark.parametrize("network", ["line(5)", "mesh(3,3)"])
def test_without_a_hamiltonian_cycle_the_group_keeps_its_order(pose, solve_and_replay, network):
    """Without a Hamiltonian cycle, the ring follows the group's order over several links."""
    posed = pose(network, "all_gather")
    (problem,) = group_problems(posed)
    assert find_cycle(problem, Neighbours(problem)) == list(range(problem.n))
    assert solve_and_replay("ring", posed).sends.hops.max() > 1


@pytest.mark.parametrize(
    ("network", "sizes"),
    [
        ("torus(4,4)", (4, 4)),
        ("torus(2,3,4)", (2, 3, 4)),
        ("mesh(3,2)", (3, 2)),
        ("hypercube(3)", (2, 2, 2)),
        ("ring(6)", (6,)),
        ("torus(16,16,16)", (16, 16, 16)),
        ("complete(4)", None),
        ("complete(3)", (3,)),
        ("switch(4)", None),
        ("ring(6, bidirectional=false)", None),
        ("circulant(12,[1,5])", None),
    ],
)
def test_grids_are_recognized(network, sizes):
    """The sizes of a grid are read off its links; other networks are none."""
    lattice = find_lattice(load(network).network)
    assert (None if lattice is None else lattice.sizes) == sizes


@given(n=st.integers(2, 200))
def test_two_trees_share_no_inner_node(n):
    """Both are spanning trees of logarithmic depth with at most two children, and a rank is an inner node of at most
    one (Sanders et al.)."""
    for trees, exempt in ((two_trees(n), set()), (two_trees_from_root(n), {0})):
        inner = []
        for parent in trees:
            assert parent.count(-1) == 1
            assert sorted(top_down(parent)) == list(range(n))
            children = Counter(up for up in parent if up >= 0)
            assert max(children.values()) <= 2
            inner.append(set(children) - exempt)
        roots = {parent.index(-1) for parent in trees}
        assert inner[0] & inner[1] <= roots
