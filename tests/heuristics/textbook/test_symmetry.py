"""Large schedules by symmetry: the same sends, verdict and times as all sends written out, on small networks."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.bounds.schedule_bounds import best_bound, length_bound
from cwb.algorithms.graphs.translations import ColouredNetwork, find_symmetry_of_schedule
from cwb.core.step_orbits import StepOrbits, expand_steps
from cwb.core.timing import RankCosts
from cwb.heuristics.textbook import algorithm
from cwb.schedules.collective import bound_of
from cwb.schedules.completion import completion_of
from cwb.schedules.files import ScheduleFile
from cwb.schedules.network_bounds import recomputed_length_bound
from cwb.schedules.verify import verify
from cwb.schedules.verify.orbits import count_alike_ranks
from cwb.studies.simulate import SimulationOptions, describe_simulation

GATHERS = ["all_gather", "reduce_scatter", "all_reduce"]
NETWORKS = {
    "ring": ["switch(5)", "ring(6)", "ring(5, bidirectional=false)", "torus(4,4)", "fat_tree(4)", "dgx_h100(boxes=8)"],
    "direct": ["switch(5)", "torus(3,5)", "dgx_h100(boxes=2)", "dgx_a100(boxes=3)", "fat_tree(4)", "hypercube(3)"],
    "torus-rings": ["ring(6)", "torus(4,4)", "torus(3,5)", "torus(2,2,4)"],
    "bine": ["switch(6)", "torus(4,4)", "dgx_h100(boxes=2)", "fat_tree(4)"],
}
CASES = [(name, network, kind) for name, networks in NETWORKS.items() for network in networks
         for kind in (*GATHERS, *(["all_to_all"] if name == "direct" else []))]  # fmt: skip


def moves_of(schedule) -> Counter:
    """Count the sends by ends and by who holds and needs what is sent."""
    chunks, sends = schedule.chunks, schedule.sends
    data = zip(*(map(chunks.groups.__getitem__, ends[sends.chunk]) for ends in (chunks.held_by, chunks.needed_by)),
               strict=True)  # fmt: skip
    return Counter(zip(sends.source.tolist(), sends.target.tolist(), data, sends.reduce.tolist(), strict=True))


@pytest.mark.parametrize(("name", "network", "kind"), CASES)
def test_the_images_are_the_sends_of_the_algorithm(name, network, kind, pose, solve_unchecked, monkeypatch):
    """By symmetry an algorithm has the sends that it lists otherwise; verdict and time are those of all sends."""
    posed = pose(network, kind, chunks=2)
    listed = solve_unchecked(name, posed)
    monkeypatch.setattr(algorithm, "MOST_LISTED", 0)
    answer = solve_unchecked(name, posed)
    assert isinstance(answer, StepOrbits)
    written = expand_steps(answer, posed.topology)
    other_ring = name == "ring" and network in ("torus(4,4)", "dgx_h100(boxes=8)")
    if not other_ring:
        assert moves_of(written) == moves_of(listed)
    assert verify(posed, answer).ok
    assert verify(posed, written).ok
    assert completion_of(posed, answer).seconds == completion_of(posed, written).seconds
    if name == "ring":  # no two sends meet
        assert completion_of(posed, listed).seconds == completion_of(posed, written).seconds


def test_without_translations_all_sends_are_listed(pose, solve_unchecked, monkeypatch):
    """On a network without translations, or if ranks have costs, the schedule has all sends."""
    monkeypatch.setattr(algorithm, "MOST_LISTED", 0)
    assert not isinstance(solve_unchecked("direct", pose("mesh(3,3)", "all_gather")), StepOrbits)
    costs = pose("switch(4)", "all_gather").with_changes(rank_costs=RankCosts(Fraction(1, 10**6)))
    assert not isinstance(solve_unchecked("direct", costs), StepOrbits)


def test_a_power_of_a_translation_keeps_what_the_translation_does_not(pose):
    """Of a translation that is not kept, its least power is used that is."""
    network = ColouredNetwork.of(pose("switch(12)", "all_gather").topology)
    found = find_symmetry_of_schedule(network, lambda image: int(image[0]) % 3 == 0)
    assert found is not None
    assert (found.motions, len(found.roots)) == (4, 3)
    assert find_symmetry_of_schedule(network, lambda image: False) is None
    assert np.array_equal(np.bincount(found.orbit), found.size)


@pytest.mark.parametrize("network", ["torus(4,6)", *NETWORKS["direct"]])
def test_the_bound_by_lengths_is_that_of_all_ranks(network, pose, solve_unchecked, monkeypatch):
    """Distances from one rank of every orbit prove as much about an all-to-all as those from all, recomputed too."""
    monkeypatch.setattr(algorithm, "MOST_LISTED", 0)
    posed = pose(network, "all_to_all")
    answer = solve_unchecked("direct", posed)
    roots = np.unique(answer.base.chunks.held_by)
    assert len(roots) < posed.npus
    ones = [1] * len(posed.topology.links)
    seconds, certificate = length_bound(posed, ones, roots)
    assert (seconds, certificate) == length_bound(posed, ones)
    assert best_bound(posed, starts=roots) == best_bound(posed)
    assert count_alike_ranks(answer, posed, certificate)
    simulated = describe_simulation(ScheduleFile(posed, answer, None, {}), SimulationOptions())
    assert simulated["lower_bound_s"] == float(best_bound(posed)[0])
    assert bound_of(posed, answer, certificate) == seconds == recomputed_length_bound(posed, certificate)
