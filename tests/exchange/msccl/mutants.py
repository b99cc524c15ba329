"""Single random changes of programs."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from programs import with_block, with_gpu, with_steps


def mutant(program, change, seed):
    """A program with one change of a kind."""
    return MUTATIONS[change](program, Random(f"{change} {seed}"))  # noqa: S311


def _step(program, random, pick=lambda one: True):
    """A random step: GPU, thread block, place."""
    places = [
        (g, block.id, s)
        for g, gpu in enumerate(program.gpus)
        for block in gpu.blocks
        for s, one in enumerate(block.steps)
        if pick(one)
    ]
    return random.choice(places) if places else None


def _renumber_steps(steps):
    return [one._replace(s=s) for s, one in enumerate(steps)]


def _on_step(program, random, change, pick=lambda one: True, *, renumber=False):
    """Change the steps of a thread block at a random place."""
    place = _step(program, random, pick)
    if place is None:
        return program
    gpu, number, at = place
    return with_steps(
        program, gpu, number, lambda steps: (_renumber_steps if renumber else list)(change(list(steps), at))
    )


def _field(program, random, name, values, pick=lambda one: True):
    def change(steps, at):
        steps[at] = steps[at]._replace(**{name: random.choice(values(getattr(steps[at], name)))})
        return steps

    return _on_step(program, random, change, pick)


def _near(value):
    return [value - 1, value + 1]


def _drop(program, random):
    return _on_step(program, random, lambda steps, at: steps[:at] + steps[at + 1 :], renumber=True)


def _double(program, random):
    return _on_step(program, random, lambda steps, at: steps[: at + 1] + steps[at:], renumber=True)


def _swap(program, random):
    def change(steps, at):
        other = random.randrange(len(steps))
        steps[at], steps[other] = steps[other], steps[at]
        return steps

    return _on_step(program, random, change, renumber=True)


def _block(program, random, name, values):
    gpu = random.randrange(len(program.gpus))
    number = random.choice(program.gpus[gpu].blocks).id
    return with_block(
        program, gpu, number, lambda one: replace(one, **{name: random.choice(values(getattr(one, name)))})
    )


def _drop_block(program, random):
    gpu = random.randrange(len(program.gpus))
    return with_gpu(program, gpu, blocks=program.gpus[gpu].blocks[:-1])


def _type(program, random):
    kinds = ("s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop")
    return _field(program, random, "type", lambda _: kinds)


MUTATIONS = {
    "drop step": _drop,
    "double step": _double,
    "swap steps": _swap,
    "type": _type,
    "srcoff": lambda p, r: _field(p, r, "srcoff", _near),
    "dstoff": lambda p, r: _field(p, r, "dstoff", _near),
    "srcbuf": lambda p, r: _field(p, r, "srcbuf", lambda _: "ios"),
    "dstbuf": lambda p, r: _field(p, r, "dstbuf", lambda _: "ios"),
    "cnt": lambda p, r: _field(p, r, "cnt", _near),
    "depid": lambda p, r: _field(p, r, "depid", lambda v: [-1, v - 1, v + 1], lambda one: one.depid >= 0),
    "deps": lambda p, r: _field(p, r, "deps", _near, lambda one: one.depid >= 0),
    "hasdep": lambda p, r: _field(p, r, "hasdep", lambda v: [1 - v]),
    "send": lambda p, r: _block(p, r, "send", lambda v: [-1, v - 1, v + 1]),
    "recv": lambda p, r: _block(p, r, "recv", lambda v: [-1, v - 1, v + 1]),
    "chan": lambda p, r: _block(p, r, "chan", _near),
    "drop block": _drop_block,
    "s_chunks": lambda p, r: with_gpu(p, r.randrange(len(p.gpus)), s_chunks=0),
    "chunks": lambda p, r: replace(p, nchunksperloop=max(1, p.nchunksperloop + r.choice((-1, 1)))),
    "collective": lambda p, r: replace(
        p, coll=r.choice(("allreduce", "allgather", "alltoall", "broadcast", "reducescatter"))
    ),
    "placement": lambda p, r: replace(p, inplace=1 - p.inplace, outofplace=p.inplace),
}
