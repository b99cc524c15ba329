"""The value of more bandwidth: every derivative compared with problems solved again in full."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import cwb
import pytest
from command_line import cwb as command
from cwb.algorithms.bounds.one_sided import one_sided
from cwb.core.errors import InputError, Unsupported
from cwb.core.instance import Instance
from cwb.core.record import RunRecord
from cwb.core.sensitivity import JUMP, SMOOTH, Entry, Sensitivity, Side
from cwb.harness import Request, run_one
from cwb.instances.demand import with_demand
from cwb.reports.plots.schedule_trees import draw_sensitivity as draw
from cwb.reports.plots.schedule_trees import gains_of
from cwb.studies.sensitivity import _Study, scale_links
from draws import NIGHTLY

#: Part of a bandwidth by which it is changed to compare differences with derivatives.
LITTLE = Fraction(1, 1000)


def slope(side: Side | None) -> float:
    """The derivative on a side."""
    assert side is not None
    assert side.slope_s_per_GBps is not None
    return side.slope_s_per_GBps


def bound(record: RunRecord) -> float:
    """The bound of a run."""
    assert record.bound is not None
    return record.bound


def make_instance(network: str, collective: str | None) -> Instance:
    """An instance of 1 GiB."""
    return with_demand(cwb.load(network), collective, None, chunks=None)


def add_bandwidth(instance: Instance, entry: Entry, part: Fraction) -> Instance:
    """The instance with a part more bandwidth on the links of an entry."""
    topology = instance.topology
    index = topology.node_index
    pairs = [(index[a], index[b]) for a, b in entry.members[: entry.count]]
    return instance.with_changes(network=scale_links(topology, pairs, 1 + part))


def require_derivatives(found: Sensitivity, instance: Instance, model: str) -> None:
    """Differences between full runs of a method are what the derivatives say, one side and the other."""
    base = bound(run_one(instance, Request(model)))
    assert base == pytest.approx(found.seconds, rel=1e-8)
    for entry in found.entries:
        for side, part in ((entry.up, LITTLE), (entry.down, -LITTLE)):
            if side is None:
                continue
            again = bound(run_one(add_bandwidth(instance, entry, part), Request(model)))
            rate = (again - base) / (entry.bandwidth_GBps * float(part))
            assert rate == pytest.approx(slope(side), rel=3e-3, abs=1e-6 * base)
            assert side.check_s == pytest.approx(side.expected_s, rel=1e-7)


@pytest.fixture(scope="module")
def two_boxes() -> Sensitivity:
    """Of a forest on two boxes with NVSwitches."""
    return cwb.sensitivity(make_instance("a100(boxes=2)", "all_gather"), "forestcoll")


@pytest.mark.slow
def test_forests_on_two_boxes(two_boxes: Sensitivity) -> None:
    """One of the links into equally slow ranks gains nothing and costs T / C, all of them gain it; LPs confirm it at
    night."""
    found = two_boxes
    assert found.exact
    assert found.optimal
    assert [(entry.count, entry.alike) for entry in found.entries] == [(1, 16), (16, 16)] * 2
    for entry in found.entries:
        cut = -found.seconds / 325  # 300 GB/s by NVSwitch and 25 GB/s by InfiniBand come into every rank
        assert slope(entry.down) == pytest.approx(cut, rel=1e-12)
        assert slope(entry.up) == (pytest.approx(cut, rel=1e-12) if entry.count == 16 else 0)
    if NIGHTLY:
        one, every = found.entries[:2]
        part = replace(found, entries=(one, replace(every, down=None)))
        require_derivatives(part, make_instance("a100(boxes=2)", "all_gather"), "forestcoll/optimum")


def test_forests_on_rails() -> None:
    """On two small boxes with rails, LPs that are solved again confirm all derivatives of a forest's time."""
    instance = make_instance("rail(boxes=2,per_box=2)", "all_gather")
    require_derivatives(cwb.sensitivity(instance, "forestcoll"), instance, "forestcoll/optimum")


def test_ends_of_ranges_are_where_another_cut_takes_over():
    """On both sides of an end that was found, full runs follow different laws."""
    instance = make_instance("path(4)", "all_to_all")
    found = cwb.sensitivity(instance, "mcf/flow")
    (middle,) = (entry for entry in found.entries if entry.name == "1 - 2")
    assert middle.up is not None
    assert middle.up.until_GBps == pytest.approx(200 / 3, rel=1e-6)
    times = [bound(run_one(add_bandwidth(instance, middle, Fraction(k, 12)), Request("mcf/flow"))) for k in (3, 4, 5)]
    assert times[0] > times[1] == pytest.approx(times[2], rel=1e-7)
    require_derivatives(found, instance, "mcf/flow")


