"""Networks whose links are faster one way than the other: what is claimed there holds for any schedule."""

from __future__ import annotations

import pytest
from cwb.harness import Request, run
from mtree_networks import one_way_links

pytestmark = pytest.mark.slow  # random networks, checked by brute force

QUICK = {"topoadopt": {"moves": 5}, "blink-wan": {"steps": 100, "nodes": 5}}
METHODS = ("mtree", "gost", "single-tree", "topoadopt", "blink-wan", "wan-ring", "plink", "psld")
RING = one_way_links(3, [link for v in range(3) for link in ((v, (v + 1) % 3, 20), ((v + 1) % 3, v, 10))])


@pytest.mark.parametrize("model", METHODS)
def test_the_bound_holds_for_any_schedule(model):
    """On a ring that is twice as fast one way, the bound is the 44.44 s that another method attains, and nothing slower
    is called optimal."""
    assert run(RING, Request("forestcoll-allreduce")).record.objective == pytest.approx(400 / 9)
    record = run(RING, Request(model, options=QUICK.get(model, {}))).record
    assert (record.status, record.verified, record.exit_status) == ("feasible", True, 0)
    assert record.bound == pytest.approx(400 / 9)
    assert record.objective >= 66


@pytest.mark.parametrize("model", [model for model in METHODS if model != "wan-ring"])
def test_a_cut_may_be_the_bound(model):
    """Between two sites the slower direction limits any schedule: the cut proves what the partition does not, and the
    two meet."""
    record = run(one_way_links(2, [(0, 1, 3000), (1, 0, 4000)]), Request(model, options=QUICK.get(model, {}))).record
    assert (record.verified, record.exit_status) == (True, 0)
    assert record.certificate == {"certificate": "cut", "nodes": [0]}
    assert record.bound == pytest.approx(1 / 3)


@pytest.mark.parametrize("options", [{"trees": 1}, {"height": 1}, {"min_rate": "4 MB/s"}])
def test_limits_on_trees_claim_nothing_else(options):
    """With K, a height or a smallest rate the bound on such a network holds for any schedule, and says so; what trees
    can do is told beside it."""
    record = run(RING, Request("mtree", options=options)).record
    assert (record.status, record.verified) == ("feasible", True)
    assert record.metrics["bound_holds_for"] == "any schedule"
    assert record.certificate["certificate"] == "partition"
    assert record.metrics["exact_bound_Bps"] < record.metrics["strength_Bps"] == pytest.approx(22.5e6)
