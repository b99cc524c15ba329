"""The bound of an all-reduce in whole chunks, and cuts of large groups."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.bounds import EpochCut, EpochPartition
from cwb.core.collective import Demand, collective_named
from cwb.core.errors import InputError
from cwb.core.timing import Semantics, Timing
from cwb.instances import load
from cwb.schedules.epoch_bounds import recomputed_epochs
from hypothesis import given, settings
from hypothesis import strategies as st


def make_instance(network: str, kind: str = "all_reduce", chunks: int = 1):
    """A collective of chunks of which each takes a link one tick."""
    base = load(network)
    n = len(base.network.ranks)
    link = base.network.links[0]
    size = Fraction(n * chunks) * link.bandwidth_Bps
    demand = Demand(collective_named(kind), size, chunks)
    return base.with_changes(demand=demand, timing=Timing(Semantics.CIRCUIT, 1 + link.latency_s))


@pytest.mark.parametrize(
    ("network", "chunks", "steps"),
    [("torus(4,4)", 1, 8), ("torus(4,4)", 2, 15), ("ring(5)", 1, 4), ("mesh(6,6)", 8, 168)],
)
def test_singles(network, chunks, steps):
    """Every rank a set: 2 (n - 1) n c entries over all links, rounded up."""
    n = len(load(network).network.ranks)
    assert (
        recomputed_epochs(make_instance(network, chunks=chunks), EpochPartition(tuple((r,) for r in range(n)))) == steps
    )


def test_ticks_may_be_as_short_as_they_get():
    """With ticks of which a chunk takes 2^40, the bound is as long as with whole chunks."""
    coarse = make_instance("torus(4,4)")
    fine = coarse.with_changes(timing=Timing(Semantics.CIRCUIT, coarse.timing.epoch_s / 2**40))
    parts = EpochPartition(tuple((r,) for r in range(16)))
    assert recomputed_epochs(fine, parts) == 8 * 2**40


@settings(max_examples=30)
@given(labels=st.lists(st.integers(0, 3), min_size=9, max_size=9))
def test_no_partition_proves_more_than_a_schedule_takes(labels):
    """Whatever the sets, the bound is at most the eight steps of a back-to-back all-reduce on the 3 x 3 mesh in one
    chunk."""
    parts = tuple(tuple(r for r in range(9) if labels[r] == label) for label in sorted(set(labels)))
    assert recomputed_epochs(make_instance("mesh(3,3)"), EpochPartition(parts)) <= 8


@pytest.mark.parametrize("parts", [((0, 1), (2,)), ((0, 1, 2, 3), (3,)), ((0, 1), (2, 9))])
def test_wrong_parts_are_refused(parts):
    """Every node is in one set."""
    with pytest.raises(InputError, match="every node in one set"):
        recomputed_epochs(make_instance("ring(4)"), EpochPartition(parts))


def test_switches_are_refused():
    """Through switches chunks may share links, and switches may add."""
    with pytest.raises(InputError, match="switches"):
        recomputed_epochs(make_instance("star(4)"), EpochPartition(((0,), (1,), (2,), (3, 4))))
    with pytest.raises(InputError, match="switches"):
        recomputed_epochs(make_instance("star(4)", "all_gather"), EpochCut((0,), 0))


def test_other_collectives_prove_nothing():
    """An all-gather enters sets too, but is not counted here."""
    assert recomputed_epochs(make_instance("ring(4)", "all_gather"), EpochPartition(((0,), (1,), (2,), (3,)))) == 0


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter"])
def test_cuts_of_single_ranks(kind):
    """The cut of a corner of a mesh counts the data entering or leaving over its two links."""
    nodes = (0,) if kind == "all_gather" else tuple(range(1, 16))
    assert recomputed_epochs(make_instance("mesh(4,4)", kind), EpochCut(nodes)) == 8
