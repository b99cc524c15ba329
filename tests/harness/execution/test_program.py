"""Programs of processes, played in one process, against the definition of the collective."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from cwb.core.answers import ChunkOrders
from cwb.core.collective import Collective, Demand, collectives
from cwb.core.equal_steps import StreamedSteps
from cwb.core.errors import InputError, OutOfTime, Unsupported
from cwb.core.schedule import Schedule, StepSchedule
from cwb.core.trees import TreeKind
from cwb.harness import Request, run
from cwb.harness.execution import program as module
from cwb.harness.execution.player import FirstComePlayer, Player
from cwb.harness.execution.program import lower
from cwb.harness.execution.values import compare, fill
from cwb.instances import load
from cwb.schedules.files import read_schedule
from cwb.schedules.lowering import store_sends
from cwb.schedules.multirail import to_sends
from cwb.schedules.verify import verify
from cwb.schedules.verify.answers import write_out
from cwb.studies.schedule_candidates import resize_schedule
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from in_memory import play

K = Collective

#: Methods that answer in steps, in seconds, in trees and in orders of chunks, on any of the networks below.
METHODS = [
    "ring",
    "direct",
    "rhd",
    "bruck",
    "bine",
    "dbt",
    "knomial",
    "torus-rings",
    "swing",
    "tacos",
    "multitree",
    "forestcoll",
    "bfb",
    "blink",
    "nccl",
    "all-to-all-schedule",
]
NETWORKS = ["ring(5)", "complete(4)", "star(5)", "torus(3,2)", "mesh(2,3)", "switch(4)", "hypercube(3)", "dgx1()"]


def build_instance(
    spec: str, kind: Collective, size: Fraction | int = 4096, chunks: int = 1, ranks: tuple[int, ...] | None = None
):
    return load(spec).with_changes(demand=Demand(kind, Fraction(size), chunks, ranks))


def lower_answer(done, itemsize: int = 8, pieces: int = 1, **more):
    """Programs of a run's answer, whatever its kind."""
    instance, answer = done.instance, done.answer
    if isinstance(answer, ChunkOrders):
        instance, answer = to_sends(instance, answer)
    if isinstance(answer, StreamedSteps):
        answer = store_sends(instance, answer)
    return lower(instance, write_out(answer, instance), itemsize, pieces, **more)


def right(programs, **more) -> bool:
    return not any(play(programs, **more))


@pytest.mark.slow
@settings(max_examples=draws(150))
@given(st.data())
def test_all_methods_do_what_they_are_asked_for(data):
    """Whatever is answered and verified gives every rank the data of the collective's definition, also in pieces, with
    elements that divide no chunk, however messages are delayed, and in either order of a connection's messages."""
    size = data.draw(st.integers(1, 5000))
    kind = data.draw(st.sampled_from([each for each in collectives() if each.sized_by is None]))
    instance = build_instance(data.draw(st.sampled_from(NETWORKS)), kind, size, data.draw(st.integers(1, 3)))
    if kind is K.POINT_TO_POINT or data.draw(st.booleans()):
        count = 2 if kind is K.POINT_TO_POINT else data.draw(st.integers(2, instance.npus))
        ranks = data.draw(st.permutations(range(instance.npus)))[:count]
        instance = instance.with_changes(demand=replace(instance.demand, ranks=tuple(ranks)))
    done = run(instance, Request(data.draw(st.sampled_from(METHODS)), time_limit_s=20))
    if done.record.verified is not True:
        return
    itemsize, dtype = data.draw(st.sampled_from([(8, "int64"), (4, "float32")]))
    pieces = data.draw(st.integers(1, 4)) if hasattr(done.answer, "trees") else 1
    hop_by_hop = data.draw(st.booleans())
    programs = lower_answer(done, itemsize, pieces, hop_by_hop=hop_by_hop)
    player = data.draw(st.sampled_from((Player, FirstComePlayer)))
    assert right(programs, dtype=dtype, seed=data.draw(st.integers(0, 2**16)), kind=player)


