"""Changes of links, and the trees of an older plan: what is read, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.trees.network import to_wan
from cwb.core.errors import InputError, Unsupported
from cwb.core.trees import TreeKind, TreePacking
from cwb.harness import Request, run
from cwb.instances import load
from cwb.models.mtree.repair_input import change_network, describe_trees
from mtree_networks import instance


def repair_plan(asked, previous, changes, seed=0, **options):
    """Repair a plan."""
    return run(asked, Request("mtree-repair", options={"previous": previous, "changes": changes, **options}, seed=seed))


def test_changes_are_read():
    """A factor, a rate, traffic of others and a failure, for both directions, one after the other; a site's name may
    have hyphens."""
    asked = instance(3, [(0, 1, 100, 1), (1, 2, 80, 1), (0, 2, 60, 1)])
    network = change_network(asked, ["0-1=0.5", "2-1=20 Mb/s", "0-2=-10 Mb/s", "0-1=0.5"]).network
    assert [int(link.bandwidth_Bps * 8 / 10**6) for link in network.links] == [25, 25, 20, 20, 50, 50]
    assert len(change_network(asked, ["0-1=0", "0-2=-60 Mb/s"]).network.links) == 2
    from cwb.core.topology import Link, Node, Topology

    names = ("a-b", "c", "a")
    links = tuple(Link(x, y, Fraction(8)) for x, y in (("a-b", "c"), ("c", "a-b"), ("a", "c"), ("c", "a")))
    hyphens = asked.with_changes(network=Topology(tuple(map(Node, names)), links))
    assert [link.bandwidth_Bps for link in change_network(hyphens, ["a-b-c=0.5"]).network.links] == [4, 4, 8, 8]


@pytest.mark.parametrize("text", ["0-1", "0-1=", "0-7=0.5", "=0.5", "0-1=fast", "0-1=-0.5", "0-1=--1 Mb/s", "0-1=1e9"])
def test_bad_changes_are_told(text):
    """A malformed change is an input error with its place and the expectation."""
    with pytest.raises(InputError, match=r"-O: changes\[1\]: .*a-b=0.5"):
        change_network(instance(2, [(0, 1, 1, 1)]), ["0-1=1", text])


def test_a_fabric_has_no_links_to_change():
    """Dimensions are no explicit network."""
    with pytest.raises(Unsupported):
        change_network(load("RI(4)_SW(2)"), ["0-1=0"])


@pytest.mark.parametrize(
    ("previous", "problem"),
    [
        ([], "missing"),
        ([{"links": [["0", "1", 0]], "root": "0"}], "no spanning tree"),
        ([{"links": [["0", "1", 0], ["0", "1", 1]], "root": "0"}], "no spanning tree"),
        ([{"links": [["0", "1", 0], ["1", "x", 0]], "root": "0"}], "unknown site 'x'"),
        ([{"links": [["0", "1", 0], ["1", "2", 0]], "root": "9"}], "unknown site '9'"),
        ([{"links": [["0", "1"]], "root": "0"}], "previous"),
    ],
)
def test_bad_plans_are_told(previous, problem):
    """An old tree that is none is an input error."""
    with pytest.raises(InputError, match=problem):
        repair_plan(instance(3, [(0, 1, 1, 1), (1, 2, 1, 1)]), previous, [])


def test_trees_of_paths_are_no_plan():
    """Trees whose edges take several links are refused, since it is links that fail."""
    asked = instance(3, [(0, 1, 1, 1), (1, 2, 1, 1)])
    two = np.array([0, 2])
    column = np.array([0])
    packing = TreePacking(
        asked.sha256, TreeKind.OUT, column, column + 1, Fraction(1),
        np.array([0, 1]), column, column + 2, two, np.array([0, 2]),
    )  # fmt: skip
    with pytest.raises(InputError, match="edges of several links"):
        describe_trees(to_wan(asked), packing)
