"""An MSCCL program: GPUs, their thread blocks and steps; fields are named like the XML attributes.

Offsets and counts are in chunks, of which a buffer has ``nchunksperloop``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from ...core.schedule import Bools, Ints
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
#: Types and buffers by their numbers in tables; a type that is unknown has a further number.
NAMES = (*BUFFERS, "nop", "re", "r", "cpy", "rcs", "rrs", "rrc", "rrcs", "ra")
WORDS = [1, 2, 4]  #: Columns of types and buffers.


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


class Steps:  # noqa: PLW1641 (nothing looks them up)
    """Steps of a thread block, as a table of integers that are as short as the numbers allow."""

    def __init__(self, table: Ints, names: Sequence[str] = NAMES) -> None:
        least = min(table.min(initial=-1), -1 - table.max(initial=0))  # below 0: the type has a sign
        self.table, self.names = table.astype(np.min_scalar_type(least), copy=False), names

    @classmethod
    def of(cls, parts: "Iterable[Step | Steps]") -> Self:
        """Put steps, and steps of tables, one after the other."""
        numbers = {name: number for number, name in enumerate(NAMES)}
        tables: list[Any] = [np.zeros((0, len(Step._fields)), dtype=np.int8)]
        for part in parts:
            if isinstance(part, Step):
                row = [numbers.setdefault(value, len(numbers)) if isinstance(value, str) else value for value in part]
                tables.append(np.array([row]))
                continue
            tables.append(part.table)
            if len(part.names) > len(NAMES):
                table = tables[-1] = part.table.astype(np.int64)
                places = np.array([numbers.setdefault(name, len(numbers)) for name in part.names])
                table[:, WORDS] = places[table[:, WORDS]]
        return cls(np.concatenate(tables), tuple(numbers))

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, place: int) -> Step:
        return next(iter(type(self)(self.table[place][None], self.names)))

    def __iter__(self) -> Iterator[Step]:
        columns: list[Iterable[Any]] = self.table.T.tolist()
        for column in WORDS:
            columns[column] = map(self.names.__getitem__, columns[column])
        return map(Step._make, zip(*columns, strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Steps) and tuple(self) == tuple(other)


@dataclass(frozen=True)
class Block:
    """A thread block: its channel, and the GPUs that it sends to and receives from, or -1."""

    id: int
    send: int
    recv: int
    chan: int
    steps: Steps


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
    def columns(self) -> "Columns":
        """Steps as columns."""
        return Columns(self.gpus)

    @property
    def steps(self) -> int:
        """Number of steps of all GPUs."""
        return sum(len(block.steps) for gpu in self.gpus for block in gpu.blocks)

    @property
    def transfers(self) -> dict[tuple[int, int], int]:
        """Chunks that every pair (source, target) of GPUs is sent, by the steps that send."""
        columns, total = self.columns, Counter[tuple[int, int]]()
        sends = np.flatnonzero(columns.has_type(SENDS))
        for block, count in zip(columns.block[sends].tolist(), columns.cnt[sends].tolist(), strict=True):
            total[self.gpus[columns.gpu[block]].id, columns.blocks[block].send] += count
        return dict(total)


class Columns:
    """Steps of a program in file order, and the instructions that a runtime makes of them, as columns.

    A runtime leaves out every ``nop`` and joins chains of ``re``; it counts steps again, which is what waits are
    compared with, whatever numbers the file has. See ``mscclGetAlgoFromXMLAndSetAlgo`` and ``runInterpreter`` in
    microsoft/msccl. Types and buffers are numbers, by ``names``.
    """

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self.gpus = gpus
        self.blocks = [block for gpu in gpus for block in gpu.blocks]
        blocks = np.array([len(gpu.blocks) for gpu in gpus], dtype=np.int64)
        self.gpu = np.repeat(np.arange(len(gpus)), blocks)  #: Place of every thread block's GPU.
        self.rows = Steps.of(block.steps for block in self.blocks)
        lengths = np.array([len(block.steps) for block in self.blocks], dtype=np.int64)
        self.begin = np.concatenate([[0], np.cumsum(lengths)])
        self.block = np.repeat(np.arange(len(lengths)), lengths)
        self.position = np.arange(len(self.rows)) - self.begin[self.block]
        self.names = {name: number for number, name in enumerate(self.rows.names)}
        columns = np.ascontiguousarray(self.rows.table.T, dtype=np.int64)
        self.s, self.type, self.srcbuf, self.srcoff, self.dstbuf, self.dstoff, self.cnt, *waits = columns
        self.depid, self.deps, self.hasdep = waits
        self._find_instructions()
        self._find_waits()

    def _find_instructions(self) -> None:
        live = np.flatnonzero(self.type != NAMES.index("nop"))
        before, block = np.roll(live, 1), self.block[live]
        first = np.searchsorted(live, self.begin)  # of every block, among these
        adds = self.type == NAMES.index("re")
        count = np.concatenate([[0], np.cumsum(adds[live])])
        joins = adds[live] & adds[before] & (self.block[before] == block) & (before < live)
        joins &= (self.depid[live] == -1) & (self.hasdep[before] == 0)
        joins &= count[:-1] - count[first[block]] != MAX_FUSION
        for same in (self.dstbuf, self.dstoff, self.srcbuf):
            joins &= same[live] == same[before]
        heads = np.flatnonzero(~joins)
        self.head = live[heads]  #: First step of every instruction.
        self.sources = self.srcoff[live]  #: Offsets that instructions read, of a chain one after the other.
        self.source_begin = np.append(heads, len(live))
        tails = self.source_begin[1:] - 1
        self.step = live[tails]  #: Last step of every instruction, which it is in all else.
        self.instruction_begin = np.searchsorted(heads, first)  #: First instruction of every thread block.
        self.flag = tails - first[block[tails]]  #: Value to which an instruction sets its thread block's flag.

    def _find_waits(self) -> None:
        self.waits = np.flatnonzero(self.depid >= 0)  #: Steps that wait.
        instruction = np.searchsorted(self.head, self.waits)
        #: Waits, as places in ``waits``, that instructions have.
        self.live_waits = np.flatnonzero(instruction < self.instruction_begin[self.block[self.waits] + 1])
        self.wait_begin = np.searchsorted(instruction[self.live_waits], np.arange(len(self.step) + 1))
        more = np.concatenate([[0], np.cumsum(np.maximum(np.diff(self.wait_begin) - 1, 0))])
        self.flag += more[1:] - more[self.instruction_begin[self.block[self.step]]]
        number = {(gpu, block.id): n for n, (gpu, block) in enumerate(zip(self.gpu.tolist(), self.blocks, strict=True))}
        keys = zip(self.gpu[self.block[self.waits]].tolist(), self.depid[self.waits].tolist(), strict=True)
        #: Thread blocks that waits are for, or -1.
        self.awaited = np.fromiter((number.get(key, -1) for key in keys), np.int64, len(self.waits))
        flagged = np.append(np.flatnonzero(self.hasdep[self.step]), -1)
        owner = np.append(self.block[self.step], -1)
        states = (owner[flagged[:-1]] << 32) + self.flag[flagged[:-1]]
        ends = flagged[np.searchsorted(states, (self.awaited << 32) + np.clip(self.deps[self.waits], 0, 2**31))]
        #: Instructions that end waits: the first of the thread block that sets its flag as high; or -1.
        self.ends = np.where(owner[ends] == self.awaited, ends, -1)

    def has_type(self, kinds: Iterable[str]) -> Bools:
        """Return whether steps are of one of these types."""
        return np.isin(self.type, [self.names[name] for name in kinds if name in self.names])

    def blocks_with(self, kinds: Iterable[str]) -> Ints:
        """Return the number of such steps of every thread block."""
        return np.bincount(self.block[self.has_type(kinds)], minlength=len(self.blocks))

    def place(self, step: int) -> tuple[int, int, int]:
        """Return the place of a step: GPU, thread block, step."""
        block = int(self.block[step])
        return self.gpus[int(self.gpu[block])].id, self.blocks[block].id, int(self.position[step])
