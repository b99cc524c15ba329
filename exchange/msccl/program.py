"""An MSCCL program: an algorithm has GPUs, a GPU thread blocks, a thread block steps; the fields are the attributes.

Offsets and counts are in chunks, of which a buffer has ``nchunksperloop``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .runtime import Instruction

#: Types of steps that send, that receive, and that reduce what they receive.
SENDS = frozenset({"s", "rcs", "rrs", "rrcs"})
RECEIVES = frozenset({"r", "rcs", "rrs", "rrc", "rrcs"})
REDUCES = frozenset({"rrs", "rrc", "rrcs"})

#: Types that do two things at once.
FUSED = frozenset({"rcs", "rrs", "rrc", "rrcs"})

#: Types that read their source, and that write their destination.
READS = frozenset({"s", "rrs", "rrc", "rrcs", "cpy", "re", "ra"})
WRITES = frozenset({"r", "rcs", "rrc", "rrcs", "cpy", "re", "ra"})


class Step(NamedTuple):
    """A step of a thread block.

    Parameters
    ----------
    s : int
        Its number, as the file says.
    type : str
        ``s`` send, ``r`` receive, ``cpy`` copy, ``re`` reduce, ``nop`` wait; ``rrc`` receives, reduces and stores,
        ``rrs`` receives, reduces and sends, ``rrcs`` does all of it, ``rcs`` receives, stores and sends.
    srcbuf, srcoff, dstbuf, dstoff : str, int
        Buffer (``i`` input, ``o`` output, ``s`` scratch) and offset of what is read and written.
    cnt : int
        Number of chunks.
    depid, deps : int
        Thread block and step that it waits for; ``depid`` is -1 without.
    hasdep : int
        1 where another thread block waits for it.
    """

    s: int
    type: str
    srcbuf: str
    srcoff: int
    dstbuf: str
    dstoff: int
    cnt: int
    depid: int
    deps: int
    hasdep: int


@dataclass(frozen=True)
class Block:
    """A thread block: at most one GPU to send to and one to receive from (-1 without), both over one channel."""

    id: int
    send: int
    recv: int
    chan: int
    steps: tuple[Step, ...]

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """What a runtime makes of the steps."""
        from .runtime import compiled

        return tuple(compiled(self.steps))


@dataclass(frozen=True)
class Gpu:
    """A GPU: the sizes of its input, output and scratch in chunks, and its thread blocks in the order of the file."""

    id: int
    i_chunks: int
    o_chunks: int
    s_chunks: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Algorithm:
    """A whole file.

    Parameters
    ----------
    name, proto, coll : str
        Name, protocol (Simple, LL, LL128) and collective, as the file says them.
    nchannels, nchunksperloop, ngpus : int
        Channels, chunks that the data is cut into, GPUs.
    inplace, outofplace : int or None
        Whether it is for calls whose buffers are the same memory, or for others; None where the file says nothing.
    min_bytes, max_bytes : int or None
        Range of sizes that it is for.
    nthreads : int or None
        Threads of a block.
    gpus : tuple of Gpu
        In the order of the file.
    """

    name: str
    proto: str
    coll: str
    nchannels: int
    nchunksperloop: int
    ngpus: int
    inplace: int | None
    outofplace: int | None
    min_bytes: int | None
    max_bytes: int | None
    nthreads: int | None
    gpus: tuple[Gpu, ...]

    @property
    def steps(self) -> int:
        """Number of steps of all GPUs."""
        return sum(len(block.steps) for gpu in self.gpus for block in gpu.blocks)

    @property
    def transfers(self) -> dict[tuple[int, int], int]:
        """Chunks that every pair (source, target) of GPUs is sent, by the steps that send."""
        found: dict[tuple[int, int], int] = {}
        for gpu in self.gpus:
            for block in gpu.blocks:
                if count := sum(step.cnt for step in block.steps if step.type in SENDS):
                    pair = gpu.id, block.send
                    found[pair] = found.get(pair, 0) + count
        return found
