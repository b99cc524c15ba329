"""An MSCCL program: GPUs, their thread blocks and steps; fields are named like the XML attributes.

Offsets and counts are in chunks, of which a buffer has ``nchunksperloop``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .dialects import MAX_FUSION

#: Types of steps that send, that receive, and that reduce what they receive.
SENDS = frozenset({"s", "rcs", "rrs", "rrcs"})
RECEIVES = frozenset({"r", "rcs", "rrs", "rrc", "rrcs"})
REDUCES = frozenset({"rrs", "rrc", "rrcs"})
FUSED = frozenset({"rcs", "rrs", "rrc", "rrcs"})  #: Types that do two things at once.
#: Types that read their source, and that write their destination.
READS = frozenset({"s", "rrs", "rrc", "rrcs", "cpy", "re", "ra"})
WRITES = frozenset({"r", "rcs", "rrc", "rrcs", "cpy", "re", "ra"})
BUFFERS = ("i", "o", "s")


class Step(NamedTuple):
    """A step of a thread block."""

    s: int
    #: ``s`` send, ``r`` receive, ``cpy`` copy, ``re`` reduce, ``nop`` wait; ``rrc`` receives, reduces and stores,
    #: ``rrs`` receives, reduces and sends, ``rrcs`` does all of it, ``rcs`` receives, stores and sends.
    type: str
    #: ``srcbuf``, ``srcoff``, ``dstbuf`` and ``dstoff``: buffer (``i`` input, ``o`` output, ``s`` scratch) and offset
    #: of the source and the destination.
    srcbuf: str
    srcoff: int
    dstbuf: str
    dstoff: int
    cnt: int
    #: ``depid`` and ``deps``: thread block and step that it waits for; ``depid`` is -1 without.
    depid: int
    deps: int
    hasdep: int  #: 1 if another thread block waits for it.


class Instruction(NamedTuple):
    """An instruction of a thread block: one step, or a chain of reductions."""

    step: Step
    waits: tuple[tuple[int, int], ...]
    sources: tuple[int, ...]  #: Offsets of all that a chain of ``re`` adds.
    flag: int  #: What it sets the thread block's flag to, if ``hasdep`` is 1.
    position: int


def runtime_instructions(steps: Sequence[Step]) -> list[Instruction]:
    """Return the instructions that a runtime makes of the steps of a thread block.

    A runtime leaves out every ``nop`` and joins chains of ``re``; it counts steps again, which is what waits are
    compared with, whatever numbers the file has. See ``mscclGetAlgoFromXMLAndSetAlgo`` and ``runInterpreter`` in
    microsoft/msccl.
    """
    found: list[Instruction] = []
    waits: list[tuple[int, int]] = []
    count = reductions = 0
    chain: tuple[str, int, str] | None = None
    for position, step in enumerate(steps):
        if step.depid >= 0:
            waits.append((step.depid, step.deps))
        if step.type == "nop":
            continue
        adds = step.type == "re"
        if adds and step.depid == -1 and chain == (step.dstbuf, step.dstoff, step.srcbuf):
            last = found.pop()
            count = last.flag + 1
            found.append(Instruction(step, last.waits, (*last.sources, step.srcoff), count, position))
        else:
            if waits:
                count += len(waits) - 1
            found.append(Instruction(step, tuple(waits), (step.srcoff,), count, position))
            waits = []
        count += 1
        reductions += adds
        ends = not adds or step.hasdep or reductions == MAX_FUSION
        chain = None if ends else (step.dstbuf, step.dstoff, step.srcbuf)
    return found


@dataclass(frozen=True)
class Block:
    """A thread block: its channel, and the GPUs that it sends to and receives from, or -1."""

    id: int
    send: int
    recv: int
    chan: int
    steps: tuple[Step, ...]

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """Instructions that a runtime makes of the steps."""
        return tuple(runtime_instructions(self.steps))


@dataclass(frozen=True)
class Gpu:
    """A GPU: sizes of input, output and scratch in chunks, and its thread blocks in file order."""

    id: int
    i_chunks: int
    o_chunks: int
    s_chunks: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Algorithm:
    """A whole file."""

    name: str
    proto: str
    coll: str
    nchannels: int
    nchunksperloop: int
    ngpus: int
    #: ``inplace`` and ``outofplace``: whether it is for calls whose buffers are the same memory, or for others; None if
    #: the file has no such attribute.
    inplace: int | None
    outofplace: int | None
    min_bytes: int | None
    max_bytes: int | None
    nthreads: int | None
    gpus: tuple[Gpu, ...]

    @cached_property
    def kinds_of_steps(self) -> frozenset[Step]:
        """Steps that occur, with 0 for their numbers, offsets and steps that they wait for: few also in large files."""
        steps = (step for gpu in self.gpus for block in gpu.blocks for step in block.steps)
        return frozenset(
            Step(0, *one) for one in {(step[1], step[2], 0, step[4], 0, *step[6:8], 0, step[9]) for step in steps}
        )

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
