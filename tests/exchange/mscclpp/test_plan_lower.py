"""Schedules as plans: right, with the bytes of the schedule, and what does not fit is said."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest
from cwb.core.collective import collective_named
from cwb.core.errors import InputError
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.exchange.msccl.flow import flow_of
from cwb.exchange.mscclpp.check import check_plan
from cwb.exchange.mscclpp.files import json_text, parse_plan
from cwb.exchange.mscclpp.lower import Target, lower
from cwb.exchange.mscclpp.plan import MAX_OPERATIONS
from cwb.instances import load
from families import FAMILIES
from schedule_bytes import pairs_of
from slow_plan import is_right

TARGETS = {
    "memory": Target(),
    "in place": Target(inplace=True),
    "port": Target(channel="port"),
    "boxes": Target(box=2, instances=2),
    "packets": Target(protocol="LL"),
    "packets in place": Target(protocol="LL", inplace=True),
}

#: Schedules that GPUs alone cannot do.
REFUSED = ("multicast_broadcast", "in_network_all_reduce", "group_all_gather")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in REFUSED])
def test_families_are_right(name, target):
    """Steps, trees and switches: the plan is read again as it was, runs, and has the schedule's bytes."""
    instance, answer = FAMILIES[name]()
    flow = flow_of(instance, answer)
    plan = lower(flow, TARGETS[target])
    assert parse_plan("".join(json_text(plan)).encode()) == plan
    assert check_plan(plan).problems == []
    grain = flow.grain_bytes / TARGETS[target].instances
    if name != "stored_gather":  # where sends end in a switch
        assert {pair: count * grain for pair, count in plan.transfers.items()} == pairs_of(instance, answer)


@pytest.mark.parametrize("target", ["memory", "boxes", "packets in place"])
@pytest.mark.parametrize("name", ["ring_all_reduce", "unlike_trees"])
def test_the_second_interpreter_agrees(name, target):
    """Many random orders of the thread blocks give the result of the collective."""
    assert is_right(lower(flow_of(*FAMILIES[name]()), TARGETS[target]), 3)


def test_many_operations_are_spread_over_thread_blocks(solve_method):
    """No thread block has more operations than the executor takes."""
    plan = lower(flow_of(*solve_method("ring(40, bidirectional=False)", "ring", "all_gather")), Target())
    longest = max(len(block.ops) for gpu in plan.gpus for block in gpu.blocks)
    assert MAX_OPERATIONS / 2 < longest <= MAX_OPERATIONS
    assert check_plan(plan).problems == []


def test_packets_do_not_go_over_ports():
    """The executor puts packets over ports that are packets before; that is refused."""
    with pytest.raises(InputError, match="expected Simple where there are ports"):
        lower(flow_of(*FAMILIES["ring_all_gather"]()), Target(protocol="LL", box=2))


@pytest.mark.parametrize("name", ["all_gather_v", "late_all_reduce"])
def test_a_collective_that_plans_do_not_have(name):
    """It is named in one line, with those that there are, as in MSCCL files."""
    flow = replace(flow_of(*FAMILIES["ring_all_gather"]()), kind=collective_named(name))
    with pytest.raises(InputError, match=f"^MSCCL\\+\\+ has no {name}; it has all_gather, all_reduce, "):
        lower(flow, Target())


def test_transfers_put_their_chunks_on_links():
    """Given a network, what a plan sends is on its links."""
    from cwb.exchange.msccl.links import loads_of

    plan = lower(flow_of(*FAMILIES["ring_all_gather"]()), Target())
    network = load("ring(5, bidirectional=False)").network
    assert set(loads_of(plan, network).chunks.values()) == {4}


def test_parallel_links_carry_what_their_bandwidths_are_parts_of():
    """Of two links between the same GPUs, one four times as fast as the other, both are busy equally long."""
    from cwb.exchange.msccl.links import loads_of

    ends = [Node("a", NodeKind.COMPUTE), Node("b", NodeKind.COMPUTE)]
    links = [Link("a", "b", Fraction(rate)) for rate in (25, 100)]
    network = Topology(tuple(ends), tuple(links))
    loads = loads_of(SimpleNamespace(ngpus=2, transfers={(0, 1): 5}), network)
    assert dict(loads.chunks) == {0: 1, 1: 4}
    assert loads.busiest(network) == (0, 25)
