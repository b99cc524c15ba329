"""Schedules as MSCCL programs: right on every runtime, with the bytes of the schedule, and what does not fit is
said."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.schedule import Chunks, StepSchedule, sends_from_lists
from cwb.exchange.msccl.check import check_algorithm
from cwb.exchange.msccl.dialects import DIALECTS
from cwb.exchange.msccl.flow import flow_of
from cwb.exchange.msccl.links import loads_of
from cwb.exchange.msccl.lower import PLACEMENTS, Target, lower
from cwb.harness import Request
from cwb.harness.plan import Cell
from cwb.harness.task import load_and_run
from cwb.instances import load
from families import FAMILIES
from schedule_bytes import links_of, pairs_of
from slow_run import is_right

#: Schedules that GPUs alone cannot do, and why.
REFUSED = {
    "multicast_broadcast": "switch switch copies",
    "in_network_all_reduce": "switch switch adds",
    "group_all_gather": "n1, which is not in the group",
}


def solve_method(spec, model, collective, size="1 MiB", **options):
    """Instance and answer of a method."""
    done = load_and_run(Cell(spec, Request(model, options=options), collective, size, 1))
    assert done.record.verified, done.record.message
    return done.instance, done.answer


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in REFUSED])
def test_families_are_right_everywhere(name, dialect):
    """Steps, trees and switches: the file passes its check and a second interpreter, with the schedule's bytes."""
    instance, answer = FAMILIES[name]()
    if instance.demand.collective.name not in DIALECTS[dialect].collectives:
        return
    flow = flow_of(instance, answer)
    found = lower(flow, Target(DIALECTS[dialect]))
    assert check_algorithm(found, [DIALECTS[dialect]]).problems == []
    if dialect != "msccl":
        assert is_right(found, 3)
    if name != "stored_gather":  # where sends end in a switch
        assert {pair: n * flow.grain_bytes for pair, n in found.transfers.items()} == pairs_of(instance, answer)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize(
    ("model", "collective"),
    [
        ("direct", "all_to_all"),
        ("direct", "gather"),
        ("direct", "scatter"),
        ("knomial", "broadcast"),
        ("knomial", "reduce"),
        ("rhd", "all_reduce"),
        ("bfb", "reduce_scatter"),
        ("forestcoll", "all_gather"),
    ],
)
def test_every_collective_in_every_placement(model, collective, placement):
    """With input and output in the same memory, separate or either, no order of the steps goes wrong."""
    instance, answer = solve_method("hypercube(2)", model, collective)
    for dialect in ("msccl-executor", "rccl"):
        found = lower(flow_of(instance, answer), Target(DIALECTS[dialect], placement=placement, instances=2))
        checked = check_algorithm(found, [DIALECTS[dialect]])
        assert checked.problems == []
        assert set(checked.runs) == ({"in", "out"} if placement == "both" else {placement})
        assert is_right(found, 2)


def test_bytes_of_links_are_those_of_the_schedule():
    """On a torus, where every transfer has one shortest way, the links carry what the schedule says."""
    instance, answer = solve_method("mesh(2,3)", "forestcoll", "all_gather")
    flow = flow_of(instance, answer)
    found = lower(flow, Target(DIALECTS["msccl"]))
    assert {e: n * flow.grain_bytes for e, n in loads_of(found, instance.network).chunks.items()} == links_of(answer)


def test_a_ring_is_one_thread_block():
    """Data passed along a ring is received and sent at once, by one thread block beside the copying one."""
    instance, answer = solve_method("ring(6, bidirectional=False)", "ring", "all_gather")
    found = lower(flow_of(instance, answer), Target(DIALECTS["msccl"]))
    assert [len(gpu.blocks) for gpu in found.gpus] == [2] * 6
    assert sum(step.type == "rcs" for gpu in found.gpus for block in gpu.blocks for step in block.steps) == 24


def test_rccl_has_no_fused_steps():
    """Its default build refuses them, so reductions go over scratch memory; they are there when asked for."""
    instance, answer = solve_method("ring(4)", "ring", "all_reduce")
    types = {
        fused: {s.type for gpu in found.gpus for block in gpu.blocks for s in block.steps}
        for fused in (None, True)
        for found in [lower(flow_of(instance, answer), Target(DIALECTS["rccl"], fused=fused))]
    }
    assert types[None] <= {"s", "r", "re", "cpy", "nop"}
    assert "rrc" in types[True] | {"rrcs"} or "rrs" in types[True]


