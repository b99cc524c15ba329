"""Versions of chunks: which one a send reads, which one it adds to, and what they are sums of.

A *version* is a node's content of a chunk from one write to the next. Versions are numbered inside a block of chunks:
a write by its position among the block's writes, sorted by (chunk, node, order); initial data by ``writes + cell``,
where the cell is ``row * nodes + node``; -1 is nothing. One sort and binary searches answer all lookups, so that no
step is replayed separately.

Contributions to a version: a copy is replaced by its origin, and any other version is the sum of two versions, and so
on down to the initial data of ranks. A valid sum of n contributions expands into exactly n parts; an expansion into
more counts something twice and is stopped.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Self

import numpy as np

from ...core.schedule import Bools, Chunks, Ints, Sends, offsets, ranges
from .network import Network

NOTHING = -1

#: Cells (chunks times nodes) and sends of a block, unless one chunk alone has more; they bound the memory.
BLOCK_CELLS = 2**22
BLOCK_SENDS = 2**20


@dataclass(frozen=True, eq=False)
class Members:
    """Groups of ranks as nodes, concatenated."""

    offset: Ints
    nodes: Ints

    @classmethod
    def of(cls, chunks: Chunks, network: Network) -> Self:
        """Convert the groups of the chunks."""
        ranks = np.fromiter(chain.from_iterable(chunks.groups), dtype=np.int64)
        return cls(offsets(list(map(len, chunks.groups))), network.rank_node[ranks])

    def pairs(self, groups: Ints) -> tuple[Ints, Ints]:
        """Return pairs (position in ``groups``, member node) for all members of the groups."""
        sizes = self.offset[groups + 1] - self.offset[groups]
        return np.repeat(np.arange(len(groups)), sizes), self.nodes[ranges(self.offset[groups], sizes)]


@dataclass(frozen=True, eq=False)
class Block:
    """Some chunks with all their sends."""

    first_chunk: int
    rows: int  #: Number of chunks.
    nodes: int
    reduced: Bools  #: True for chunks whose contributions are summed; shape (rows,).
    initial: Bools  #: Cells that hold something from the start; shape (rows * nodes,).
    send: Ints  #: The schedule's send of each write, sorted by (chunk, target, order); shape (writes,).
    cell: Ints  #: Target cell of each of the writes; shape (writes,).
    #: Orders at which each of these sends writes and reads; shape (writes,).
    order: Ints
    read: Ints
    source: Ints  #: Cell that each of the sends reads; shape (writes,).
    adds: Bools  #: True for sends that add to their target's data; shape (writes,).
    end: int  #: An order after all writes.

    @property
    def writes(self) -> int:
        """Number of writes."""
        return len(self.send)

    @cached_property
    def keys(self) -> Ints:
        """(cell, order) of the writes as one sorted number."""
        return self.cell * (self.end + 1) + self.order

    @cached_property
    def first(self) -> Ints:
        """The first write to the cell of each write."""
        starts = np.ones(self.writes, dtype=np.bool_)
        starts[1:] = self.cell[1:] != self.cell[:-1]
        return np.maximum.accumulate(np.where(starts, np.arange(self.writes), 0))

    @cached_property
    def sums(self) -> Bools:
        """True for each write to a chunk that is a sum."""
        return self.reduced[self.cell // self.nodes]

    def last_write(self, cell: Ints, before: Ints | int) -> Ints:
        """Return the last write to each cell before an order; :data:`NOTHING` if there is none."""
        if not self.writes:
            return np.full(len(cell), NOTHING, dtype=np.int64)
        write = np.searchsorted(self.keys, cell * (self.end + 1) + before) - 1
        return np.where((write >= 0) & (self.cell[np.maximum(write, 0)] == cell), write, NOTHING)

    def version(self, cell: Ints, before: Ints | int) -> Ints:
        """Return each cell's version at an order: the last of a sum; the first of a copy, which never changes."""
        write = self.last_write(cell, before)
        start = np.where(self.initial[cell], self.writes + cell, NOTHING)
        if not self.writes:
            return start
        at = np.maximum(write, 0)
        copies = np.where(start >= 0, start, self.first[at])
        version = np.where(self.sums[at], at, copies)
        return np.where(write >= 0, version, start)

    @cached_property
    def payload(self) -> Ints:
        """The version that each send reads and brings to its target."""
        return self.version(self.source, self.read)

    @cached_property
    def base_version(self) -> Ints:
        """The version that each write adds to; :data:`NOTHING` for copies and first writes to empty cells."""
        index = np.arange(self.writes)
        before = np.where(self.initial[self.cell], self.writes + self.cell, NOTHING)
        before = np.where(self.first < index, index - 1, before)
        return np.where(self.adds & self.sums, before, NOTHING)


