"""The verifier of schedules on a grid of epochs, and of bounds in epochs: refuses what is wrong and proves no more than
the optimum."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from cwb import solvers
from cwb.core.bounds import CutCertificate, EpochChain, EpochCut, EpochDistance, EpochFlow
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, Schedule, sends_from_lists
from cwb.core.timing import EPOCHS, BandwidthChange, Semantics, Timing
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.models.teccl import solve_milp
from cwb.models.teccl.options import MilpOptions
from cwb.schedules import verdict_of
from cwb.schedules.collective import exact_bound
from cwb.schedules.epoch_bounds import recomputed_epochs
from cwb.schedules.files import read_schedule, write_schedule
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

US = Fraction(1, 10**6)


def star(multicast=True, semantics=Semantics.TE_CCL, latency=Fraction(0), **timing) -> Instance:
    """A broadcast of one chunk from rank 0 to 1 and 2 over a switch without buffer; a link takes one epoch for a
    chunk."""
    nodes = (Node("a"), Node("b"), Node("c"), Node("s", NodeKind.SWITCH, multicast, Fraction(0)))
    ends = [("a", "s"), ("b", "s"), ("c", "s"), ("s", "a"), ("s", "b"), ("s", "c")]
    topology = Topology(nodes, tuple(Link(x, y, Fraction(10**9), latency) for x, y in ends))
    demand = Demand(Collective.BROADCAST, Fraction(1000))
    return Instance("star", topology, demand, timing=Timing(semantics, US, **timing))


def schedule(instance, hops) -> Schedule:
    """Sends of chunk 0 given as (path, first index, last index)."""
    ends = instance.network.link_ends
    chunks = Chunks(
        *(np.array([1]), Fraction(1000), ((0,), (0, 1, 2))), np.array([0]), np.array([1]), np.array([False])
    )
    paths = [path for path, _, _ in hops]
    sends = sends_from_lists(
        [0] * len(hops), [ends[p[0]][0] for p in paths], [ends[p[-1]][1] for p in paths], False, paths
    )
    start, end = (np.array([hop[i] for hop in hops], dtype=float) * 1e-6 for i in (1, 2))
    return Schedule(instance.sha256, chunks, sends, start, end)


RIGHT = [((0,), 0, 1), ((4,), 1, 1), ((5,), 1, 1)]


def violations(instance, hops):
    return " ".join(verdict_of(instance, schedule(instance, hops)).violations)


def test_a_switch_that_copies_hands_over_at_once():
    """Up in an epoch, down to both in none: one epoch under te-ccl, two under the others."""
    verdict = verdict_of(star(), schedule(star(), RIGHT))
    assert verdict.ok, verdict.violations
    assert verdict.metrics["epochs"] == 1
    assert verdict.objective == 1e-6
    paid = star(semantics=Semantics.STORE_AND_FORWARD)
    assert "is said to take 0 epochs, but takes 1" in violations(paid, RIGHT)
    assert verdict_of(paid, schedule(paid, [RIGHT[0], ((4,), 1, 2), ((5,), 1, 2)])).metrics["epochs"] == 2


@pytest.mark.parametrize(
    ("hops", "kind"),
    [
        (RIGHT[:2], "missing"),
        ([((0,), 0, 1), ((4,), 1, 1), ((5,), 2, 2)], "buffer"),
        ([((0,), 0.5, 1.5), ((4,), 1.5, 1.5), ((5,), 1.5, 1.5)], "grid"),
        ([((0,), 0, 2), ((4,), 2, 2), ((5,), 2, 2)], "grid"),
        ([((0,), 0, 1), ((0, 4), 0, 1), ((5,), 1, 1)], "capacity"),
        ([((4,), 0, 0), ((5,), 0, 0)], "buffer"),
    ],
)
def test_what_is_wrong_is_found(hops, kind):
    """Missing deliveries, chunks that stay in a switch, times off the grid, full links: each is told by its kind."""
    assert kind in violations(star(), hops)


def test_a_switch_without_multicast_sends_on_as_often_as_it_receives():
    """One copy in and two out is a violation without multicast, two in and two out are too many for one epoch."""
    assert "multicast" in violations(star(multicast=False), RIGHT)
    paths = [((0, 4), 0, 1), ((0, 5), 1, 2)]
    assert verdict_of(star(multicast=False), schedule(star(multicast=False), paths)).ok


def test_free_latency_is_free_up_to_a_tenth_of_an_epoch():
    """Latency of a tenth of an epoch costs nothing, of more than that an epoch on every link."""
    slow = star(latency=US / 9)
    assert verdict_of(star(latency=US / 10), schedule(star(latency=US / 10), RIGHT)).ok
    assert verdict_of(slow, schedule(slow, [((0,), 0, 2), ((4,), 2, 3), ((5,), 2, 3)])).metrics["epochs"] == 3


def test_a_link_that_is_down_carries_nothing():
    """In an epoch with bandwidth 0 no chunk starts; bounds that do not know of it prove nothing."""
    down = star(changes=(BandwidthChange(0, 0, 1, Fraction(0)),))
    assert "capacity" in violations(down, RIGHT)
    assert verdict_of(down, schedule(down, [(p, i + 1, j + 1) for p, i, j in RIGHT])).ok
    with pytest.raises(InputError, match="proves nothing"):
        recomputed_epochs(down, EpochDistance(0, 1))


def test_a_file_keeps_grid_and_certificate(tmp_path):
    """A schedule file has the timing and the certificate in epochs, and reads back as the same problem."""
    instance = star(changes=(BandwidthChange(5, 7, 9, Fraction(1, 3)),))
    for certificate in (
        EpochDistance(0, 1),
        EpochCut((1,), 1),
        EpochCut((1, 2)),
        EpochChain((1, 2), 1),
        EpochFlow(1, 1),
    ):
        write_schedule(tmp_path / "s.json", instance, schedule(instance, RIGHT), certificate)
        read = read_schedule(tmp_path / "s.json")
        assert (read.instance.timing, read.instance.sha256) == (instance.timing, instance.sha256)
        assert read.certificate == certificate


def test_bounds_in_seconds_prove_nothing_where_time_is_not_counted_in_full():
    """A cut in bytes per second is a bound under store-and-forward alone."""
    cut = CutCertificate((0,))
    assert exact_bound(star(), cut) is None
    assert exact_bound(star(semantics=Semantics.STORE_AND_FORWARD), cut) == US


def test_an_instance_without_grid_keeps_its_digest():
    """Timing is part of the problem where there is one, and no part of the digest where there is none."""
    assert star().sha256 != star(fluid=True).sha256
    assert star().with_changes(timing=None).sha256 != star().sha256


@st.composite
def problems(draw):
    """All-gathers and all-to-alls on small rings with more links, some over a switch."""
    n = draw(st.integers(2, 4))
    rate, late = (
        st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)]),
        st.sampled_from([Fraction(0), Fraction(1)]),
    )
    ends = [(i, (i + 1) % n) for i in range(n)] + draw(
        st.lists(st.tuples(st.integers(0, n), st.integers(0, n)).filter(lambda e: e[0] != e[1]), max_size=4)
    )
    nodes = (*(Node(f"n{i}") for i in range(n)), Node(f"n{n}", NodeKind.SWITCH, True, Fraction(0)))
    links = tuple(Link(f"n{a}", f"n{b}", draw(rate) * 10**9, draw(late) * US) for a, b in ends)
    kind = draw(st.sampled_from([Collective.ALL_GATHER, Collective.ALL_TO_ALL, Collective.REDUCE_SCATTER]))
    chunks = draw(st.integers(1, 2))
    timing = Timing(draw(st.sampled_from(EPOCHS)), US)
    return Instance("random", Topology(nodes, links), Demand(kind, Fraction(1000 * n * chunks), chunks), timing=timing)


@pytest.mark.slow
@settings(max_examples=draws(25))
@given(problems(), st.data())
def test_no_certificate_proves_more_than_a_schedule(instance, data):
    """Whatever nodes, sinks, thresholds and epochs a certificate names, its bound is at most the epochs of a verified
    schedule."""
    outcome = solve_milp.run(instance, solvers.get("highs"), Budget(), MilpOptions())
    epochs = verdict_of(instance, outcome.answer).metrics["epochs"]
    count = len(instance.network.nodes)
    for _ in range(6):
        nodes = tuple(sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1))))
        sink = data.draw(st.sampled_from(nodes))
        tried = [
            EpochDistance(data.draw(st.integers(0, count - 1)), sink),
            EpochCut(nodes, data.draw(st.sampled_from([None, sink])), data.draw(st.integers(0, 4))),
            EpochChain(nodes, sink),
            EpochFlow(sink, epochs + data.draw(st.integers(-1, 2))),
        ]
        for certificate in tried:
            with suppress(InputError):
                assert recomputed_epochs(instance, certificate) <= epochs, certificate


def test_what_comes_early_by_its_count_may_wait_in_a_switch():
    """Two slow links into a switch that cannot store and a fast one out: the flow over time proves no more than the
    optimum."""
    nodes = (Node("a"), Node("b"), Node("c"), Node("s", NodeKind.SWITCH, True, Fraction(0)))
    rates = {("a", "s"): 5 * 10**8, ("b", "s"): 5 * 10**8, ("s", "c"): 10**9}
    topology = Topology(nodes, tuple(Link(x, y, Fraction(rate)) for (x, y), rate in rates.items()))
    for chunks in (1, 2, 3):
        demand = Demand(Collective.GATHER, Fraction(3000 * chunks), chunks, (2, 0, 1))
        instance = Instance("merge", topology, demand, timing=Timing(Semantics.TE_CCL, US))
        outcome = solve_milp.run(instance, solvers.get("highs"), Budget(), MilpOptions())
        epochs = verdict_of(instance, outcome.answer).metrics["epochs"]
        assert max(recomputed_epochs(instance, EpochFlow(2, claimed)) for claimed in range(1, epochs + 4)) <= epochs
