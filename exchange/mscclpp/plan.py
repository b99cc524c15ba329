"""An MSCCL++ execution plan: GPUs, their thread blocks, and the operations of these, with the executor's limits.

Offsets and sizes are in chunks, of which every buffer has its own number and all have one size.

Letters denote the sources and targets of operations: ``L`` memory of the GPU, ``R`` memory of another one, ``P``
packets in the GPU's scratch memory, ``Q`` packets in that of another one, ``S`` a switch channel, ``T`` packets over
one. Packets are data with a flag of the call, twice as long; their readers wait for the flag.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

#: Kinds of channels: memory of another GPU that is mapped, one that a proxy copies to, a switch that copies and adds.
MEMORY, PORT, SWITCH = "memory", "port", "switch"
#: Operations of a thread block (those of pipelines too), channels of a kind, channels and buffers of an operation.
MAX_OPERATIONS = 64
MAX_CHANNELS = 16
MAX_OP_CHANNELS = 8
MAX_OP_BUFFERS = 10
#: Barriers of a GPU, semaphores of an operation, operations of a pipeline, threads of a block.
MAX_BARRIERS = 16
MAX_SEMAPHORES = 16
MAX_PIPELINE = 16
MAX_THREADS = 1024
SCRATCH_BYTES = 2**26  #: Scratch memory where it is reused.
RESIDENT = 132  #: Thread blocks that run at once on an H100, one on each multiprocessor.


class Buffer(NamedTuple):
    """Source or target of an operation."""

    first: int
    size: int
    type: str = ""  #: The GPU's own memory: ``i`` input, ``o`` output, ``s`` scratch.
    remote: int = -1  #: Position of a remote buffer in the thread block's list; -1 for others.
    switch: int = -1  #: Position of a switch channel in the thread block's list; -1 for others.


class Op(NamedTuple):
    """An operation of a thread block."""

    name: str
    src: tuple[Buffer, ...] = ()
    dst: tuple[Buffer, ...] = ()
    channel_type: str = ""
    channels: tuple[int, ...] = ()
    part: int = 0
    parts: int = 1
    barrier: int = -1
    blocks: int = 0
    semaphores: tuple[int, ...] = ()
    #: ``unit_bytes`` and ``chunks``: of a pipeline: the size of an iteration, and the total number of chunks.
    unit_bytes: int = 0
    chunks: int = 0
    ops: "tuple[Op, ...]" = ()


@dataclass(frozen=True)
class Channel:
    """Channels of a GPU, in the order of the file."""

    type: str
    peers: tuple[int, ...] = ()
    buffer: str = ""
    #: Of a switch channel: the GPUs of every group, each of which is a channel.
    groups: tuple[tuple[int, ...], ...] = ()


class Remote(NamedTuple):
    """A buffer of another GPU, and the kinds of channels that it is used over."""

    rank: int
    type: str
    over: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """A thread block: its operations, and which channels and remote buffers of the GPU it uses, by kind of channel."""

    id: int
    ops: tuple[Op, ...]
    channels: dict[str, tuple[int, ...]] = field(default_factory=dict)
    remote: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Gpu:
    """A GPU: chunks of its buffers, thread blocks, channels, remote buffers, initial semaphores."""

    id: int
    input: int
    output: int
    scratch: int
    blocks: tuple[Block, ...]
    channels: tuple[Channel, ...] = ()
    remote: tuple[Remote, ...] = ()
    semaphores: tuple[int, ...] = ()

    def peers(self, kind: str) -> list[int]:
        """Return the other GPU of every channel of a kind, in the thread blocks' numbering."""
        return [peer for channel in self.channels if channel.type == kind for peer in channel.peers]

    @cached_property
    def groups(self) -> list[tuple[str, tuple[int, ...]]]:
        """Buffer and GPUs of every switch channel, as thread blocks count them."""
        return [(one.buffer, group) for one in self.channels if one.type == SWITCH for group in one.groups]


