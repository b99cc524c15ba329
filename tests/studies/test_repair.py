"""Repairs of schedules: what is lost takes another path, all else stays, and the result is right."""

from __future__ import annotations

from pathlib import Path

import cwb
import numpy as np
import pytest
from click.testing import CliRunner
from cwb.algorithms.schedules.changes import reroute
from cwb.cli.main import cwb as cli
from cwb.core.errors import InputError
from cwb.instances.edits import Edit, edit_instance
from cwb.schedules.files import read_schedule
from cwb.studies.repair import repair_schedule

DEFECTS = Path(__file__).parents[1] / "reference" / "defects3"

CASES = [
    ("ring", "ring(6)", "all_reduce", "0:1"),
    ("forestcoll", "dgx_a100(boxes=2)", "all_reduce", "box0.gpu0:ib0"),
    ("forestcoll", "mi250(boxes=2)", "all_gather", "box0.gpu0:box0.gpu1"),
    ("pccl", "torus(3,3)", "all_to_all", "0:1"),
    ("multitree", "torus(3,3)", "all_reduce", "0:1"),
]


@pytest.mark.parametrize(("method", "spec", "collective", "link"), CASES)
def test_a_repaired_schedule_is_right(method, spec, collective, link):
    """Schedules in steps and in time, and trees, are right again; no time is below the bound, nor is there less
    sent."""
    run = cwb.solve(spec, method, collective=collective, size="1 GiB")
    changed = edit_instance(run.problem, [Edit("--without-link", link)])
    found = repair_schedule(run.problem, run.schedule, changed)
    assert found.report.ok, found.report.violations
    assert 0 < found.losses < found.transfers
    assert found.after_s >= float(found.bound_s) * (1 - 1e-9)
    assert found.after_s >= found.before_s * (1 - 1e-9)


def test_what_has_lost_nothing_stays():
    """A link that becomes slower moves nothing, and the new time counts it."""
    run = cwb.solve("ring(4)", "ring", collective="all_gather", size="1 GiB")
    found = repair_schedule(run.problem, run.schedule, edit_instance(run.problem, [Edit("--link", "0:1=10 GB/s")]))
    assert (found.losses, found.nodes) == (0, ())
    assert np.array_equal(found.answer.sends.path_links, run.schedule.sends.path_links)
    assert found.after_s > 2 * found.before_s


def test_paths_take_what_is_free():
    """Two sends that have lost their link are spread over two ways around it."""
    gone = edit_instance(cwb.load("complete(4)"), [Edit("--without-link", "0:1")]).network
    ends = np.array([0, 0]), np.array([1, 1])
    found = reroute(gone, *ends, np.array([0, 1, 2]), np.array([-1, -1]), np.array([1e9, 1e9]))
    assert found.is_new.all()
    assert len(set(found.links.tolist())) == 4


LOST = [
    ("ring", "ring(6)", "all_reduce", ["2"]),
    ("ring", "ring(6)", "reduce_scatter", ["0"]),
    ("rhd", "complete(8)", "all_reduce", ["3"]),
    ("bruck", "complete(7)", "all_to_all", ["6"]),
    ("direct", "complete(5)", "all_reduce", ["1", "4"]),
    ("dbt", "complete(8)", "all_reduce", ["3"]),
    ("pccl", "torus(3,3)", "all_reduce", ["4"]),
    ("tacos", "torus(3,3)", "all_gather", ["8"]),
    ("forestcoll", "dgx_a100(boxes=2)", "all_reduce", ["1", "9"]),
    ("forestcoll", "dgx_a100(boxes=2)", "broadcast", ["3"]),
    ("forestcoll", "a100(boxes=2)", "all_gather", ["ib0"]),
    ("multitree", "torus(3,3)", "all_reduce", ["0"]),
]


@pytest.mark.parametrize(("method", "spec", "collective", "nodes"), LOST)
def test_others_stand_in_for_a_lost_node(method, spec, collective, nodes):
    """Without some ranks, or a switch, every form of schedule is right for those that are left, and none is told
    twice."""
    run = cwb.solve(spec, method, collective=collective, size="1 GiB")
    changed = edit_instance(run.problem, [Edit("--without-node", node) for node in nodes])
    found = repair_schedule(run.problem, run.schedule, changed)
    assert found.report.ok, found.report.violations
    assert 0 < found.losses < found.transfers
    assert 0 <= found.served < 1
    assert found.after_s >= float(found.bound_s) * (1 - 1e-9)
    assert set(found.nodes) <= set(changed.network.node_index)
    assert len(set(found.nodes)) == len(found.nodes)