def test_msccl_is_for_one_placement():
    """It matches ``inplace`` exactly; the file says both attributes, as every file does."""
    flow = flow_of(*solve_method("ring(3)", "ring", "all_gather"))
    with pytest.raises(InputError, match="expected in or out"):
        lower(flow, Target(DIALECTS["msccl"], placement="both"))
    found = {placed: lower(flow, Target(DIALECTS["msccl"], placement=placed)) for placed in ("in", "out")}
    assert {placed: (one.inplace, one.outofplace) for placed, one in found.items()} == {"in": (1, 0), "out": (0, 1)}


def test_instances_are_channels():
    """Two copies of the whole carry a half each, over channels of their own."""
    instance, answer = solve_method("ring(4)", "ring", "all_gather")
    one, two = (lower(flow_of(instance, answer), Target(DIALECTS["rccl"], instances=n)) for n in (1, 2))
    assert two.nchunksperloop == 2 * one.nchunksperloop
    assert two.nchannels == 2 * one.nchannels
    assert two.transfers == {pair: 2 * count for pair, count in one.transfers.items()}


def test_more_steps_than_a_thread_block_takes_are_spread_over_channels():
    """A ring of 67 has 67 steps: two channels on RCCL, where a thread block takes 64."""
    instance, answer = solve_method("ring(67, bidirectional=False)", "ring", "all_gather")
    found = lower(flow_of(instance, answer), Target(DIALECTS["rccl"]))
    assert found.nchannels > 1
    assert max(len(block.steps) for gpu in found.gpus for block in gpu.blocks) <= 64


@pytest.mark.parametrize(
    ("dialect", "collective", "problem"),
    [
        ("msccl", "gather", "msccl has no gather"),
        ("rccl", "all_to_all", "thread blocks; there is room for 64"),
    ],
)
def test_what_does_not_fit_names_the_limit(dialect, collective, problem):
    """A collective that a runtime does not have, and an exchange with more GPUs than it has thread blocks."""
    instance, answer = solve_method("star(66)" if collective == "all_to_all" else "ring(3)", "direct", collective)
    with pytest.raises(InputError) as caught:
        lower(flow_of(instance, answer), Target(DIALECTS[dialect]))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_messages_of_their_own_sizes_are_a_custom_collective():
    """Pairs with messages of their own are one file: custom on msccl, alltoallv on the others; an idle rank launches
    too."""
    sizes = {(0, 1): 3, (1, 2): 1, (2, 0): 2}
    demands = [Demand(Collective.POINT_TO_POINT, Fraction(n * 1024), ranks=pair) for pair, n in sizes.items()]
    instance = load("complete(4)").with_changes(demand=demands[0], also=tuple(demands[1:]))
    ends = instance.network.link_ends
    groups, three = ((0,), (1,), (2,)), np.arange(3)
    chunks = Chunks(np.array([3, 1, 2]), Fraction(1024), groups, three, (three + 1) % 3, np.zeros(3, dtype=bool))
    sends = sends_from_lists([0, 1, 2], [0, 1, 2], [1, 2, 0], False, [[ends.index(pair)] for pair in sizes])
    flow = flow_of(instance, StepSchedule(instance.sha256, chunks, sends, np.zeros(3, dtype=np.int64)))
    found = lower(flow, Target(DIALECTS["msccl"]))
    assert found.coll == "custom"
    assert found.transfers == sizes
    assert lower(flow, Target(DIALECTS["rccl"])).coll == "alltoallv"
    assert check_algorithm(found, [DIALECTS["msccl"]]).problems == []  # of the idle rank, too


@pytest.mark.parametrize("name", REFUSED)
def test_what_only_others_can_do_is_refused(name):
    """Switches that copy or add and ranks outside of the group are named: a file has the GPUs of a communicator
    alone."""
    instance, answer = FAMILIES[name]()
    with pytest.raises(InputError, match=REFUSED[name]):
        flow_of(instance, answer)


def test_parts_without_a_common_size_are_refused_at_once():
    """Chunks whose sizes have only a tiny part in common would be millions of grains: that is refused before any is
    made."""
    instance = load("ring(2)").with_changes(demand=Demand(Collective.BROADCAST, Fraction(10**9 + 7)))
    unit = Fraction(10**9 + 7, 10**9 + 7)
    groups = ((0,), (1,), (0, 1))
    one = np.array([10**9, 7])
    chunks = Chunks(one, unit, groups, np.zeros(2, dtype=np.int64), np.full(2, 2), np.zeros(2, dtype=bool))
    link = instance.network.link_ends.index((0, 1))
    sends = sends_from_lists([0, 1], [0, 0], [1, 1], False, [[link], [link]])
    flow = flow_of(instance, StepSchedule(instance.sha256, chunks, sends, np.array([0, 1])))
    with pytest.raises(InputError, match="1,000,000,007 chunks; there is room for 32,768"):
        lower(flow, Target(DIALECTS["msccl"]))