@dataclass(frozen=True)
class Plan:
    """A whole file."""

    #: ``name``, ``collective`` and ``protocol``: as in the file; with protocol ``LL`` the scratch memory has room for
    #: packets.
    name: str
    collective: str
    protocol: str
    inplace: bool
    gpus: tuple[Gpu, ...]
    reuse: bool = False
    double_scratch: bool = False
    threads: int = 1024
    alignment: int = 16
    min_bytes: int = 0
    max_bytes: int = 2**64 - 1
    old: tuple[str, ...] = ()  #: Constructs of older versions of the format.

    @property
    def ngpus(self) -> int:
        """Number of GPUs."""
        return len(self.gpus)

    @cached_property
    def steps(self) -> int:
        """Number of operations of all GPUs."""
        return sum(1 for _ in self.operations())

    def operations(self) -> Iterator[tuple[Gpu, Block, tuple[int, int, int], Op]]:
        """Yield every operation with GPU, thread block and place, which operations of a pipeline share."""
        for gpu in self.gpus:
            for block in gpu.blocks:
                for position, op in enumerate(block.ops):
                    place = gpu.id, block.id, position
                    yield gpu, block, place, op
                    for inner in op.ops:
                        yield gpu, block, place, inner

    @property
    def transfers(self) -> dict[tuple[int, int], Fraction]:
        """Chunks sent between every pair (source, target) of GPUs, without switches."""
        total: dict[tuple[int, int], Fraction] = {}
        for gpu, block, _, op in self.operations():
            refs = block.remote.get(op.channel_type, ())
            for side, buffers in enumerate((op.src, op.dst)):
                for one in buffers:
                    if 0 <= one.remote < len(refs) and 0 <= refs[one.remote] < len(gpu.remote) and op.parts > 0:
                        other = gpu.remote[refs[one.remote]].rank
                        pair = (gpu.id, other) if side else (other, gpu.id)
                        total[pair] = total.get(pair, Fraction(0)) + Fraction(one.size, op.parts)
        return total


@dataclass(frozen=True)
class Kind:
    """An operation that moves data."""

    src: str
    dst: str
    more_src: str = ""
    more_dst: str = ""
    #: Whether every source is written to the target of the same place; otherwise the sum of all is written to all.
    each: bool = False
    over: tuple[str, ...] = (MEMORY,)

    def letters(self, sources: int, targets: int) -> tuple[str, str]:
        """Return a letter for each of so many sources and targets; fewer if they are too many."""
        src = self.src + self.more_src * max(sources - len(self.src), 0)
        return src[:sources], (self.dst + self.more_dst * max(targets - len(self.dst), 0))[:targets]

    def fits(self, sources: int, targets: int) -> bool:
        """Return whether so many sources and targets are allowed."""
        if self.each:
            return 0 < sources == targets
        right = sources == len(self.src) or (sources > len(self.src) and bool(self.more_src))
        return right and (targets == len(self.dst) or (targets > len(self.dst) and bool(self.more_dst)))


_ANY = (MEMORY, PORT)

MOVES = {
    "copy": Kind("L", "L"),
    "put": Kind("", "", "L", "R", each=True, over=_ANY),
    "pws": Kind("", "", "L", "R", each=True, over=(PORT,)),
    "pwsf": Kind("", "", "L", "R", each=True, over=(PORT,)),
    "get": Kind("", "", "R", "L", each=True),
    "re": Kind("L", "L", "L"),
    "res": Kind("L", "L", "L", "R"),
    "rre": Kind("L", "L", "R"),
    "rres": Kind("L", "L", "R", "R"),
    "ppkt": Kind("", "", "L", "Q", each=True, over=_ANY),
    "rppkt": Kind("P", "", "", "Q", over=_ANY),
    "cpkt": Kind("L", "P"),
    "upkt": Kind("P", "L"),
    "repkt": Kind("L", "L", "P"),
    "respkt": Kind("L", "L", "P", "Q"),
    "recpkt": Kind("L", "LP", "P"),
    "recspkt": Kind("L", "LP", "P", "Q"),
    "glres": Kind("S", "S", over=(SWITCH,)),
    "gstore": Kind("L", "S", over=(SWITCH,)),
    "gstorepkt": Kind("P", "T", over=(SWITCH,)),
}

#: Operations that move nothing, and the kinds of channels of those that have some.
OTHERS: dict[str, tuple[str, ...]] = {
    "nop": (),
    "barrier": (),
    "signal": _ANY,
    "wait": _ANY,
    "rlxsignal": _ANY,
    "rlxwait": _ANY,
    "flush": (PORT,),
    "pipeline": (),
    "sem_acquire": (),
    "sem_release": (),
}

SIGNALS, WAITS = frozenset({"signal", "rlxsignal"}), frozenset({"wait", "rlxwait"})

#: Operations whose data is packets, for which pipelines do not cut it.
PACKETS = frozenset(
    name for name, kind in MOVES.items() if set("PQT") & set(kind.src + kind.dst + kind.more_src + kind.more_dst)
)


def letters_of(name: str, sources: int, targets: int, over: str) -> tuple[str, str]:
    """Return the letters of an operation; over a port, only packets are put as packets."""
    src, dst = MOVES[name].letters(sources, targets)
    return (src.replace("L", "P"), dst) if name == "ppkt" and over == PORT else (src, dst)
