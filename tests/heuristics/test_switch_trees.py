"""Trees over switches that add and copy, chosen by prices."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.harness import Request, run_one
from cwb.harness.run import run
from cwb.heuristics.innetwork import join_all, tree_edges
from cwb.instances import load
from cwb.schedules.collective import exact_bound
from cwb.schedules.verify import heaviest_load
from draws import draws
from hypothesis import given, settings
from test_hubs import best_by_trees, switched_networks

SHARP = load("sharp").network
REDUCE = Demand(Collective.ALL_REDUCE, Fraction(10**9))


@pytest.mark.parametrize(
    ("expression", "rate"),
    [
        ("sharp", Fraction(1)),
        ("dgx_h100(boxes=2, nvls=true)", Fraction(400)),
        ("nvl72(gpus=12, planes=18, nvls=true)", Fraction(900)),
        ("fat_tree(4, bandwidth='50 GB/s', multicast=true)", Fraction(50)),
    ],
)
def test_the_optimum_on_machines(expression, rate):
    """The trees are as fast as a cut or a partition allows, and verified; every tree takes one of several planes."""
    instance = load(expression).with_changes(demand=REDUCE)
    done = run(instance, Request("switch-trees"))
    assert (done.record.status, done.record.verified) == ("optimal", True)
    assert heaviest_load(instance, done.answer) == exact_bound(instance, done.certificate) == 1 / rate


def test_hundreds_of_ranks_without_a_solver():
    """On 16 boxes, whose NICs limit the trees, they are within two per cent of the bound."""
    record = run_one(load("dgx_h100(boxes=16, nvls=true)").with_changes(demand=REDUCE), Request("switch-trees"))
    assert record.verified
    assert record.bound <= record.objective <= record.bound * 1.02


@settings(max_examples=draws(10), deadline=None)
@given(topology=switched_networks(two_way=True))
def test_no_better_than_the_best_trees(topology):
    """On small networks the trees are right, and between the best of all trees and twice their time."""
    instance = load("sharp").with_changes(network=topology, demand=REDUCE)
    record = run_one(instance, Request("switch-trees"))
    if record.status == "unsupported":
        assert not any(node.copies and node.adds for node in topology.nodes[3:])
        return
    assert record.verified
    best = best_by_trees(topology, 10**9)
    assert record.bound <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= record.objective <= 2 * best


def test_edges_lead_through_what_only_passes_on():
    """Ranks of one rail are joined through its switch, with the links back in the opposite order."""
    topology = load("dgx_h100(boxes=2, rails=8, nvls=true)").network
    edges = tree_edges(topology)
    assert (edges.ranks, edges.nodes) == (16, 26)
    hops = np.diff(edges.offset)
    assert sorted(hops.tolist()) == [1] * 16 + [2] * 8
    for edge in np.flatnonzero(hops == 2).tolist():
        links = edges.forth[edges.offset[edge] : edges.offset[edge + 1]].tolist()
        back = edges.back[edges.offset[edge] : edges.offset[edge + 1]].tolist()
        assert [topology.link_ends[link][::-1] for link in links[::-1]] == [topology.link_ends[link] for link in back]


def test_edges_that_share_no_link_come_first():
    """Of four nodes joined pairwise over ports, a tree takes edges of unused ports before it takes a port again."""
    tail, head = (np.array(ends) for ends in ([0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]))
    order, offset = np.arange(6), np.arange(0, 14, 2)
    links = np.stack([tail, head], axis=1).ravel()  # the ports of both ends
    columns = order, tail, head, offset, links, links + 4, np.ones(8, dtype=np.int64)
    assert join_all.py_func(*columns, 4).tolist() == [0, 5, 1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"demand": Demand(Collective.ALL_GATHER, Fraction(1))}, "does not define all_gather"),
        ({"demand": Demand(Collective.ALL_REDUCE, Fraction(1), ranks=(0, 1))}, "it is for all ranks"),
        ({"network": load("star(4)").network}, "no switch of the network adds and copies"),
        (
            {"network": replace(SHARP, links=(*SHARP.links, replace(SHARP.links[0], target="1")))},
            "has no opposite link",
        ),
    ],
)
def test_a_reason_is_given(change, reason):
    """Unsupported instances are refused in one line."""
    record = run_one(load("sharp").with_changes(**change), Request("switch-trees"))
    assert (record.status, record.exit_status) == ("unsupported", 7)
    assert reason in record.message


def test_ranks_that_are_not_joined_are_bad_input():
    """A rank without links is an error of the network."""
    alone = load("sharp").with_changes(network=replace(SHARP, links=SHARP.links[2:]))
    with pytest.raises(InputError, match="data must leave rank 0, but no link does"):
        run_one(alone, Request("switch-trees"))