@pytest.mark.parametrize(
    "name",
    [
        "in-out-trees",
        "in-trees",
        "out-trees",
        "tree-orbits",
        "translated-trees",
        "step-orbits",
        "step-schedule",
        "timed-schedule",
        "circuits-schedule",
        "epochs-schedule",
    ],
)
def test_every_kind_of_file(name):
    """The file of every kind of schedule is executed: steps, seconds, epochs, trees, moved trees."""
    read = read_schedule(Path(__file__).parents[2] / "schedules" / "written" / f"{name}.json")
    programs = lower(read.instance, write_out(read.answer, read.instance), 8, read.pieces or 1)
    assert right(programs)
    assert any(program.sends for program in programs)


@pytest.mark.parametrize("kind", [K.ALL_GATHER, K.REDUCE_SCATTER, K.ALL_REDUCE])
def test_steps_that_are_not_stored(kind):
    """A schedule whose steps are generated is stored and executed, unless it has too many sends."""
    instance = build_instance("ring(9)", kind, 9 * 64)
    answer = stream_answer(instance)
    whole = store_sends(instance, answer)
    assert verify(instance, whole).ok
    assert right(lower(instance, whole, 8))
    with pytest.raises(Unsupported, match="are stored"):
        store_sends(instance, replace(answer, gather_sends=10**9))


def ring_blocks(ends: tuple[tuple[int, int], ...], way: int):
    """The all-gather around nine ranks: in every step each passes on what it got last, one way around."""
    for step in range(8):
        to_next = [(a - step) % 9 if (b - a) % 9 == 1 else -1 for a, b in ends]
        from_next = [(b + step) % 9 if (b - a) % 9 == 1 else -1 for a, b in ends]
        yield np.array([to_next if way > 0 else from_next], dtype=np.int32)


def stream_answer(instance):
    """A ring; for a reduce-scatter the steps are those of the gather over reversed links."""
    kind = {K.ALL_GATHER: TreeKind.OUT, K.REDUCE_SCATTER: TreeKind.IN, K.ALL_REDUCE: TreeKind.BOTH}
    way = -1 if instance.demand.collective is K.REDUCE_SCATTER else 1
    blocks = partial(ring_blocks, instance.topology.link_ends, way)
    return StreamedSteps(instance.sha256, kind[instance.demand.collective], 8, 72, "", blocks)


def test_switches_that_add_and_copy_are_processes():
    """A switch that adds and copies is a process of its own after those of the ranks, and all data is right."""
    done = run(build_instance("sharp", K.ALL_REDUCE), Request("switch-trees"))
    assert done.record.verified is True
    programs = lower_answer(done)
    assert [program.name for program in programs[done.instance.npus :]] == list(done.instance.topology.switches)
    assert right(programs)


def test_a_switch_that_forwards_is_a_wire():
    """A message through a switch that stores nothing goes from rank to rank, and hop by hop only where asked for."""
    done = run(build_instance("switch(4)", K.ALL_GATHER), Request("direct"))
    short, long = lower_answer(done), lower_answer(done, hop_by_hop=True)
    assert (len(short), len(long)) == (4, 5)
    assert messages(long) == 2 * messages(short)


def messages(programs) -> int:
    return sum(len(queue) for program in programs for queue in program.sends.values())


@pytest.mark.parametrize("name", ["all_to_all_v", "all_gather_v", "gather_v", "scatter_v"])
def test_sizes_of_their_own(name):
    """Collectives with a size per rank or pair, zeros included, are executed as their messages."""
    sizes = (
        [[0, 100, 7, 33], [1000, 0, 5, 64], [8, 8, 0, 8], [0, 0, 900, 0]] if name == "all_to_all_v" else [8, 0, 99, 5]
    )
    kind = next(each for each in collectives() if each.name == name)
    demands = kind.messages(
        [[Fraction(b) for b in a] if isinstance(a, list) else Fraction(a) for a in sizes], 1, range(4)
    )
    instance = load("ring(4)").with_changes(demand=demands[0], also=demands[1:])
    done = run(instance, Request("pccl"))
    assert done.record.verified is True, done.record.message
    assert right(lower_answer(done))


