"""``mtree``: published and computed numbers, what trees must keep, and what is refused."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from threading import Event

import numpy as np
import pytest
from click.testing import CliRunner
from cwb.cli.main import cwb
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.trees import TreeKind
from cwb.harness import registry
from cwb.instances import load
from draws import NIGHTLY
from mtree_networks import instance, solve


@pytest.mark.slow
def test_the_exact_table_is_reproduced(reference):
    """Every optimum of the reference table comes out to its digits, proved and verified."""
    with (reference / "mtree_gscale.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 22
    for row in rows if NIGHTLY else rows[::4]:
        options = {key: int(row[key]) for key in ("trees", "height") if row[key]}
        record = solve(f"gscale({row['skewness']})", **options).record
        assert record.status == "optimal", row
        assert record.verified, row
        assert f"{record.metrics['normalized_throughput']:.4f}".lstrip("0") == row["normalized_throughput"], row


def test_the_command_of_the_documentation():
    """The command line gives the metrics that are promised, and the partition that proves them."""
    arguments = ["solve", "--model", "mtree", "gscale", "--collective", "all_reduce", "--size", "1 GB"]
    done = CliRunner().invoke(cwb, [*arguments, "-O", "trees=5", "-O", "height=4", "--json", "--quiet"])
    assert done.exit_code == 0
    record = json.loads(done.stdout)
    assert record["status"] == "optimal"
    assert record["certificate"]["certificate"] == "partition"
    names = "allreduce_rate_Bps normalized_throughput trees mean_height max_fanout completion_time_s exact_bound_Bps"
    assert set(names.split()) <= set(record["metrics"])
    assert (
        record["metrics"]["exact_bound_Bps"] == record["metrics"]["allreduce_rate_Bps"] == 10**9 / record["objective"]
    )
    assert record["metrics"]["trees"] <= 5
    assert record["metrics"]["max_tree_height"] <= 4


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("gscale(0.9, 3)", {"height": 3}),
        ("gscale(0.9, 3)", {"trees": 2, "height": "600 ms"}),
        ("equinix_size(0.5, 1)", {"height": 2}),
        ("equinix_size(0.5, 1)", {"trees": 5, "height": 3, "moves": 500}),
        ("gscale(0.7, 1)", {"trees": 6, "min_rate": "40 Mb/s"}),
    ],
)
def test_trees_keep_what_is_asked(spec, options):
    """Trees span, have the height asked from their own roots, are no more than K, have the least rate, and overload no
    link."""
    done = solve(spec, **options)
    packing, links = done.answer, done.instance.network.links
    assert done.record.verified
    assert done.record.bound <= done.record.objective
    assert packing.kind is TreeKind.BOTH
    assert len(packing) <= options.get("trees", 10**6)
    total = int(packing.units.sum())
    rates = [units / total * done.record.metrics["allreduce_rate_Bps"] for units in packing.units.tolist()]
    load = np.zeros(len(links))
    for part in packing.passes:
        for i, rate in enumerate(rates):
            span = slice(part.edge_offset[i], part.edge_offset[i + 1])
            far = {int(part.root[i]): (0, 0)}
            for parent, child, link in zip(part.parent[span], part.child[span], part.path_links[span], strict=True):
                hops, latency = far[int(parent)]
                far[int(child)] = hops + 1, latency + links[link].latency_s
                load[link] += rate
            assert len(far) == done.instance.npus
            height = options.get("height")
            if isinstance(height, int):
                assert max(hops for hops, _ in far.values()) <= height
            elif height is not None:
                assert max(latency for _, latency in far.values()) <= 0.6
    assert all(used <= float(link.bandwidth_Bps) * (1 + 1e-12) for used, link in zip(load, links, strict=True))
    if "min_rate" in options:
        assert min(rates) >= 5e6 * (1 - 1e-12)


@pytest.mark.parametrize("model", ["mtree", "gost"])
def test_what_is_infeasible_says_why(model):
    """A height or a rate that no tree has is infeasible, with the smallest height that there is; exit status 3."""
    low = solve("gscale(0.5)", model, height=2).record
    assert (low.status, low.exit_status) == ("infeasible", 3)
    assert low.message.startswith("no spanning tree has a height of at most 2 hops")
    assert low.message.endswith("; the smallest feasible height is 3 hops")
    near = solve("gscale(0.5)", model, height="100 ms").record
    assert near.message.startswith("no spanning tree has a height of at most 100 ms")
    smallest = near.message.partition("smallest feasible height is ")[2]
    assert smallest.startswith("383.316648 ms")
    assert solve("gscale(0.5)", "mtree", height=smallest, trees=1).record.status == "optimal"
    fast = solve("gscale(0.5)", model, min_rate="1 GB/s").record
    assert (fast.status, fast.exit_status) == ("infeasible", 3)
    assert "no link of at least min_rate 8000 Mb/s; the fastest has 250 Mb/s" in fast.message
    apart = solve("gscale(0.5)", model, min_rate="240 Mb/s").record
    assert "do not join all sites" in apart.message


@pytest.mark.parametrize("model", ["mtree", "gost"])
def test_what_is_wrong_is_one_line(model):
    """A network in two parts, no trees at all, and a height that is none are refused in one line."""
    with pytest.raises(InputError, match=r"no path of links in both directions leads from '0' to '2'"):
        solve(instance(4, [(0, 1, 1, 1), (2, 3, 1, 1)]), model)
    with pytest.raises(InputError, match=r"trees: 0 is wrong"):
        solve("gscale", model, trees=0)
    with pytest.raises(InputError, match=r"height: '4 MB' is wrong; expected a number of hops such as 4, or a latency"):
        solve("gscale", model, height="4 MB")
    with pytest.raises(InputError, match=r"height: 0 is wrong; expected at least 1 hop"):
        solve("gscale", model, height=0)


@pytest.mark.parametrize("spec", ["star(4)", "RI(4)_SW(2)"])
def test_what_does_not_fit_is_a_reason(spec):
    """Switches and networks without links are not supported, with the reason."""
    record = solve(spec).record
    assert (record.status, record.exit_status) == ("unsupported", 7)
    assert "switch" in record.message or "no links" in record.message


def test_a_stopped_search_does_not_count_changes():
    """The message of a search that is stopped names the stop, not changes of labels that were not made."""
    asked = load("random_regular(20, 4, seed=1)").with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(10**9)))
    stop = Event()
    budget = Budget(stop=stop, progress=lambda text: stop.set() if "without a common link" in text else None)
    method = registry.get("mtree")
    found = method.run(asked, registry.solver("highs"), budget, method.options(trees=4, height=4))
    assert found.message == "the run was stopped before trees of larger rates were found or excluded"
