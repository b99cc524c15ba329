"""Small plans, made by hand from the rules of the format, and what can be done to them."""

from __future__ import annotations

from dataclasses import replace

from cwb.exchange.mscclpp.plan import Block, Buffer, Channel, Gpu, Op, Plan, Remote

NOP = Op("nop")


def local(kind, index=0, size=1):
    """A buffer of the GPU."""
    return Buffer(index, size, kind)


def remote(number, index=0, size=1):
    """A buffer of another GPU."""
    return Buffer(index, size, remote=number)


def switch(index=0, size=1, number=0):
    """Return the ranks behind a switch channel."""
    return Buffer(index, size, switch=number)


def over(name, *channels, kind="memory"):
    """A signal or a wait."""
    return Op(name, channel_type=kind, channels=channels or (0,))


def plan(collective, *gpus, **changes):
    """A plan of these GPUs."""
    return replace(Plan("test", collective, "Simple", inplace=False, gpus=gpus), **changes)


def pair(ops, *, chunks=(1, 1, 0), buffer="s", **changes):
    """Two GPUs with a channel and a buffer of the other one, and a thread block with the operations that a rank has."""
    gpus = []
    for rank in range(2):
        block = Block(0, tuple(ops(rank)), {"memory": (0,)}, {"memory": (0,)})
        channel, other = Channel("memory", (1 - rank,)), Remote(1 - rank, buffer, ("memory",))
        gpus.append(Gpu(rank, *chunks, (block,), (channel,), (other,)))
    return plan(changes.pop("collective", "allreduce"), *gpus, **changes)


def exchange_plan(**changes):
    """Two ranks put their inputs into the scratch memory of one another, and add what comes."""

    def ops(rank):
        del rank
        put = Op("put", (local("i"),), (remote(0),), "memory")
        add = Op("re", (local("i"), local("s")), (local("o"),))
        return [over("rlxsignal"), over("rlxwait"), NOP, put, NOP, over("signal"), over("wait"), NOP, add]

    return pair(ops, chunks=(1, 1, 1), **changes)


def read_plan(**changes):
    """Two ranks read the input of one another, each adds one chunk and writes the sum into the output of both."""

    def ops(rank):
        both = (local("i", rank), remote(0, rank))
        add = Op("rres", both, (local("i", rank), remote(0, rank)), "memory")
        return [over("signal"), over("wait"), NOP, add, NOP, over("signal"), over("wait")]

    return pair(ops, chunks=(2, 2, 0), buffer="i", inplace=True, **changes)


def fetch_plan(**changes):
    """Two ranks get the part of one another out of its output, where each has put its own."""

    def ops(rank):
        copy = Op("copy", (local("i"),), (local("o", rank),))
        get = Op("get", (remote(0, 1 - rank),), (local("o", 1 - rank),), "memory", (0,))
        return [copy, NOP, over("signal"), over("wait"), NOP, get, NOP, over("signal"), over("wait")]

    return pair(ops, chunks=(1, 2, 0), buffer="o", **{"collective": "allgather", **changes})


def packets(**changes):
    """Two ranks put packets, and add those that come."""

    def ops(rank):
        del rank
        put = Op("ppkt", (local("i"),), (remote(0),), "memory")
        return [put, Op("repkt", (local("i"), local("s")), (local("o"),))]

    return pair(ops, chunks=(1, 1, 1), protocol="LL", double_scratch=True, **changes)


def switch_plan(ranks=2, **changes):
    """Every rank has the switch add one chunk and store it everywhere."""
    gpus = []
    for rank in range(ranks):
        others = tuple(one for one in range(ranks) if one != rank)
        meet = [over(name, *range(ranks - 1)) for name in ("signal", "wait")]
        ops = [*meet, NOP, Op("glres", (switch(rank),), (switch(rank),), "switch"), NOP, *meet]
        block = Block(0, tuple(ops), {"memory": tuple(range(ranks - 1)), "switch": (0,)})
        channels = (Channel("memory", others), Channel("switch", (), "i", (tuple(range(ranks)),)))
        gpus.append(Gpu(rank, ranks, ranks, 0, (block,), channels))
    return plan("allreduce", *gpus, inplace=True, **changes)