@pytest.mark.slow
def test_trees_over_a_wide_area_network():
    """The three links that tie two sites to the others are worth T / 2R each, the others nothing, as runs confirm."""
    instance = make_instance("gscale", None)
    study = _Study(
        cwb.harness.registry.get("mtree"), instance, options_of("mtree"), Request("mtree"), threading.Event()
    )
    entries = []
    for entry, value, at in islice(study.parameters(), 4):
        entries.append(replace(entry, up=one_sided(value, at, up=True), down=one_sided(value, at, up=False)))
    seconds = study.seconds(instance)
    assert isinstance(seconds, Fraction)
    assert seconds == Fraction(800, 31)
    assert [slope(entry.up) for entry in entries] == [pytest.approx(-(float(seconds) ** 2) / 2)] * 3 + [0.0]
    found = Sensitivity("mtree", "gscale", float(seconds), True, (entries[0],), 0)
    require_derivatives(found, instance, "mtree")


def options_of(model: str, **options: Any) -> Any:
    """Options of a method."""
    return cwb.harness.registry.get(model).options.model_validate(options)


def test_limits_of_a_design():
    """The derivative in a limit is the multiplier of the certificate, and the plan's dimensions are its kinks."""
    found = cwb.sensitivity("4d", "libra")
    record = cwb.solve("4d", "libra")
    assert record.certificate is not None
    (line,) = record.certificate["lines"]
    total, *kept = sorted(found.entries, key=lambda entry: not entry.name.startswith("limit"))
    for side in (total.up, total.down):
        assert slope(side) == pytest.approx(-line["multipliers"][0] * 1e9, rel=3e-4)
    more = bound(cwb.solve("4d", "libra", total_bandwidth="1001 GB/s"))
    assert more - found.seconds == pytest.approx(slope(total.up), rel=2e-3)
    assert len(kept) == 4
    for entry in kept:  # at the optimum one dimension alone gains no more, and costs no less, than the budget
        assert slope(entry.up) >= slope(total.up) >= slope(entry.down)


@pytest.mark.slow
def test_limits_that_are_written_as_constraints():
    """A limit of one dimension has a price of its own; a design without one is smooth in the others."""
    found = cwb.sensitivity("4d", "libra", constraints=["B4 <= 30 GB/s", "B1 >= 2 B2"])
    (limit,) = (entry for entry in found.entries if entry.name == "limit: B4 <= 30 GB/s")
    assert limit.up is not None
    assert limit.down is not None
    assert limit.up.law == limit.down.law == SMOOTH
    assert slope(limit.up) == pytest.approx(slope(limit.down), rel=1e-4)
    limits = [[f"B4 <= {most} GB/s", "B1 >= 2 B2"] for most in ("30.1", "29.9")]
    more, less = (bound(cwb.solve("4d", "libra", constraints=constraints)) for constraints in limits)
    assert (more - less) / 0.2 == pytest.approx(slope(limit.up), rel=1e-3)


def test_dimensions_of_a_fabric():
    """Of a linear program over the orders of chunks, each dimension's bandwidth is worth the same where all are
    busy."""
    rates = ["100 GB/s", "80 GB/s", "60 GB/s", "30 GB/s"]
    found = cwb.sensitivity("4d", "themis-lp", collective="all_reduce", bandwidth=rates)
    base = bound(cwb.solve("4d", "themis-lp", collective="all_reduce", bandwidth=rates))
    more = bound(cwb.solve("4d", "themis-lp", collective="all_reduce", bandwidth=[*rates[:3], "30.01 GB/s"]))
    (last,) = (entry for entry in found.entries if entry.name == "dimension 4, SW(32)")
    assert (more - base) / 0.01 == pytest.approx(slope(last.up), rel=1e-3)


def test_on_a_grid_of_epochs_there_are_steps():
    """Within the grid more bandwidth on one link changes nothing, and less on all of them is one epoch more at once."""
    found = cwb.sensitivity(make_instance("ring(3)", "all_gather"), "teccl-milp")
    one, every = found.entries
    assert slope(one.up) == 0
    assert every.down is not None
    assert (every.down.law, every.down.slope_s_per_GBps) == (JUMP, None)
    assert "jumps" in found.text()


