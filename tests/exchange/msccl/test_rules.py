"""Every static rule of every runtime: a file that breaks it is found by that rule and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cwb.exchange.msccl.dialects import DIALECTS
from cwb.exchange.msccl.lint import RULES, lint
from programs import (
    algorithm,
    block,
    change_step,
    exchange_all_reduce,
    ring_all_gather,
    step,
    with_block,
    with_gpu,
    with_steps,
)

ALL = tuple(DIALECTS)
PLACED = ("msccl-executor", "rccl")


def direct_all_gather(ranks=3, **changes):
    """Every rank sends its part to every other one, by a thread block for each."""
    gpus = []
    for rank in range(ranks):
        blocks = [block(0, -1, -1, step("cpy", ("i", 0), ("o", rank)))]
        for back in range(1, ranks):
            target, source = (rank + back) % ranks, (rank - back) % ranks
            steps = (step("s", ("i", 0), ("o", rank)), step("r", ("o", source), ("o", source)))
            blocks.append(block(back, target, source, *steps))
        gpus.append(replace(algorithm("x", 1, None).gpus[0] or EMPTY, id=rank, o_chunks=ranks, blocks=tuple(blocks)))
    return algorithm("allgather", ranks, *gpus, **changes)


EMPTY = ring_all_gather().gpus[0]


def many_blocks(count, steps=1):
    """So many thread blocks more, which only copy, with so many steps each."""

    def change(program):
        copies = tuple(block(3 + n, -1, -1, *[step("cpy", ("i", 0), ("o", 0), hasdep=1)] * steps) for n in range(count))
        return with_gpu(program, 0, blocks=program.gpus[0].blocks + copies)

    return change


def many_gpus(program):
    """With 200 GPUs more, which only copy."""
    one = replace(program.gpus[1], blocks=(block(0, -1, -1, step("cpy")),))
    more = tuple(replace(one, id=rank) for rank in range(3, 203))
    return replace(program, ngpus=203, nchunksperloop=203, gpus=(*program.gpus, *more))


def late_wait(program):
    """A wait for thread block 130."""
    return change_step(many_blocks(140)(program), 0, 2, 1, depid=130, deps=0)


def long_block(count):
    """A thread block with so many steps."""
    return lambda p: with_steps(p, 0, 0, lambda steps: [steps[0]._replace(s=s) for s in range(count)])


def waits_for(number, place, *, hasdep=1):
    """The last thread block of GPU 0 waits for a step of another one."""

    def change(program):
        program = change_step(program, 0, 1, place, hasdep=hasdep) if place < 2 else program
        return change_step(program, 0, 2, 1, depid=number, deps=place)

    return change


def crowded_program(program):
    """33 thread blocks that send over channel 0, to GPUs that there are."""
    gpu = replace(program.gpus[0], o_chunks=0)
    blocks = [block(n, 1 + n, -1, step("s", ("i", 0), ("o", 0))) for n in range(33)]
    others = tuple(
        replace(gpu, id=rank, blocks=(block(0, -1, -1, step("cpy", dst=("i", 0))),)) for rank in range(1, 40)
    )
    return replace(program, ngpus=40, nchunksperloop=40, gpus=(replace(gpu, blocks=tuple(blocks)), *others))


def add_block(*steps):
    """A thread block of its own with these steps, in GPU 0 with scratch."""
    return lambda p: with_gpu(p, 0, s_chunks=40, blocks=(*p.gpus[0].blocks, block(3, -1, -1, *steps)))


#: Two chains; only the first is cut after 16.
LONG_CHAINS = [step("re", ("s", n), ("s", last)) for last in (39, 38) for n in range(17)]

#: Rule, dialects that have it, what breaks it, a part of the reason.
CASES = [
    ("proto", ALL, lambda p: replace(p, proto="simple"), "rejected"),
    ("coll", ALL, lambda p: replace(p, coll="all_reduce"), "rejected"),
    ("attributes", ALL, lambda p: replace(p, inplace=None), "inplace"),
    ("attributes", PLACED, lambda p: replace(p, outofplace=None), "outofplace"),
    ("attributes", PLACED, lambda p: replace(p, min_bytes=None), "minBytes"),
    ("attributes", PLACED, lambda p: replace(p, max_bytes=None), "maxBytes"),
    ("placement", PLACED, lambda p: replace(p, outofplace=0), "never selected"),
    ("sizes", ALL, lambda p: replace(p, min_bytes=2**21), "2,097,152"),
    ("sizes", ("msccl",), lambda p: replace(p, min_bytes=-1), "rejected"),
    ("sizes", ("msccl",), lambda p: replace(p, min_bytes=2**20), "never selected"),
    ("threads", ("msccl",), lambda p: replace(p, nthreads=100), "multiple of 32"),
    ("loop", PLACED, lambda p: replace(p, nchunksperloop=4), "does not give each"),
    ("gpus", ALL, lambda p: replace(p, gpus=(*p.gpus, replace(p.gpus[0], id=3))), "none of the 3"),
    ("gpus", ALL, lambda p: replace(p, gpus=(*p.gpus, p.gpus[0])), "2 times"),
    ("gpus", ALL, lambda p: replace(p, gpus=p.gpus[:2]), "no element"),
    ("launch", ALL, lambda p: with_gpu(p, 0, blocks=()), "nothing to launch"),
    ("channels", ALL, lambda p: replace(p, nchannels=129), "129"),
    ("channels", ALL, lambda p: replace(p, nchannels=0), "no connection"),
    ("channel", ALL, lambda p: with_block(p, 0, 1, lambda b: replace(b, chan=-1)), "rejected"),
    ("channel", ("msccl", "msccl-executor"), lambda p: with_block(p, 0, 1, lambda b: replace(b, chan=32)),
        "past the end"),
    ("channel", ("rccl",), lambda p: with_block(p, 0, 1, lambda b: replace(b, chan=128)), "past the end"),
    ("channel", ALL, lambda p: with_block(p, 0, 1, lambda b: replace(b, chan=1)), "not connected"),
    ("blocks", ALL, lambda p: with_block(p, 0, 2, lambda b: replace(b, id=3)), "missing"),
    ("blocks", ALL, lambda p: with_block(p, 0, 2, lambda b: replace(b, id=-1)), "negative"),
    ("blocks", ALL, lambda p: with_block(p, 0, 2, lambda b: replace(b, id=1)), "two thread blocks"),
    ("blocks", ("msccl",), many_blocks(214), "ids below 216"),
    ("blocks", ("rccl",), many_blocks(62), "ids below 64"),
    ("blocks", ("msccl-executor",), many_blocks(1022), "ids below 1024"),
    ("peers", ALL, lambda p: with_block(p, 0, 1, lambda b: replace(b, send=0)), "itself"),
    ("peers", ALL, lambda p: with_block(p, 0, 1, lambda b: replace(b, send=-2)), "rejected"),
    ("peers", ("msccl",), lambda p: with_block(p, 0, 1, lambda b: replace(b, send=3)), "rejected"),
    ("peers", PLACED, lambda p: with_block(p, 0, 1, lambda b: replace(b, send=3)), "not checked"),
    ("connections", ALL, lambda p: with_block(p, 0, 1, lambda b: replace(b, send=2)), "the same send 2"),
    ("connections", ALL, crowded_program, "more than 32"),
    ("wait_numbers", ("msccl", "msccl-executor"), late_wait, "8 bits"),
    ("buffers", ALL, lambda p: with_gpu(p, 0, s_chunks=-1), "s_chunks"),
    ("buffers", ("msccl",), lambda p: with_gpu(p, 0, i_chunks=2), "i_chunks is 2"),
    ("scratch", ("msccl",), lambda p: replace(with_gpu(p, 0, s_chunks=9), max_bytes=2**42), "allocated at its start"),
    ("elements", ("msccl", "msccl-executor"), many_blocks(200, 20), "elements"),
    ("elements", ("rccl",), lambda p: many_gpus(many_blocks(61, 64)(p)), "elements"),
    ("steps", ("msccl", "msccl-executor"), long_block(257), "256"),
    ("steps", ("rccl",), long_block(65), "64"),
    ("steps", ALL, lambda p: change_step(p, 0, 0, 0, s=-1), "rejected"),
    ("numbers", ALL, lambda p: change_step(p, 0, 0, 0, s=5), "order of the file"),
    ("types", ALL, lambda p: change_step(p, 0, 0, 0, type="move"), "rejected"),
    ("types", ("msccl",), lambda p: change_step(p, 0, 0, 0, type="ra"), "not executed"),
    ("counts", ALL, lambda p: change_step(p, 0, 1, 0, cnt=0), "moves nothing"),
    ("peerless", ALL, lambda p: change_step(p, 0, 0, 0, type="s"), "without send"),
    ("buffer_names", ALL, lambda p: change_step(p, 0, 0, 0, srcbuf="x"), "rejected"),
    ("offsets", ALL, lambda p: change_step(p, 0, 0, 0, srcoff=1), "rejected"),
    ("offsets", ALL, lambda p: change_step(p, 0, 0, 0, srcoff=-1), "not checked"),
    ("offsets", ALL, lambda p: change_step(p, 0, 1, 1, dstoff=2, cnt=2), "chunks 2 to 3"),
    ("flags", ALL, lambda p: change_step(p, 0, 0, 0, hasdep=2), "rejected"),
    ("flags", ALL, add_block(step("nop", dep=(0, 0), hasdep=1), step("cpy", dep=(0, 0))), "sets no flag"),
    ("nops", ALL, add_block(step("nop"), step("cpy")), "shifts"),
    ("nops", ALL, add_block(step("nop", dep=(0, 0)), step("cpy")), "no depid itself"),
    ("nops", ALL, add_block(step("cpy"), step("nop", dep=(0, 0))), "nothing waits"),
    ("dependences", ALL, waits_for(9, 0), "which there is not"),
    ("dependences", ALL, waits_for(1, 0, hasdep=0), "it hangs"),
    ("dependences", ALL, waits_for(1, 7), "not a step of it"),
    ("chains", ALL, add_block(*LONG_CHAINS), "has room for 16"),
    ("chains", ALL, add_block(step("re", ("s", 0), ("s", 8)), step("re", ("s", 1), ("s", 8), cnt=2)), "they differ"),
]  # fmt: skip


def base(rule, dialect):
    """A right file that a rule is tried on, in which GPU 0 can be waited for."""
    program = exchange_all_reduce() if rule == "coll" else direct_all_gather()
    if rule in ("nops", "flags"):
        program = change_step(program, 0, 0, 0, hasdep=1)
    if dialect == "msccl":
        program = replace(program, outofplace=None)
    return program


@pytest.mark.parametrize("dialect", ALL)
def test_a_right_file_breaks_no_rule(dialect):
    """The files that the rules are tried on break none."""
    for rule in RULES:
        assert lint(base(rule, dialect), DIALECTS[dialect]).first == []
    assert lint(exchange_all_reduce(), DIALECTS[dialect]).first == []


@pytest.mark.parametrize(
    ("rule", "dialect", "change", "reason"),
    [
        pytest.param(rule, dialect, change, reason, id=f"{rule}-{dialect}-{reason}")
        for rule, dialects, change, reason in CASES
        for dialect in dialects
    ],
)
def test_a_file_that_breaks_just_this_rule(rule, dialect, change, reason):
    """The rule finds it, gives the runtime's reason, and no other rule finds anything wrong."""
    found = lint(change(base(rule, dialect)), DIALECTS[dialect])
    assert {finding.rule for finding in found.wrong} == {rule}
    assert any(reason in finding.text for finding in found.wrong)


