"""Sends of one rank's data, moved to all others: the same verdict and times as all sends written out; forged ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.graphs.distances import route
from cwb.core.bounds import LengthCertificate
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, Sends, StepSchedule
from cwb.core.step_orbits import StepOrbits, expand_steps
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trees import Translation
from cwb.schedules.collective import bound_of
from cwb.schedules.completion import completion_of, simulate_step_orbits
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.network_bounds import recomputed_length_bound
from cwb.schedules.verify import verify
from cwb.schedules.verify.orbits import count_alike_ranks
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import exchange_images, leave_out

KINDS = ["all_gather", "reduce_scatter", "all_reduce", "all_to_all"]
rates = st.sampled_from([Fraction(10**9), Fraction(3 * 10**9), Fraction(10**10, 7)])
latencies = st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 3 * 10**6)])


@st.composite
def networks(draw) -> Topology:
    """A network that is the same from every rank: a link for each of some strides, and perhaps a switch."""
    n = draw(st.integers(3, 7))
    strides = {1, *draw(st.lists(st.integers(1, n - 1), max_size=2))}
    links = []
    for stride in sorted(strides):
        rate, latency = draw(rates), draw(latencies)
        links += [Link(str(r), str((r + stride) % n), rate, latency) for r in range(n)]
    nodes = [Node(str(r)) for r in range(n)]
    if draw(st.booleans()):
        nodes.append(Node("switch", NodeKind.SWITCH))
        rate, latency = draw(rates), draw(latencies)
        links += [link for r in range(n) for link in (Link(str(r), "switch", rate, latency),
                                                      Link("switch", str(r), rate, latency))]  # fmt: skip
    return Topology(tuple(nodes), tuple(links))


@st.composite
def cases(draw) -> tuple[Instance, StepOrbits]:
    """An instance, and a random schedule of the data of rank 0, with the translation by one rank."""
    topology, kind = draw(networks()), draw(st.sampled_from(KINDS))
    n, nodes = len(topology.ranks), len(topology.nodes)
    size = Fraction(840_000)
    instance = Instance("by hand", topology).with_changes(demand=Demand(getattr(Collective, kind.upper()), size))
    everyone, pieces = n, draw(st.integers(1, 2))
    rows: list[tuple[int, int, int, bool, int]] = []
    for chunk in range(n - 1 if kind == "all_to_all" else pieces):
        edges, came = [], {0: 0}
        targets = [chunk + 1] if kind == "all_to_all" else draw(st.permutations(range(1, n)))
        for target in targets:
            parent = draw(st.sampled_from(sorted(came)))
            came[target] = came[parent] + 1 + draw(st.integers(0, 2))
            edges.append((parent, target, came[target] - 1))
        last = max(came.values())
        into = [(chunk, target, parent, True, last - 1 - step) for parent, target, step in edges]
        out = [(chunk, parent, target, False, step) for parent, target, step in edges]
        rows += {"reduce_scatter": into, "all_reduce": into + [(*row[:4], row[4] + last) for row in out]}.get(kind, out)
    rows = draw(st.permutations(rows))
    chunk, source, target, adds, step = (np.array(column) for column in zip(*rows, strict=True))
    paths = route(topology, source, target)
    sends = Sends(chunk, source, target, adds, paths.offset, paths.links)
    count = n - 1 if kind == "all_to_all" else pieces
    owner, summed = np.zeros(count, dtype=np.int64), kind in ("reduce_scatter", "all_reduce")
    all_ranks = owner + everyone
    ends = {"all_gather": (owner, all_ranks), "reduce_scatter": (all_ranks, owner), "all_reduce": (all_ranks,) * 2}
    held, needed = ends.get(kind, (owner, np.arange(1, n)))
    groups = (*((r,) for r in range(n)), tuple(range(n)))
    unit = size / n / (1 if kind == "all_to_all" else pieces)
    chunks = Chunks(np.ones(count, dtype=np.int64), unit, groups, held, needed, np.full(count, summed))
    image = np.where(np.arange(nodes) < n, (np.arange(nodes) + 1) % n, np.arange(nodes))
    return instance, StepOrbits(StepSchedule(instance.sha256, chunks, sends, step), (Translation(image, n),))


@settings(max_examples=draws(150), deadline=None)
@given(case=cases())
def test_verdict_and_times_are_those_of_all_sends(case):
    """A random schedule of one rank's data is right if all its images are, and takes as long, link by link, exactly."""
    instance, answer = case
    written = expand_steps(answer, instance.topology)
    assert verify(instance, answer).ok
    assert verify(instance, written).ok
    of_all, moved = completion_of(instance, written, unaware=True), simulate_step_orbits(instance, answer, unaware=True)
    assert moved is not None
    assert (moved.seconds, moved.unaware_s, moved.sends) == (of_all.seconds, of_all.unaware_s, of_all.sends)
    assert np.allclose(moved.busy_s, of_all.busy_s, rtol=1e-13, atol=0)  # added up in another order


def double_size(answer: StepOrbits) -> StepOrbits:
    """Double the size of the chunks."""
    given = answer.base
    return replace(answer, base=replace(given, chunks=replace(given.chunks, unit_bytes=given.chunks.unit_bytes * 2)))


FORGED: dict[str, Callable[[StepOrbits], StepOrbits]] = {
    "missing": lambda answer: leave_out(answer, 3),
    "symmetry": lambda answer: exchange_images(answer, 1, 2),
    "size": double_size,
    "not-held": lambda answer: replace(answer, base=replace(answer.base, step=answer.base.step * 0)),
    "path": lambda answer: replace(
        answer, base=replace(answer.base, sends=replace(answer.base.sends, target=answer.base.sends.source))
    ),
    "instance": lambda answer: replace(answer, base=replace(answer.base, instance_sha256="0" * 64)),
    "range": lambda answer: replace(
        answer, base=replace(answer.base, sends=replace(answer.base.sends, chunk=answer.base.sends.chunk + 9))
    ),
}