def test_groups_side_by_side():
    """Two groups at once, one of which forwards over ranks of the other, each have their own sums."""
    demands = tuple(Demand(K.ALL_REDUCE, Fraction(640), 1, ranks) for ranks in ((0, 2, 4), (1, 3, 5)))
    done = run(load("ring(6)").with_changes(demand=demands[0], also=demands[1:]), Request("ring"))
    assert done.record.verified is True, done.record.message
    assert right(lower_answer(done))


def definition(name: str, data: list[np.ndarray], n: int) -> list[np.ndarray]:
    """Outputs of a collective by numpy, from the inputs of its ranks; roots and all-to-alls without what stays."""
    nothing = [data[0][:0]] * (n - 1)
    outputs = {
        "all_gather": lambda: [np.concatenate(data)] * n,
        "all_reduce": lambda: [sum(data[1:], data[0])] * n,
        "reduce_scatter": lambda: np.split(sum(data[1:], data[0]), n),
        "broadcast": lambda: [data[0]] * n,
        "reduce": lambda: [sum(data[1:], data[0]), *nothing],
        "gather": lambda: [np.concatenate(data[1:]), *nothing],
        "scatter": lambda: [data[0][:0], *np.split(data[0], n - 1)],
        "all_to_all": lambda: [
            np.concatenate([np.split(data[s], n - 1)[r - (r > s)] for s in range(n) if s != r]) for r in range(n)
        ],
    }
    return outputs[name]()