def test_every_rule_has_a_file():
    """No rule that finds something wrong is without a file that breaks it."""
    assert {rule for rule, *_ in CASES} == set(RULES) - {"step_types"}


def test_what_is_worth_knowing_is_not_wrong():
    """Scratch memory, fused steps on RCCL, roots that a file does not name and late flags are notes."""
    large = replace(exchange_all_reduce(), max_bytes=2**40)
    assert {finding.rule for finding in lint(large, DIALECTS["rccl"]).first if not finding.wrong} == {"scratch"}
    assert {finding.rule for finding in lint(ring_all_gather(), DIALECTS["rccl"]).first} == {"step_types"}
    rooted = replace(exchange_all_reduce(), coll="broadcast")
    assert [finding.wrong for finding in lint(rooted, DIALECTS["rccl"]).first] == [False]
    later = change_step(waits_for(1, 0, hasdep=0)(direct_all_gather()), 0, 1, 1, hasdep=1)
    (finding,) = lint(later, DIALECTS["rccl"]).first
    assert not finding.wrong
    assert "a later one lets it go on" in finding.text


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("size", "text"),
    [
        (2**63 - 1, f"uses chunks {2**63 - 2} to {2**64 - 4} of buffer i"),
        (1 - 2**63, f"srcoff {2**63 - 2} of buffer i with {1 - 2**63} chunks: rejected"),
    ],
)
def test_the_largest_numbers_of_files_are_no_crash(dialect, size, text):
    """Sizes, offsets and counts of 64 bits are rejected, and written out."""
    program = change_step(exchange_all_reduce(), 0, 0, 0, srcoff=2**63 - 2, cnt=2**63 - 1)
    program = with_gpu(program, 0, i_chunks=size, s_chunks=size)
    findings = lint(replace(program, coll="gather", nchunksperloop=2**63 - 1), DIALECTS[dialect])
    assert {"counts", "offsets", "loop"} <= findings.counts.keys()
    assert any(text in finding.text for finding in findings.first)
