"""Repairs of schedules: what is lost takes another path, all else stays, and the result is right."""

from __future__ import annotations

import cwb
import numpy as np
import pytest
from cwb.algorithms.schedules.reroute import reroute
from cwb.core.errors import InputError
from cwb.harness.rerouting import repaired
from cwb.instances.edits import Edit, edited

CASES = [
    ("ring", "ring(6)", "all_reduce", "0:1"),
    ("forestcoll", "dgx_a100(boxes=2)", "all_reduce", "box0.gpu0:ib0"),
    ("forestcoll", "mi250(boxes=2)", "all_gather", "box0.gpu0:box0.gpu1"),
    ("pccl", "torus(3,3)", "all_to_all", "0:1"),
    ("multitree", "torus(3,3)", "all_reduce", "0:1"),
]


@pytest.mark.parametrize(("method", "spec", "collective", "link"), CASES)
def test_a_repaired_schedule_is_right(method, spec, collective, link):
    """Schedules in steps and in time, and trees, are right again; no time is below the bound, nor is there less sent."""
    run = cwb.solve(spec, method, collective=collective, size="1 GiB")
    changed = edited(run.problem, [Edit("--without-link", link)])
    found = repaired(run.problem, run.schedule, changed)
    assert found.report.ok, found.report.violations
    assert 0 < found.lost < found.transfers
    assert found.after_s >= float(found.bound_s) * (1 - 1e-9)
    assert found.after_s >= found.before_s * (1 - 1e-9)


def test_what_has_lost_nothing_stays():
    """A link that becomes slower moves nothing, and the new time counts it."""
    run = cwb.solve("ring(4)", "ring", collective="all_gather", size="1 GiB")
    found = repaired(run.problem, run.schedule, edited(run.problem, [Edit("--link", "0:1=10 GB/s")]))
    assert (found.lost, found.nodes) == (0, ())
    assert np.array_equal(found.answer.sends.path_links, run.schedule.sends.path_links)
    assert found.after_s > 2 * found.before_s


def test_paths_take_what_is_free():
    """Two sends that have lost their link are spread over two ways around it."""
    whole = cwb.load("complete(4)").network
    gone = edited(cwb.load("complete(4)"), [Edit("--without-link", "0:1")]).network
    link = whole.link_ends.index((0, 1))
    found = reroute(whole, gone, np.array([0, 1, 2]), np.array([link, link]), np.array([1e9, 1e9]))
    assert found.moved.all()
    assert len(set(found.links.tolist())) == 4


def test_what_cannot_be_reached_is_said():
    """A rank without links is an error that names both ends."""
    run = cwb.solve("line(3)", "direct", collective="broadcast", size="1 GiB")
    with pytest.raises(InputError, match="no path leads from"):
        repaired(run.problem, run.schedule, edited(run.problem, [Edit("--without-link", "0:1")]))
