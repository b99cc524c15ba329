"""Forests whose trees are moved by translations: optimal, right in the small and in the large, never taken on trust."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.forests import orbit_packing
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.outcome import Status
from cwb.core.pipelining import PIECES
from cwb.core.topology import Topology
from cwb.core.trees import Translation, TreeOrbits, expand_orbits
from cwb.harness.request import Request
from cwb.harness.run import FinishedRun, run
from cwb.instances import load
from cwb.models.forestcoll import solve
from cwb.models.forestcoll.method import FORESTCOLL
from cwb.schedules import verdict_of
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.simulate import SimulationMode, simulate
from cwb.schedules.verify import verify


def solve_network(network: str, kind: Collective = Collective.ALL_GATHER, **options: object):
    """Instance and finished run."""
    instance = load(network).with_changes(demand=Demand(kind, Fraction(2**20)))
    return instance, finished(instance, symmetry="kept", **options)


def finished(instance: Instance, **options: object) -> FinishedRun:
    """A run on it."""
    return run(instance, Request("forestcoll", options=options))


@pytest.mark.parametrize("kind", [Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE])
@pytest.mark.parametrize("network", ["dgx_a100(boxes=2)", "mi250_8(boxes=2)", "fat_tree(4)"])
def test_written_out_it_is_the_same(network, kind):
    """Time, bound, trees, heights and completion time are those of all trees, checked and measured one by one."""
    instance, done = solve_network(network, kind)
    assert isinstance(done.answer, TreeOrbits)
    orbits, trees = (
        verdict_of(instance, done.answer, done.certificate),
        verdict_of(instance, expand_orbits(done.answer, instance.network), done.certificate),
    )
    assert orbits.ok and trees.ok
    assert (orbits.objective, orbits.bound) == (trees.objective, trees.bound)
    for metric in ("flow_time_s", "trees", "max_height", "pieces"):
        assert orbits.metrics[metric] == trees.metrics[metric]
    for metric in ("mean_height", "completion_time_s"):
        assert orbits.metrics[metric] == pytest.approx(trees.metrics[metric])
    assert done.record.status == "optimal" or kind is Collective.ALL_REDUCE


def test_no_other_forest_is_begun_when_stopped(monkeypatch):
    """A run that is stopped while it seeks trees by symmetry ends with its bound, and packs no trees of all roots."""
    monkeypatch.setattr(solve, "solve_forest", None)
    instance = load("dragonfly(5,2,2)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(2**20)))
    budget = Budget()
    budget.stop.set()
    outcome = FORESTCOLL.run(instance, None, budget, FORESTCOLL.options())
    assert (outcome.status, outcome.answer) == (Status.LIMIT, None)
    assert outcome.bound == pytest.approx(1.9922944e-05)


@pytest.mark.parametrize("network", ["mi250(boxes=1)", "torus(3,4)", "dgx_a100(boxes=3)", "pods(2,2,4,4,2)"])
def test_as_fast_and_as_low_as_without(network):
    """The forest is optimal, and no higher than the one that is packed without symmetry."""
    instance, done = solve_network(network)
    plain = finished(instance, symmetry="none", repack=5)
    assert (done.record.status, done.record.objective) == ("optimal", plain.record.objective)
    assert done.record.metrics["mean_height"] <= plain.record.metrics["mean_height"]


@pytest.mark.parametrize(
    ("network", "highest", "mean"), [("mi250(boxes=2)", 6, 5.33), ("dgx1()", 2, 2.0), ("dragonfly(5,4,4)", 3, 2.48)]
)
def test_low_trees(network, highest, mean):
    """Heights that the linear program over trees has reached are kept."""
    metrics = finished(solve_network(network)[0]).record.metrics
    assert metrics["max_height"] <= highest and metrics["mean_height"] <= mean


def test_whoever_used_highs_before():
    """A thread in which HiGHS has run with another number of threads packs the same forest."""
    import highspy

    def with_two_threads() -> dict[str, object]:
        other = highspy.Highs()
        other.setOptionValue("output_flag", False)
        other.setOptionValue("threads", 2)
        other.addCol(1.0, 0.0, 1.0, 0, np.zeros(0, dtype=np.int32), np.zeros(0))
        other.run()
        return finished(instance).record.metrics

    instance, done = solve_network("mi250(boxes=1)")
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(with_two_threads).result()
    assert found["mean_height"] == done.record.metrics["mean_height"]


def test_kept_or_written():
    """Below 1,024 ranks all trees are written out, unless asked otherwise; a network without symmetry has its own
    trees."""
    instance, kept = solve_network("star(4)")
    written = finished(instance)
    assert isinstance(kept.answer, TreeOrbits) and not isinstance(written.answer, TreeOrbits)
    assert written.record.metrics["trees"] == kept.record.metrics["trees"]
    assert "motions" not in solve_network("rail(2,2,missing_nics=1)")[1].record.metrics


def test_a_file_holds_it(tmp_path):
    """Trees, translations, certificate and pieces come back, and a simulation writes the trees out."""
    instance, done = solve_network("dgx_a100(boxes=2)")
    path = tmp_path / "forest.json.gz"
    write_schedule(path, instance, done.answer, done.certificate, pieces=PIECES[0])
    read = read_schedule(path)
    assert read.pieces == PIECES[0]
    assert (
        verdict_of(read.instance, read.answer, read.certificate).metrics
        == verdict_of(instance, done.answer, done.certificate).metrics
    )
    assert len(simulate(instance, read.answer, SimulationMode.ALPHA_BETA).start_s) == len(done.answer) * 15


def wrong_translations(instance: Instance, answer: TreeOrbits) -> dict[str, TreeOrbits]:
    """Answers whose translations are wrong, by what the verifier says of them."""
    first, second = answer.translations
    swapped = first.image.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    double = first.image.copy()
    double[0] = double[1]
    switch = np.arange(len(first.image))
    place = instance.network.tree_nodes[-1]
    switch[[0, place]] = place, 0
    changed = {
        "moves a link to where there is no equal one": Translation(swapped, first.order),
        "is no permutation": Translation(double, first.order),
        "which is of another kind": Translation(switch, 2),
        "not back after their order": Translation(first.image, first.order + 1),
    }
    answers = {text: replace(answer, translations=(one, second)) for text, one in changed.items()}
    answers["move 1 roots to other than"] = replace(answer, translations=(second,))
    again = Translation(second.image[second.image], second.order // 2)
    answers["two motions move a root to the same rank"] = replace(answer, translations=(second, again))
    answers["make more motions than there are ranks"] = replace(answer, translations=(first,) * 100_000)
    answers["there is no translation"] = replace(answer, translations=())
    return answers


def test_translations_are_not_believed():
    """Whatever is wrong with a translation is a violation, in one line."""
    instance, done = solve_network("dgx_a100(boxes=4)")
    for text, answer in wrong_translations(instance, done.answer).items():
        violations = verify(instance, answer).violations
        assert violations and text in str(violations[0]), (text, violations)


def test_a_faster_link_is_no_image():
    """If one link is faster than its images, the trees of a network without it are refused."""
    instance, done = solve_network("dgx_a100(boxes=2)")
    topology = instance.topology
    links = (replace(topology.links[0], bandwidth_Bps=topology.links[0].bandwidth_Bps * 2), *topology.links[1:])
    other = instance.with_changes(network=Topology(topology.nodes, links))
    answer = replace(done.answer, trees=replace(done.answer.trees, instance_sha256=other.sha256))
    assert "no equal one" in str(verify(other, answer).violations[0])


def test_trees_are_checked():
    """Trees that lack a rank, or carry too little, are violations as in any packing."""
    instance, done = solve_network("dgx_a100(boxes=2)")
    trees = done.answer.trees
    less = replace(done.answer, trees=replace(trees, unit_bytes=trees.unit_bytes / 2))
    twice = replace(done.answer, trees=replace(trees, child=np.where(trees.child == 5, 6, trees.child)))
    assert "off by" in str(verify(instance, less).violations[0])
    assert verify(instance, twice).violations


def test_weights_are_rounded_where_links_of_hosts_have_no_room_to_spare(monkeypatch):
    """A dragonfly whose weights have no small common denominator is proved optimal by rounded ones: all room of the
    links of hosts is used, and a part of that of other links is left free."""
    monkeypatch.setattr(orbit_packing, "exact_weights", lambda *_: None)
    _, done = solve_network("dragonfly(11,5,2)")
    assert (done.record.status, done.record.verified, done.record.metrics["roots"]) == ("optimal", True, 5)


@pytest.mark.parametrize(("network", "height"), [("dragonfly(73,12,6)", 1), ("dragonfly(70,12,6)", 2)])
def test_dragonflies_of_thousands_are_proved_optimal(network, height):
    """Neither 225 orbits of links nor weights without a small common denominator hinder single trees."""
    _, done = solve_network(network)
    assert (done.record.status, done.record.verified) == ("optimal", True)
    assert done.record.metrics["max_height"] == height and isinstance(done.answer, TreeOrbits)


@pytest.mark.slow
def test_sixteen_thousand_gpus():
    """16,384 GPUs are proved optimal, with trees of height 2."""
    instance, done = solve_network("dgx_a100(boxes=2048)")
    assert (done.record.status, done.record.verified, done.record.metrics["max_height"]) == ("optimal", True, 2)
    assert len(done.answer) == instance.npus
