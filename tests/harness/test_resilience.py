"""Single failures: what they cost is what solving again without them says."""

from __future__ import annotations

from fractions import Fraction

import cwb
import pytest
from cwb.core.budget import Budget
from cwb.core.errors import Unsupported
from cwb.harness.resilience import KINDS, failures, optimum_of
from cwb.instances.edits import Edit, edited


def posed(spec, collective="all_gather"):
    return cwb.load(spec, collective=collective, size="1 GiB")


def found(spec, collective="all_gather", kinds=KINDS, slow=Fraction(0)):
    return list(failures(posed(spec, collective), kinds, slow, Budget()))


def test_every_failure_is_there_once():
    """All links, ranks and switches of a machine appear, links by classes."""
    network = posed("dgx_a100(boxes=2)").network
    by_kind = {kind: [name for f in found("dgx_a100(boxes=2)") if f.kind == kind for name in f.names] for kind in KINDS}
    pairs = {frozenset((link.source, link.target)) for link in network.links}
    assert {frozenset(name.split(" - ")) for name in by_kind["link"]} == pairs
    assert len(by_kind["link"]) == len(pairs)
    assert by_kind["rank"] == list(network.ranks)
    assert len(by_kind["switch"]) == len(network.nodes) - len(network.ranks)


@pytest.mark.parametrize("name", ["box0.gpu0 - box0.nvswitch", "box1.gpu3 - ib1"])
def test_links_of_a_class_cost_the_same(name):
    """What one link of a class costs is what each of its class costs that is taken away by itself."""
    whole = posed("dgx_a100(boxes=2)")
    failure = next(f for f in found("dgx_a100(boxes=2)", kinds=["link"]) if name in f.names)
    alone = optimum_of(edited(whole, [Edit("--without-link", name.replace(" - ", ":"))]))
    assert alone.time_s == failure.optimum.time_s


def test_forestcoll_attains_what_is_left():
    """The flow time after the worst failure is that of ForestColl's trees on the changed network."""
    worst = max(found("mi250(boxes=2)", kinds=["link"]), key=lambda f: f.optimum.time_s)
    changed = edited(posed("mi250(boxes=2)"), [Edit("--without-link", worst.names[0].replace(" - ", ":"))])
    record = cwb.solve(changed, "forestcoll")
    assert record.status == "optimal"
    assert record.objective == pytest.approx(float(worst.optimum.time_s), rel=1e-12)


def test_slow_links_cost_less_than_lost_ones():
    """A link of half its bandwidth costs something, and no more than a lost one."""
    whole = optimum_of(posed("ring(5)")).time_s
    (slow,), (lost,) = (found("ring(5)", kinds=["link"], slow=slow) for slow in (Fraction(1, 2), Fraction(0)))
    assert whole < slow.optimum.time_s <= lost.optimum.time_s


def test_ranks_that_are_cut_off_are_named():
    """Where a failure cuts ranks off there is no optimum, and a reason."""
    (end, *_rest) = (f for f in found("line(3)", kinds=["link"]))
    assert end.optimum is None
    assert end.reason


def test_what_is_not_served_is_said():
    """A collective of some ranks alone is refused."""
    instance = cwb.load("ring(4)", collective="all_gather", size="1 GiB")
    part = instance.with_changes(demand=type(instance.demand)(instance.demand.collective, Fraction(8), 1, (0, 1)))
    with pytest.raises(Unsupported):
        list(failures(part, KINDS, Fraction(0), Budget()))
