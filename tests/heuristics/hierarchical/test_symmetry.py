"""Large compositions by symmetry: verified with all sends written out, about as fast as those found with all sends."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from cwb.core import step_orbits
from cwb.core.budget import Budget, Incumbent
from cwb.core.collective import Demand, collective_named
from cwb.core.step_orbits import StepOrbits, expand_steps
from cwb.harness import Request, registry
from cwb.harness.run import run
from cwb.heuristics.hierarchical.method import METHOD
from cwb.heuristics.textbook import algorithm
from cwb.instances import load
from cwb.schedules.completion import completion_of
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.verify import verify
from mutations import exchange_images, leave_out


def solve(spec: str, kind: str, most: int, monkeypatch: pytest.MonkeyPatch, size: int = 2**22, **options):
    """Run the method, with orbits if there are more sends than ``most``."""
    monkeypatch.setattr(algorithm, "MOST_LISTED", most)
    posed = load(spec).with_changes(demand=Demand(collective_named(kind), Fraction(size)))
    return run(posed, Request("hierarchical", options=options, bounds="none"))


#: Networks, and the collectives that are asked of each in every run.
IMAGES = {
    "dgx_h100(boxes=2)": ("all_gather", "reduce_scatter", "all_reduce"),
    "rail(3,4)": ("all_gather",),
    "torus(3,4)": ("reduce_scatter",),
    "mi300x(boxes=2)": ("all_gather",),
}


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        pytest.param(spec, kind, marks=() if kind in often else pytest.mark.nightly)
        for spec, often in IMAGES.items()
        for kind in IMAGES["dgx_h100(boxes=2)"]
    ],
)
def test_images_are_a_schedule_that_is_about_as_fast(spec, kind, monkeypatch):
    """The sends of one rank's data, moved to all, are right and take exactly as long as when they are written out.

    Another choice of phases may be up to 15 % slower than that among all sends.
    """
    listed = solve(spec, kind, algorithm.MOST_LISTED, monkeypatch, pieces=4)
    moved = solve(spec, kind, 0, monkeypatch, pieces=4)
    assert isinstance(moved.answer, StepOrbits)
    assert moved.record.verified
    assert moved.record.bound == listed.record.bound
    written = expand_steps(moved.answer, moved.instance.topology)
    assert verify(moved.instance, written).ok
    assert completion_of(moved.instance, written).seconds == completion_of(moved.instance, moved.answer).seconds
    assert moved.record.metrics["completion_time_s"] <= 1.15 * listed.record.metrics["completion_time_s"]


@pytest.mark.parametrize("kind", ["broadcast", "reduce"])
def test_answers_of_groups_that_are_by_symmetry_are_written_out(kind, monkeypatch):
    """A rooted collective, which has no symmetry, takes as long if the answers for its groups are by symmetry."""
    options = {"levels": [4, 2], "algorithms": ["bine", "ring"], "pieces": 2}
    listed = solve("rail(2,4)", kind, algorithm.MOST_LISTED, monkeypatch, **options).record
    moved = solve("rail(2,4)", kind, 0, monkeypatch, **options).record
    assert moved.verified
    assert moved.objective == listed.objective


def test_answers_of_groups_that_are_too_large_to_write_out_are_refused_with_the_reason(monkeypatch):
    """The line names the algorithm, the number of its sends and the limit."""
    monkeypatch.setattr(step_orbits, "MOST_WRITTEN", 10)
    record = solve("rail(2,4)", "broadcast", 0, monkeypatch, levels=[4, 2], algorithms=["bine", "ring"]).record
    reason = "bine: answer: 12 sends over 24 links are not written out; expected at most 10"
    assert (record.status, record.message) == ("unsupported", f"no all_gather for groups of 4 ranks here ({reason})")


def test_orders_of_levels_have_groups_of_their_own(monkeypatch):
    """Pieces that take levels of equal size in several orders are right: of one rank's data, their groups differ."""
    moved = solve("torus(2,3,3)", "all_reduce", 0, monkeypatch, size=7, pieces=4, balance=True)
    assert isinstance(moved.answer, StepOrbits)
    assert moved.record.verified


def test_orders_are_balanced_though_one_piece_is_fastest_in_one_order(monkeypatch):
    """On a torus, more pieces in one order only add latency, but pieces in two orders use all links at once."""
    for most in (algorithm.MOST_LISTED, 0):
        best = solve("torus(2,5)", "all_gather", most, monkeypatch, size=2**23).record
        plain = solve("torus(2,5)", "all_gather", most, monkeypatch, size=2**23, balance=False).record
        assert (plain.metrics["pieces"], best.metrics["orders"]) == (1, 2)
        assert best.objective < 0.7 * plain.objective


def test_a_run_that_is_broken_off_keeps_the_images_too(monkeypatch):
    """Every schedule that is reported on the way is of all data, not of one rank's alone."""
    told: list[Incumbent] = []
    monkeypatch.setattr(algorithm, "MOST_LISTED", 0)
    posed = load("dgx_h100(boxes=2)").with_changes(demand=Demand(collective_named("all_gather"), Fraction(2**22)))
    METHOD.run(posed, registry.solver("highs"), Budget(tell=told.append), METHOD.options())
    answers = [incumbent.answer() for incumbent in told if incumbent.answer is not None]
    assert answers
    assert all(isinstance(answer, StepOrbits) and verify(posed, answer).ok for answer in answers)


@pytest.mark.parametrize(
    ("forge", "violation"),
    [
        (leave_out, "missing"),
        (exchange_images, "symmetry"),
        (lambda answer: replace(answer, translations=answer.translations[:1]), "symmetry"),
        (lambda answer: replace(answer, base=replace(answer.base, step=answer.base.step * 0)), "not-held"),
    ],
)
def test_a_file_of_forged_sends_is_refused(forge, violation, tmp_path, monkeypatch):
    """A file without a send, with a wrong image, with fewer motions or in one step is not right."""
    done = solve("dgx_h100(boxes=2)", "all_gather", 0, monkeypatch, pieces=1)
    write_schedule(tmp_path / "forged.npz", done.instance, forge(done.answer))
    assert violation in verify(done.instance, read_schedule(tmp_path / "forged.npz").answer).counts


def test_translations_that_carry_between_levels_are_not_used(monkeypatch):
    """Translations that carry from one given level to the next are no symmetry of the composition."""
    done = solve("switch(6)", "all_gather", 0, monkeypatch, levels=[2, 3], pieces=1)
    assert done.record.verified
    orders = [each.order for each in done.answer.translations] if isinstance(done.answer, StepOrbits) else []
    assert 6 not in orders