def blocks(chunks: Chunks, sends: Sends, read: Ints, write: Ints, network: Network) -> Iterator[Block]:
    """Yield blocks of bounded size, each with some chunks and all their sends."""
    members = Members.of(chunks, network)
    by_chunk = np.arange(len(sends))
    if len(sends) and (np.diff(sends.chunk) < 0).any():
        small = sends.chunk.astype(np.uint16) if len(chunks) <= 2**16 else sends.chunk
        by_chunk = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(sends.chunk, minlength=len(chunks)))
    end = int(write.max()) + 1 if len(write) else 0
    first = begin = 0
    while first < len(chunks):
        fits = int(np.searchsorted(ends, begin + BLOCK_SENDS, side="right"))
        stop = min(max(fits, first + 1), first + max(BLOCK_CELLS // network.nodes, 1), len(chunks))
        index = by_chunk[begin : int(ends[stop - 1])]
        row = (sends.chunk[index] - first) * network.nodes
        cell, order = row + sends.target[index], write[index]
        sort = _argsort(cell * (end + 1) + order)
        index = index[sort]
        initial = np.zeros((stop - first) * network.nodes, dtype=np.bool_)
        rows, holders = members.pairs(chunks.held_by[first:stop])
        initial[rows * network.nodes + holders] = True
        content = chunks.reduced[first:stop], initial, index, cell[sort], order[sort], read[index]
        source = row[sort] + sends.source[index]
        yield Block(first, stop - first, network.nodes, *content, source, sends.reduce[index], end)
        first, begin = stop, int(ends[stop - 1])


def _argsort(keys: Ints) -> Ints:
    """Return the positions that sort numbers; numbers below 2^32 by two stable radix sorts of 16 bits."""
    if len(keys) and int(keys.max()) >= 2**32:
        return np.argsort(keys, kind="stable")
    low = np.argsort(keys.astype(np.uint16), kind="stable")
    return low[np.argsort((keys[low] >> 16).astype(np.uint16), kind="stable")]


EXPANDED_CELLS = 2**22  #: Roots times nodes that are expanded together; bounds the memory.


@dataclass(frozen=True, eq=False)
class Sums:
    """The versions of a block with copies resolved."""

    block: Block
    origin: Ints  #: The version that each write is a copy of; itself if it is a sum; shape (writes,).
    #: The two parts of each sum; shape (writes,).
    left: Ints
    right: Ints

    @classmethod
    def of(cls, block: Block) -> Self:
        """Resolve copies of copies by pointer doubling."""
        writes = block.writes
        payload, base_version = block.payload, block.base_version
        is_sum = (payload != NOTHING) & (base_version != NOTHING)
        origin = np.where(is_sum, np.arange(writes), np.where(payload == NOTHING, base_version, payload))
        unresolved = np.flatnonzero(~is_sum & (origin >= 0) & (origin < writes))
        while len(unresolved):
            origin[unresolved] = jump = origin[origin[unresolved]]
            inside = (jump >= 0) & (jump < writes)
            unresolved, jump = unresolved[inside], jump[inside]
            unresolved = unresolved[origin[jump] != jump]
        sums = cls(block, origin, payload, base_version)
        return cls(block, origin, sums.resolve(payload), sums.resolve(base_version))

    def resolve(self, version: Ints) -> Ints:
        """Return the versions that these are copies of."""
        inside = (version >= 0) & (version < self.block.writes)
        if not len(self.origin):
            return version
        return np.where(inside, self.origin[np.where(inside, version, 0)], version)

    def are_complete(self, roots: Ints, contributors: Ints) -> Bools:
        """Return whether each root version has every holder's contribution to its chunk exactly once."""
        size = max(EXPANDED_CELLS // self.block.nodes, 1)
        parts = [self._expand(roots[i : i + size], contributors[i : i + size]) for i in range(0, len(roots), size)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)

    def _expand(self, roots: Ints, contributors: Ints) -> Bools:
        """Expand all roots level by level, and check that each has every contribution once."""
        writes, nodes = self.block.writes, self.block.nodes
        owner, version = np.arange(len(roots)), roots
        parts = np.ones(len(roots), dtype=np.int64)
        leaves: list[Ints] = []
        while len(version):
            is_leaf = version >= writes
            leaves.append(owner[is_leaf] * nodes + (version[is_leaf] - writes) % nodes)
            is_sum = (version >= 0) & ~is_leaf
            owner, version = owner[is_sum], version[is_sum]
            np.add.at(parts, owner, 1)
            is_valid = parts[owner] <= contributors[owner]
            owner, version = owner[is_valid], version[is_valid]
            owner = np.concatenate([owner, owner])
            version = np.concatenate([self.left[version], self.right[version]])
        counts = np.bincount(np.concatenate(leaves), minlength=len(roots) * nodes).reshape(len(roots), nodes)
        has_all = (counts == 1).sum(axis=1) == contributors
        return np.asarray(has_all & (counts.max(axis=1, initial=0) <= 1) & (parts <= contributors), dtype=np.bool_)

    def contributions(self, version: int) -> Counter[int]:
        """Count the contributions in one version by node, without a limit on their number; slow."""
        counts: Counter[int] = Counter()
        if version < 0:
            return counts
        todo: Counter[int] = Counter({version: 1})
        block = self.block
        heap = [self._expansion_key(version)]
        while heap:
            _, current = heapq.heappop(heap)
            times = todo.pop(current, 0)
            if not times:
                continue
            if current >= block.writes:
                counts[(current - block.writes) % block.nodes] += times
                continue
            origin = int(self.origin[current])
            parts = [origin] if origin != current else [int(self.left[current]), int(self.right[current])]
            for part in parts:
                if part >= 0:
                    todo[part] += times
                    heapq.heappush(heap, self._expansion_key(part))
        return counts

    def _expansion_key(self, version: int) -> tuple[int, int]:
        """Return a sort key by which a version comes after all that are made of it: later writes come first."""
        if version >= self.block.writes:
            return (1, version)
        return (-int(self.block.order[version]) * (self.block.writes + 1) - version, version)
