"""Large schedules of NCCL by symmetry: the same sends, times and bounds as all sends written out; forged ones fail."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.schedules import problem
from cwb.core.collective import Demand, collective_named
from cwb.core.step_orbits import StepOrbits, expand_steps
from cwb.harness import Request
from cwb.harness.run import run
from cwb.heuristics.nccl.method import Prediction
from cwb.heuristics.textbook import algorithm
from cwb.instances import load
from cwb.schedules.completion import completion_of
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.verify import verify
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import exchange_images, leave_out

KINDS = ["all_gather", "reduce_scatter", "all_reduce", "all_to_all"]


def pose(spec: str, kind: str, size: int = 2**26, chunks: int = 1):
    """An instance of one collective."""
    return load(spec).with_changes(demand=Demand(collective_named(kind), Fraction(size), chunks))


def moves_of(answer) -> Counter:
    """Count the sends by data, path and step."""
    chunks, sends = answer.chunks, answer.sends
    data = zip(*(map(chunks.groups.__getitem__, ends[sends.chunk]) for ends in (chunks.held_by, chunks.needed_by)),
               strict=True)  # fmt: skip
    paths = np.split(sends.path_links, sends.path_offset[1:-1])
    return Counter(
        zip(answer.step.tolist(), data, sends.reduce.tolist(), (tuple(p.tolist()) for p in paths), strict=True)
    )


def solve_both(spec: str, kind: str, size: int = 2**26, chunks: int = 1, **options):
    """Runs that list all sends, and those of some ranks' data."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for most in (algorithm.MOST_LISTED, 0):
            patch.setattr(algorithm, "MOST_LISTED", most)
            found.append(run(pose(spec, kind, size, chunks), Request("nccl", options=options, bounds="none")))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("dgx_h100(boxes=3)", {"algorithm": "ring"}),
        ("dgx_a100(boxes=2)", {"algorithm": "ring", "pieces": 3}),
        ("mi300x(boxes=2)", {"algorithm": "ring"}),
        ("switch(6)", {"algorithm": "ring"}),
        ("switch(6)", {}),
        ("torus(3,3)", {"algorithm": "ring"}),
    ],
)
def test_sends_are_those_that_are_listed_otherwise(spec, options, kind):
    """Sends, their paths and steps, times, bounds and NICs of a few ranks' data moved to all are those of all sends."""
    if kind == "all_to_all":
        options = {name: value for name, value in options.items() if name != "algorithm"}
    if kind == "all_reduce":
        options = {**options, "algorithm": "ring"}
    listed, moved = solve_both(spec, kind, chunks=2, **options)
    assert listed.record.verified
    assert moved.record.verified
    assert isinstance(moved.answer, StepOrbits)
    written = expand_steps(moved.answer, moved.instance.topology)
    assert verify(moved.instance, written).ok
    if spec != "torus(3,3)":  # which has several shortest paths
        assert moves_of(written) == moves_of(listed.answer)
    seconds = (done.record.metrics["completion_time_s"] for done in (moved, listed))
    assert next(seconds) == pytest.approx(next(seconds), rel=1e-12)
    assert all(moved.record.metrics[name] == listed.record.metrics[name] for name in ("nics", "algorithm", "schedule"))
    assert moved.record.bound == listed.record.bound


@settings(max_examples=draws(25), deadline=None)
@given(boxes=st.integers(2, 4), gpus=st.integers(2, 5), size=st.integers(10**4, 10**9), kind=st.sampled_from(KINDS))
def test_times_are_those_of_all_sends(boxes, gpus, size, kind):
    """On boxes with a NIC for every GPU, schedules of any size take exactly as long as with all sends listed."""
    options = {} if kind == "all_to_all" else {"algorithm": "ring"}
    listed, moved = solve_both(f"rail({boxes},{gpus})", kind, size, **options)
    assert isinstance(moved.answer, StepOrbits)
    seconds = [completion_of(done.instance, done.answer).seconds for done in (listed, moved)]
    assert seconds[0] == pytest.approx(seconds[1], rel=1e-12)


def test_too_many_sends_are_rejected_before_times_are_predicted(monkeypatch):
    """Boxes of which one lacks a NIC have no symmetry: without one, the fewest sends are counted first."""
    monkeypatch.setattr(algorithm, "MOST_LISTED", 0)
    monkeypatch.setattr(problem, "MAX_SENDS", 100)
    monkeypatch.setattr(Prediction, "pick", None)
    record = run(pose("rail(4,4,missing_nics=1)", "all_gather"), Request("nccl")).record
    assert record.status == "unsupported"
    assert "240 sends; expected at most 100" in record.message


def exchange_channels(answer: StepOrbits) -> StepOrbits:
    """Give the first send the path of the next one from another node."""
    sends = answer.base.sends
    other = int(np.flatnonzero((sends.source != sends.source[0]) & (sends.hops == sends.hops[0]))[0])
    links = sends.path_links.copy()
    links[: sends.hops[0]] = sends.path(other)
    return replace(answer, base=replace(answer.base, sends=replace(sends, path_links=links)))


@pytest.mark.parametrize(
    ("forge", "violation"),
    [
        (leave_out, "missing"),
        (exchange_images, "symmetry"),
        (exchange_channels, "path"),
        (lambda answer: replace(answer, translations=answer.translations[:-1]), "symmetry"),
        (lambda answer: replace(answer, base=replace(answer.base, step=answer.base.step * 0)), "not-held"),
    ],
)
def test_a_file_of_forged_sends_is_refused(forge, violation, tmp_path):
    """A file without a send, with a wrong image, a path of another channel, one motion or one step is not right."""
    _, done = solve_both("dgx_h100(boxes=2)", "all_gather", algorithm="ring")
    write_schedule(tmp_path / "right.npz", done.instance, done.answer)
    assert verify(done.instance, read_schedule(tmp_path / "right.npz").answer).ok
    write_schedule(tmp_path / "forged.npz", done.instance, forge(done.answer))
    assert violation in verify(done.instance, read_schedule(tmp_path / "forged.npz").answer).counts
