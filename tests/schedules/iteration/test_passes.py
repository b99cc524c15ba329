"""Iterations of workloads: the closed form of LIBRA, gradient buckets, micro-batches, pipelines and experts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from cwb.core.collective import Collective
from cwb.core.errors import InputError
from cwb.core.workload import Communication, Layer, Phase, TrainingLoop, Workload
from cwb.instances import load
from cwb.instances.loader import shipped_instances
from cwb.schedules.iteration import (
    IDLE,
    Loop,
    Pipeline,
    Plan,
    Streams,
    divide_layers,
    order,
    simulate_iteration,
    unroll_layers,
)
from cwb.schedules.training import communication_time, layer_time
from hypothesis import given, settings
from hypothesis import strategies as st

AR, AG, A2A = Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.ALL_TO_ALL
P2P, RS = Collective.POINT_TO_POINT, Collective.REDUCE_SCATTER

TRAINING = [name for name in shipped_instances() if load(name).training()]


def seconds(communication):
    """A byte takes a second."""
    return communication.size_bytes


def layer(name, forward=1, backward=1, gradient=1, send=0, size=0, repeat=1):
    """Computations of so many seconds, all-to-alls of so many bytes after two of them, and gradients of so many."""
    between = (Communication(A2A, Fraction(send), "ep"),) if send else ()
    synchronize = (Communication(AR, Fraction(size), "dp"),) if size else ()
    return Layer(
        name,
        Phase(Fraction(forward), between),
        Phase(Fraction(backward), between),
        Phase(Fraction(gradient), synchronize),
        repeat,
    )


def workload(*layers, **groups):
    return Workload("w", layers, {"dp": (4,), "ep": (4,), **groups})


@pytest.mark.parametrize("name", TRAINING)
@pytest.mark.parametrize("loop", TrainingLoop)
def test_the_closed_form_of_libra(name, loop):
    """Without contention, and with the times of the closed form, the simulation has LIBRA's iteration time exactly, for
    every shipped workload in both loops."""
    instance = load(name)
    rates = [Fraction(7 * 10**9 * (d + 1) ** 2, 3) for d in range(len(instance.fabric.dimensions))]
    for each in instance.training():
        w = replace(each, loop=loop)
        plan = Plan(Loop(loop.value), streams=Streams.UNLIMITED)

        def cost(c, w=w):
            return Fraction(communication_time(instance, c, w.groups[c.group], rates))

        found = simulate_iteration(w, plan, cost)
        assert found.seconds == sum(x.repeat * layer_time(instance, w, x, rates) for x in w.layers)
        assert max(found.bounds_s) == found.seconds


@pytest.mark.parametrize(
    ("bucket", "sizes", "total"), [(1, [2, 2, 2], 11), (3, [4, 2], 13), (4, [4, 2], 13), (100, [6], 15)]
)
def test_buckets(bucket, sizes, total):
    """Gradients are reduced from the last layer on, in buckets that are full at their size, beside the backward pass;
    the last bucket takes what is left."""
    w = workload(*(layer(name, size=2) for name in "abc"))
    found = simulate_iteration(w, Plan(Loop.DDP, Fraction(bucket)), seconds)
    reduced = [task for task in found.tasks if task.what == "dp all_reduce"]
    assert [task.seconds for task in reduced] == sizes
    assert found.seconds == total
    assert found.compute_s == 9
    assert found.mean_breakdown_s["dp all_reduce"] == total - 9


def test_gradients_that_take_other_collectives_are_in_other_buckets():
    """A reduce-scatter and an all-gather of a bucket follow one another, and are not mixed with all-reduces."""
    two = (Communication(RS, Fraction(2), "dp"), Communication(AG, Fraction(2), "dp"))
    zero = Layer("z", weight_gradient=Phase(Fraction(1), two))
    found = simulate_iteration(workload(zero, layer("a", size=1), zero), Plan(Loop.DDP, Fraction(4)), seconds)
    assert [(t.what, t.seconds) for t in found.tasks if t.stream != "compute"] == [
        ("dp reduce_scatter", 4),
        ("dp all_gather", 4),
        ("dp all_reduce", 1),
    ]


def test_one_stream_takes_collectives_in_turns():
    """An all-to-all that blocks waits for gradients on the same stream, and does not on one of its own."""
    w = workload(layer("a", send=1), layer("b", size=6))
    one = simulate_iteration(w, Plan(Loop.DDP, Fraction(1)), seconds)
    own = simulate_iteration(w, Plan(Loop.DDP, Fraction(1), Streams.GROUP), seconds)
    # a: 1 s, all-to-all 1 s, b: 3 s, gradients 5 s to 11 s beside a's second, then its all-to-all and last second
    assert one.seconds == 13
    assert own.seconds == 11


@pytest.mark.parametrize("pipeline", Pipeline)
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_bubbles_of_a_pipeline(pipeline, stages):
    """Equal stages without communication take (M + S - 1) / M of their work with M micro-batches, in both orders; the
    bound of the busiest stream proves it, and a stage idles for the bubble."""
    layers = [layer(str(i), 2, 1, 1) for i in range(8)]
    message = (Communication(P2P, Fraction(0), "pp"),)
    layers = [replace(x, forward=replace(x.forward, communication=message)) for x in layers]
    w = workload(*layers, pp=(stages,))
    for microbatches in (1, 2, 8):
        found = simulate_iteration(w, Plan(microbatches=microbatches, pipeline=pipeline), seconds)
        assert found.stages == stages
        work = Fraction(32, stages)
        assert found.seconds == work * (microbatches + stages - 1) / microbatches
        assert max(found.bounds_s) == found.seconds
        assert found.mean_breakdown_s.get(IDLE, 0) == found.seconds - work


def test_messages_between_stages():
    """A stage sends a micro-batch's part of what its last layer says forward and of what its first one says backward;
    layers inside a stage send nothing."""
    message = (Communication(P2P, Fraction(4), "pp"),)
    layers = [Layer(str(i), Phase(Fraction(2), message), Phase(Fraction(2), message)) for i in range(4)]
    found = simulate_iteration(workload(*layers, pp=(2,)), Plan(Loop.DDP, microbatches=2), seconds)
    sent = [(task.stage, task.seconds) for task in found.tasks if task.what == "pp point_to_point"]
    assert sorted(sent) == [(0, 2), (0, 2), (1, 2), (1, 2)]
    # forward 2 s, message 2 s, forward and backward 4 s, message 2 s, backward 2 s; the second micro-batch 4 s behind
    assert found.seconds == 16


def test_gradients_come_after_the_last_micro_batch():
    """Micro-batches divide computations and activations; gradients are reduced once, whole, and parameters that are
    gathered on the way are gathered whole for each."""
    gather = (Communication(AG, Fraction(6), "dp"),)
    w = workload(replace(layer("a", send=6, size=3), input_gradient=Phase(Fraction(1), gather)))
    found = simulate_iteration(w, Plan(microbatches=3), seconds)
    spent = found.communication_s
    assert spent == {"ep all_to_all": 6, "dp all_gather": 18, "dp all_reduce": 3}
    assert found.seconds == 3 + 6 + 18 + 3


def test_blocks_are_repeated_together():
    """Neighbours that are repeated as often are one block; others are repeated alone."""
    names = [
        x.name for x in unroll_layers([layer("a", repeat=2), layer("b", repeat=2), layer("c"), layer("d", repeat=2)])
    ]
    assert names == ["a", "b", "a", "b", "c", "d", "d"]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=7), st.data())
def test_layers_are_divided_evenly(work, data):
    """The longest stage is as short as that of any division into stages that are not empty, and no layer is lost."""
    stages = data.draw(st.integers(1, len(work)))
    layers = [layer(str(i), w, 0, 0) for i, w in enumerate(work)]
    found = divide_layers(layers, stages)
    assert [x for stage in found for x in stage] == layers
    assert len(found) == stages
    assert all(found)

    def longest(cuts):
        ends = [0, *cuts, len(work)]
        return max(sum(work[a:b]) for a, b in pairwise(ends))

    least = min(longest(cuts) for cuts in combinations(range(1, len(work)), stages - 1))
    assert max(sum(x.forward.compute_s for x in stage) for stage in found) == least


@pytest.mark.parametrize("pipeline", Pipeline)
def test_every_stage_passes_every_micro_batch(pipeline):
    """Each stage has a forward and a later backward pass of every micro-batch, and 1F1B holds no more of them at a time
    than there are stages from it on."""
    for stages, stage, microbatches in ((1, 0, 3), (4, 0, 2), (4, 1, 8), (4, 3, 8)):
        passes = order(pipeline, stage, stages, microbatches)
        held, most = 0, 0
        for direction, _ in passes:
            held += 1 if direction == "forward" else -1
            assert held >= 0
            most = max(most, held)
        assert sorted(passes) == sorted((d, m) for d in ("forward", "backward") for m in range(microbatches))
        if pipeline is Pipeline.ONE_F_ONE_B:
            assert most == min(microbatches, stages - stage)


@pytest.mark.parametrize(
    ("layers", "groups", "plan", "reason"),
    [
        ([layer("a", repeat=10**6)], {}, Plan(), "1,000,000 layers; expected at most 100,000"),
        ([layer("a", repeat=2000)], {}, Plan(microbatches=100), "some 2,000,000 tasks; expected at most 1,000,000"),
    ],
)
def test_what_is_too_large_is_refused(layers, groups, plan, reason):
    """Too many layers or tasks are refused in one line before they are made."""
    with pytest.raises(InputError, match=reason):
        simulate_iteration(workload(*layers, **groups), plan, seconds)


def test_stages_need_layers_and_one_group():
    """More stages than layers, and messages in two groups, are refused."""
    send = [Layer("a", Phase(Fraction(1), (Communication(P2P, Fraction(1), name),))) for name in ("pp", "qq")]
    with pytest.raises(InputError, match="1 layers for 2 stages"):
        simulate_iteration(workload(send[0], pp=(2,)), Plan(), seconds)
    with pytest.raises(InputError, match="messages in pp, qq; expected one group"):
        simulate_iteration(workload(*send, pp=(2,), qq=(2,)), Plan(), seconds)
