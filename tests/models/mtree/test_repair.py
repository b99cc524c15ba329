"""Plans on networks that have changed: against brute force on small networks, and what users write."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np
import pytest
from click.testing import CliRunner
from cwb.algorithms.trees.network import to_wan
from cwb.algorithms.trees.trees import RatedTrees
from cwb.cli.failures import repair
from cwb.core.errors import InputError
from cwb.harness import Request, run
from cwb.instances import load
from cwb.models.mtree import repair as repair_method
from cwb.models.mtree.repair import grafts
from cwb.models.mtree.repair_input import PreviousTree, change_network, describe_trees, survivors
from cwb.schedules.files import write_schedule
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from mtree_networks import all_trees, best_rate, height, instance, random_edges

seeds = st.integers(0, 10**6)


def mbits(record, name="allreduce_rate_Bps"):
    """A rate of a record in Mb/s."""
    return record.metrics[name] * 8e-6


def plan(asked, **options):
    """The trees of a plan, as the option takes them."""
    done = run(asked, Request("mtree", options=options))
    return [tree.model_dump() for tree in describe_trees(to_wan(asked), done.answer)]


def repair_plan(asked, previous, changes, seed=0, **options):
    """Repair a plan."""
    return run(asked, Request("mtree-repair", options={"previous": previous, "changes": changes, **options}, seed=seed))


def a_case(seed, nodes=5, parallel=False):
    """A network, a plan for it, changes, and what is left: links that trees of all links may use."""
    source = Random(seed)  # noqa: S311
    edges = random_edges(nodes, 4, seed)
    if not parallel:
        seen: dict[frozenset[int], tuple[int, int, int, int]] = {frozenset(edge[:2]): edge for edge in edges[::-1]}
        edges = list(seen.values())[::-1]
    asked = instance(nodes, edges)
    previous = plan(asked, trees=2)
    changes, now = [], [Fraction(edge[2]) for edge in edges]
    for a, b in {tuple(sorted(edge[:2])) for edge in source.sample(edges, 2)}:
        factor = source.choice([Fraction(0), Fraction(1, 2), Fraction(1, 4)])
        changes.append(f"{a}-{b}={float(factor)}")
        now = [rate * factor if {a, b} == set(edge[:2]) else rate for rate, edge in zip(now, edges, strict=True)]
    left = [(a, b, rate, ms) for (a, b, _, ms), rate in zip(edges, now, strict=True) if rate]
    return asked, previous, changes, left


def best_of(left, trees, old, most, in_all=None):
    """Largest sum of rates of the old trees and at most so many others: every choice is tried."""
    others = [tree for tree in trees if tree not in old]
    best = 0.0
    for fresh in combinations(others, min(most, len(others))):
        every = [*old, *fresh]
        few = len(every) if in_all is None else min(in_all, len(every))
        best = max([best, *(best_rate(left, chosen) for chosen in combinations(every, few) if chosen)])
    return best


def rows_of(asked, changes, previous):
    """The old trees that are left, as links of the changed network."""
    wan = to_wan(change_network(asked, changes))
    ends = list(zip(wan.tail.tolist(), wan.head.tolist(), strict=True))
    return ends, [
        tuple(row) for row in survivors(wan, [PreviousTree.model_validate(t) for t in previous]).trees.tolist()
    ]


@settings(max_examples=draws(10), deadline=None)
@given(seeds, st.integers(0, 2))
def test_the_best_repair_is_found_and_proved(seed, most):
    """Of all choices of new trees none is better, the status says so, and the re-rated old plan is that of a linear
    program."""
    asked, previous, changes, left = a_case(seed)
    trees = all_trees(5, left)
    if not trees:
        with pytest.raises(InputError, match="no path of links"):
            repair_plan(asked, previous, changes)
        return
    ends, old = rows_of(asked, changes, previous)
    assert [tuple(sorted(pair)) for pair in ends] == [tuple(sorted(edge[:2])) for edge in left]
    record = repair_plan(asked, previous, changes, new_trees=most).record
    alone = best_rate(left, old) if old else 0.0
    assert mbits(record, "old_plan_rate_Bps") == pytest.approx(alone, abs=1e-9)
    assert mbits(record, "old_shares_rate_Bps") <= alone * (1 + 1e-9)
    assert record.metrics["surviving_trees"] == len(old)
    best = best_of(left, trees, old, most)
    if not best:
        assert record.status == "infeasible"
        return
    assert record.verified, record.violations
    assert record.status == "optimal", record.gap
    assert mbits(record) == pytest.approx(best)
    assert record.metrics["new_trees"] <= most
    assert record.metrics["kept_trees"] <= len(old)
    assert mbits(record, "new_plan_rate_Bps") >= best * (1 - 1e-6)


@pytest.mark.parametrize(("seed", "most_height"), [(100, None), (101, None), (103, None), (100, 2), (101, 2), (103, 2)])
def test_bounds_hold_where_trees_are_not_listed(monkeypatch, seed, most_height):
    """On networks too large to list all trees the value is at most the best, and the bound at least."""
    monkeypatch.setattr(repair_method, "every_tree", lambda _: None)
    asked, previous, changes, left = a_case(seed)
    trees = all_trees(5, left)
    low = [tree for tree in trees if most_height is None or height(5, left, tree) <= most_height]
    _, old = rows_of(asked, changes, previous)
    options = {} if most_height is None else {"height": most_height}
    record = repair_plan(asked, previous, changes, **options).record
    best = best_of(left, low, old, 1)
    assert record.verified
    assert mbits(record) <= best * (1 + 1e-9)
    assert mbits(record, "exact_bound_Bps") >= best * (1 - 1e-9)


@pytest.mark.parametrize("seed", [20, 21, 23])
def test_the_exact_model_agrees_with_trying_everything(monkeypatch, seed):
    """The model of link patterns alone, without the pool and without grafts, finds the best repair."""
    monkeypatch.setattr(repair_method, "_NEW", 0)
    monkeypatch.setattr(repair_method, "_ROUNDS", 0)
    asked, previous, changes, left = a_case(seed)
    trees = all_trees(5, left)
    _, old = rows_of(asked, changes, previous)
    for most, in_all in ((1, None), (2, None), (1, 1), (1, 2)):
        limit = {} if in_all is None else {"trees": in_all}
        record = repair_plan(asked, previous, changes, new_trees=most, **limit).record
        assert record.status == "optimal"
        assert mbits(record) == pytest.approx(best_of(left, trees, old, most, in_all))


def test_parallel_links_keep_their_places():
    """Trees over the second of two parallel links come back as such."""
    asked = instance(3, [(0, 1, 3, 1), (0, 1, 2, 1), (1, 2, 5, 1)])
    previous = plan(asked)
    assert {link[2] for tree in previous for link in tree["links"]} == {0, 1}
    record = repair_plan(asked, previous, [], new_trees=0).record
    assert mbits(record) == pytest.approx(5)
    assert record.metrics["kept_trees"] == 2
    half = repair_plan(asked, previous, ["0-1=0.5"], new_trees=0).record
    assert mbits(half) == pytest.approx(2.5)


def test_an_unchanged_network_keeps_its_plan():
    """Without changes the old plan is the best, all of its trees are kept with their roots, and no new one is
    needed."""
    asked = load("gscale")
    done = run(asked, Request("mtree", options={"trees": 3, "height": 4}))
    previous = [tree.model_dump() for tree in describe_trees(to_wan(asked), done.answer)]
    again = repair_plan(asked, previous, [], height=4)
    metrics = again.record.metrics
    assert again.record.status == "optimal"
    assert (metrics["kept_trees"], metrics["new_trees"], metrics["surviving_trees"]) == (3, 0, 3)
    assert metrics["old_shares_rate_Bps"] == metrics["old_plan_rate_Bps"] == metrics["allreduce_rate_Bps"]
    assert sorted(again.answer.root.tolist()) == sorted(done.answer.root.tolist())


def test_a_failed_link_of_gscale():
    """The rest of the old plan carries less than with one new tree; two new trees equal a new plan."""
    asked = load("gscale")
    previous = plan(asked, trees=3, height=4)
    carried = [mbits(repair_plan(asked, previous, "3-7=0, 0-1=0.5", new_trees=m, height=4).record) for m in (0, 1, 2)]
    assert carried[0] < carried[1] < carried[2]
    last = repair_plan(asked, previous, "3-7=0, 0-1=0.5", new_trees=2, height=4).record
    assert last.status == "optimal"
    assert mbits(last, "new_plan_rate_Bps") == pytest.approx(carried[2])
    assert last.metrics["kept_trees"] + last.metrics["new_trees"] <= 3


def test_grafts_span_and_keep_what_has_room():
    """A tree that has lost a link gets it replaced by the link with the most room; all grafts are spanning trees of at
    most the height."""
    edges = [(0, 1, 9, 1), (1, 2, 9, 1), (2, 3, 9, 1), (0, 3, 5, 1), (0, 2, 2, 1)]
    wan = to_wan(instance(4, edges))
    found = [tuple(row) for row in grafts(wan, wan.hops(None), 0, None, [np.array([0, 2])]).tolist()]
    assert (0, 1, 2) in found
    plan = RatedTrees(np.array([[0, 1, 2]]), (Fraction(8),))
    beside = [tuple(row) for row in grafts(wan, wan.hops(None), 0, plan, [np.array([0, 2])]).tolist()]
    assert {len(row) for row in beside} == {3}
    assert any(3 in row for row in beside)
    assert all(height(4, edges, row) <= 1 for row in grafts(wan, wan.hops(1), 0, plan, []).tolist())


def test_the_command_reads_a_plan_and_writes_a_new_one(tmp_path):
    """``cwb repair`` takes trees from the file of ``cwb solve -o``, and what it writes can be repaired again."""
    asked = load("gscale")
    done = run(asked, Request("mtree", options={"trees": 3, "height": 4}))
    write_schedule(tmp_path / "plan.json", done.instance, done.answer, done.certificate)
    arguments = [
        str(tmp_path / "plan.json"),
        "-c",
        "3-7=0",
        "-O",
        "trees=3",
        "-o",
        str(tmp_path / "new.json"),
        "--json",
        "--quiet",
    ]
    first = CliRunner().invoke(repair, arguments, standalone_mode=False)
    assert first.return_value == 0, first.output
    record = json.loads(first.stdout)
    assert record["model"] == "mtree-repair"
    assert record["options"]["changes"] == ["3-7=0"]
    assert record["verified"]
    second = CliRunner().invoke(
        repair,
        [str(tmp_path / "new.json"), "-c", "0-1=0.5", "-O", "resolve=false", "--json", "-q"],
        standalone_mode=False,
    )
    assert json.loads(second.stdout)["metrics"]["old_trees"] == record["metrics"]["trees"]
    shown = CliRunner().invoke(repair, [*arguments[:5], "-q"], standalone_mode=False)
    assert "objective" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["-O", "changes=0-1=0"], "is set by PLAN and --change"),
        (["-c", "0-99=0"], "names no two sites"),
        (["-o", "nowhere/new.json"], "folder does not exist"),
    ],
)
def test_bad_use_of_the_command_is_told(tmp_path, arguments, problem):
    """Wrong options end in an input error."""
    done = run(load("gscale"), Request("mtree", options={"trees": 1}))
    write_schedule(tmp_path / "plan.json", done.instance, done.answer)
    result = CliRunner().invoke(repair, [str(tmp_path / "plan.json"), *arguments], standalone_mode=False)
    assert isinstance(result.exception, InputError)
    assert problem in str(result.exception)
