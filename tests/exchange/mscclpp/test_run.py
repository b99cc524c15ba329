"""Plans are run as the executor runs them, one call after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cwb.exchange.mscclpp.check import check_plan, obstacle_of
from cwb.exchange.mscclpp.plan import Op
from plan_mutants import CHANGES, mutant
from plans import (
    NOP,
    PLANS,
    WHOLE,
    exchange_plan,
    fetch_plan,
    local,
    over,
    over_ports,
    packets,
    pipelined_plan,
    read_plan,
    sliced_plan,
    switch_plan,
    with_gpu,
    with_op,
    with_ops,
)
from slow_plan import is_right


@pytest.mark.parametrize("name", PLANS)
def test_right_plans_are_right(name):
    """Puts, gets, reads, packets, switches, pipelines, slices and ports pass, and the second interpreter agrees."""
    plan = PLANS[name]()
    checked = check_plan(plan)
    assert (checked.ran, checked.problems) == (True, [])
    assert name not in WHOLE or is_right(plan)


def without(plan, place, rank=None):
    """A plan without the operation at a place of the first thread block, of one rank or of all."""
    for number in range(plan.ngpus) if rank is None else (rank,):
        plan = with_ops(plan, number, 0, lambda ops: ops[:place] + ops[place + 1 :])
    return plan


def add_again(plan):
    """Return a plan whose received data is added once more at the end, by the GPU that holds it."""
    return with_ops(plan, 0, 0, lambda ops: [*ops, Op("copy", (local("i"),), (local("o", 0),))])


@pytest.mark.parametrize(
    ("rule", "plan"),
    [
        ("race", lambda: without(exchange_plan(), 4)),  # the signal does not wait for all threads
        ("race", lambda: without(exchange_plan(), 7)),  # nor do all threads for the signal
        ("race", lambda: without(without(exchange_plan(), 0), 0)),  # the other one may be in the call before
        ("race", lambda: without(without(read_plan(), 6), 5)),  # the other one may still read
        ("race", lambda: add_again(fetch_plan())),  # the copy is apart from what the other one reads
        ("race", lambda: with_op(over_ports(), 0, 0, 3, name="pws")),  # the queue may still read the input
        ("hang", lambda: replace(packets(), double_scratch=False)),  # packets of the next call come too early
        ("hang", lambda: without(exchange_plan(), 5, rank=0)),
        ("hang", lambda: without(sliced_plan(), 0, rank=0)),
        ("hang", lambda: with_gpu(pipelined_plan(), 0, semaphores=(0, 0, 0))),
        ("hang", lambda: without(packets(), 0, rank=0)),
        ("unmatched", lambda: without(exchange_plan(), 1, rank=0)),
        ("semaphore", lambda: with_ops(pipelined_plan(), 0, 0, lambda ops: [*ops, Op("sem_release", semaphores=(1,))])),
        ("undefined", lambda: with_op(exchange_plan(), 0, 0, 8, src=(local("i"), local("o")))),
        ("result", lambda: with_op(exchange_plan(), 0, 0, 8, src=(local("i"), local("i")))),
        ("result", lambda: exchange_plan(collective="broadcast")),
        ("result", lambda: replace(switch_plan(3), gpus=tuple(without(switch_plan(3), 3, rank=0).gpus))),
    ],
)
def test_what_goes_wrong_is_told(rule, plan):
    """A plan that waits too little, or too much, or does something else is found by what goes wrong."""
    checked = check_plan(plan())
    assert checked.ran
    assert rule in {one.rule for one in checked.run.wrong}


def test_packets_and_plain_data_have_no_scratch_memory_in_common():
    """A packet takes the room of two chunks of data."""
    plan = packets()
    ops = [Op("copy", (local("i"),), (local("s", 1),)), NOP]
    plan = with_gpu(with_ops(plan, 0, 0, lambda some: [*ops, *some]), 0, scratch=2)
    assert "mixed" in {one.rule for one in check_plan(plan).run.wrong}


def test_relaxed_signals_promise_nothing_about_data():
    """Data written before a relaxed signal and read after it is reported, but is no error."""
    plan = exchange_plan()
    for rank in range(2):
        plan = with_op(with_op(plan, rank, 0, 5, name="rlxsignal"), rank, 0, 6, name="rlxwait")
    checked = check_plan(plan)
    assert checked.problems == []
    assert "note (relaxed)" in checked.notes[0]


def test_a_get_exchanges_the_chunks_of_its_two_sides():
    """As the kernel does: what is to be read from chunk 1 into chunk 0 is read from chunk 0, where nothing is."""
    plan = with_ops(fetch_plan(collective="custom"), 1, 0, lambda ops: [*ops[:4], NOP, *ops[6:]])
    checked = check_plan(with_op(plan, 0, 0, 5, dst=(local("o", 0),)))
    assert checked.rules.counts["gets"] == 1
    assert "undefined" in {one.rule for one in checked.run.wrong}


@pytest.mark.parametrize(
    "plan",
    [
        lambda: with_op(sliced_plan(), 0, 0, 4, parts=257, part=1),
        lambda: with_ops(pipelined_plan(), 0, 0, lambda ops: [ops[0]._replace(chunks=2**20, ops=(NOP,))]),
        lambda: large(2**28),
    ],
)
def test_what_would_take_too_long_is_not_run(plan):
    """Sizes that a run would not end with are told, not tried."""
    one = plan()
    assert obstacle_of(one) is not None
    assert not check_plan(one).ran


def large(chunks):
    """A copy of so many chunks."""
    plan = replace(
        exchange_plan(), gpus=tuple(replace(gpu, input=chunks, output=chunks) for gpu in exchange_plan().gpus)
    )
    whole = (local("i", 0, chunks),)
    return with_op(plan, 0, 0, 8, name="copy", src=whole, dst=whole)


@pytest.mark.parametrize("change", CHANGES)
def test_changes_that_matter_are_caught(change):
    """A plan that the second interpreter finds wrong is never accepted."""
    for seed, name in enumerate(WHOLE):
        other = mutant(PLANS[name](), change, seed)
        assert is_right(other, 6) or check_plan(other).problems, (name, seed)


def test_waits_without_signals_say_who_should_signal():
    """A thread block that hangs is told with its place and what it waits for."""
    checked = check_plan(with_ops(exchange_plan(), 0, 0, lambda ops: [*ops, over("wait")]))
    assert checked.problems[0] == "hang: gpu 0, tb 0, step 6: waits for a signal of gpu 1 that never comes"