def pipelined_plan(**changes):
    """The same in a pipeline: one thread block copies to scratch memory, another one has the switch add, a third copies
    back."""
    base = switch_plan()
    gpus = []
    for rank, gpu in enumerate(base.gpus):
        whole = [Op("copy", (local(a, c),), (local(b, c),)) for a, b in ("is", "so") for c in range(2)]
        meet = [over(name) for name in ("signal", "wait")]
        add = Op("glres", (switch(rank),), (switch(rank),), "switch")
        stages = [
            [_sem("sem_acquire", 2), NOP, *whole[:2], NOP, *meet, NOP, _sem("sem_release", 0)],
            [_sem("sem_acquire", 0), NOP, add, NOP, _sem("sem_release", 1)],
            [_sem("sem_acquire", 1), NOP, *meet, NOP, *whole[2:], NOP, _sem("sem_release", 2)],
        ]
        uses = [{"memory": (0,)}, {"switch": (0,)}, {"memory": (1,)}]
        blocks = tuple(
            Block(n, (Op("pipeline", ops=tuple(ops), unit_bytes=2**19, chunks=1),), uses[n])
            for n, ops in enumerate(stages)
        )
        channels = (Channel("memory", (1 - rank, 1 - rank)), replace(gpu.channels[1], buffer="s"))
        gpus.append(replace(gpu, scratch=2, blocks=blocks, channels=channels, semaphores=(0, 0, 32)))
    return replace(base, gpus=tuple(gpus), **changes)


def _sem(name, number):
    return Op(name, semaphores=(number,))


def sliced_plan(**changes):
    """Two thread blocks do the exchange of :func:`exchange_plan`, each one half of the chunk, and meet at a barrier
    first."""
    base = exchange_plan()
    gpus = []
    for gpu in base.gpus:
        ops = gpu.blocks[0].ops
        blocks = []
        for part in range(2):
            own = [op._replace(part=part, parts=2) if op.src else op for op in ops]
            meet = Op("barrier", barrier=0, blocks=2)
            blocks.append(replace(gpu.blocks[0], id=part, ops=(meet, *own), channels={"memory": (part,)}))
        channels = (Channel("memory", gpu.channels[0].peers * 2),)
        gpus.append(replace(gpu, blocks=tuple(blocks), channels=channels))
    return replace(base, gpus=tuple(gpus), **changes)


def over_ports(**changes):
    """The exchange over ports, which signal with the last byte and are waited for."""
    base = exchange_plan()
    gpus = []
    for gpu in base.gpus:
        put = Op("pwsf", (local("i"),), (remote(0),), "port", (0,))
        add = Op("re", (local("i"), local("s")), (local("o"),))
        ops = [over("signal", kind="port"), over("wait", kind="port"), NOP, put, over("wait", kind="port"), NOP, add]
        channels = (Channel("port", gpu.channels[0].peers),)
        others = tuple(one._replace(over=("port",)) for one in gpu.remote)
        block = Block(0, tuple(ops), {"port": (0,)}, {"port": (0,)})
        gpus.append(replace(gpu, blocks=(block,), channels=channels, remote=others))
    return replace(base, gpus=tuple(gpus), **changes)


#: Right plans.
PLANS = {
    one.__name__: one
    for one in (exchange_plan, read_plan, fetch_plan, packets, switch_plan, pipelined_plan, sliced_plan, over_ports)
}  # fmt: skip

#: Those that the second interpreter runs.
WHOLE = [name for name in PLANS if name not in ("pipelined_plan", "sliced_plan")]


def with_gpu(one, rank, **fields):
    """A plan with a GPU changed."""
    gpus = tuple(replace(gpu, **fields) if place == rank else gpu for place, gpu in enumerate(one.gpus))
    return replace(one, gpus=gpus)


def with_block(one, rank, number, change):
    """A plan with a thread block changed."""
    blocks = tuple(change(block) if place == number else block for place, block in enumerate(one.gpus[rank].blocks))
    return with_gpu(one, rank, blocks=blocks)


def with_ops(one, rank, number, change):
    """A plan with the operations of a thread block changed."""
    return with_block(one, rank, number, lambda block: replace(block, ops=tuple(change(list(block.ops)))))


def with_op(one, rank, number, place, **fields):
    """A plan with an operation changed."""

    def change(ops):
        ops[place] = ops[place]._replace(**fields)
        return ops

    return with_ops(one, rank, number, change)
