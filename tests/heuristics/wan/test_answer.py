"""Common properties of all baselines: the bound, the metrics, and rejected instances."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.trees.network import to_wan
from cwb.algorithms.trees.trees import RatedTrees
from cwb.core.collective import Collective, Demand
from cwb.heuristics.wan.answer import lowest_root
from cwb.instances import load
from mtree_networks import instance, solve

pytestmark = pytest.mark.slow  # random networks, checked by brute force

TREES = ("topoadopt", "blink-wan", "single-tree")
MESSAGES = ("plink", "psld")
QUICK = {"topoadopt": {"moves": 20}, "blink-wan": {"steps": 300, "nodes": 5}}
SHARED = {"allreduce_rate_Bps", "normalized_throughput", "strength_share", "strength_Bps", "completion_time_s"}
OF_TREES = {"mean_tree_height", "max_tree_height", "max_tree_latency_s", "mean_max_fanout", "max_fanout", "trees"}


@pytest.mark.parametrize(
    ("model", "spec"),
    [
        *(
            (model, spec)
            for model in (*TREES, *MESSAGES)
            for spec in ("gscale(0.9, 4)", "equinix_size(0.3, 2)", "torus(3,3)")
        ),
        *(("wan-ring", spec) for spec in ("equinix_size(0.3, 2)", "torus(3,3)")),
    ],
)
def test_every_answer_is_verified_beside_the_strength(model, spec):
    """Every baseline is verified, has the numbers of the table, and none beats the bound that its partition proves."""
    record = solve(spec, model, **QUICK.get(model, {})).record
    assert record.verified, record.violations
    assert record.certificate["certificate"] == "partition"
    assert set(record.metrics) >= SHARED
    assert record.metrics["allreduce_rate_Bps"] <= record.metrics["strength_Bps"] * (1 + 1e-12)
    assert record.bound <= record.objective
    if model not in MESSAGES:
        assert set(record.metrics) >= OF_TREES
        assert record.objective == pytest.approx(10**9 / record.metrics["allreduce_rate_Bps"], rel=1e-12)


def test_the_common_root_makes_the_highest_tree_lowest():
    """On a line of five sites the root is in the middle."""
    wan = to_wan(instance(5, [(i, i + 1, 1, 1) for i in range(4)]))
    assert lowest_root(wan, RatedTrees(np.array([[0, 1, 2, 3]]), (Fraction(1),))) == 2


@pytest.mark.parametrize("model", [*TREES, *MESSAGES])
def test_bad_networks_are_refused_in_a_line(model):
    """A network in two parts is told with two of its sites; a switch and another collective are not supported."""
    from cwb.core.errors import InputError

    with pytest.raises(InputError, match=r"no path of links in both directions leads from '0' to '2'"):
        solve(instance(4, [(0, 1, 1, 1), (2, 3, 1, 1)]), model)
    switched = solve("star(4)", model).record
    assert (switched.status, "switch" in switched.message) == ("unsupported", True)
    other = load("gscale").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(10**6)))
    assert solve(other, model).record.status == "unsupported"
