"""Parallel links: any link there goes together with any link back, in trees, bounds, models and repairs."""

from fractions import Fraction
from pathlib import Path

import pytest
from cwb.algorithms.trees.bounds import strength
from cwb.algorithms.trees.network import to_wan
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, Topology
from cwb.harness import Request, run
from cwb.instances import load
from cwb.models.mtree.repair_input import PreviousTree, change_network, describe_trees, survivors

SAMPLE = Path(__file__).parents[2] / "reference/defects3/mtree_parallel_infeasible.json"


def sites(*links):
    """An all-reduce of 1 GB; links as source, target, B/s and milliseconds."""
    names = sorted({name for link in links for name in link[:2]})
    made = tuple(Link(a, b, Fraction(rate), Fraction(late, 1000)) for a, b, rate, late in links)
    demand = Demand(Collective.ALL_REDUCE, Fraction(10**9))
    return Instance("case", Topology(tuple(Node(name) for name in names), made), demand)


@pytest.mark.parametrize(
    ("method", "options", "seconds"),
    [
        ("mtree", {"height": "182 ms"}, 1000 / 3),
        ("mtree", {"height": "238 ms"}, 1000 / 3),
        ("mtree", {"height": "239 ms"}, 125),
        ("mtree", {"trees": 1}, 200),
        ("mtree", {"trees": 2}, 125),
        ("mtree", {"min_rate": "4 MB/s"}, 200),
        ("gost", {"height": "182 ms", "height_test": "radius", "grth": "corrected", "min_rate": "1 MB/s"}, 1000 / 3),
        ("gost", {"trees": 2, "min_rate": "1 MB/s"}, 125),
        ("topoadopt", {"trees": 2}, 125),
        ("single-tree", {}, 200),
    ],
)
def test_sample(method, options, seconds):
    """One link there of 8 MB/s, and two back, of which the slower one is nearer."""
    record = run(load(SAMPLE), Request(method, options=options)).record
    assert record.verified, record.message
    assert record.objective == pytest.approx(seconds)


def test_too_low_is_infeasible():
    """Below the latency of the nearer link back there is no tree."""
    assert run(load(SAMPLE), Request("mtree", options={"height": "110 ms"})).record.status == "infeasible"


@pytest.mark.parametrize("name", ["selection", "rates", "patterns"])
def test_declared_models_have_all_pairs(name):
    """The declared models reach what the method does."""
    options = {"trees": 2} if name != "rates" else {}
    record = run(load(SAMPLE), Request(f"mtree/{name}", options=options)).record
    assert record.objective == pytest.approx(125)


def test_equal_links_stay_pairs():
    """If every link has an equal reverse link, in any order, no further pair is made."""
    fast, near = (9, 20), (4, 5)
    wan = to_wan(sites(*(("a", "b", *one) for one in (fast, near)), *(("b", "a", *one) for one in (near, fast))))
    assert (len(wan), wan.has_shared_links, wan.balanced) == (2, False, True)
    assert sorted(wan.latency_ns.tolist()) == [5 * 10**6, 20 * 10**6]


def test_strength_counts_all_links():
    """Trees carry together the less of what all links there and all links back do."""
    wan = to_wan(sites(("a", "b", 8, 1), ("b", "a", 5, 1), ("b", "a", 3, 2)))
    assert wan.has_shared_links
    assert strength(wan).rate * wan.unit_Bps == 8


def test_trees_of_old_and_new_files():
    """A link is written with its place there and back; with one number it is a pair by falling bandwidth."""
    asked = sites(("a", "b", 8, 1), ("b", "a", 3, 2), ("b", "a", 5, 9))
    wan = to_wan(asked)
    new = [PreviousTree(links=(("a", "b", 0, k),), root="a") for k in (0, 1)]
    old = PreviousTree(links=(("a", "b", 0),), root="a")
    rows = survivors(wan, [*new, old]).trees[:, 0].tolist()
    assert [int(wan.back[e]) for e in rows] == [1, 2, 2]
    assert len(survivors(wan, [PreviousTree(links=(("a", "b", 1),), root="a")]).trees) == 0


def test_plan_is_kept_by_its_repair():
    """A repair without a change keeps both trees, though they have the link there in common."""
    asked = load(SAMPLE)
    done = run(asked, Request("mtree", options={"trees": 2}))
    previous = [tree.model_dump() for tree in describe_trees(to_wan(asked), done.answer)]
    assert sorted(link for tree in previous for link in tree["links"]) == [("0", "1", 0, 0), ("0", "1", 0, 1)]
    record = run(asked, Request("mtree-repair", options={"previous": previous, "new_trees": 0})).record
    assert record.verified
    assert (record.metrics["kept_trees"], record.objective) == (2, pytest.approx(125))


def test_tree_keeps_its_link_where_a_parallel_one_failed():
    """Of two parallel links the narrow one fails: the tree over the other survives, not the one that used it."""
    both = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")]
    asked = sites(*((*ends, rate, 1) for rate in (10, 50) for ends in both))
    done = run(asked, Request("mtree", options={"trees": 2}))
    assert done.record.objective == pytest.approx(10**9 / 60)
    changes = ["a-b=-20 B/s"]
    previous = [tree.model_dump() for tree in describe_trees(to_wan(asked), done.answer, changes)]
    options = {"previous": previous, "changes": changes, "new_trees": 0}
    record = run(asked, Request("mtree-repair", options=options)).record
    assert record.objective == pytest.approx(10**9 / 30)
    assert (record.metrics["old_trees"], record.metrics["surviving_trees"]) == (2, 1)


def test_crossed_pair_of_an_old_plan_is_kept():
    """Links that need no other pair are in one all the same where an old tree has it."""
    asked = sites(("a", "b", 9, 1), ("a", "b", 4, 1), ("b", "a", 9, 1), ("b", "a", 4, 1))
    assert not to_wan(asked).has_shared_links
    previous = [{"links": [["a", "b", 0, 1]], "root": "a"}]
    record = run(asked, Request("mtree-repair", options={"previous": previous, "new_trees": 0})).record
    assert record.objective == pytest.approx(10**9 / 4)
    assert record.metrics["kept_trees"] == 1


def test_what_has_failed_stays_failed():
    """A share of a link that has failed is nothing; only a bandwidth brings it back."""
    asked = sites(("a", "b", 8, 1), ("b", "a", 8, 1), ("a", "c", 6, 1), ("c", "a", 6, 1))
    rate = {text: [link.bandwidth_Bps for link in change_network(asked, ["a-b=0", text]).topology.links]
            for text in ("a-b=0.5", "a-b=-1 B/s", "a-b=3 B/s")}  # fmt: skip
    assert rate == {"a-b=0.5": [6, 6], "a-b=-1 B/s": [6, 6], "a-b=3 B/s": [3, 3, 6, 6]}
