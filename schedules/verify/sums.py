"""Contributions that a version is the sum of, with multiplicities.

A copied version is identified with its origin. Any other is the sum of two versions, and so on down to the initial
data of ranks: fully expanded, these are its contributions. A valid sum of n contributions expands into exactly n
parts, so an expansion is stopped, as counting something twice, as soon as it has more.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass

import numpy as np

from ...core.schedule import Bools, Ints
from .holdings import NOTHING, Block

#: Roots times nodes that are expanded at once.
AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Sums:
    """The versions of a block with copies resolved.

    Parameters
    ----------
    origin : array of int, shape (writes,)
        The version that each write is a copy of; itself if it is a sum.
    left, right : array of int, shape (writes,)
        The two parts of each sum.
    """

    block: Block
    origin: Ints
    left: Ints
    right: Ints

    @classmethod
    def of(cls, block: Block) -> Sums:
        """Resolve copies of copies by pointer doubling."""
        writes = block.writes
        brought, beneath = block.payload, block.beneath
        is_sum = (brought != NOTHING) & (beneath != NOTHING)
        origin = np.where(is_sum, np.arange(writes), np.where(brought == NOTHING, beneath, brought))
        open_ = np.flatnonzero(~is_sum & (origin >= 0) & (origin < writes))
        while len(open_):
            origin[open_] = jump = origin[origin[open_]]
            inside = (jump >= 0) & (jump < writes)
            open_ = open_[inside]
            jump = jump[inside]
            open_ = open_[origin[jump] != jump]
        sums = cls(block, origin, brought, beneath)
        return cls(block, origin, sums.resolve(brought), sums.resolve(beneath))

    def resolve(self, version: Ints) -> Ints:
        """Return the versions that these are copies of."""
        inside = (version >= 0) & (version < self.block.writes)
        if not len(self.origin):
            return version
        return np.where(inside, self.origin[np.where(inside, version, 0)], version)

    def whole(self, roots: Ints, contributors: Ints) -> Bools:
        """Return whether each root has the contribution of every holder of its chunk exactly once.

        Parameters
        ----------
        roots : array of int
            Versions with all copies resolved.
        """
        size = max(AT_ONCE // self.block.nodes, 1)
        parts = [self._whole(roots[i : i + size], contributors[i : i + size]) for i in range(0, len(roots), size)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)

    def _whole(self, roots: Ints, contributors: Ints) -> Bools:
        writes, nodes = self.block.writes, self.block.nodes
        owner, version = np.arange(len(roots)), roots
        parts = np.ones(len(roots), dtype=np.int64)
        leaves: list[Ints] = []
        while len(version):
            is_leaf = version >= writes
            leaves.append(owner[is_leaf] * nodes + (version[is_leaf] - writes) % nodes)
            go = (version >= 0) & ~is_leaf
            owner, version = owner[go], version[go]
            np.add.at(parts, owner, 1)
            small = parts[owner] <= contributors[owner]
            owner, version = owner[small], version[small]
            owner = np.concatenate([owner, owner])
            version = np.concatenate([self.left[version], self.right[version]])
        counts = np.bincount(np.concatenate(leaves), minlength=len(roots) * nodes).reshape(len(roots), nodes)
        enough = (counts == 1).sum(axis=1) == contributors
        return np.asarray(enough & (counts.max(axis=1, initial=0) <= 1) & (parts <= contributors), dtype=np.bool_)

    def contributions(self, version: int) -> Counter[int]:
        """Count the contributions in one version by node, without a limit on their number; slow."""
        found: Counter[int] = Counter()
        if version < 0:
            return found
        todo: Counter[int] = Counter({version: 1})
        block = self.block
        heap = [self._late(version)]
        while heap:
            _, current = heapq.heappop(heap)
            times = todo.pop(current, 0)
            if not times:
                continue
            if current >= block.writes:
                found[(current - block.writes) % block.nodes] += times
                continue
            origin = int(self.origin[current])
            parts = [origin] if origin != current else [int(self.left[current]), int(self.right[current])]
            for part in parts:
                if part >= 0:
                    todo[part] += times
                    heapq.heappush(heap, self._late(part))
        return found

    def _late(self, version: int) -> tuple[int, int]:
        """Return a sort key that puts versions after everything made of them.

        Those of one instant are in the order of the block's sort.
        """
        if version >= self.block.writes:
            return (1, version)
        return (-int(self.block.order[version]) * (self.block.writes + 1) - version, version)
