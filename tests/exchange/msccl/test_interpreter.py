"""The interpreter: what it finds in programs that go wrong, and that a second one finds the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cwb.exchange.msccl import interpreter
from cwb.exchange.msccl.check import check_algorithm, obstacle
from cwb.exchange.msccl.dialects import DIALECTS
from cwb.exchange.msccl.interpreter import execute
from cwb.exchange.msccl.outcome import check_outcome
from cwb.exchange.msccl.program import Gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from mutants import MUTATIONS, mutant
from programs import algorithm, block, change_step, exchange_all_reduce, ring_all_gather, step, with_block, with_steps
from slow_run import is_right

RUNTIME = (DIALECTS["msccl-executor"],)


def broken_rules(program, *, inplace=False):
    """Rules of what goes wrong in a run."""
    run = execute(program, inplace=inplace)
    if run.ended:
        check_outcome(run)
    return {finding.rule for finding in run.findings.wrong}


def test_right_programs():
    """A ring and an exchange run to their end and leave what is asked for."""
    assert broken_rules(ring_all_gather(5)) == set()
    assert broken_rules(ring_all_gather(5), inplace=True) == set()
    assert broken_rules(exchange_all_reduce()) == set()


def test_in_place_an_exchange_adds_in_its_input():
    """In place the copy is none, and the sum is there as well."""
    assert broken_rules(exchange_all_reduce(), inplace=True) == set()


def test_what_is_never_sent_hangs():
    """A receiver without a sender is named, with who does not send."""
    program = with_steps(ring_all_gather(), 1, 0, lambda steps: ())
    run = execute(program, inplace=False)
    assert not run.ended
    assert any("receives from gpu 1 what is never sent" in str(finding) for finding in run.findings.first)


def test_what_is_never_received_is_left_over():
    """A sender without a receiver leaves its chunk in the connection."""
    program = with_steps(ring_all_gather(), 2, 0, lambda steps: (*steps, steps[0]._replace(s=3)))
    assert "unmatched" in broken_rules(program)


def test_a_wait_in_a_circle():
    """Thread blocks that wait for one another are shown as a circle."""
    gpu = exchange_all_reduce().gpus[0]
    first = block(0, -1, -1, step("cpy", dep=(1, 0), hasdep=1))
    second = block(1, -1, -1, step("cpy", dep=(0, 0), hasdep=1))
    program = algorithm("allreduce", 1, replace(gpu, blocks=(first, second)))
    run = execute(program, inplace=False)
    assert any("each waits for the next one" in str(finding) for finding in run.findings.first)


def test_steps_of_different_sizes_do_not_match():
    """Two chunks that are sent at once are not received one by one."""
    program = ring_all_gather(2)
    program = with_steps(program, 0, 0, lambda steps: (steps[0]._replace(cnt=2), steps[1]))
    assert "count" in broken_rules(program)


def test_a_connection_that_is_full():
    """Both send three chunks before they receive: at large sizes two fit, at small ones all."""
    gpus = []
    for rank in range(2):
        steps = (step("s", cnt=3), step("r", ("o", 0), ("o", 3 * (1 - rank)), cnt=3))
        copy = block(1, -1, -1, step("cpy", ("i", 0), ("o", 3 * rank), cnt=3))
        gpus.append(replace(ring_all_gather(2).gpus[0], id=rank, blocks=(block(0, 1 - rank, 1 - rank, *steps), copy)))
    program = algorithm("allgather", 6, *gpus, max_bytes=2**30)
    assert broken_rules(program) == {"hang"}
    assert not is_right(program)
    assert broken_rules(replace(program, max_bytes=2**20)) == set()
    assert is_right(replace(program, max_bytes=2**20))


def test_a_race_is_found_in_a_run_that_happens_to_be_right():
    """Without its wait, the addition is right only if it comes late enough; that is a race."""
    program = change_step(exchange_all_reduce(), 0, 2, 0, depid=-1)
    program = with_steps(program, 0, 2, lambda steps: [steps[1]._replace(s=0)])
    assert "race" in broken_rules(program)
    assert not is_right(program)


def test_a_message_puts_accesses_in_order():
    """Data that returns from another GPU is ordered after the data sent there: no race, even without a flag."""
    gpu = ring_all_gather(2).gpus[0]
    first = (
        block(0, 1, -1, step("cpy", ("i", 0), ("s", 0)), step("s", ("s", 0), ("s", 0))),
        block(1, -1, 1, step("r", ("s", 0), ("s", 0)), step("cpy", ("s", 0), ("o", 0))),
    )
    second = (block(0, 0, 0, step("rcs", ("s", 0), ("s", 0)), step("cpy", ("s", 0), ("o", 0))),)
    gpus = (replace(gpu, s_chunks=1, blocks=first), replace(gpu, id=1, s_chunks=1, blocks=second))
    program = algorithm("broadcast", 1, *(replace(one, o_chunks=1) for one in gpus))
    assert broken_rules(program) == set()
    assert is_right(program)


@pytest.mark.parametrize("size", [2**10, 2**30])
def test_a_message_of_one_chunk_says_nothing_of_the_next(size):
    """Data that returns with the first of two chunks may come before the second was read: a race."""
    first = (
        block(0, 1, -1, step("s", cnt=2)),
        block(1, -1, 1, step("r", ("i", 1), ("i", 1), cnt=2)),
    )
    second = (block(0, 0, 0, step("rcs", ("o", 0), ("o", 0), cnt=2)),)
    program = algorithm("custom", 3, Gpu(0, 3, 3, 0, first), Gpu(1, 3, 3, 0, second), max_bytes=size)
    assert broken_rules(program) == {"race"}
    last = with_steps(program, 0, 1, lambda steps: [steps[0]._replace(dstoff=0)])
    assert broken_rules(last) == set()


@pytest.mark.parametrize(("kind", "shift"), [("cpy", 1), ("cpy", -1), ("re", -1), ("rrc", -1)])
def test_a_step_that_writes_what_it_reads_elsewhere(kind, shift):
    """Chunks that are moved by less than their number are a race of the step with itself."""
    move = step(kind, ("s", 1), ("s", 1 + shift), cnt=2)
    fill = step("cpy", ("i", 0), ("s", 0), cnt=4)
    peer = 1 if kind == "rrc" else -1
    here = Gpu(0, 4, 4, 4, (block(0, -1, peer, fill, move),))
    other = Gpu(1, 4, 4, 4, (block(0, 0, -1, *([step("s", cnt=2)] if kind == "rrc" else [])),))
    program = algorithm("custom", 4, here, other)
    assert broken_rules(program) == {"race"}
    assert broken_rules(change_step(program, 0, 0, 1, dstoff=1)) == set()


def test_chains_are_one_step():
    """Additions to the same place are joined, take the count of steps with them, and wait once."""
    gpu = exchange_all_reduce().gpus[0]
    steps = [step("re", ("i", 1), ("o", 0)), step("re", ("i", 2), ("o", 0), hasdep=1)]
    blocks = (
        block(0, -1, -1, step("cpy", ("i", 0), ("o", 0), cnt=3), *steps),
        block(1, -1, -1, step("cpy", ("o", 0), ("s", 0), dep=(0, 2))),
    )
    program = algorithm("allreduce", 3, replace(gpu, blocks=blocks))
    assert broken_rules(program) == {"result"}  # one rank alone: its output is not its input
    assert execute(program, inplace=False).ended


@pytest.mark.parametrize("change", MUTATIONS)
def test_every_kind_of_mutation_that_matters_is_caught(change):
    """Of some mutants of each kind, those that a second interpreter finds wrong are found wrong."""
    for seed in range(12):
        for program in (ring_all_gather(3), exchange_all_reduce()):
            other = mutant(program, change, seed)
            checked = check_algorithm(other, RUNTIME)
            if not checked.problems:
                assert is_right(other), (change, seed)


@pytest.mark.slow  # compiles
def test_compiled_and_interpreted_runs_are_the_same(monkeypatch):
    """The loop gives the same findings, values and events in both forms, also of what goes wrong."""
    programs = [ring_all_gather(4), replace(ring_all_gather(3), max_bytes=2**30), exchange_all_reduce()]
    programs += [mutant(one, change, seed) for one in programs for change in MUTATIONS for seed in range(2)]
    findings = 0
    for program in (one for one in programs if obstacle(one) is None):
        forms = []
        for is_compiled in (True, False):
            monkeypatch.setattr(interpreter, "worth_compiling", lambda turns, form=is_compiled: form)
            machine = interpreter.Machine(program, bool(program.inplace))
            run, events = machine.run, list(machine.events())
            forms.append((run.findings, run.memory, run.values.left, run.values.right, run.ended, events))
        assert forms[0] == forms[1]
        findings += len(run.findings.first)
    assert findings > 20


def test_a_program_without_thread_blocks():
    """Nothing moves, and no output is written."""
    gpus = (replace(gpu, blocks=()) for gpu in ring_all_gather(2).gpus)
    assert broken_rules(algorithm("allgather", 2, *gpus)) == {"result"}


@settings(max_examples=40)
@given(st.integers(2, 4), st.lists(st.tuples(st.sampled_from(list(MUTATIONS)), st.integers(0, 99)), max_size=3))
def test_what_passes_is_right(ranks, changes):
    """Whatever is done to a program, if it passes, no order of its steps goes wrong."""
    program = ring_all_gather(ranks)
    for change, seed in changes:
        program = mutant(program, change, seed)
    if not check_algorithm(program, RUNTIME).problems:
        assert is_right(program)


def test_a_pass_by_an_unknown_peer_is_no_crash():
    """A file that no runtime can run is not run; its rules tell why."""
    program = with_block(ring_all_gather(), 0, 0, lambda one: replace(one, send=7))
    checked = check_algorithm(program, tuple(DIALECTS.values()))
    assert checked.runs == {}
    assert checked.problems