@pytest.mark.parametrize(
    "name", ["all_gather", "all_reduce", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter"]
)
def test_the_definition_is_that_of_numpy(name):
    """A rank is compared with the result that numpy computes from the inputs of all ranks."""
    kind, n = next(each for each in collectives() if each.name == name), 4
    programs = lower_answer(run(build_instance(f"complete({n})", kind, n * 64), Request("direct")))
    inputs = []
    for program in programs:
        memory = np.empty(program.elements, dtype=np.int64)
        fill(memory, program.before)
        parts = [memory[each.address : each.address + each.length] for each in sorted(program.before)]
        inputs.append(np.concatenate(parts or [memory[:0]]))
    for rank, (program, output) in enumerate(zip(programs, definition(name, inputs, n), strict=True)):
        memory = np.empty(program.elements, dtype=np.int64)
        kept = [region for region in program.before if name in ("gather", "scatter") and rank == 0]
        regions, at = [each for each in sorted(program.after) if each not in kept], 0
        for region in regions:
            memory[region.address : region.address + region.length] = output[at : at + region.length]
            at += region.length
        assert at == len(output)
        assert compare(memory, regions) == []


def break_answer(answer, how: str, data: st.DataObject):
    """A schedule with one fault."""
    sends, at = answer.sends, data.draw(st.integers(0, len(answer.sends) - 1))
    keep = np.arange(len(sends)) != at
    if how == "drop":
        return replace(answer, sends=sends.take(keep), step=answer.step[keep])
    if how == "twice":
        again = np.append(np.arange(len(sends)), at)
        return replace(answer, sends=sends.take(again), step=np.append(answer.step, answer.step[at]))
    column = {"chunk": "chunk", "target": "target", "copy": "reduce"}[how]
    values = getattr(sends, column).copy()
    if how == "copy":
        values[at] = not values[at]
    else:
        others = [each for each in range(int(values.max()) + 1) if each != values[at]]
        values[at] = data.draw(st.sampled_from(others))
    return replace(answer, sends=replace(sends, **{column: values}))


@pytest.mark.slow
@settings(max_examples=draws(150))
@given(st.data(), st.sampled_from(["drop", "twice", "chunk", "target", "copy"]))
def test_faults_are_found(data, how):
    """A schedule with a send dropped or repeated, of another chunk, to another rank, or copied instead of added, is
    refused or ends, and has right data only if the verifier, too, finds no fault."""
    kind = data.draw(st.sampled_from([K.ALL_REDUCE, K.ALL_GATHER, K.REDUCE_SCATTER, K.ALL_TO_ALL]))
    method = data.draw(st.sampled_from(["ring", "direct", "rhd"]))
    done = run(
        build_instance(data.draw(st.sampled_from(["ring(4)", "complete(4)", "torus(3,2)"])), kind, 960), Request(method)
    )
    if done.record.verified is not True or not isinstance(done.answer, StepSchedule):
        return
    wrong = break_answer(done.answer, how, data)
    verdict = verify(done.instance, wrong)
    kinds = {violation.kind for violation in verdict.violations}
    if "path" in kinds:
        with pytest.raises(InputError, match="does not lead from"):
            lower(done.instance, wrong, 8)
        return
    fine = not any(play(lower(done.instance, wrong, 8), seed=data.draw(st.integers(0, 999))))
    if kinds - {"not-a-sum", "order"}:  # data may be right although the way to it is not
        assert not fine
    if verdict.ok:
        assert fine


@pytest.mark.parametrize(("factor", "given"), [(Fraction(1, 2), "512"), (2, "2,048"), (Fraction(1025, 1024), "1,025")])
def test_chunks_are_exactly_the_data(factor, given):
    """A schedule whose chunks are less or more than the data is no answer to the instance."""
    done = run(build_instance("ring(4)", K.ALL_GATHER), Request("ring"))
    chunks = done.answer.chunks
    changed = replace(chunks, unit_bytes=chunks.unit_bytes * factor)
    with pytest.raises(InputError, match=f"chunks have {given} of the 1,024 bytes for rank"):
        lower(done.instance, replace(done.answer, chunks=changed), 8)


def test_numbers_out_of_range_are_told():
    """A node that does not exist is an error of the input."""
    done = run(build_instance("ring(4)", K.ALL_GATHER), Request("ring"))
    sends = replace(done.answer.sends, target=done.answer.sends.target + 4)
    with pytest.raises(InputError, match="does not exist"):
        lower(done.instance, replace(done.answer, sends=sends), 8)


def test_paths_lead_from_source_to_target():
    """A send over links that do not connect its ends is an error of the input, which names them."""
    done = run(build_instance("ring(4)", K.ALL_GATHER), Request("ring"))
    sends = replace(done.answer.sends, target=(done.answer.sends.target + 1) % 4)
    with pytest.raises(InputError, match=r"send 0: its path does not lead from [0-3] to [0-3]"):
        lower(done.instance, replace(done.answer, sends=sends), 8)


def test_too_many_messages_are_told(monkeypatch):
    """The number of messages is limited before programs are made."""
    done = run(build_instance("ring(4)", K.ALL_GATHER), Request("ring"))
    monkeypatch.setattr(module, "MOST_MESSAGES", 5)
    with pytest.raises(Unsupported, match="at most 5 are executed"):
        lower_answer(done)
    trees = run(build_instance("ring(4)", K.ALL_GATHER), Request("forestcoll"))
    monkeypatch.undo()
    monkeypatch.setattr(module, "order_sends", None)
    with pytest.raises(Unsupported, match=r" messages; at most 4,000,000 are executed"):
        lower_answer(trees, pieces=2**20)


def test_too_much_data_is_told(monkeypatch):
    """Data whose addresses have no number of 64 bits is refused, and so are more chunks than memory has."""
    done = run(build_instance("ring(4)", K.ALL_GATHER), Request("ring"))
    with pytest.raises(OutOfTime, match=r"at most .* are executed; a smaller --size would fit"):
        lower(*resize_schedule(done.instance, done.answer, Fraction(10**39)), 8)
    monkeypatch.setattr(module, "MOST_MESSAGES", 7)
    nothing = replace(done.answer, sends=done.answer.sends.take(np.arange(0)), step=done.answer.step[:0])
    with pytest.raises(Unsupported, match="ranks have 32 chunks in all; at most 14"):
        lower(done.instance, nothing, 8)


def test_order_of_seconds_is_kept():
    """Of a schedule in seconds, a rank sends to another in the order of the starts."""
    done = run(build_instance("ring(5)", K.ALL_GATHER, 5 * 64, 2), Request("tacos"))
    assert isinstance(done.answer, Schedule) or done.record.verified
    assert right(lower_answer(done))
