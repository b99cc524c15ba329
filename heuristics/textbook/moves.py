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
        """Return the moves in the order of the index."""
        return replace(
            self, block=self.block[index], source=self.source[index], target=self.target[index], step=self.step[index]
        )

    def relabel_positions(self, position: Ints) -> Moves:
        """Let ``position[i]`` play the part of position i; the blocks stay as they are."""
        return replace(self, source=position[self.source], target=position[self.target])

    def rename_blocks(self, position: Ints) -> Moves:
        """Renumber an all-gather, whose parts are named after their owners."""
        part, piece = np.divmod(self.block, self.slices)
        return replace(self.relabel_positions(position), block=position[part] * self.slices + piece)

    def rename_pairs(self, position: Ints) -> Moves:
        """Renumber an all-to-all, whose parts are named after both ends."""
        n = len(position)
        part, piece = np.divmod(self.block, self.slices)
        pair = position[part // n] * n + position[part % n]
        return replace(self.relabel_positions(position), block=pair * self.slices + piece)


def concatenate_moves(several: Sequence[Moves]) -> Moves:
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


def run_side_by_side(several: Sequence[Moves]) -> Moves:
    """Run algorithms side by side, each on its own equal share of every part."""
    shares, slices = len(several), several[0].slices
    shifted: list[Moves] = []
    for share, moves in enumerate(several):
        part, piece = np.divmod(moves.block, slices)
        block = (part * shares + share) * slices + piece
        shifted.append(replace(moves, block=block, slices=slices * shares))
    return concatenate_moves(shifted)


def negabinary(step: int) -> int:
    """Distance to the partner in a step of Swing and of Bine trees: 1, -1, 3, -5, 11, ..."""
    return int(1 - (-2) ** (step + 1)) // 3


def exchanges(partner: Sequence[Ints]) -> Moves:
    """Return an all-gather by pairwise exchange: in step s, positions send all they have to ``partner[s]``.

    Recursive doubling and Swing differ in the partners alone. The partners must be such that nobody receives a block
    twice.
    """
    held = np.eye(len(partner[0]), dtype=np.bool_)
    steps: list[Moves] = []
    for step, peer in enumerate(partner):
        source, block = np.nonzero(held)
        steps.append(Moves(block, source, peer[source], np.full_like(source, step)))
        held = held | held[peer]
    return concatenate_moves(steps)
