"""Every static rule of plans: a plan that breaks it is found by that rule and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cwb.exchange.mscclpp.plan import Block, Channel, Op
from cwb.exchange.mscclpp.rules import RULES, lint
from plans import (
    NOP,
    PLANS,
    exchange_plan,
    fetch_plan,
    local,
    over,
    over_ports,
    packets,
    pipelined_plan,
    remote,
    sliced_plan,
    switch_plan,
    with_block,
    with_gpu,
    with_op,
    with_ops,
)

PUT, ADD = 3, 8  # places in the exchange


def other_barrier(number):
    """All thread blocks meet at this barrier."""

    def replace_barrier(gpu):
        meet = gpu.blocks[0].ops[0]._replace(barrier=number)
        return replace(gpu, blocks=tuple(replace(block, ops=(meet, *block.ops[1:])) for block in gpu.blocks))

    return replace(sliced_plan(), gpus=tuple(map(replace_barrier, sliced_plan().gpus)))


def other_group(*ranks):
    """A switch channel of these GPUs."""
    memory = switch_plan().gpus[0].channels[0]
    return with_gpu(switch_plan(), 0, channels=(memory, Channel("switch", (), "i", (ranks,))))


def long_block(count):
    """A thread block with so many operations more."""
    return with_ops(exchange_plan(), 0, 0, lambda ops: [*ops, *[NOP] * count])


def more_blocks(count):
    """So many thread blocks more that do nothing."""
    one = exchange_plan()
    blocks = one.gpus[0].blocks + tuple(Block(1 + n, (NOP,)) for n in range(count))
    return with_gpu(one, 0, blocks=blocks)


def in_pipeline(*ops, chunks=1, unit_bytes=2**19):
    """A pipeline beside what is right."""
    pipeline = Op("pipeline", ops=ops, unit_bytes=unit_bytes, chunks=chunks)
    return with_ops(exchange_plan(), 0, 0, lambda some: [*some, pipeline])


def scratch_of_packets(**changes):
    """Packets, and a plain put into the scratch memory of the other GPU."""
    put = Op("put", (local("i"),), (remote(0),), "memory")
    return with_ops(packets(**changes), 0, 0, lambda ops: [*ops, put])


def many_channels():
    """A thread block with 17 channels."""
    one = with_block(exchange_plan(), 0, 0, lambda block: replace(block, channels={"memory": (0,) * 17}))
    return with_gpu(one, 0, channels=(Channel("memory", (1,) * 17),))


def shared_channel():
    """Two thread blocks that wait at one channel."""
    one = exchange_plan()
    second = Block(1, (over("wait"),), {"memory": (0,)})
    return with_gpu(one, 0, blocks=(*one.gpus[0].blocks, second))


#: Rule, what breaks it, and whether that is wrong.
BROKEN = [
    ("head", lambda: exchange_plan(threads=2048), True),
    ("head", lambda: exchange_plan(alignment=8), True),
    ("head", lambda: exchange_plan(min_bytes=2, max_bytes=1), True),
    ("old", lambda: exchange_plan(old=("an old field",)), True),
    ("gpus", lambda: with_gpu(exchange_plan(), 1, id=7), True),
    ("gpus", lambda: with_gpu(exchange_plan(), 0, blocks=()), True),
    ("gpus", lambda: more_blocks(140), False),
    ("blocks", lambda: with_block(exchange_plan(), 0, 0, lambda block: replace(block, id=3)), True),
    ("chunks", lambda: with_gpu(exchange_plan(), 0, input=2), True),
    ("chunks", lambda: with_gpu(switch_plan(), 0, output=0), True),
    ("chunks", lambda: with_gpu(switch_plan(), 0, scratch=-1), True),
    ("names", lambda: with_ops(exchange_plan(), 0, 0, lambda ops: [*ops, Op("send")]), True),
    ("operations", lambda: long_block(60), True),
    ("room", many_channels, True),
    ("room", lambda: with_op(over_ports(), 0, 0, 0, channels=(0,) * 9), True),
    ("peers", lambda: with_gpu(exchange_plan(), 0, channels=(Channel("memory", (2,)),)), True),
    ("peers", lambda: with_gpu(exchange_plan(), 0, channels=(Channel("memory", (0,)),)), True),
    ("peers", lambda: with_gpu(fetch_plan(), 0, remote=(fetch_plan().gpus[0].remote[0]._replace(type="x"),)), True),
    ("peers", lambda: other_group(1), True),
    ("references", lambda: with_op(exchange_plan(), 0, 0, 5, channels=(1,)), True),
    ("references", lambda: with_op(exchange_plan(), 0, 0, PUT, dst=(remote(1),)), True),
    (
        "references",
        lambda: with_ops(exchange_plan(), 0, 0, lambda ops: [*ops, Op("sem_release", semaphores=(0,))]),
        True,
    ),
    (
        "references",
        lambda: with_block(exchange_plan(), 0, 0, lambda block: replace(block, channels={"memory": (4,)})),
        True,
    ),
    ("barriers", lambda: with_op(sliced_plan(), 0, 0, 0, blocks=3), True),
    ("barriers", lambda: other_barrier(16), True),
    ("kinds", lambda: with_op(exchange_plan(), 0, 0, PUT, name="pws"), True),
    ("kinds", lambda: with_op(exchange_plan(), 0, 0, 5, channels=()), True),
    ("kinds", lambda: with_op(over_ports(), 0, 0, 3, channels=()), True),
    ("kinds", lambda: with_ops(over_ports(), 0, 0, lambda ops: [*ops, over("flush", kind="port")]), False),
    ("operands", lambda: with_op(exchange_plan(), 0, 0, ADD, src=()), True),
    ("operands", lambda: with_op(exchange_plan(), 0, 0, PUT, src=(remote(0),)), True),
    ("operands", lambda: with_op(exchange_plan(), 0, 0, PUT, src=(local("i"), local("o")), dst=(remote(0),) * 2), True),
    ("sizes", lambda: with_op(fetch_plan(), 0, 0, 0, dst=(local("o", 0, 2),)), True),
    ("sizes", lambda: with_op(exchange_plan(), 0, 0, PUT, src=(local("i", 0, 0),), dst=(remote(0, 0, 0),)), True),
    ("slices", lambda: with_op(exchange_plan(), 0, 0, PUT, part=2, parts=2), True),
    ("bounds", lambda: with_op(exchange_plan(), 0, 0, PUT, dst=(remote(0, 1),)), True),
    ("bounds", lambda: with_op(exchange_plan(), 0, 0, ADD, src=(local("i", -1), local("s"))), True),
    ("gets", lambda: with_op(fetch_plan(), 0, 0, 5, dst=(local("o", 0),)), True),
    ("packets", lambda: replace(packets(), protocol="Simple"), True),
    ("packets", lambda: with_op(packets(), 0, 0, 1, src=(local("i"), local("o"))), True),
    ("halves", scratch_of_packets, True),
    ("pipelines", lambda: in_pipeline(Op("copy", (local("i"),), (local("o"),)), chunks=2), True),
    ("pipelines", lambda: in_pipeline(Op("pipeline", unit_bytes=16, chunks=1)), True),
    ("pipelines", lambda: in_pipeline(NOP, unit_bytes=0), True),
    ("pipelines", lambda: in_pipeline(NOP, unit_bytes=24), True),
    ("pipelines", lambda: in_pipeline(*[NOP] * 17), True),
    ("pipelines", lambda: with_op(exchange_plan(), 0, 0, 2, ops=(NOP,)), True),
    ("reuse", lambda: pipelined_plan(reuse=True, max_bytes=2**40), False),
    ("channel_sharing", shared_channel, False),
]


@pytest.mark.parametrize(("rule", "broken", "wrong"), BROKEN, ids=[f"{one[0]}-{n}" for n, one in enumerate(BROKEN)])
def test_a_plan_that_breaks_a_rule_is_found_by_it_alone(rule, broken, wrong):
    """The rule finds it, and no other one does."""
    found = lint(broken())
    assert {(one.rule, one.wrong) for one in found.first} == {(rule, wrong)}


@pytest.mark.parametrize("name", PLANS)
def test_right_plans_break_no_rule(name):
    """Plans of every kind of operation are in order."""
    assert lint(PLANS[name]()).first == []


def test_every_rule_is_broken_by_a_plan():
    """No rule is without a plan that breaks it."""
    assert {one[0] for one in BROKEN} == set(RULES)