def test_few_are_told_of_a_lost_rank():
    """In a ring only the two ranks beside the lost one have another partner; half of an all_gather still comes."""
    run = cwb.solve("ring(6)", "ring", collective="all_gather", size="1 GiB")
    found = repair_schedule(run.problem, run.schedule, edit_instance(run.problem, [Edit("--without-node", "3")]))
    assert found.nodes == ("2", "4")
    assert found.served == pytest.approx(0.5)


def test_a_rank_that_passes_nothing_on_is_not_missed():
    """Sends straight from rank to rank stay as they are, and nobody is told."""
    run = cwb.solve("complete(5)", "direct", collective="all_to_all", size="1 GiB")
    found = repair_schedule(run.problem, run.schedule, edit_instance(run.problem, [Edit("--without-node", "4")]))
    assert (found.nodes, found.served, found.report.ok) == ((), 1.0, True)


def test_what_cannot_be_reached_is_said():
    """A rank without links is an error that names both ends."""
    run = cwb.solve("line(3)", "direct", collective="broadcast", size="1 GiB")
    with pytest.raises(InputError, match="no path is left from"):
        repair_schedule(run.problem, run.schedule, edit_instance(run.problem, [Edit("--without-link", "0:1")]))


SWITCHED = [
    ("teccl", "rail(boxes=2,per_box=3)", "all_to_all", Edit("--link", "box0.gpu1:box0.nvswitch=1 GB/s")),
    ("teccl-lp", "rail(boxes=2,per_box=2)", "all_to_all", Edit("--without-rank", "box0.gpu1")),
    ("pccl", "switch2d(inner=3,outer=2)", "all_gather", Edit("--without-rank", "3")),
]


@pytest.mark.parametrize(("method", "spec", "collective", "edit"), SWITCHED)
def test_sends_pass_through_switches(method, spec, collective, edit):
    """Sends into and out of switches without buffer or multicast stay together, whatever their times and partners."""
    run = cwb.solve(spec, method, collective=collective, size="1 MiB")
    found = repair_schedule(run.problem, run.schedule, edit_instance(run.problem, [edit]))
    assert found.report.ok, found.report.violations
    assert found.after_s >= float(found.bound_s) * (1 - 1e-9)


@pytest.mark.parametrize("rank", ["b0.g1", "b0.g2", "b1.g1", "b3.g0"])
def test_switches_send_on_what_came(rank):
    """A schedule that comes to switches without multicast several times is right without any of its ranks."""
    read = read_schedule(DEFECTS / "repair_multicast.json")
    found = repair_schedule(read.instance, read.answer, edit_instance(read.instance, [Edit("--without-rank", rank)]))
    assert found.report.ok, found.report.violations


def test_sends_that_take_no_time():
    """In TE-CCL's count a switch's link takes an epoch or none; the repair has times of its own."""
    run = cwb.solve("switch(3)", "teccl-milp", collective="all_gather", size="3 KiB")
    found = repair_schedule(run.problem, run.schedule, edit_instance(run.problem, [Edit("--without-rank", "2")]))
    assert found.report.ok, found.report.violations


@pytest.mark.parametrize("rank", ["0.1", "1.0", "1.2"])
def test_sums_in_switches_may_come_in_any_order(rank):
    """The first sum to come to a switch without a lost rank is added as before; a copy in its place keeps its turn."""
    read = read_schedule(DEFECTS / "repair_order_of_sums.json")
    found = repair_schedule(read.instance, read.answer, edit_instance(read.instance, [Edit("--without-rank", rank)]))
    assert found.report.ok, found.report.violations


@pytest.mark.parametrize(
    ("method", "spec", "collective", "edit"),
    [
        ("forestcoll", "dgx_h100(boxes=1)", "broadcast", ("--without-rank", "box0.gpu5")),
        ("forestcoll", "rail(boxes=2,per_box=2)", "all_gather", ("--without-link", "box1.nvswitch:box1.gpu0")),
        ("multitree", "torus(3,3)", "all_reduce", ("--without-link", "0:1")),
        ("ring", "ring(6)", "all_reduce", ("--without-link", "0:1")),
    ],
)
def test_the_file_of_a_repair_has_a_bound_of_its_objective(tmp_path, method, spec, collective, edit):
    """The file of a repair passes ``cwb check``: the certificate of trees is of the flow time, without latency."""
    plan, led = tmp_path / "plan.json", tmp_path / "led.json"
    run = CliRunner().invoke
    asked = ["--model", method, spec, "--collective", collective, "--size", "1 MiB", "-o", str(plan), "-q"]
    assert run(cli, ["solve", *asked], standalone_mode=False).return_value == 0
    assert run(cli, ["repair", str(plan), *edit, "-o", str(led)], standalone_mode=False).return_value == 0
    checked = run(cli, ["check", str(led)], standalone_mode=False)
    assert checked.return_value == 0, checked.output
