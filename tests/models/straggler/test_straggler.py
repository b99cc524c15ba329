"""Rounds after a late rank has come: as few as can be, and no certificate proves more."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from cwb.core.bounds import WholeChunks
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.outcome import Status
from cwb.harness import Request, registry, run
from cwb.instances import load
from cwb.models.straggler.rounds import ChunkSpread, fewest_rounds
from cwb.schedules import verdict_of
from cwb.schedules.network_bounds import recomputed_chunk_bound
from hypothesis import given, settings
from hypothesis import strategies as st


def late(network, chunks=1, ranks=None):
    return load(network).with_changes(demand=Demand(Collective.LATE_ALL_REDUCE, Fraction(2**20), chunks, ranks))


def solve_instance(instance, **options):
    """The outcome of the posed instance, with that instance."""
    method = registry.get("straggler")
    chosen = method.options(**options)
    posed = method.pose(instance, chosen)
    return posed, method.run(posed, None, Budget(), chosen)


@pytest.mark.parametrize("ranks", [2, 3, 5, 6, 7, 12, 17, 24, 48])
def test_the_bound_is_met(ranks):
    """On a switch the rounds are as few as the bound, which the verifier recomputes: 14 for 12 ranks, 52 for 48."""
    posed, outcome = solve_instance(late(f"switch({ranks}, latency='0 s')"))
    verdict = verdict_of(posed, outcome.answer, outcome.certificate)
    assert not verdict.violations
    assert outcome.status is Status.OPTIMAL
    assert verdict.objective == verdict.bound == pytest.approx(outcome.bound)
    assert outcome.metrics["rounds"] == fewest_rounds(ranks, ranks - 1) == verdict.metrics["epochs"]


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 9), st.integers(1, 3), st.integers(0, 99))
def test_in_a_round_everybody_sends_and_receives_once(ranks, chunks, seed):
    """In every round a rank sends at most one chunk and receives at most one, of those it had before."""
    spread = ChunkSpread(ranks, chunks, seed)
    homes = [1 + c // chunks for c in range(chunks * (ranks - 1))]
    while not spread.is_done:
        had = spread.complete.copy()
        sends = spread.next_round()
        for end in (1, 2):
            assert len({send[end] for send in sends}) == len(sends)
        assert all(had[c, source] or {source, target} == {0, homes[c]} for c, source, target in sends)
        assert not any(had[c, target] for c, _, target in sends)
        assert spread.rounds < 4 * fewest_rounds(ranks, len(homes))


def test_a_group_with_latency_and_chunks_is_verified():
    """The first rank of a group is late wherever it stands; with latency the bound, which leaves it out, is not met."""
    posed, outcome = solve_instance(late("switch(7)", chunks=2, ranks=(4, 1, 6, 2)))
    verdict = verdict_of(posed, outcome.answer, outcome.certificate)
    assert not verdict.violations
    assert outcome.status is Status.FEASIBLE
    assert outcome.certificate.rank == 4
    assert outcome.metrics["rounds"] == outcome.metrics["fewest_rounds"]


def test_certificates_of_finer_or_other_chunks_are_refused():
    """The bound speaks of chunks that are no finer than it says, and is wrong about a rank that is not there."""
    posed, outcome = solve_instance(late("switch(4, latency='0 s')"))
    coarser = replace(outcome.certificate, chunk_bytes=2 * outcome.certificate.chunk_bytes)
    (violation,) = verdict_of(posed, outcome.answer, coarser).violations
    assert "finer" in violation
    for wrong in (WholeChunks(9, Fraction(1)), WholeChunks(0, Fraction(0))):
        with pytest.raises(InputError):
            recomputed_chunk_bound(posed, wrong)
    with pytest.raises(InputError, match="copies"):
        recomputed_chunk_bound(late("switch(4, multicast=true)"), outcome.certificate)


def test_a_broadcast_has_the_same_bound():
    """C chunks that one rank has need C - 1 + ceil(log2 n) times that of a chunk: a broadcast from rank 0 of a switch
    of 5."""
    broadcast = load("switch(5)").with_changes(demand=Demand(Collective.BROADCAST, Fraction(4 * 10**9), 4))
    bandwidth = broadcast.network.links[0].bandwidth_Bps
    assert recomputed_chunk_bound(broadcast, WholeChunks(0, Fraction(10**9))) == (4 - 1 + 3) * 10**9 / bandwidth
    assert recomputed_chunk_bound(broadcast, WholeChunks(1, Fraction(10**9))) == 0


def test_networks_without_one_switch_are_refused():
    """On a ring the ways of a round would share links, which is said."""
    assert "switch" in str(registry.get("straggler").supports(late("ring(5)")))
    record = run(late("switch(4)"), Request("straggler", options={"tries": 1})).record
    assert record.metrics["restricted_to"] == "chunks that are moved whole"


def test_two_switches_of_different_speed():
    """Rounds and ways are of one switch, the one with the shorter rounds, whichever is listed first."""
    network = Path(__file__).parents[2] / "reference" / "defects3" / "straggler_two_switches.json"
    solved = run(late(network), Request("straggler", options={"tries": 3}))
    assert solved.record.verified, solved.record.violations
