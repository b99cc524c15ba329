"""Single random changes of plans."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cwb.exchange.mscclpp.plan import MOVES
from plans import with_block, with_gpu, with_ops


def mutant(plan, change, seed):
    """A plan with one change of a kind; the plan itself where there is nothing to change."""
    return CHANGES[change](plan, Random(f"{change} {seed}"))  # noqa: S311


def _on_op(plan, random, change, pick=lambda op: True):
    places = [
        (gpu.id, block.id, place)
        for gpu in plan.gpus
        for block in gpu.blocks
        for place, op in enumerate(block.ops)
        if pick(op)
    ]
    if not places:
        return plan
    rank, number, place = random.choice(places)
    return with_ops(plan, rank, number, lambda ops: change(ops, place))


def _field(plan, random, change, pick):
    def change_ops(ops, place):
        ops[place] = change(ops[place])
        return ops

    return _on_op(plan, random, change_ops, pick)


def _buffers(plan, random, side, change):
    def change_side(op):
        some = list(getattr(op, side))
        place = random.randrange(len(some))
        some[place] = change(some[place])
        return op._replace(**{side: tuple(some)})

    return _field(plan, random, change_side, lambda op: getattr(op, side))


def _sizes(plan, random):
    """All buffers of an operation larger or smaller."""
    by = random.choice((-1, 1))

    def change_size(op):
        src, dst = (tuple(one._replace(size=one.size + by) for one in some) for some in (op.src, op.dst))
        return op._replace(src=src, dst=dst)

    return _field(plan, random, change_size, lambda op: op.src)


def _swap(ops, place, random):
    other = random.randrange(len(ops))
    ops[place], ops[other] = ops[other], ops[place]
    return ops


def _index(one, random):
    return one._replace(first=one.first + random.choice((-1, 1)))


def _kind(one, random):
    if one.remote >= 0:
        return one._replace(remote=one.remote + random.choice((-1, 1)))
    return one._replace(type=random.choice("ios"))


def _block(plan, random, change):
    rank = random.randrange(len(plan.gpus))
    number = random.randrange(len(plan.gpus[rank].blocks))
    return with_block(plan, rank, number, change)


def _channels(plan, random):
    def change_lists(block):
        lists = {kind: tuple(one + random.choice((0, 1)) for one in ids) for kind, ids in block.channels.items()}
        return replace(block, channels=lists)

    return _block(plan, random, change_lists)


def _refs(plan, random):
    def change_lists(block):
        lists = {kind: tuple(random.choice((0, 1, one)) for one in ids) for kind, ids in block.remote.items()}
        return replace(block, remote=lists)

    return _block(plan, random, change_lists)


def _peers(plan, random):
    rank = random.randrange(len(plan.gpus))
    channels = tuple(
        replace(one, peers=tuple(random.choice((peer, peer, peer + 1)) for peer in one.peers))
        for one in plan.gpus[rank].channels
    )
    return with_gpu(plan, rank, channels=channels)


def _remote(plan, random):
    rank = random.randrange(len(plan.gpus))
    some = list(plan.gpus[rank].remote)
    if not some:
        return plan
    place = random.randrange(len(some))
    some[place] = some[place]._replace(
        **random.choice(({"rank": random.randrange(len(plan.gpus))}, {"type": random.choice("ios")}))
    )
    return with_gpu(plan, rank, remote=tuple(some))


def _drop_block(plan, random):
    rank = random.randrange(len(plan.gpus))
    return with_gpu(plan, rank, blocks=plan.gpus[rank].blocks[:-1])


def _chunks(plan, random):
    rank = random.randrange(len(plan.gpus))
    name = random.choice(("input", "output", "scratch"))
    return with_gpu(plan, rank, **{name: getattr(plan.gpus[rank], name) + random.choice((-1, 1))})


def _semaphores(plan, random):
    def change_semaphores(op):
        return op._replace(semaphores=tuple(one + random.choice((-1, 1)) for one in op.semaphores))

    return _field(plan, random, change_semaphores, lambda op: op.semaphores)


def _begins(plan, random):
    rank = random.randrange(len(plan.gpus))
    values = tuple(value + random.choice((0, 1)) for value in plan.gpus[rank].semaphores)
    return with_gpu(plan, rank, semaphores=values)


_SYNCS = ("signal", "wait", "rlxsignal", "rlxwait")

CHANGES = {
    "drop": lambda p, r: _on_op(p, r, lambda ops, at: ops[:at] + ops[at + 1 :]),
    "drop signal or wait": lambda p, r: _on_op(
        p, r, lambda ops, at: ops[:at] + ops[at + 1 :], lambda op: op.name in _SYNCS or op.semaphores
    ),
    "double": lambda p, r: _on_op(p, r, lambda ops, at: ops[: at + 1] + ops[at:]),
    "swap": lambda p, r: _on_op(p, r, lambda ops, at: _swap(ops, at, r)),
    "move name": lambda p, r: _field(p, r, lambda op: op._replace(name=r.choice(list(MOVES))), lambda op: op.src),
    "sync name": lambda p, r: _field(
        p, r, lambda op: op._replace(name=r.choice(("signal", "wait", "nop"))), lambda op: op.name in _SYNCS
    ),
    "semaphore name": lambda p, r: _field(
        p, r, lambda op: op._replace(name=r.choice(("sem_acquire", "sem_release"))), lambda op: op.semaphores
    ),
    "source index": lambda p, r: _buffers(p, r, "src", lambda one: _index(one, r)),
    "target index": lambda p, r: _buffers(p, r, "dst", lambda one: _index(one, r)),
    "source buffer": lambda p, r: _buffers(p, r, "src", lambda one: _kind(one, r)),
    "target buffer": lambda p, r: _buffers(p, r, "dst", lambda one: _kind(one, r)),
    "sizes": _sizes,
    "channels": _channels,
    "buffers": _refs,
    "peers": _peers,
    "remote": _remote,
    "drop block": _drop_block,
    "chunks": _chunks,
    "semaphores": _semaphores,
    "begins": _begins,
    "channel": lambda p, r: _field(
        p, r, lambda op: op._replace(channels=tuple(1 - one for one in op.channels)), lambda op: op.channels
    ),
    "kind": lambda p, r: _field(
        p, r, lambda op: op._replace(channel_type=r.choice(("memory", "port"))), lambda op: op.channel_type
    ),
    "collective": lambda p, r: replace(p, collective=r.choice(("allreduce", "allgather", "alltoall", "broadcast"))),
    "placement": lambda p, r: replace(p, inplace=not p.inplace),
    "halves": lambda p, r: replace(p, double_scratch=not p.double_scratch),
}
