"""Schedules in steps of equal length whose sends are not kept: they are made again, step by step, whenever asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from .display import Shown
from .trees import TreeKind

#: Makes the sends of a gather: arrays of shape (steps, links), one after the other, with the chunk that each link
#: takes in each step, -1 where it takes none.
Blocks = Callable[[], Iterator[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class StreamedSteps(Shown):
    """An all-gather of all ranks in steps, of which only the number and a digest of the sends are kept.

    In a step a link takes one chunk from its tail, which has it, to its head; chunk ``r c + j`` is chunk j of rank r. A
    reduce-scatter is one whose links are turned around and whose last step is the first: the head adds what a link
    brings. An all-reduce is the reduce-scatter whose sends go over the opposite links, and then the gather.

    Parameters
    ----------
    instance_sha256 : str
        Digest of the instance that it is for.
    kind : TreeKind
        ``out`` for an all-gather, ``in`` for a reduce-scatter, ``in-out`` for the one and then the other.
    gather_steps : int
        Steps of the gather.
    gather_sends : int
        Its sends.
    digest : str
        Of the chunks of all blocks, see :func:`digest_of`.
    blocks : callable
        Makes the blocks, the same ones at every call; with a name at the top of a module, so that it can be sent.
    """

    instance_sha256: str
    kind: TreeKind
    gather_steps: int
    gather_sends: int
    digest: str
    blocks: Blocks

    @property
    def phases(self) -> int:
        """How often the steps are gone through: twice for an all-reduce."""
        return 2 if self.kind is TreeKind.BOTH else 1

    @property
    def steps(self) -> int:
        """Number of steps of the whole collective."""
        return self.phases * self.gather_steps

    @property
    def sends(self) -> int:
        """Number of sends of the whole collective."""
        return self.phases * self.gather_sends

    def _facts(self) -> Mapping[str, object]:
        return {"kind": self.kind.value, "steps": self.steps, "sends": self.sends, "digest": self.digest[:12]}


class Digest:
    """SHA-256 of chunks, as 32-bit integers in little-endian order, step by step and link by link."""

    def __init__(self) -> None:
        self._sum = sha256()

    def add(self, block: Any) -> None:
        """Take in a block."""
        self._sum.update(block.astype("<i4", copy=False).tobytes())

    def hex(self) -> str:
        """The digest so far."""
        return self._sum.hexdigest()
