"""The logical side of an algorithm: which rank sends which block to which other one, in which step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...core.schedule import Ints


@dataclass(frozen=True, eq=False)
class Moves:
    """Copies of blocks between positions of the group.

    Parameters
    ----------
    block, source, target, step : array of int, shape (moves,)
        Which block goes from which position to which other one, in which step.
    slices : int
        Blocks that each part of the data is cut into, all of the same size; slice j of part i is block
        ``i * slices + j``.
    stride : int
        Steps by which each of several chunks of a block follows the one before: 0 if they go together.
    """

    block: Ints
    source: Ints
    target: Ints
    step: Ints
    slices: int = 1
    stride: int = 0

    def __len__(self) -> int:
        return len(self.block)

    def cut(self, chunks: int) -> Moves:
        """Cut every block into chunks; chunk j of block i becomes block ``i * chunks + j``."""
        if chunks == 1:
            return self
        piece = np.tile(np.arange(chunks), len(self))
        return Moves(
            np.repeat(self.block, chunks) * chunks + piece,
            np.repeat(self.source, chunks),
            np.repeat(self.target, chunks),
            np.repeat(self.step, chunks) + self.stride * piece,
            self.slices * chunks,
        )

    def backwards(self) -> Moves:
        """Run backwards: what was copied from a rank to another now goes from the other one to the first."""
        return replace(self, source=self.target, target=self.source, step=int(self.step.max()) - self.step)

    def take(self, index: Ints) -> Moves:
        """The moves in the order of the index."""
        return replace(
            self, block=self.block[index], source=self.source[index], target=self.target[index], step=self.step[index]
        )

    def relabelled(self, position: Ints) -> Moves:
        """Let ``position[i]`` play the part of position i; the blocks stay as they are."""
        return replace(self, source=position[self.source], target=position[self.target])

    def renamed(self, position: Ints) -> Moves:
        """The same in an all-gather, whose parts are named after those who have them."""
        part, piece = np.divmod(self.block, self.slices)
        return replace(self.relabelled(position), block=position[part] * self.slices + piece)

    def renamed_pairs(self, position: Ints) -> Moves:
        """The same in an all-to-all, whose parts are named after both ends."""
        n = len(position)
        part, piece = np.divmod(self.block, self.slices)
        pair = position[part // n] * n + position[part % n]
        return replace(self.relabelled(position), block=pair * self.slices + piece)


def joined(several: Sequence[Moves]) -> Moves:
    """Put moves of the same blocks into one table."""
    if len(several) == 1:
        return several[0]
    return replace(
        several[0],
        block=np.concatenate([moves.block for moves in several]),
        source=np.concatenate([moves.source for moves in several]),
        target=np.concatenate([moves.target for moves in several]),
        step=np.concatenate([moves.step for moves in several]),
    )


def together(several: Sequence[Moves]) -> Moves:
    """Run algorithms side by side, each on its own equal share of every part."""
    shares, slices = len(several), several[0].slices
    shifted: list[Moves] = []
    for share, moves in enumerate(several):
        part, piece = np.divmod(moves.block, slices)
        block = (part * shares + share) * slices + piece
        shifted.append(replace(moves, block=block, slices=slices * shares))
    return joined(shifted)


def negabinary(step: int) -> int:
    """Distance to the partner in a step of Swing and of Bine trees: 1, -1, 3, -5, 11, ..."""
    return int(1 - (-2) ** (step + 1)) // 3


def exchanges(partner: Sequence[Ints]) -> Moves:
    """All-gather by pairwise exchange: in step s, every position sends all it has to ``partner[s]`` of it.

    Recursive doubling and Swing differ in the partners alone. The partners must be such that nobody receives a block
    twice.
    """
    held = np.eye(len(partner[0]), dtype=np.bool_)
    steps: list[Moves] = []
    for step, peer in enumerate(partner):
        source, block = np.nonzero(held)
        steps.append(Moves(block, source, peer[source], np.full_like(source, step)))
        held = held | held[peer]
    return joined(steps)