@pytest.mark.parametrize(
    ("model", "network", "collective"),
    [
        ("forestcoll", "ring(5)", "all_gather"),
        ("forestcoll", "a100(boxes=2)", "all_reduce"),
        ("forestcoll", "star(4)", "broadcast"),
        ("mtree", "mesh(2,3)", "all_reduce"),
        ("bfb", "torus(3,3)", "all_gather"),
        ("bfb-heterogeneous", "ring(5)", "reduce_scatter"),
    ],
)
def test_bounds_without_a_run_are_those_of_runs(model: str, network: str, collective: str) -> None:
    """Bounds that a method proves without a run equal those that the verifier recomputes from a run's certificate."""
    instance = make_instance(network, collective)
    exact = cwb.harness.registry.get(model).proved_bound(instance, options_of(model))
    record = run_one(instance, Request(model))
    assert exact is not None
    assert record.proof == "recomputed"
    assert record.bound == pytest.approx(float(exact), rel=1e-12)


def test_trees_that_are_limited_are_solved():
    """With a limit on their number, the bound without a run would be another one."""
    assert (
        cwb.harness.registry.get("mtree").proved_bound(make_instance("gscale", None), options_of("mtree", trees=2))
        is None
    )


def test_what_has_no_sensitivity_is_refused():
    """Methods that prove nothing, products of time and cost, and grids that follow from bandwidths say so."""
    with pytest.raises(Unsupported, match="proves no time"):
        cwb.sensitivity("gpt-3-4d", "libra", objective="perf-per-cost", total_bandwidth="500 GB/s")
    with pytest.raises(Unsupported, match="uses ticks"):
        cwb.sensitivity(make_instance("ring(4)", "all_gather"), "ten-ilp")
    with pytest.raises(Unsupported, match="proves no time"):
        cwb.sensitivity(make_instance("ring(4)", "all_gather"), "bfb/lp")
    with pytest.raises(Unsupported, match="forestcoll: "):
        cwb.sensitivity("4d", "forestcoll")


def test_when_the_time_is_over_what_is_known_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study that is stopped has the entries that it has finished, and says that there are more."""
    solved = _Study._solve_bound

    def until_ten(self: _Study, posed: Instance) -> Any:
        self.over = self.over or self.solves >= 10
        return solved(self, posed)

    monkeypatch.setattr(_Study, "_solve_bound", until_ten)
    found = cwb.sensitivity(make_instance("path(5)", "all_gather"), "forestcoll")
    assert not found.complete
    assert 0 < len(found.entries) < 4
    assert "the time was over before the rest" in found.text()


def test_the_command_prints_records_and_draws(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The table is printed after the summary, the record has the numbers, and the plot is written."""
    arguments = ("solve", "-q", "--model", "forestcoll", "ring(3)", "--collective", "all_gather")
    plot = tmp_path / "ring.svg"
    assert command(*arguments, "--sensitivity", "--picture", str(plot)) == 0
    assert "0 - 1: all 3 alike, each" in capsys.readouterr().out
    assert plot.read_bytes().startswith(b"<?xml")
    assert command(*arguments, "--sensitivity", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["sensitivity"]["entries"][0]["up"]["law"] == "constant"
    assert command(*arguments, "--picture", str(plot)) == 2
    assert command("solve", "-q", "--model", "ring", "ring(4)", "--collective", "all_gather", "--sensitivity") == 0
    assert "proved bound" in capsys.readouterr().out
    ten = ("solve", "-q", "--model", "ten-ilp", "ring(4)", "--collective", "all_gather", "--sensitivity")
    assert command(*ten) == 0
    assert "--sensitivity: ten-ilp uses ticks" in capsys.readouterr().err


def test_pictures_show_what_all_links_of_a_class_gain(two_boxes: Sensitivity) -> None:
    """Colours are those of whole classes; a fabric without links is refused."""
    network, found = cwb.load("a100(boxes=2)").network, two_boxes
    gains = gains_of(found)
    assert len(gains) == 32
    assert list(gains.values()) == [pytest.approx(found.seconds / 325)] * 32
    assert len(draw(network, found).axes) == 2
    with pytest.raises(InputError, match="no links that could be drawn"):
        draw(cwb.load("4d").network, found)


def test_an_interrupted_study_keeps_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C while problems are solved again ends the study, and the run is printed."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cwb.studies.sensitivity.sensitivity", interrupt)
    arguments = ("solve", "-q", "--model", "forestcoll", "ring(3)", "--collective", "all_gather", "--sensitivity")
    assert command(*arguments) == 130
    told = capsys.readouterr()
    assert "interrupted; what the run has found is kept" in told.err
    assert "proved bound" in told.out
