"""Statements of the method's page about the published code and the dissertation's ideal."""

from __future__ import annotations

import numpy as np
from cwb.core.topology import Topology
from cwb.heuristics.tacos.method import TacosOptions
from cwb.heuristics.tacos.method import pose as posed_for_tacos
from cwb.schedules.verify import verify
from tacos_published import as_schedule, published


def test_the_published_rule_sends_what_the_source_does_not_hold_yet(pose, graph):
    """On four ranks with one slow link the published rule has that link bring a chunk that its source receives only
    later."""
    fast, slow = 3 * 10**9, 10**9
    links = [(a, b, fast, 0) for a, b in ((0, 1), (1, 0), (1, 3), (3, 1), (0, 2), (2, 0))]
    instance = posed_for_tacos(pose(graph(4, [*links, (1, 2, slow, 0)])), TacosOptions())
    reports = [verify(instance, as_schedule(instance, published(instance, seed))) for seed in range(20)]
    wrong = [report for report in reports if not report.ok]
    assert wrong
    assert all(violation.kind == "not-held" for report in wrong for violation in report.violations)
    assert any("does not hold it yet" in str(violation) for report in wrong for violation in report.violations)


def test_the_published_rule_on_a_mesh(pose, rectangle, solve):
    """On the 5 x 5 mesh of 50 and 75 GiB/s it sends dozens of chunks too early; our schedule of the bound's time is
    right."""
    network = rectangle(5, 5, 50, 75)
    assert isinstance(network, Topology)
    instance = posed_for_tacos(pose(network), TacosOptions())
    early = [
        verify(instance, as_schedule(instance, published(instance, seed))).counts.get("not-held", 0)
        for seed in range(3)
    ]
    assert min(early) >= 10
    ours = solve(pose(network)).record
    assert (ours.status, ours.verified) == ("optimal", True)
    assert ours.objective * 1e6 == 8005


def test_where_links_are_equal_the_published_rule_is_right(pose):
    """All links end together, so that what is there on arrival was there at the start of the next span."""
    instance = posed_for_tacos(pose("mesh(3,3)"), TacosOptions())
    assert all(verify(instance, as_schedule(instance, published(instance, seed))).ok for seed in range(5))


def test_the_ideal_is_no_bound_on_a_mesh(pose, solve):
    """Both halves of an all-reduce at once take less than the dissertation's ideal on the 6 x 6 mesh; the verifier has
    nothing against it."""
    instance = pose("mesh(6,6, bandwidth='50 GiB/s', latency='0.5 us')", "all_reduce", chunks=8)
    done = solve(instance)
    assert done.record.verified
    assert done.record.metrics["overlapped"]
    # 2 (n - 1) / n of the size over the rate of a corner, and the latency from corner to corner.
    ideal_s = 2 * 35 / 36 * 2**30 / (100 * 2**30) + 10 * 0.5e-6
    assert done.record.objective < 0.7 * ideal_s
    assert done.record.objective < 0.7 * done.record.metrics["back_to_back_s"]
    assert done.record.bound <= done.record.objective
    assert np.isclose(done.record.metrics["back_to_back_s"], 280 * (0.5e-6 + 2**30 / 288 / (50 * 2**30)))
