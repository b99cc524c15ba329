"""An MSCCL++ execution plan: GPUs, their thread blocks, and the operations of these.

Offsets and sizes are in chunks, of which every buffer has its own number and all have one size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

#: Kinds of channels: memory of another GPU that is mapped, one that a proxy copies to, a switch that copies and adds.
MEMORY, PORT, SWITCH = "memory", "port", "switch"


class Buffer(NamedTuple):
    """Source or target of an operation.

    Parameters
    ----------
    first, size : int
        First chunk, and number of chunks.
    type : str
        The GPU's own memory: ``i`` input, ``o`` output, ``s`` scratch.
    remote : int
        Position of a remote buffer in the thread block's list; -1 for others.
    switch : int
        Position of a switch channel in the thread block's list; -1 for others.
    """

    first: int
    size: int
    type: str = ""
    remote: int = -1
    switch: int = -1


class Op(NamedTuple):
    """An operation of a thread block.

    Parameters
    ----------
    name : str
        Name of the operation, of :data:`~.kinds.KINDS`.
    src, dst : tuple of Buffer
        Buffers that are read and written.
    channel_type : str
        Kind of all its channels.
    channels : tuple of int
        Positions in the thread block's list of channels of this kind.
    part, parts : int
        Number of its slice, and of all slices.
    barrier, blocks : int
        Number of a barrier, and of the thread blocks that meet there.
    semaphores : tuple of int
        Numbers of semaphores of the GPU.
    unit_bytes, chunks : int
        Of a pipeline: the size of an iteration, and the total number of chunks.
    ops : tuple of Op
        Of a pipeline: the operations of an iteration.
    """

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
    unit_bytes: int = 0
    chunks: int = 0
    ops: tuple[Op, ...] = ()


@dataclass(frozen=True)
class Channel:
    """Channels of a GPU, in the order of the file.

    Parameters
    ----------
    type : str
        One of :data:`MEMORY`, :data:`PORT` and :data:`SWITCH`.
    peers : tuple of int
        The other GPU of every channel.
    buffer : str
        Of a switch channel: the buffer that all GPUs of a group have bound to it.
    groups : tuple of tuple of int
        Of a switch channel: the GPUs of every group, each of which is a channel.
    """

    type: str
    peers: tuple[int, ...] = ()
    buffer: str = ""
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
    """A whole file.

    Parameters
    ----------
    name, collective, protocol : str
        As in the file; with protocol ``LL`` the scratch memory has room for packets.
    inplace : bool
        Whether input and output are the same memory.
    gpus : tuple of Gpu
        GPUs in the order of the file.
    reuse : bool
        Whether the scratch memory is one of the process, of a fixed size.
    double_scratch : bool
        Whether calls use two halves of the scratch memory in turn.
    threads : int
        Threads of a thread block.
    alignment : int
        Bytes that sizes are multiples of.
    min_bytes, max_bytes : int
        Range of sizes that it is for.
    old : tuple of str
        Constructs of older versions of the format.
    """

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
    old: tuple[str, ...] = ()

    @property
    def ngpus(self) -> int:
        """Number of GPUs."""
        return len(self.gpus)

    @cached_property
    def steps(self) -> int:
        """Number of operations of all GPUs."""
        return sum(1 for _ in self.operations())

    def operations(self) -> Iterator[tuple[Gpu, Block, int, Op]]:
        """Yield every operation with GPU, thread block and position, which operations of a pipeline share."""
        for gpu in self.gpus:
            for block in gpu.blocks:
                for place, op in enumerate(block.ops):
                    yield gpu, block, place, op
                    for inner in op.ops:
                        yield gpu, block, place, inner

    @property
    def transfers(self) -> dict[tuple[int, int], Fraction]:
        """Chunks sent between every pair (source, target) of GPUs, without switches."""
        found: dict[tuple[int, int], Fraction] = {}
        for gpu, block, _, op in self.operations():
            refs = block.remote.get(op.channel_type, ())
            for side, buffers in enumerate((op.src, op.dst)):
                for one in buffers:
                    if 0 <= one.remote < len(refs) and 0 <= refs[one.remote] < len(gpu.remote) and op.parts > 0:
                        other = gpu.remote[refs[one.remote]].rank
                        pair = (gpu.id, other) if side else (other, gpu.id)
                        found[pair] = found.get(pair, Fraction(0)) + Fraction(one.size, op.parts)
        return found
