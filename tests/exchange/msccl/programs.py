"""Small programs, made by hand from the rules of the format, and what can be done to them."""

from __future__ import annotations

from dataclasses import replace

from cwb.exchange.msccl.program import Algorithm, Block, Gpu, Step, Steps


def step(kind, src=("i", 0), dst=("o", 0), *, cnt=1, dep=(-1, -1), hasdep=0):
    """A step whose number is set by :func:`block`."""
    return Step(0, kind, *src, *dst, cnt, *dep, hasdep)


def block(number, send, recv, *steps, chan=0):
    """A thread block with its steps numbered."""
    return Block(number, send, recv, chan, Steps.of(one._replace(s=s) for s, one in enumerate(steps)))


def algorithm(coll, chunks, *gpus, **changes):
    """An algorithm of these GPUs, for calls out of place."""
    base = Algorithm("test", "Simple", coll, 1, chunks, len(gpus), 0, 1, 0, 2**20, None, gpus)
    return replace(base, **changes)


def ring_all_gather(ranks=3, **changes):
    """Every rank passes on what it receives; its own part is copied by a thread block of its own."""
    gpus = []
    for rank in range(ranks):
        steps = [step("s", ("i", 0), ("o", rank))]
        for back in range(1, ranks):
            part = (rank - back) % ranks
            steps.append(step("rcs" if back < ranks - 1 else "r", ("o", part), ("o", part)))
        copy = block(1, -1, -1, step("cpy", ("i", 0), ("o", rank)))
        gpus.append(Gpu(rank, 1, ranks, 0, (block(0, (rank + 1) % ranks, (rank - 1) % ranks, *steps), copy)))
    return algorithm("allgather", ranks, *gpus, **changes)


def exchange_all_reduce(**changes):
    """Two ranks exchange inputs: one thread block receives into scratch, another one waits and adds it to the
    output."""
    gpus = []
    for rank in range(2):
        send = block(0, 1 - rank, 1 - rank, step("s"), step("r", ("s", 0), ("s", 0), hasdep=1))
        copy = block(1, -1, -1, step("cpy", hasdep=1))
        add = block(2, -1, -1, step("nop", dep=(0, 1), cnt=0), step("re", ("s", 0), ("o", 0), dep=(1, 0)))
        gpus.append(Gpu(rank, 1, 1, 1, (send, copy, add)))
    return algorithm("allreduce", 1, *gpus, **changes)


def change_step(program, gpu, number, place, **fields):
    """A program with one step changed."""
    return with_steps(
        program,
        gpu,
        number,
        lambda steps: tuple(one._replace(**fields) if s == place else one for s, one in enumerate(steps)),
    )


def with_steps(program, gpu, number, change):
    """A program with the steps of a thread block changed."""
    return with_block(program, gpu, number, lambda one: replace(one, steps=Steps.of(change(one.steps))))


def with_block(program, gpu, number, change):
    """A program with a thread block changed."""
    blocks = tuple(change(one) if one.id == number else one for one in program.gpus[gpu].blocks)
    return with_gpu(program, gpu, blocks=blocks)


def with_gpu(program, gpu, **fields):
    """A program with a GPU changed."""
    gpus = tuple(replace(one, **fields) if place == gpu else one for place, one in enumerate(program.gpus))
    return replace(program, gpus=gpus)