def gather_on(topology: Topology) -> tuple[Instance, StepOrbits]:
    """The data of rank 0 goes once around a ring of all ranks."""
    n = len(topology.ranks)
    instance = Instance("by hand", topology).with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(1000 * n)))
    here, zero = np.arange(n - 1), np.zeros(1, dtype=np.int64)
    paths = route(topology, here, here + 1)
    sends = Sends(here * 0, here, here + 1, here < 0, paths.offset, paths.links)
    groups = (*((r,) for r in range(n)), tuple(range(n)))
    chunks = Chunks(zero + 1, Fraction(1000), groups, zero, zero + n, zero > 0)
    image = np.where(np.arange(len(topology.nodes)) < n, (np.arange(len(topology.nodes)) + 1) % n, n)
    return instance, StepOrbits(StepSchedule(instance.sha256, chunks, sends, here), (Translation(image, n),))


def star(n: int = 6, latency: Fraction = Fraction(1, 10**6)) -> Topology:
    """Ranks at a switch; the latency of the first link may be another one."""
    late = Fraction(1, 10**6)
    links = [Link(a, b, Fraction(10**9), late) for r in range(n) for a, b in ((str(r), "s"), ("s", str(r)))]
    links[0] = replace(links[0], latency_s=latency)
    return Topology((*(Node(str(r)) for r in range(n)), Node("s", NodeKind.SWITCH)), tuple(links))


@pytest.mark.parametrize("kind", FORGED)
def test_forged_schedules_are_refused(kind):
    """The verifier names a send that is left out, a permutation that moves links to others, a wrong size, a send that
    comes too early, a path that leads elsewhere, another instance, and unknown numbers."""
    instance, answer = gather_on(star())
    assert verify(instance, answer).ok
    assert kind in verify(instance, FORGED[kind](answer)).counts


@pytest.mark.parametrize("forgery", ["none", "lengths", "symmetry", "latency", "collective"])
def test_distances_of_some_ranks_need_lengths_that_are_kept(forgery):
    """If lengths, the network or the collective differ between images, a bound by lengths looks at all ranks."""
    instance, answer = gather_on(star())
    kind = Collective.ALL_GATHER if forgery == "collective" else Collective.ALL_TO_ALL
    instance = instance.with_changes(demand=Demand(kind, Fraction(6000)))
    lengths = [1] * len(instance.topology.links)
    lengths[0] = 2 if forgery == "lengths" else 1
    answer = exchange_images(answer, 1, 2) if forgery == "symmetry" else answer
    certificate = LengthCertificate(tuple(lengths), latency=forgery == "latency")
    assert count_alike_ranks(answer, instance, certificate) == ({0: 6} if forgery == "none" else None)
    if kind is Collective.ALL_TO_ALL:
        assert bound_of(instance, answer, certificate) == recomputed_length_bound(instance, certificate) > 0


def test_a_link_of_another_latency_is_no_image():
    """If one link differs, the translation is no symmetry."""
    instance, answer = gather_on(star(latency=Fraction(2, 10**6)))
    assert set(verify(instance, answer).counts) == {"symmetry"}


@pytest.mark.parametrize("order", [2, 3, 12])
def test_motions_move_the_root_to_every_rank_once(order):
    """With another order of the translation the data of some ranks is left out, or given twice."""
    instance, answer = gather_on(star())
    image = answer.translations[0].image
    for _ in range(0 if order == 12 else 6 // order - 1):
        image = answer.translations[0].image[image]
    forged = replace(answer, translations=(Translation(image, order),))
    assert "symmetry" in verify(instance, forged).counts


def test_a_link_that_a_motion_leaves_in_place_has_all_sends_played():
    """If images of a send meet at one link, all sends are written out, which take longer than one of them."""
    late, rate = Fraction(1, 10**6), Fraction(10**9)
    ends = [("0", "a"), ("1", "a"), ("a", "b"), ("b", "0"), ("b", "1")]
    nodes = *(Node(str(r)) for r in range(2)), Node("a", NodeKind.SWITCH), Node("b", NodeKind.SWITCH)
    instance, answer = gather_on(Topology(nodes, tuple(Link(*each, rate, late) for each in ends)))
    answer = replace(answer, translations=(Translation(np.array([1, 0, 2, 3]), 2),))
    assert verify(instance, answer).ok
    assert simulate_step_orbits(instance, answer) is None
    assert completion_of(instance, answer).seconds == pytest.approx(4e-6 + 3e-6)


def test_without_translations_the_given_sends_are_all():
    """Sends without a translation are refused by name, and written out as they are."""
    instance, answer = gather_on(star())
    answer = replace(answer, translations=())
    assert set(verify(instance, answer).counts) == {"symmetry"}
    assert np.array_equal(expand_steps(answer, instance.topology).sends.target, answer.base.sends.target)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_file(tmp_path, suffix):
    """A file of such a schedule reads back as it was."""
    instance, answer = gather_on(star())
    write_schedule(tmp_path / f"s{suffix}", instance, answer)
    read = read_schedule(tmp_path / f"s{suffix}").answer
    assert isinstance(read, StepOrbits)
    assert read.translations[0].order == 6
    assert np.array_equal(read.translations[0].image, answer.translations[0].image)
    assert verify(instance, read).ok
    assert completion_of(instance, read).seconds == completion_of(instance, answer).seconds
